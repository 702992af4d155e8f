"""Reader of the workloads of the Chronus artifact: jobs with strict and soft deadlines, made from Philly."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gpuschedlab._files import read_frame
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.deadlines import broken_tables
from gpuschedlab.traces.logs import texts as src
from gpuschedlab.traces.schema import LATEST, OnBad, Read, Rule

COLUMNS = ["job_id", "user", "num_gpu", "submit_time", "duration", "expect_time_list", "expect_value_list", "job_type"]
KINDS = {"strict": "strict", "soft": "soft", "best": "best_effort"}
MINUTE = 60.0
TEN = 10.0
"""The artifact's values go to 10, those of a trace to 100."""

LISTS = {"deadlines": ("expect_time_list", MINUTE), "rewards": ("expect_value_list", TEN)}


def read_chronus(
    path: str | Path, *, workload: str | None = None, on_bad: OnBad = "raise", notes: dict | None = None
) -> Read:
    """Read a workload of the Chronus artifact: one csv file, or a parquet file of several in a column `set`.

    Minutes become seconds, values of up to 10 become values of up to 100; zero is the artifact's own. Jobs of no GPU are left
    out and counted. Best-effort jobs carry a deadline in the file that means nothing: it is dropped.

    Parameters
    ----------
    path : path
        The file.
    workload : str, optional
        Which of the workloads in column `set`, such as "MIX1"; needed where there are several.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: cpu_only.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), user, model, kind, and the value table (deadlines, rewards).

    Raises
    ------
    TraceError
        Columns are missing, there is no such workload, or a row is bad: among others a deadline that is not after
        submission, deadlines that do not ascend, values that rise.

    References
    ----------
    Gao et al., "Chronus", SoCC 2021; S-Lab-System-Group/ChronusArtifact (MIT).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "job_info.csv")
    >>> _ = file.write_text(
    ...     "job_id,user,num_gpu,submit_time,duration,expect_time_list,expect_value_list,job_type\\n"
    ...     "7,vc_1,4,10,60,90-99,10-8,soft\\n8,vc_1,1,10,60,90,10,best\\n")
    >>> read_chronus(file).select("submit", "kind", "deadlines", "rewards").rows()
    [(600.0, 'soft', [5400.0, 5940.0], [100.0, 80.0]), (600.0, 'best_effort', None, None)]
    """
    file = Path(path)
    source = f"chronus {file.name}"
    frame = _chosen(_texts(file, source), workload, source)
    src.require(frame, COLUMNS, source=source)
    frame = src.numbers(frame, ["num_gpu", "submit_time", "duration"])
    # Numbers that are joined by dashes; what is no number becomes null, for the rules to find.
    number = pl.element().str.strip_chars().cast(pl.Float64, strict=False)
    lists = {table: pl.col(name).str.split("-").list.eval(number * unit) for table, (name, unit) in LISTS.items()}
    frame = frame.with_columns(**lists)
    slo = pl.col("job_type") != "best"
    rules = [
        *src.id_rules("job_id"),
        src.gpu_rule("num_gpu"),
        src.known_rule("job_type", KINDS),
        src.number_rule("submit_time", "minutes from 0 up", high=LATEST / MINUTE),
        src.number_rule("duration", "minutes from 0 up, at most ten years"),
        *(Rule(LISTS[table][0], expected, slo & bad) for table, expected, bad in broken_tables() if table in LISTS),
    ]
    reasons = {"cpu_only": pl.col("num_gpu") == 0}
    return src.jobs_of(frame, rules, reasons, _trace, source=source, on_bad=on_bad, notes=notes, spare=LISTS)


def _texts(file: Path, source: str) -> pl.DataFrame:
    if file.suffix != ".parquet":
        return src.read_texts(src.find_file(file, "a csv file of the artifact", source=source), source=source)
    with src.readable(source, "a parquet file with a column `set`"):
        return read_frame(file).cast(pl.String)


def _chosen(frame: pl.DataFrame, workload: str | None, source: str) -> pl.DataFrame:
    """The rows of one workload."""
    sets = sorted(frame["set"].unique()) if "set" in frame.columns else []
    if workload is None and len(sets) < 2:
        return frame
    if workload not in sets:
        raise TraceError(f"{source}: found workload {workload!r}; expected one of {', '.join(sets) or 'none'}.")
    return frame.filter(pl.col("set") == workload)


def _trace(good: pl.DataFrame) -> pl.DataFrame:
    slo = pl.col("job_type") != "best"
    return good.select(
        "job_id",
        "user",
        (pl.col("submit_time") * MINUTE).alias("submit"),
        pl.col("num_gpu").alias("gpus"),
        (pl.col("duration") * MINUTE).alias("duration"),
        pl.col("job_type").replace_strict(KINDS).alias("kind"),
        *([pl.col("model_name").alias("model")] if "model_name" in good.columns else []),
        *(pl.when(slo).then(table).alias(table) for table in LISTS),
    )
