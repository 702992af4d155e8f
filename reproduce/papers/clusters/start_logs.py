"""Logs for questions when a job will start: made ones, and thinned parts of published ones, played by a site's own rule on its nodes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.papers.clusters.recipe import Site

DAY = 86_400.0
DAYS = 35
PER_NODE = 8
LIMITS = 3600.0 * np.array([1 / 6, 1 / 2, 1, 2, 4, 8, 12, 24, 48, 96, 168])
"""Times that users ask for."""
LONGEST = 72 * 3600.0
SIZES = np.array([1, 2, 4, 8, 16, 32])
SHARES = np.array([0.45, 0.15, 0.15, 0.17, 0.06, 0.02])
USERS = 25
HOURS = np.repeat([0.5, 2.0, 1.0], [8, 12, 4])
"""How many jobs come by hour of the day."""

EASY = '[scheduler]\nbackfill = "easy"\n'
PLAN = "SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=30,bf_max_job_test=500,bf_window=10080,bf_resolution=60\n"
FAIR = "PriorityType=priority/multifactor\nPriorityWeightFairshare=10000\nPriorityWeightAge=1000\nPriorityDecayHalfLife=7-0\n"
LARGE = "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityMaxAge=14-0\nPriorityWeightJobSize=400\n"
QOS = "Name|MaxTRESPU\nnormal|gres/gpu={most}\n"


@dataclass(frozen=True)
class Kind:
    """What a log is: its jobs, GPUs, load, and rule; `sweeps` is the share of submissions that are of several jobs."""

    jobs: str
    gpus: int
    load: float
    rule: str
    sweeps: float = 0.5


KINDS = {
    "made easy": Kind("made", 128, 0.82, "easy"),
    "made easy, one after another": Kind("made", 64, 0.8, "easy", 0.1),
    "made slurm": Kind("made", 128, 0.85, "slurm", 0.1),
    "made large first": Kind("made", 96, 0.8, "large", 0.3),
    "made fair share": Kind("made", 128, 0.8, "fair", 0.3),
    "made limits": Kind("made", 128, 0.75, "limits", 0.3),
    "philly easy": Kind("philly_pollux", 160, 0.85, "easy"),
    "philly slurm": Kind("philly_pollux", 120, 0.7, "slurm"),
    "venus easy": Kind("helios_venus_gpu", 320, 0.8, "easy"),
    "venus slurm": Kind("helios_venus_gpu", 256, 0.85, "slurm"),
    "pai easy": Kind("pai2020_sample_8pct", 240, 0.85, "easy"),
    "pai slurm": Kind("pai2020_sample_8pct", 160, 0.8, "slurm"),
}


def made(kind: Kind, rng: np.random.Generator) -> pl.DataFrame:
    """Return jobs of users with sizes, run times and habits of their own, some submitted as sweeps."""
    median = rng.lognormal(np.log(2400), 1.1, USERS)
    spread = rng.uniform(0.3, 1.3, USERS)
    margin = rng.choice([1.3, 2, 4, 8], USERS)
    activity = rng.dirichlet(np.full(USERS, 0.5))
    sizes_of = [rng.dirichlet(SHARES * 6) for _ in range(USERS)]
    demand = kind.load * kind.gpus * DAYS * DAY
    rows = []
    work = 0.0
    while work < demand:
        user = rng.choice(USERS, p=activity)
        count = 1 + (rng.random() < kind.sweeps) * rng.poisson(12)
        usual = median[user] * rng.lognormal(0, spread[user])
        gpus = min(rng.choice(SIZES, p=sizes_of[user]), kind.gpus // 2)
        submit = DAY * rng.integers(DAYS) + 3600 * (rng.choice(24, p=HOURS / HOURS.sum()) + rng.uniform())
        limit = limit_for(usual * margin[user])
        for i in range(count):
            fails = rng.random() < 0.12
            factor = rng.uniform(0.01, 0.5) if fails else rng.lognormal(0, 0.15)
            duration = min(max(usual * factor, 5.0), limit, LONGEST)
            rows.append((submit + i * rng.exponential(20), float(gpus), duration, limit, f"u{user}"))
            work += duration * gpus
    return pl.DataFrame(rows, schema=["submit", "gpus", "duration", "requested_time", "user"], orient="row")


def limit_for(seconds: float) -> float:
    """Return the shortest time that users ask for which is not below this one, or the longest."""
    return float(LIMITS[min(np.searchsorted(LIMITS, seconds), len(LIMITS) - 1)])


def part_of(path: Path, kind: Kind, rng: np.random.Generator) -> pl.DataFrame:
    """Return jobs of a part of a published log, thinned to a load; the user is the virtual cluster, as no log names users of all jobs."""
    log = pl.read_parquet(path).filter(pl.col("duration_s") > 0).sort("submit_s")
    last = int(log["submit_s"].max() // DAY) - DAYS
    first = DAY * rng.integers(5, max(last, 6))
    log = log.filter(pl.col("submit_s").is_between(first, first + DAYS * DAY))
    duration = np.minimum(log["duration_s"].to_numpy().astype(float), LONGEST)
    gpus = np.minimum(log["n_gpus"].to_numpy().astype(float), kind.gpus // 2)
    load = (gpus * duration).sum() / (kind.gpus * DAYS * DAY)
    stays = rng.random(log.height) < kind.load / load
    limits = [limit_for(seconds) for seconds in duration * rng.choice([1.0, 1.5, 3, 6], log.height)]
    user = log["vc"].fill_null("x") if "vc" in log.columns else pl.repeat("x", log.height, eager=True)
    jobs = {"submit": log["submit_s"].cast(pl.Float64) - first, "gpus": gpus, "duration": duration}
    return pl.DataFrame(jobs | {"requested_time": limits, "user": user}).filter(pl.Series(stays))


def site_of(kind: Kind, data_dir: str, seed: int, folder: str) -> Site:
    """Write a log and the site's files into a folder: the jobs started by this very rule, which knew what they asked for."""
    rng = np.random.default_rng(seed)
    if kind.jobs == "made":
        jobs = made(kind, rng)
    else:
        jobs = part_of(Path(data_dir) / "traces" / f"{kind.jobs}.parquet", kind, rng)
    jobs = jobs.sort("submit").with_columns(
        pl.col("submit") - pl.col("submit").min(), job_id=pl.format("j{}", pl.int_range(100_000, 100_000 + pl.len()))
    )
    jobs = jobs.with_columns(account=pl.lit("lab"), qos=pl.lit("normal"), started=pl.lit(0.0))
    home = Path(folder)
    _write_files(kind, home, jobs["user"].unique().sort().to_list())
    jobs.write_csv(home / "jobs.csv")
    site = Site(str(home / "site.toml"))
    scenario = site.recorded()
    run = scenario.run(site.own)
    nodes = run.allocations.group_by("job", maintain_order=True).agg(pl.col("node").unique().sort())
    lists = nodes.select(
        job_id=scenario.played["job_id"].gather(nodes["job"]),
        nodelist=pl.col("node").list.eval(pl.format("g{}", pl.element() + 1)).list.join(","),
    )
    starts = run.jobs.select("job_id", started="start").drop_nulls()
    log = jobs.drop("started").join(starts, on="job_id", maintain_order="left")
    log.join(lists, on="job_id", how="left", maintain_order="left").write_csv(home / "jobs.csv")
    return Site(str(home / "site.toml"))


def _write_files(kind: Kind, home: Path, users: list[str]):
    """Write the site's own description."""
    nodes = kind.gpus // PER_NODE
    log = '[log]\npath = "jobs.csv"\nformat = "csv"\n'
    if kind.rule == "easy":
        home.joinpath("site.toml").write_text(f'{log}[cluster]\nnodes = "{nodes}x{PER_NODE}:g"\n{EASY}')
        return
    slurm = '[slurm]\nconf = "slurm.conf"\n'
    conf = (
        f"NodeName=g[1-{nodes}] Gres=gpu:g:{PER_NODE}\nPartitionName=batch Nodes=ALL MaxTime=UNLIMITED State=UP\n{PLAN}"
    )
    if kind.rule == "fair":
        conf += FAIR
        slurm += 'assoc = "assoc.txt"\n'
        rows = ["Account|User|ParentName|Share", "lab||root|1", *(f"lab|{user}||1" for user in users)]
        home.joinpath("assoc.txt").write_text("\n".join(rows) + "\n")
    if kind.rule == "large":
        conf += LARGE
    if kind.rule == "limits":
        slurm += 'qos = "qos.txt"\n'
        home.joinpath("qos.txt").write_text(QOS.format(most=kind.gpus // 3))
    home.joinpath("slurm.conf").write_text(conf)
    home.joinpath("site.toml").write_text(log + slurm)
