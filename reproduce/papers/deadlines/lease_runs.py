"""Runs of UniSched, its variants and the schedulers that it is compared with, on workloads with deadlines."""

import time
from functools import cache

import numpy as np
import polars as pl

from reproduce.published.data import read_data

ARTIFACT = ("SLO", "MIX1", "MIX2")
"""Workloads of the Chronus artifact, for 120 nodes of 8 GPUs."""

SHARES = {"SLO": (1.0, 0.0), "MIX1": (0.7, 0.0), "MIX2": (0.3, 0.6)}
"""Shares of strict and soft jobs of each workload."""

CLUSTERS = {"philly": "120x8", "venus": "96x8", "T": "16x4"}
DAY = 86_400.0
LOAD = 1.15
"""Offered load of the stand-ins: that of the artifact's workloads."""

SHORTEST = 1260.0
"""Seconds that the artifact's jobs take at least, and those of the stand-ins for Helios."""

RESERVED = "2x8"
"""Nodes of the profiler that the paper compares with (figure 9a)."""


def ways() -> dict:
    """Policies by the name that the table has for them."""
    from gpuschedlab import policies as p

    named = {name: p.ALL[name]() for name in ("fifo", "edf", "srtf", "tiresias", "themis", "hydra", "genie", "optimus")}
    named |= {name: p.ALL[name]() for name in ("threesigma", "chronus", "triagededf", "urgent", "unisched")}
    bare = {
        "no profiling": {},
        "nothing ahead": {"ahead": 0.0},
        "rounded leases": {"partial": False},
        "suspensions ignored": {"suspensions": False},
        "consolidated": {"spread": False},
    }
    bare |= {f"{m}-minute leases": {"lease": 60 * m, "interval": min(60 * m, 300)} for m in (5, 20, 30, 60)}
    named |= {f"unisched, {name}": p.UniSched(profile=0, **knobs) for name, knobs in bare.items()}
    named["unisched, profiling first"] = p.UniSched(profile_reward=200.0)
    named["unisched, reserved profiler"] = p.UniSched(profile=0)
    named["chronus, 10-minute leases"] = p.Chronus(lease=600)
    return named


def parts(setting: str) -> dict[str, float]:
    """A setting in parts: `days`, `delays` (x), `noise`, `hostile` (share of jobs), `density` (x) and `seed` of what is drawn.

    Examples
    --------
    >>> parts("days=2 delays=4")
    {'days': 2.0, 'delays': 4.0}
    """
    return {name: float(value) for name, value in (part.split("=") for part in setting.split())}


@cache
def workload(data_dir, name: str, setting: str) -> pl.DataFrame:
    """Jobs of a workload in a setting, with the delays of their starts.

    Parameters
    ----------
    data_dir : str or Path
    name : str
        SLO, MIX1 or MIX2; after "venus ", a stand-in for Helios; T360 or T720: so many jobs within eight hours.
    setting : str
        See `parts`.
    """
    from gpuschedlab.errors import LabError
    from gpuschedlab.traces import read, with_start_delays

    asked = parts(setting)
    seed = int(asked.get("seed", 0))
    if name in ARTIFACT:
        path = _path(data_dir, "reference/chronus_philly_slo.parquet")
        jobs = read("chronus", path, workload=name).drop("model")
    elif name.startswith("venus "):
        jobs = _venus(data_dir, name.removeprefix("venus "), asked.get("density", 1.0), seed)
    elif name.startswith("T"):
        jobs = _table_3(data_dir, int(name[1:]), seed)
    else:
        raise LabError(f"lease_runs: found the workload {name!r}; expected {', '.join(ARTIFACT)}, venus ... or T....")
    jobs = jobs.filter(pl.col("submit") <= asked.get("days", 14.0) * DAY)
    jobs = with_start_delays(jobs, 30.0 * asked.get("delays", 1.0))
    return _hostile(jobs, asked["hostile"], seed) if "hostile" in asked else jobs


def _path(data_dir, name: str):
    from pathlib import Path

    from gpuschedlab.errors import LabError

    file = Path(data_dir or ".") / name
    if data_dir is None or not file.is_file():
        raise LabError(
            f"reproduce: found no {name} in {data_dir}; expected the folder of the reference data. Pass --data FOLDER."
        )
    return file


def _jobs_of_venus(data_dir) -> pl.DataFrame:
    jobs = read_data(data_dir, "traces/helios_venus_gpu.parquet").sort("submit_s", "job_id")
    return jobs.select(
        "job_id",
        submit="submit_s",
        gpus=pl.col("n_gpus").cast(pl.Float64),
        duration=pl.col("duration_s").cast(pl.Float64),
    ).filter(pl.col("duration") >= 60)


def _venus(data_dir, mix: str, density: float, seed: int) -> pl.DataFrame:
    """Fourteen days of Venus, at the artifact's load, deadlines by the paper's recipe, thinned or denser."""
    from gpuschedlab.traces import scale_load, slice_trace, with_deadlines

    wanted = (pl.col("gpus") <= 64) & (pl.col("duration") >= SHORTEST)
    jobs = slice_trace(_jobs_of_venus(data_dir).filter(wanted), 105 * DAY)  # from here on it is steady
    gpus = 8 * int(CLUSTERS["venus"].split("x")[0])
    jobs = slice_trace(scale_load(jobs, load=LOAD * density, cluster_gpus=gpus), 0.0, 14 * DAY)
    strict, soft = SHARES[mix]
    return with_deadlines(jobs, strict=strict, soft=soft, rng=seed)


def _table_3(data_dir, count: int, seed: int) -> pl.DataFrame:
    """So many jobs of Venus within eight hours: below 16 GPUs, of 5 to 180 minutes, as MIX2."""
    from gpuschedlab.traces import with_deadlines

    jobs = _jobs_of_venus(data_dir).filter((pl.col("gpus") < 16) & pl.col("duration").is_between(300, 10_800))
    jobs = jobs.filter(pl.col("submit") % DAY < DAY / 3).sample(count, seed=seed, shuffle=True)
    jobs = jobs.with_columns(pl.col("submit") % (DAY / 3)).sort("submit", "job_id")
    strict, soft = SHARES["MIX2"]
    return with_deadlines(jobs, strict=strict, soft=soft, rng=seed)


def _hostile(jobs: pl.DataFrame, share: float, seed: int = 0) -> pl.DataFrame:
    """A share of the jobs requests 3 or 6 GPUs, with the GPU-time and deadlines that it had."""
    rng = np.random.default_rng(seed)
    gpus = np.where(rng.random(jobs.height) < share, rng.choice([3.0, 6.0], jobs.height), jobs["gpus"].to_numpy())
    kept = (
        rng.random(jobs.height) < (jobs["gpus"] * jobs["duration"]).sum() / (gpus * jobs["duration"].to_numpy()).sum()
    )
    return jobs.with_columns(gpus=pl.Series(gpus)).filter(pl.Series(kept))


def profiled_apart(jobs: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Jobs as they come from a profiler on `RESERVED` nodes, in order of submission, and what each waited for it (s)."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies import Fifo
    from gpuschedlab.sim import simulate

    asked = jobs.select("job_id", "submit", gpus=pl.col("gpus").clip(upper_bound=2.0), duration=pl.lit(300.0))
    run = simulate(asked, Cluster.parse(RESERVED), Fifo()).jobs
    late = jobs.select("job_id").join(run.select("job_id", "end", "start"), on="job_id", maintain_order="left")
    lost = late["end"] - jobs["submit"]
    # What has passed meanwhile is next to now: a deadline is ahead of submission.
    due = [
        d and [max(x - late, 1e-3 * k) for k, x in enumerate(d, 1)]
        for d, late in zip(jobs["deadlines"].to_list(), lost)
    ]
    moved = jobs.with_columns(submit=late["end"], deadlines=pl.Series(due, dtype=pl.List(pl.Float64)))
    return moved.with_columns(deadline=pl.col("deadlines").list.first()), late["start"] - jobs["submit"]


def measure(data_dir, setting: str, name: str, policy: str) -> dict:
    """One workload under one policy.

    Parameters
    ----------
    data_dir : str or Path
    setting, name : str
        As for `workload`; a setting may have `noise`, the relative error of durations.
    policy : str
        Of `ways`.

    Returns
    -------
    dict
        `violation` (%, weighted), `best_effort` and `all` (mean completion times, min), `suspensions` per job with
        deadlines, `profiling` (mean, s), `wait` (longest for profiling, s), `cached` (rounds), `round` (longest, s), and
        `seconds` (CPU); or `failed`: why there is none.
    """
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.errors import LabError
    from gpuschedlab.estimators import Noisy
    from gpuschedlab.policies.simple import Ordered
    from gpuschedlab.sim import simulate
    from reproduce.published.timing import timed

    begin = time.process_time()
    rounds = []
    decides = ways()[policy]
    jobs = workload(data_dir, name, setting)
    wait = None
    size = CLUSTERS["philly" if name in ARTIFACT else "T" if name.startswith("T") else "venus"]
    if policy.endswith("reserved profiler"):
        jobs, wait = profiled_apart(jobs)
        size = f"{int(size.split('x')[0]) - 2}x8"
    noise = parts(setting).get("noise")
    seed = int(parts(setting).get("seed", 0))
    decides = decides if isinstance(decides, Ordered) else timed(decides, rounds)
    try:
        run = simulate(jobs, Cluster.parse(size), decides, estimator=Noisy(error=noise, rng=seed) if noise else None)
    except LabError as error:
        return {"failed": str(error)}
    return observed(run, wait) | {"round": max(rounds, default=0.0), "seconds": time.process_time() - begin}


def observed(run, wait) -> dict:
    from gpuschedlab.metrics import slo_violation

    jobs = run.jobs
    slo = jobs.filter(pl.col("kind") != "best_effort")
    others = jobs.filter(kind="best_effort")
    if wait is None:
        first = run.allocations.filter("profiling").group_by("job", maintain_order=True).agg(pl.col("start").min())
        wait = first["start"] - jobs["submit"].gather(first["job"])
    status = run.rounds["status"] if "status" in run.rounds.columns else pl.Series([], dtype=pl.Utf8)
    return {
        "violation": 100 * slo_violation(run),
        "best_effort": others["jct"].mean() / 60 if others.height else None,
        "all": jobs["jct"].mean() / 60,
        "suspensions": float(slo["restarts"].mean()),
        "profiling": float(jobs["profiled"].mean()),
        "wait": float(wait.max()) if len(wait) else None,
        "cached": int(status.str.contains("cached").sum() or 0),
    }
