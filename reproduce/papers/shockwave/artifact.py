"""Shockwave's artifact: its traces and runs, job by job, and the same jobs under our policies with the rules of its round loop."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab import policies
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError
from gpuschedlab.sim import Delays, Scenario

FOLDER = "inputs/shockwave"
"""Where the reference data has the runs of the artifact, a table a trace."""
ROUND = 120.0
"""Seconds of a round."""
PRICE = 6e-6
"""Shockwave's k, the price of the last job per second: fitted to its run on 32 GPUs, and to no other."""
SECOND = 1000.0
"""Seconds in which Shockwave measures the end of the last job, so that its price does not depend on the trace."""
TRACE_COLUMNS = {6: "gpus", 10: "dur", 11: "arrival"}
"""Columns of a `.trace` file of the artifact, which has no head, by their place."""


@dataclass(frozen=True)
class Artifact:
    """A trace of the artifact, and what its policies gave on it.

    Parameters
    ----------
    name : str
    gpus : int
        GPUs of the cluster, each a node of its own.
    jobs : polars.DataFrame
        A row a job: `arrival` (s), `gpus`, `dur` (s, of the trace), and of each policy that was run `work_*` (s that the job ran) and
        `jct_*` (s).
    """

    name: str
    gpus: int
    jobs: pl.DataFrame

    @property
    def published(self) -> tuple[str, ...]:
        """Policies that were run on it, by the artifact's names."""
        return tuple(name.removeprefix("jct_") for name in self.jobs.columns if name.startswith("jct_"))

    def work(self, policy: str) -> np.ndarray:
        """Seconds (n,) of each job on its GPUs: as it ran under a policy of the artifact, or as the trace says."""
        column = f"work_{policy}"
        return self.jobs[column if column in self.jobs.columns else "dur"].to_numpy()

    def scenario(self, policy: str, *, start: float = 20.0, seed: int | None = None) -> Scenario:
        """Its jobs on its cluster.

        Parameters
        ----------
        policy : str
            Under which policy of the artifact the work of the jobs was measured.
        start : float
            Seconds that a start costs.
        seed : int, optional
            Of a draw of noise in the work: half a percent.
        """
        work = self.work(policy)
        if seed is not None:
            work = work * (1 + 0.005 * np.random.default_rng(seed).standard_normal(len(work)))
        trace = pl.DataFrame(
            {
                "job_id": [f"{row:05d}" for row in range(self.jobs.height)],
                "submit": self.jobs["arrival"].cast(pl.Float64),
                "gpus": self.jobs["gpus"].cast(pl.Float64),
                "duration": work,
            }
        )
        delays = Delays(switch=start, kinds={"spared": 0.0})
        return Scenario(trace, Cluster.homogeneous(self.gpus, 1), delays=delays)

    def least_makespan(self, policy: str) -> float:
        """Bound (s) on the end of the last job: the longest job alone, and the work that comes from each arrival on."""
        work = self.work(policy)
        arrival = self.jobs["arrival"].to_numpy()
        order = np.argsort(arrival)
        area = (self.jobs["gpus"].to_numpy() * work)[order]
        from_then_on = np.cumsum(area[::-1])[::-1] / self.gpus
        return float(max((arrival[order] + from_then_on).max(), (arrival + work).max()))


def read_artifact(file: Path, gpus: int | None = None) -> Artifact:
    """Read a table of runs (`.parquet`), or a trace of the artifact (`.trace`).

    Parameters
    ----------
    file : Path
    gpus : int, optional
        Of the cluster; default: the number at the end of the file's name, such as 32 of ``tacc32.parquet``.

    Raises
    ------
    LabError
        Neither says how many GPUs there are, or the file lacks a column.
    """
    if gpus is None:
        number = re.search(r"(\d+)$", file.stem)
        if number is None:
            raise LabError(f"shockwave: found no number of GPUs at the end of {file.stem!r}; expected one, or gpus=.")
        gpus = int(number[1])
    if file.suffix == ".trace":
        table = pl.read_csv(file, separator="\t", has_header=False, quote_char=None)
        jobs = table.select(pl.nth(place).cast(pl.Float64).alias(name) for place, name in TRACE_COLUMNS.items())
    else:
        jobs = pl.read_parquet(file)
    if missing := [name for name in TRACE_COLUMNS.values() if name not in jobs.columns]:
        raise LabError(f"shockwave: found no column {', '.join(missing)} in {file.name}; expected arrival, gpus, dur.")
    return Artifact(file.stem, gpus, jobs)


def artifacts(data_dir) -> list[Artifact]:
    """Read all tables of runs of the reference data.

    Raises
    ------
    LabError
        There is none.
    """
    files = sorted(Path(data_dir or ".").joinpath(FOLDER).glob("*.parquet"))
    if data_dir is None or not files:
        raise LabError(f"found no {FOLDER}/*.parquet in {data_dir}; expected the folder of the reference data.")
    return [read_artifact(file) for file in files]


@dataclass(frozen=True)
class Rules:
    """Rules of the artifact's round loop, as switches of our policies; each is off at the value that its sentence names."""

    start: float = 20.0
    """Seconds that a start costs; off: 0."""
    renewal: float = 1000.0
    """Least time (s) between two programs of Gavel; off: 0."""
    recount: bool = True
    """Whether received time starts anew with each program of Gavel."""
    newcomers_wait: bool = True
    """Whether jobs that no program of Gavel has seen wait."""
    centre: float = 0.05
    """Tolerance to which the makespan is bisected, whose shares are in the middle; off: 0, a vertex of the program."""
    spare: float = 5.0
    """Seconds before the end of a round; a job that ends by then starts freely; off: the round."""
    ends_with_jobs: bool = True
    """Whether a round ends with its longest job."""

    @cached_property
    def gavel(self) -> dict:
        """Knobs of Gavel."""
        knobs = {"interval": ROUND, "renewal": self.renewal, "recount": self.recount}
        return knobs | {"newcomers_wait": self.newcomers_wait}


def policy_of(name: str, rules: Rules | None = None, **knobs):
    """Our policy for one of the artifact's, in rounds like its own.

    Parameters
    ----------
    name : str
        Of `OURS`, as the artifact calls it.
    rules : Rules, optional
        Default: all on.
    **knobs
        Of our policy, in the place of those of the rules.
    """
    rules = rules or Rules()
    policy = OURS[name](rules, knobs)
    return policies.LenientRounds(policy, spare=rules.spare, ends_with_jobs=rules.ends_with_jobs)


def _max_min(rules: Rules, knobs: dict):
    return policies.Gavel(**{"objective": "max_min"} | rules.gavel | knobs)


def _least_makespan(rules: Rules, knobs: dict):
    """Whose program ends in a vertex if its shares are not in the middle."""
    point = {"centre": rules.centre} if rules.centre > 0 else {"solver": "mip"}
    return policies.Gavel(**{"objective": "makespan"} | rules.gavel | point | knobs)


def _shockwave(rules: Rules, knobs: dict):
    own = {"fairness": 12.0, "makespan": price(PRICE), "second": SECOND, "origin": 1e-6, "replan": 8}
    own |= {"fair_end": "estimates", "end_late_first": True, "interval": ROUND}
    return policies.Shockwave(**own | knobs)


def price(k: float, window: int = 20) -> float:
    """Our lambda for the artifact's k, the price of the last job per second: k x window x `SECOND`."""
    return k * window * SECOND


OURS = {"max_min_fairness": _max_min, "min_total_duration": _least_makespan, "shockwave": _shockwave}
"""Our policy for each of the artifact's that is compared."""


@dataclass(frozen=True)
class Outcome:
    """A run of ours: mean completion time and makespan (s); and beside the artifact's run, nan if it has none.

    These are the ratios of both, Spearman's correlation of completion times, and the share of jobs whose time is within 5 %.
    """

    mean: float
    makespan: float
    mean_ratio: float
    makespan_ratio: float
    rank: float
    within: float


def outcome(artifact: Artifact, name: str, policy, **parts) -> Outcome:
    """Run a policy on the jobs of an artifact, and put it beside the artifact's own run; `parts` are those of its scenario."""
    from scipy.stats import spearmanr

    jobs = artifact.scenario(name, **parts).run(policy).jobs.sort("job_id")
    arrival = artifact.jobs["arrival"].to_numpy()
    ends = jobs["end"].to_numpy()
    times = ends - arrival
    if name not in artifact.published:
        return Outcome(float(times.mean()), float(ends.max()), np.nan, np.nan, np.nan, np.nan)
    theirs = artifact.jobs[f"jct_{name}"].to_numpy()
    return Outcome(
        mean=float(times.mean()),
        makespan=float(ends.max()),
        mean_ratio=float(times.mean() / theirs.mean()),
        makespan_ratio=float(ends.max() / (arrival + theirs).max()),
        rank=float(spearmanr(times, theirs).statistic),
        within=float(np.mean(np.abs(times - theirs) <= 0.05 * theirs)),
    )
