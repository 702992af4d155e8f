"""COpter's workloads as whole traces under Sia: CPU time, and averages beside the thesis' table 4.1."""

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from reproduce.papers.copter import mix
from reproduce.published.data import read_data
from reproduce.published.kept import measure_all

BUDGET = 300.0
"""CPU seconds of 40,000 jobs on 10,240 GPUs."""

CASES = (("40k", 40, "prices"), ("10k", 10, "prices"), ("10k", 10, "relaxed"), ("10k", 10, "pop-16"))
SMALL = (("2k", 2, "prices"), ("2k", 2, "copter"))
"""Whose average completion times may differ by `APART` at most."""

APART = 5e-3
QUIRK = ("10k", 10, "pop-16 idle")
"""Workload, times 256 GPUs, and solver; the last with the artifact's worth of impossible configurations."""

FILES = ("profiles", "reference")
"""Folders of the reference data that traces depend on."""

PUBLISHED = {
    "relaxed": {"avg_jct": 0.35, "makespan": 29.3},
    "pop-16": {"avg_jct": 0.41, "makespan": 31.0},
    "copter": {"avg_jct": 0.36, "makespan": 29.4},
}
"""Table 4.1, 40,000 jobs on 10,240 GPUs (h)."""

POWER = 0.5
RESNET_IMAGES = 1_431_167.0
WIKIPEDIA = 100e6
COMMONCRAWL = 1.2e12 / 500
"""Work of the inference jobs: images, and tokens (commoncrawl's at 500 times the speed)."""


def run(data_dir: str | Path | None = None) -> dict:
    """Simulate each case once; each is kept when it is done, so that a bench that was interrupted goes on.

    Returns
    -------
    dict
        `traces`: a dict a case, as of `measure`; `published` (table 4.1); `ok`: the 40k set within its budget, and the 2k set
        under copter ends as under prices, within `APART`.

    Raises
    ------
    LabError
        There is no reference data.
    """
    rows = measured(data_dir, (*CASES, QUIRK, *SMALL))
    prices, copter = (row["avg_jct"] for row in rows[-2:])
    ok = rows[0]["seconds"] <= BUDGET and abs(copter / prices - 1) <= APART
    return {"traces": rows, "budget_s": BUDGET, "published": PUBLISHED, "ok": ok}


def measured(data_dir, cases) -> list[dict]:
    """What `measure` says of each case, one at a time, for seconds are what is asked; kept as they come."""
    return measure_all("trace", measure, data_dir, cases, workers=1, files=FILES)


def measure(data_dir, name: str, scale: int, solver: str) -> dict:
    """One workload on so many times 256 GPUs: `jobs, gpus, solver, seconds` (CPU), `avg_jct, makespan` (h), `rounds, p99` (CPU s).

    A solver `NAME idle` counts impossible configurations as the artifact does (`partition.Pop`).
    """
    from gpuschedlab.policies import Sia
    from gpuschedlab.sim import simulate
    from reproduce.published.timing import timed

    trace = workload(data_dir, name)
    cluster = cluster_of(scale)
    table = speeds(data_dir, scale)
    seconds: list[float] = []
    policy = Sia(power=POWER, solver=solver.removesuffix(" idle"))
    if solver.endswith(" idle"):
        policy = _Idle(power=POWER, solver=solver.removesuffix(" idle"))
    begin = time.process_time()
    found = simulate(trace, cluster, timed(policy, seconds, time.process_time), speeds=table)
    taken = time.process_time() - begin
    row = {"workload": name, "jobs": trace.height, "gpus": 256 * scale, "solver": solver, "seconds": taken}
    row |= {"avg_jct": found.jobs["jct"].mean() / 3600, "makespan": found.jobs["end"].max() / 3600}
    return row | {"rounds": len(seconds), "p99": float(np.quantile(seconds, 0.99))}


def _Idle(**knobs):
    """Sia with POP as in the artifact: impossible configurations are worth the penalty."""
    from gpuschedlab.optim import Session
    from gpuschedlab.policies import Sia

    @dataclass(frozen=True)
    class Idle(Sia):
        def begin(self):
            carried = super().begin()
            parts = int(self.solver.removeprefix("pop-"))
            carried.session = Session("pop", parts=parts, gap=self.gap, idle=self.penalty)
            return carried

    return Idle(**knobs)


def cluster_of(scale: int):
    """The artifact's cluster, so many times.

    Examples
    --------
    >>> cluster_of(40).total_gpus
    10240
    """
    from gpuschedlab.cluster import Cluster

    return Cluster.parse(",".join(f"{n * scale}x{g}:{name}" for name, (n, g) in mix.CLUSTER.items()))


@cache
def speeds(data_dir, scale: int):
    """Rates of all applications on the cluster: profiles as they are, others at one rate for their whole work."""
    from gpuschedlab.papers.sia.speeds import OTHER_SLOWDOWN
    from gpuschedlab.speeds import goodput_speeds

    columns = ["model", "gpu_type", "n_nodes", "n_gpus", "progress", "goodput"]
    rows = []
    kinds, gpus = mix.configurations(scale)
    names = list(mix.CLUSTER)
    widths = [g for _, g in mix.CLUSTER.values()]
    work = _work(data_dir)
    for name, total in work.items():
        rates = mix.flat_rates(data_dir, name, kinds, gpus)
        for k, g, rate in zip(kinds.tolist(), gpus.tolist(), rates.tolist(), strict=True):
            if rate > 0:
                rows.append((name, names[k], -(-g // widths[k]), g, total, rate * OTHER_SLOWDOWN))
    flat = pl.DataFrame(rows, schema=columns, orient="row")
    measured = read_data(data_dir, "profiles/goodput.parquet").select(columns)
    same = {c: flat.schema[c] for c in columns}
    return goodput_speeds(pl.concat([measured.cast(same), flat]))


def _work(data_dir) -> dict[str, float]:
    """Work of the jobs without a measured profile."""
    every = read_data(data_dir, "profiles/synthetic.parquet").select("model", "max_progress").unique()
    return dict(every.iter_rows()) | {
        "imagenet_resnet50": RESNET_IMAGES,
        "llama_8b_wikipedia": WIKIPEDIA,
        "llama_8b_commoncrawl": COMMONCRAWL,
    }


def workload(data_dir, name: str) -> pl.DataFrame:
    """A set as a trace: elastic jobs, each asking for one GPU, with the checkpoint-restore time of its model."""
    from gpuschedlab.speeds import RESTART

    jobs = read_data(data_dir, "reference/copter_workloads.parquet").filter(set=name)
    profiled = jobs["category"] == "SiaJob"
    restart = jobs["application"].replace_strict(RESTART, default=30.0, return_dtype=pl.Float64)
    return pl.DataFrame(
        {
            "job_id": [f"{row:05d}-{job}" for row, job in enumerate(jobs["name"])],
            "submit": jobs["time"],
            "gpus": 1.0,
            "duration": 3600.0,
            "model": jobs["application"],
            "switch": pl.select(pl.when(profiled).then(restart).otherwise(0.0)).to_series(),
        }
    )
