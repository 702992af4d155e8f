"""Deadlines of the jobs of any trace by UniSched's recipe, and start delays and workloads by Chronus'."""

from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.deadlines import FULL
from gpuschedlab.traces.intake.door import read_with
from gpuschedlab.traces.schema import OnBad, Read

STEPS = (1.0, 1.1, 1.2, 1.5)
"""Soft deadlines over the first (Gao, PhD thesis, NTU 2025, section 5.3.3.2)."""

VALUES = (FULL, 80.0, 50.0, 20.0)
"""Value of a soft job by each of them (as above)."""


def with_deadlines(
    trace: pl.DataFrame,
    *,
    strict: float = 0.7,
    soft: float = 0.0,
    slack: tuple[float, float] = (1.1, 2.0),
    steps: tuple[float, ...] = STEPS,
    values: tuple[float, ...] = VALUES,
    rng: int | np.random.Generator = 0,
) -> pl.DataFrame:
    """Return a frame with a kind of each job, and deadlines of SLO jobs: a uniform multiple of their duration, soft ones in steps.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace; its kinds and deadlines are replaced.
    strict, soft : float
        Shares of the jobs with a strict and with soft deadlines; the others are best effort.
    slack : (float, float)
        Least and largest first deadline over the duration, above 1.
    steps, values : tuple of float
        Soft deadlines over the first, ascending from 1, and the value (0 to 100) of a job that ends by each.
    rng : int or numpy.random.Generator
        Seed.

    Returns
    -------
    polars.DataFrame
        The trace with `kind`, `deadlines`, `rewards`, `deadline` and `reward`.

    Raises
    ------
    TraceError
        Shares outside 0 to 1, or steps that are no value table.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 5.3.3.2 and 5.4.1.

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [60.0, 60.0]})
    >>> soft = with_deadlines(trace, strict=0.0, soft=1.0, slack=(2.0, 2.0))
    >>> soft["kind"][0], soft["deadlines"][0].round(6).to_list()
    ('soft', [120.0, 132.0, 144.0, 180.0])
    """
    if not (strict >= 0 and soft >= 0 and strict + soft <= 1):
        raise TraceError(
            f"with_deadlines: found strict={strict}, soft={soft}; expected shares that add up to at most 1."
        )
    if not 1 <= slack[0] <= slack[1]:
        raise TraceError(f"with_deadlines: found slack={slack}; expected two multiples of the duration from 1 up.")
    ordered = (np.diff(values) <= 0).all() and (np.diff(steps) > 0).all()
    if len(steps) != len(values) or steps[0] != 1 or not ordered:
        raise TraceError(
            f"with_deadlines: found steps={steps}, values={values}; expected as many of each, steps that ascend from 1, "
            "values that fall."
        )
    rng = np.random.default_rng(rng)
    level = rng.random(trace.height)
    stretch = rng.uniform(*slack, trace.height)
    kind = np.where(level < strict, "strict", np.where(level < strict + soft, "soft", "best_effort"))
    first = trace["duration"].to_numpy() * stretch
    deadlines_of_kind = {"strict": 1, "soft": len(steps), "best_effort": 0}
    due = []
    for d, k in zip(first, kind):
        deadlines = d * np.array(steps[: deadlines_of_kind[k]])
        due.append(deadlines.tolist() or None)
    worth = [list(values[: deadlines_of_kind[k]]) or None for k in kind]
    floats = pl.List(pl.Float64)
    columns = [pl.Series("kind", kind), pl.Series("deadlines", due, floats), pl.Series("rewards", worth, floats)]
    trace = trace.with_columns(columns)
    first_deadline = pl.col("deadlines").list.first()
    first_reward = pl.col("rewards").list.first()
    return trace.with_columns(deadline=first_deadline, reward=first_reward)


def with_start_delays(trace: pl.DataFrame, seconds: float = 30.0) -> pl.DataFrame:
    """Return a frame in which each start of a job costs `seconds` (1 + log2 GPUs), as in the Chronus artifact: the column `switch` (s).

    Examples
    --------
    >>> with_start_delays(pl.DataFrame({"gpus": [0.5, 1.0, 8.0]}))["switch"].to_list()
    [30.0, 30.0, 120.0]
    """
    doublings = pl.col("gpus").ceil().log(2)
    return trace.with_columns(switch=seconds * (1 + doublings))


def read_chronus(
    path: str | Path, *, workload: str | None = None, on_bad: OnBad = "raise", notes: dict | None = None
) -> Read:
    """Read a workload of the Chronus artifact as a frame: one csv file, or a parquet file of several in a column `set`.

    Minutes become seconds, values of up to 10 become values of up to 100; zero is the artifact's own. Jobs of no GPU are left
    out and counted. Best-effort jobs carry a deadline in the file that means nothing: it is dropped.

    Parameters
    ----------
    path : path
        The file.
    workload : str, optional
        Which of the workloads in column `set`, such as "MIX1"; needed if there are several.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of rows left out: cpu_only.

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
    return read_with("chronus", path, on_bad, notes, {"workload": workload})
