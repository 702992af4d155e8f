"""Time of whole traces under Sia: the workloads of its artifact, with our solver and with HiGHS."""

import statistics
import time
from pathlib import Path

from gpuschedlab.bench import workloads
from gpuschedlab.bench.data import read_data
from gpuschedlab.policies import Sia
from gpuschedlab.sim import simulate

BUDGET, LARGE_BUDGET = 1.0, 10.0
"""CPU seconds of a workload of 160 jobs, and of the one on 2,048 GPUs."""

SHARE = 0.1
"""Of the CPU seconds of the same workload where HiGHS solves the rounds."""

LARGE = ("scale/scale_32x", 32)
"""Workload on 2,048 GPUs, and how many of the usual clusters these are."""

RUNS = 3


def run(data_dir: str | Path | None = None) -> dict:
    """Run each workload of 160 jobs with both solvers, and the large one with ours.

    Parameters
    ----------
    data_dir : str or Path, optional
        Folder of the reference data.

    Returns
    -------
    dict
        `workloads`: one dict each with `name, jobs, gpus, seconds` (CPU s of a run, median), `budget_s`, `highs` (s) and
        `share`, ours over that; `ok`.

    Raises
    ------
    LabError
        There is no reference data.
    """
    held = read_data(data_dir, "reference/sia_workloads.parquet").select("set", "idx").unique().sort("set", "idx")
    cases = [row for row in held.iter_rows() if row[0] in ("philly", "saturn")]
    seconds(data_dir, *cases[0], "prices"), seconds(data_dir, *cases[0], "highs")  # what is loaded at the first use
    rows = [measure(data_dir, *case) for case in cases]
    name, times = LARGE
    jobs, large = seconds(data_dir, name, 1, "prices", times)
    rows.append({"name": name, "jobs": jobs, "gpus": 64 * times, "seconds": large, "budget_s": LARGE_BUDGET})
    for row in rows:
        row["ok"] = row["seconds"] <= row["budget_s"] and row.get("share", 0.0) <= SHARE
    return {"bench": "sia", "workloads": rows, "ok": all(row["ok"] for row in rows)}


def measure(data_dir, name: str, number: int) -> dict:
    """A workload with either solver, in turn."""
    own = [seconds(data_dir, name, number, "prices") for _ in range(RUNS)]
    jobs, highs = seconds(data_dir, name, number, "highs")
    taken = statistics.median(s for _, s in own)
    row = {"name": f"{name} {number}", "jobs": jobs, "gpus": 64, "seconds": taken, "budget_s": BUDGET}
    return row | {"highs": highs, "share": taken / highs}


def seconds(data_dir, name: str, number: int, solver: str, times: int = 1) -> tuple[int, float]:
    """Jobs of a workload, and the CPU seconds of its simulation."""
    form = workloads.adaptive(data_dir, "typed", workloads.workload(data_dir, name, number))
    trace, cluster = workloads.workload_trace(form), workloads.cluster("typed", times)
    begin = time.process_time()
    simulate(trace, cluster, Sia(solver=solver), speeds=form.speeds)
    return trace.height, time.process_time() - begin
