"""Statistics of the past jobs of a user, a task or a demand, as known at a given time."""

from collections.abc import Sequence

import polars as pl

from gpuschedlab.knobs import Knob

#: Knob of the jobs after which a weight in a group of like names has halved.
HALF_LIFE = Knob(1e-3, 1e15, log=True, unit="jobs", tuned=(1, 1000), help="after which a weight has halved")

#: From the most alike jobs to all jobs; a level applies where the more alike ones have no past.
LEVELS = (("user", "name"), ("user", "kin"), ("user", "gpus"), ("user",), ("gpus",), ())


def with_kin(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with column `kin`, the name in lower case with every run of digits as one `#`."""
    # "bert_lr0.1_seed3" and "bert_lr0.5_seed7" are kin. Columns `user` and `name` are added, all null, where they are
    # missing.
    labels = [
        pl.col(label_column) if label_column in jobs.columns else pl.lit(None).alias(label_column)
        for label_column in ("user", "name")
    ]
    kin = pl.col("name").str.to_lowercase().str.replace_all(r"\d+", "#")
    return jobs.with_columns(label_text.cast(pl.String) for label_text in labels).with_columns(kin=kin)


def pasts(history: pl.DataFrame, half_life: float) -> dict[tuple[str, ...], pl.DataFrame]:
    """Return a dict of frames by level, which follow each group's durations from one finished job of a history to the next.

    The history has gone through `with_kin`.
    """
    # In the groups of like names recent jobs count more: after a group's k-th job finished, its mean counts the job
    # before with weight 2^(-1/half_life), the one before that with the square of it, and so on. In the wider groups all
    # count alike.
    finished_jobs = history.with_columns(known=pl.col("submit") + pl.col("duration"), log=pl.col("duration").log())
    finished_jobs = finished_jobs.sort("known", "job_id")
    past_count = pl.int_range(1, pl.len() + 1)
    past_by_level = {}
    averaged_columns = {"mean": pl.col("duration"), "log_mean": pl.col("log")}
    for keys in LEVELS:
        fading = "name" in keys or "kin" in keys
        past_columns = {"count": past_count, "last": pl.col("log")}
        past_columns |= {
            mean_column: averaged.ewm_mean(half_life=half_life) if fading else averaged.cum_sum() / past_count
            for mean_column, averaged in averaged_columns.items()
        }
        grouped_jobs = finished_jobs.drop_nulls(keys) if keys else finished_jobs
        past_columns = (
            {past_column: past_value.over(keys) for past_column, past_value in past_columns.items()}
            if keys
            else past_columns
        )
        past_by_level[keys] = grouped_jobs.select(*keys, "known", **past_columns)
    return past_by_level


def recall(past: pl.DataFrame, keys: Sequence[str], jobs: pl.DataFrame, at: str | None = None) -> pl.DataFrame:
    """Look up each job's group in its past, and return a frame with one row per job."""
    past_columns = ["count", "mean", "log_mean", "last"]
    jobs_to_look_up = jobs.with_row_index("row").select("row", *keys, **({"known": pl.col(at)} if at else {}))
    if at:
        by = {"by": list(keys)} if keys else {}
        answer = jobs_to_look_up.sort("known").join_asof(
            past, on="known", strategy="backward", check_sortedness=False, allow_exact_matches=False, **by
        )
    elif keys:
        latest = past.group_by(keys, maintain_order=True).last()
        answer = jobs_to_look_up.join(latest, on=list(keys), how="left", maintain_order="left")
    else:
        answer = jobs_to_look_up.join(past.tail(1), how="cross")
    return answer.sort("row").select(past_columns).with_columns(pl.col("count").fill_null(0))
