"""Published traces by name, each a function with what its format means: `gpuschedlab.intake` without its report."""

from __future__ import annotations

from pathlib import Path

from gpuschedlab.traces.intake.door import read_with
from gpuschedlab.traces.schema import OnBad, Read


def read_philly(
    path: str | Path, *, zone: str | None = "America/Los_Angeles", on_bad: OnBad = "raise", notes: dict | None = None
) -> Read:
    """Read Microsoft's Philly trace: `cluster_job_log` as published (a JSON list, one object a job).

    *Retries*: a job has one row; its duration is the sum of its attempts', their number is kept in `attempts`. An attempt
    without both times (a logging error, says the README) adds nothing, and is counted.
    *Censored*: a job with a start and no end of its last attempt was still running when the log was taken: it is censored at
    the latest time in the log.
    *GPUs*: those of the first attempt that names any; jobs never scheduled, on no GPU, or without a known second of
    running are left out and counted.
    *Time zone*: the log holds local times without a zone (the cluster's other logs say PST and PDT). Elapsed seconds are
    computed in `zone`, so that the hour that comes twice on 2017-11-05 does not shorten jobs: there, a time is the
    earlier one that is not before what it follows. `clock` is the local time as published.
    *Missing users* ('None') are null.

    Parameters
    ----------
    path : path
        The file, or a folder that holds one.
    zone : str, optional
        Time zone of the log; None takes differences of the published clock times.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad entries with `row` (place in the list, from 1) and `problem`.
    notes : dict, optional
        Takes counts: never_scheduled, cpu_only, never_ran (jobs left out), attempts_without_times.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), user, vc, status, censored, clock, attempts, machines (of that
        attempt).

    Raises
    ------
    TraceError
        The file is cut off or no such log, or an entry is bad.

    References
    ----------
    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", ATC 2019; README of
    msr-fiddle/philly-traces (CC-BY-4.0).

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> attempt = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
    ...            "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}
    >>> log = [{"status": "Pass", "vc": "v", "jobid": "a", "attempts": [attempt, attempt],
    ...         "submitted_time": "2017-10-07 01:11:39", "user": "None"}]
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cluster_job_log")
    >>> _ = file.write_text(json.dumps(log))
    >>> read_philly(file).select("job_id", "submit", "gpus", "duration", "user", "attempts").row(0)
    ('a', 0.0, 2.0, 148.0, None, 2)
    """
    return read_with("philly", path, on_bad, notes, {"zone": zone})


def read_helios(path: str | Path, *, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read one cluster of SenseTime's Helios traces: `cluster_log.csv` as published.

    Rows that request no GPU, that ran 0 s (cancelled before they began), and the one SUSPENDED job, which the owners leave
    out too, are left out and counted. Times are local (UTC+8, no daylight saving), so that their differences are elapsed
    seconds; zero is the first GPU job. TIMEOUT and NODE_FAIL are failed. Durations are not censored. A job
    has one row and one start: retries are jobs of their own. A missing user or virtual cluster stays null.

    Parameters
    ----------
    path : path
        The file, or a folder that holds one.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: cpu_only, suspended, never_ran.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), user, vc, name (where the file has jobname), status, clock,
        machines (nodes requested).

    Raises
    ------
    TraceError
        Columns are missing, or a row is bad; a duration must be end_time - start_time.

    References
    ----------
    Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021,
    table 1; README of S-Lab-System-Group/HeliosData (CC-BY-4.0).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cluster_log.csv")
    >>> _ = file.write_text(
    ...     "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\\n"
    ...     "7,uA,vcB,8,64,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:30,240,3\\n")
    >>> read_helios(file).select("job_id", "submit", "gpus", "duration", "status").row(0)
    ('7', 0.0, 8.0, 240.0, 'failed')
    """
    return read_with("helios", path, on_bad, notes, {})


def read_pai(path: str | Path, *, instances: bool = False, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read Alibaba's PAI trace of 2020 from a folder of its tables, as published (without header lines).

    *A job* is one row: its GPU tasks run together, so its GPUs are their sum of inst_num x plan_gpu / 100, and its duration
    goes from the first GPU task's start to the last one's end; waiting (from the job's start_time, which is its submission,
    to its first task) is not in it. *Fractions*: totals below 1 GPU stay fractions; a total above 1 that is not whole is
    rounded up (the exact figure is kept in `gpus_planned`). *CPU-only* tasks (no plan_gpu) do not count, jobs of only those
    are left out. *Censored*: a Running task lasts until the latest time in the tables. *Retries* happen to instances: with
    instances=True, `attempts` is the most launches of any instance. Waiting jobs, and jobs whose tasks lack a start or (not
    running) an end, are left out; all is counted. *Users*: of the job table, otherwise of the group tags, otherwise null.
    *Time zone*: seconds less a constant; read as Unix time in UTC+8, hour of day and day of week are right and
    dates are not; so is `clock`.

    Parameters
    ----------
    path : path
        Folder with pai_job_table.csv and pai_task_table.csv; pai_group_tag_table.csv gives `name` (the group of repeated
        jobs), `model` (workload) and `gpu_type` (gpu_type_spec, what the job asks for).
    instances : bool
        Whether to read pai_instance_table.csv (2 GB) too, for `attempts` and `machines`.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad): bad rows with `table`, `row` (line of the file) and `problem`. A job with a bad task is
        in neither.
    notes : dict, optional
        Takes counts: cpu_only, waiting, untimed, never_ran (jobs left out), tasks_without_job, jobs_with_bad_tasks.

    Returns
    -------
    polars.DataFrame
        A trace: job_id (job_name), submit (s), gpus, duration (s), user, status, censored, clock, gpus_planned, gpu_model, and
        what the optional tables give.

    Raises
    ------
    TraceError
        A table is missing or has another number of columns, or a row is bad.

    References
    ----------
    Weng et al., "MLaaS in the Wild", NSDI 2022, section 2; README of alibaba/clusterdata, cluster-trace-gpu-v2020
    (CC-BY-4.0).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "pai_job_table.csv").write_text("j,i,u,Terminated,100.0,500.0\\n")
    >>> _ = (folder / "pai_task_table.csv").write_text("j,worker,2.0,Terminated,140.0,500.0,600.0,29.3,25.0,T4\\n")
    >>> read_pai(folder).select("job_id", "submit", "gpus", "duration", "status").row(0)
    ('j', 0.0, 0.5, 360.0, 'completed')
    """
    return read_with("pai", path, on_bad, notes, {"instances": instances})


def read_itp(path: str | Path, *, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read one cluster of Microsoft's ITP traces: a csv of raw-traces or of elasticflow-traces, as published.

    Times of submission are seconds since the collection began, and stay so (the wall clock is not published). Rows that
    request no GPU or last 0 s are left out and counted. The elasticflow csv adds generated columns: model_name -> model,
    num_iteration -> target, batch_size, and deadline, which is absolute there (16566 + 1.23 x 3890 = 21347 in the README's
    example) and counts from submission here.
    Users, outcomes and censoring are not published.

    Parameters
    ----------
    path : path
        The csv file of one cluster.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: cpu_only, never_ran.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), and where published model, target (iterations), batch_size,
        deadline (s since submission).

    Raises
    ------
    TraceError
        Columns are missing, or a row is bad; a deadline must come after submission.

    References
    ----------
    Gu et al., "ElasticFlow", ASPLOS 2023, section 6.1; README of microsoft/elasticflow-traces.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cluster.csv")
    >>> _ = file.write_text("job_id,submission_time,duration,num_gpu\\na,50,3600,4\\n")
    >>> read_itp(file).select("job_id", "submit", "gpus", "duration").row(0)
    ('a', 50.0, 4.0, 3600.0)
    """
    return read_with("itp", path, on_bad, notes, {})
