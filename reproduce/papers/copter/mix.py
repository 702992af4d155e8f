"""COpter's cluster and the mix of jobs of its workloads, as rounds of Sia's program.

Rounds are sampled, not taken out of runs: 40 jobs for each 256 GPUs, applications in the shares of the 40k set, progress
uniform over a job's work (at one of `ROWS` places), half of the jobs running on one of their configurations of up to 8 GPUs,
ages uniform up to four hours, up to three restarts of 30 s. From a round to the next, a share of the jobs is replaced, and
the others hold what they were given. As in the artifact, configurations have up to 2,048 GPUs, synthetic jobs take up to 128,
inference jobs up to 16 units, and only jobs with profiles (SiaJob) have a growth bound and a restart factor.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from reproduce.published.data import read_data

CLUSTER = {
    "azure": (6, 8), "aws": (8, 4), "dgx-ext": (4, 8), "quad": (8, 4), "rtx": (6, 8), "a10-pcie": (8, 4),
    "a100-pcie": (8, 4),
}  # fmt: skip
"""Nodes and GPUs a node of each type, for 256 GPUs (`simulator` of the artifact)."""

SYNTHETIC = {
    "DGX-V100-32GB": "azure", "T4-16GB": "aws", "DGX-A100-40GB": "dgx-ext", "RTX-2080Ti-11GB": "rtx",
    "A10-24GB-PCIe": "a10-pcie", "A100-40GB-PCIe": "a100-pcie",
}  # fmt: skip

RESNET = {"azure": 635, "aws": 401, "dgx-ext": 2343, "rtx": 440, "quad": 489, "a100-pcie": 2343, "a10-pcie": 825}
LLAMA = {
    "azure": (5100, 2), "aws": (3800, 4), "dgx-ext": (5424, 1), "rtx": (8170, 4), "quad": (4000, 2),
    "a100-pcie": (5400, 1), "a10-pcie": (5400, 2),
}  # fmt: skip
"""Speed a unit, and GPUs a unit, of inference jobs."""

UNITS = 16
LARGEST_SYNTHETIC = 128
LARGEST = 2048
ROWS = 20


class Mix(NamedTuple):
    """Templates of all applications on the configurations that any of them has.

    Parameters
    ----------
    types, gpus : (C,) int arrays
    goodput : (A, ROWS, C) float array
        nan where impossible.
    grows : (A,) bool array
        Whether a growth bound and the restart factor hold.
    share : (A,) float array
        Of the jobs.
    padded : int
        Configurations of the cluster.
    """

    types: np.ndarray
    gpus: np.ndarray
    goodput: np.ndarray
    grows: np.ndarray
    share: np.ndarray
    padded: int


@dataclass
class Jobs:
    """State of the jobs of a round, (n,) arrays: application, row of its template, age (s), restarts, configuration held."""

    key: np.ndarray
    app: np.ndarray
    row: np.ndarray
    age: np.ndarray
    restarts: np.ndarray
    current: np.ndarray
    most: np.ndarray


def configurations(scale: int, largest: int = LARGEST) -> tuple[np.ndarray, np.ndarray]:
    """Types and GPUs of Sia's configurations on so many times the cluster.

    Examples
    --------
    >>> [len(configurations(scale)[0]) for scale in (1, 40, 400)]
    [65, 1937, 2833]
    """
    found = []
    for kind, (nodes, width) in enumerate(CLUSTER.values()):
        powers = [2**k for k in range(width.bit_length() - 1)]
        whole = range(width, min(nodes * scale * width, largest) + 1, width)
        found += [(kind, g) for g in [*powers, *whole]]
    kinds, gpus = np.array(found, np.int64).T
    return kinds, gpus


@cache
def mix(data_dir, scale: int) -> Mix:
    """Templates and shares for a cluster of 256 times `scale` GPUs."""
    kinds, gpus = configurations(scale)
    jobs = read_data(data_dir, "reference/copter_workloads.parquet").filter(set="40k")
    counted = jobs.group_by("application", "category", maintain_order=True).len().sort("application")
    names = counted["application"].to_list()
    table = np.stack([_template(data_dir, name, kinds, gpus) for name in names])
    live = ~np.isnan(table).all(axis=(0, 1))
    share = counted["len"].to_numpy() / jobs.height
    grows = (counted["category"] == "SiaJob").to_numpy()
    return Mix(kinds[live], gpus[live], table[:, :, live], grows, share, len(kinds))


def flat_rates(data_dir, name: str, kinds, gpus) -> np.ndarray:
    """Rate (C,) of an application whose rate is the same for its whole work; nan where impossible."""
    if name.startswith("synthetic"):
        every = read_data(data_dir, "profiles/synthetic.parquet").filter(model=name)
        rows = every.filter(pl.col("n_gpus") <= LARGEST_SYNTHETIC).select("gpu_type", "n_gpus", "goodput").iter_rows()
        return _filled({(SYNTHETIC[t], g): [rate] for t, g, rate in rows}, kinds, gpus)[0]
    speed = {t: (rate, 1) for t, rate in RESNET.items()} if name.startswith("imagenet") else LLAMA
    units = {(t, u * g): [u * rate] for t, (rate, g) in speed.items() for u in range(1, UNITS + 1)}
    return _filled(units, kinds, gpus)[0]


def _template(data_dir, name: str, kinds, gpus) -> np.ndarray:
    """Goodput (ROWS, C) of an application."""
    frame = read_data(data_dir, "profiles/goodput.parquet").filter(model=name)
    if frame.is_empty():
        return np.repeat(flat_rates(data_dir, name, kinds, gpus)[None], ROWS, axis=0)
    ends = frame["progress"].unique().sort().to_numpy()
    wanted = ends[np.searchsorted(ends, ends[-1] * (np.arange(ROWS) + 0.5) / ROWS)]
    few = frame.filter(pl.col("progress").is_in(np.unique(wanted))).sort("n_nodes", "progress")
    found: dict = {}
    for (t, g), part in few.group_by("gpu_type", "n_gpus", maintain_order=True):
        part = part.filter(n_nodes=part["n_nodes"].min())
        at = np.minimum(np.searchsorted(part["progress"].to_numpy(), wanted), part.height - 1)
        found[t, g] = part["goodput"].to_numpy()[at]
    return _filled(found, kinds, gpus)


def _filled(found: dict, kinds, gpus) -> np.ndarray:
    rows = len(next(iter(found.values())))
    names = list(CLUSTER)
    out = np.full((rows, len(kinds)), np.nan)
    for c, (kind, g) in enumerate(zip(kinds.tolist(), gpus.tolist(), strict=True)):
        if (names[kind], g) in found:
            out[:, c] = found[names[kind], g]
    return out


def capacity(scale: int) -> np.ndarray:
    """GPUs of each type."""
    return np.array([nodes * width * scale for nodes, width in CLUSTER.values()])


def sample(of: Mix, n: int, rng: np.random.Generator, first_key: int = 0) -> Jobs:
    """So many jobs at random (see the module)."""
    app = rng.choice(len(of.share), n, p=of.share)
    row = rng.integers(0, ROWS, n)
    running = rng.random(n) < 0.5
    current = np.full(n, -1)
    for i in np.flatnonzero(running):
        current[i] = rng.choice(np.flatnonzero((of.goodput[app[i], row[i]] > 0) & (of.gpus <= 8)))
    most = np.where(current >= 0, of.gpus[current], 0)
    return Jobs(first_key + np.arange(n), app, row, rng.uniform(0, 14_400, n), rng.integers(0, 4, n), current, most)


def next_round(of: Mix, jobs: Jobs, choice: np.ndarray, rng: np.random.Generator, new: float = 0.05) -> Jobs:
    """The jobs a minute later: what they hold is what was chosen, and a share of them is replaced."""
    given = np.where(choice >= 0, of.gpus[choice], 0)
    moved = (jobs.current >= 0) & (choice != jobs.current)
    state = replace(jobs, age=jobs.age + 60, restarts=jobs.restarts + moved, current=choice)
    state.most = np.maximum(jobs.most, given)
    out = np.flatnonzero(rng.random(len(choice)) < new)
    fresh = sample(of, len(out), rng, int(jobs.key.max()) + 1)
    for name in vars(state):
        values = getattr(state, name).copy()
        values[out] = getattr(fresh, name)
        setattr(state, name, values)
    state.current[out] = -1
    state.most[out] = 0
    return state


def build(of: Mix, jobs: Jobs, room: np.ndarray, power: float):
    """The round's program (a `MultipleChoice`), from the templates."""
    from gpuschedlab.problems import restart_factor, sia_round, sia_utility

    goodput = of.goodput[jobs.app, jobs.row]
    grows = of.grows[jobs.app]
    factor = np.where(grows, restart_factor(jobs.age, jobs.restarts, 30.0), 1.0)
    utility = sia_utility(goodput, of.gpus, power=power, factor=factor, current=jobs.current)
    top = np.where(grows, np.maximum(2 * jobs.most, 1), LARGEST)
    utility[of.gpus > top[:, None]] = np.nan
    return sia_round(utility, of.types, of.gpus, room, 0.0, None, jobs.key)
