"""Workloads of the artifacts of Pollux and Sia, as traces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpuschedlab.traces.intake.door import read_with
from gpuschedlab.traces.schema import OnBad, Read


def read_workload(
    path: str | Path,
    *,
    durations: float | Mapping[str, float] | None = None,
    on_bad: OnBad = "raise",
    notes: dict | None = None,
) -> Read:
    """Read a workload csv of the Pollux or Sia artifact as a frame: name, time, application, num_replicas, batch_size.

    The file holds the model of a job, not its duration, which is in the speed tables (`gpuschedlab.speeds`), so the
    durations on the requested GPUs come from the caller. Further columns of Sia's files pass through. Users,
    outcomes and wall clock are not published; there are no CPU-only rows, retries or censored durations.

    Parameters
    ----------
    path : path
        The csv file.
    durations : float or mapping
        Seconds on the requested GPUs: one figure for all, or by "application/batch_size/num_replicas" or "application".
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Stays as it is: nothing is left out.

    Returns
    -------
    polars.DataFrame
        A trace: job_id (the job's name), submit (s), gpus (num_replicas), duration (s), model (application), batch_size.

    Raises
    ------
    TraceError
        Columns are missing, a row is bad, or an application has no duration.

    References
    ----------
    Qiao et al., "Pollux", OSDI 2021, section 5.1 (petuum/adaptdl, simulator/workloads); Subramanya et al., "Sia",
    SOSP 2023, section 4.2.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "workload.csv")
    >>> _ = file.write_text("name,time,application,num_replicas,batch_size\\nbert-0,90,bert,4,96\\n")
    >>> read_workload(file, durations={"bert": 7200}).select("job_id", "submit", "gpus", "duration", "model").row(0)
    ('bert-0', 90.0, 4.0, 7200.0, 'bert')
    """
    return read_with("workload", path, on_bad, notes, {"durations": durations})
