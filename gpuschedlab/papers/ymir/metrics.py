"""How many jobs of a run learnt from each other."""

import polars as pl


def merged_shares(run) -> dict[str, float]:
    """Return a dict of shares of jobs: trained jointly (`spatial`), and that took another's result or gave theirs (`temporal`)."""
    job_count = max(run.jobs.height, 1)
    guests = run.allocations.filter(pl.col("guest"))["job"].n_unique()
    after = run.jobs.with_row_index("row").filter(pl.col("source").is_not_null(), pl.col("source") != pl.col("row"))
    merged_rows = pl.concat([after["row"].cast(pl.Int64), after["source"].cast(pl.Int64)])
    return {"spatial": min(2 * guests / job_count, 1.0), "temporal": merged_rows.n_unique() / job_count}
