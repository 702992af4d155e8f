"""UniSched and the schedulers that it is compared with, on the Chronus artifact's workloads, beside what is published."""

import time
from importlib.resources import files
from pathlib import Path

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError
from gpuschedlab.metrics import slo_violation
from gpuschedlab.policies import ALL, Chronus, UniSched
from gpuschedlab.sim import simulate
from gpuschedlab.traces import read, with_start_delays

WORKLOADS = ("SLO", "MIX1", "MIX2")
CLUSTER = "120x8"
FILE = "reference/chronus_philly_slo.parquet"

NAMES = ("fifo", "edf", "srtf", "tiresias", "themis", "hydra", "genie", "threesigma", "optimus", "chronus")
OURS = ("triagededf", "urgent")
VARIANTS = {
    "unisched": UniSched(),
    "unisched, no profiling": UniSched(profile=0),
    "unisched, profiling first": UniSched(profile_reward=200.0),
    "unisched, nothing ahead": UniSched(profile=0, ahead=0.0),
    "unisched, 20-minute leases": UniSched(profile=0, lease=1200),
    "unisched, rounded leases": UniSched(profile=0, partial=False),
    "unisched, suspensions ignored": UniSched(profile=0, suspensions=False),
    "chronus, 10-minute leases": Chronus(lease=600),
}
"""UniSched with and without its parts: what each costs or brings."""

POLICIES = (*NAMES, *OURS, *VARIANTS)
WORSE = ("fifo", "tiresias", "themis")
"""UniSched violates fewer deadlines than these on all workloads."""

CAUSES = (
    "The published figures are ratios on images that are not in the texts, with deadlines by another recipe; these are the "
    "artifact's jobs and deadlines (1.1 to 5 times the duration), on 120 nodes of 8, with start delays of 30 (1 + log2 g) s "
    "and exact durations. Loose comparisons only.",
    "A job of at least 21 minutes and a deadline from 1.1 times that has little room for 300 s of profiling and 600 s of a "
    "lease's grid: with both lost, 0.4 to 0.85 % of the deadlines cannot be met in an empty cluster.",
    "Speeds are not in the workloads: a job is as fast on any nodes, and no job is of a size that consolidation rounds up.",
)
"""Why the figures differ."""


def published() -> pl.DataFrame:
    """What the paper and the thesis report: where, workload, cluster, policy, metric, value, spread, kind.

    Examples
    --------
    >>> published().columns
    ['where', 'workload', 'cluster', 'policy', 'metric', 'value', 'spread', 'kind']
    """
    return pl.read_csv(files("gpuschedlab.bench").joinpath("unisched_published.csv").read_text().encode())


def run(
    data_dir: str | Path | None = None, traces: tuple = WORKLOADS, policies: tuple = POLICIES, seeds: tuple = (0,)
) -> dict:
    """Simulate the workloads, and set what is measured beside what is published.

    Parameters
    ----------
    data_dir : str or Path
        Folder of the reference data.
    traces : tuple of str
        Workloads.
    policies : tuple of str
        Names of `POLICIES`.
    seeds : tuple of int
        Not used: nothing is random.

    Returns
    -------
    dict
        `runs`: one dict each (see `measure`); `published`: rows of `published()` with `ours` where it can be computed;
        `causes`; `ok`: UniSched violates fewer deadlines than those of `WORSE` on each workload.
    """
    runs = [measure(data_dir, w, p) for w in traces for p in policies]
    rate = {(r["workload"], r["policy"]): r["violation"] for r in runs}
    ok = all(
        rate[w, "unisched"] < rate[w, p] for w in traces for p in WORSE if (w, p) in rate and (w, "unisched") in rate
    )
    return {"bench": "unisched", "runs": runs, "published": beside(runs), "causes": list(CAUSES), "ok": ok}


def workload(data_dir: str | Path | None, name: str, days: float = 14.0) -> pl.DataFrame:
    """Read one of the artifact's workloads, with its start delays.

    Raises
    ------
    LabError
        The file is missing.
    """
    path = Path(data_dir or "") / FILE
    if data_dir is None or not path.is_file():
        raise LabError(
            f"bench unisched: found no file {path}; expected the folder of the reference data: --data FOLDER."
        )
    jobs = with_start_delays(read("chronus", path, workload=name)).drop("model")
    return jobs.filter(pl.col("submit") <= days * 86_400)


def measure(data_dir: str | Path | None, name: str, policy: str, days: float = 14.0) -> dict:
    """Run a policy on a workload.

    Returns
    -------
    dict
        workload, policy, `violation` (%, weighted), `best_effort` and `all` (mean completion times, min), `starts` of a job
        with deadlines, `profiling` (mean, s), `gap` (largest proven), `cached` rounds, and `seconds` (CPU).
    """
    made = VARIANTS[policy] if policy in VARIANTS else ALL[policy]()
    begin = time.process_time()
    found = simulate(workload(data_dir, name, days), Cluster.parse(CLUSTER), made)
    seconds = time.process_time() - begin
    jobs = found.jobs
    others = jobs.filter(kind="best_effort")["jct"].mean()
    slo = jobs.filter(pl.col("kind") != "best_effort")
    status = found.rounds["status"].str.contains("cached").sum()
    return {
        "workload": name,
        "policy": policy,
        "violation": 100 * slo_violation(found),
        "best_effort": None if others is None else others / 60,
        "all": jobs["jct"].mean() / 60,
        "starts": 1 + slo["restarts"].mean(),
        "profiling": jobs["profiled"].mean(),
        "gap": found.rounds.select((1 - pl.col("objective") / pl.col("bound")).max()).item(),
        "cached": int(status),
        "seconds": seconds,
    }


def beside(runs: list[dict]) -> list[dict]:
    """Published rows, each with the same ratio to UniSched's as measured here: `ours`, None where it cannot be computed."""
    found = {(r["workload"], r["policy"]): r for r in runs}
    keys = {"violation": "violation", "best_effort_jct": "best_effort"}
    rows = []
    for row in published().iter_rows(named=True):
        base, other = found.get((row["workload"], "unisched")), found.get((row["workload"], row["policy"]))
        key = keys.get(row["metric"])
        known = key and base and other and base[key] and other[key]
        rows.append(row | {"ours": other[key] / base[key] if known else None})
    return rows
