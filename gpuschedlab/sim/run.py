"""Runs: results as frames."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.sim.frames import Made, columns_of, parts_of

if TYPE_CHECKING:
    from gpuschedlab.sim.explain.explanation import Explanation

SUMS = "SHA256SUMS"
"""File with the checksums of the others in a run's folder."""

FRAMES = ("jobs", "timeline", "allocations", "rounds", "pools")
NAMED = 10
"""Jobs that are named at most where a run leaves some."""
LOG = "decisions"
"""Frame that only a run with a log of decisions has."""


@dataclass(frozen=True, eq=False)
class Run:
    """Results of a trace under a policy; times in seconds from the trace's zero.

    Frames are made when they are first asked for; metrics do without.

    Parameters
    ----------
    jobs : polars.DataFrame
        The trace's columns and, for each job: `start, end, jct, queueing, executed, overhead, lost, shared, profiled` (s),
        `attained` (GPU-s), `preemptions, restarts, failures, gpu_type, nodes, contention`, `source` (row of the job whose
        result it started from). Null if it has not happened.
    timeline : polars.DataFrame
        `time, used, running, waiting, demanded, capacity, largest_free`: a row holds until the next.
    allocations : polars.DataFrame
        `job` (row of jobs), `node, gpu_type, gpus, start, end`, `guest` (true if another job owns the shared GPUs),
        `profiling` (true if they are held without progress, as a round asked for), `delay` (s without progress of the
        start with which the row begins; null if the job goes on from the row before, as it does when a partner comes or
        leaves, or a move costs nothing), `partner` (row of the job that shares the GPUs, or null), `merged` (true if the
        two are trained jointly), `source` (row of the job whose result it started from, or null).
    rounds : polars.DataFrame
        `time, seconds, objective, bound, status, solving`: costs of each round of a round policy (s; `solving`: of it in
        the solver, if the policy says so) and proved; empty otherwise.
    pools : polars.DataFrame
        `time, name, gpu_type, gpus`: GPUs reserved for a purpose; a row holds until the next of its name and type.
    info : dict
        Policy, knobs, cluster, seed, versions and its other inputs.
    decisions : polars.DataFrame, optional
        Why each waiting job waits, if that was logged (`Scenario.run(policy, log=True)`): `time, job` (row of jobs),
        `reason` (`gpuschedlab.sim.explain.decisions.REASONS`), `began` (how the wait began, in its first row: submitted, preempted,
        failed with a node, profiled), `gated` (held back by the policy's gate), `place` (waiting jobs that go before it),
        `blocker` (row of the job that it waits behind), `key` (its place in the policy's order, lowest first), `free` (GPUs
        of the GPU type that has most), `missing` (GPUs that it, or the job that it waits behind, lacks), of preemptive
        policies `ahead, later, leased` (GPUs held by running jobs that go before it, by later ones that may be preempted, and
        by later ones under a lease), `until` (s: of that lease, reservation, or next decision), `note` (a round's own words,
        `Allocation.why`). A row holds until the next of its job.
    """

    jobs: pl.DataFrame
    timeline: pl.DataFrame
    allocations: pl.DataFrame
    rounds: pl.DataFrame
    pools: pl.DataFrame
    info: dict
    decisions: pl.DataFrame | None = None

    def summary(self) -> dict:
        """Return a dict of metrics by name (see `gpuschedlab.metrics.METRICS` for units)."""
        from gpuschedlab.metrics import summary

        return summary(self)

    def columns(self, part: str) -> Mapping[str, np.ndarray]:
        """Return columns of `jobs`, `timeline`, `allocations`, `rounds` or `pools`: a mapping of names to arrays, nan for null.

        The frame is not made for it.
        """
        return columns_of(self, part)

    def __eq__(self, other_run):
        if not isinstance(other_run, Run):
            return NotImplemented
        pairs = ((getattr(self, frame_name), getattr(other_run, frame_name)) for frame_name in (*FRAMES, LOG))
        return self.info == other_run.info and all(
            own_frame is other_frame
            or (own_frame is not None and other_frame is not None and own_frame.equals(other_frame))
            for own_frame, other_frame in pairs
        )

    def explain(self, job: str | int) -> "Explanation":
        """Return the `Explanation` why a job waited, instant by instant, from the log of decisions.

        Parameters
        ----------
        job : str or int
            Its `job_id`.

        Raises
        ------
        RunError
            The run has no log, or there is no such job.

        Examples
        --------
        >>> import gpuschedlab as lab
        >>> trace = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": [0.0, 0, 0], "gpus": [2, 4, 1], "duration": [3600.0] * 3})
        >>> run = lab.simulate(trace, lab.Cluster.homogeneous(1, 4), lab.Fifo(), log=True)
        >>> print(run.explain("c").reasons["text"][0])
        behind job b, which goes first and needs 4 GPUs: 2 were free, 2 missing; backfill is none, so no job passes it
        """
        from gpuschedlab.sim.explain.explanation import explain

        return explain(self, job)

    def story(self, job: str | int) -> str:
        """Why a job waited, in a sentence or two: how long, how often it was stopped, and which jobs hold the GPUs in its longest wait.

        Without a log of decisions (`scenario.run(policy, log=job)`) it says how many GPUs are free then, not which jobs go first.

        Raises
        ------
        TraceError
            There is no such job.

        Examples
        --------
        >>> import gpuschedlab as lab
        >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 60], "gpus": [4, 1], "duration": [36000.0, 3600]})
        >>> run = lab.Scenario(trace, lab.Cluster.homogeneous(1, 4)).run(lab.Srtf(), log="a")
        >>> for sentence in run.story("a").split(". "):
        ...     print(sentence)
        Waits 1.0 h, stopped once for jobs with less time left
        In its longest wait (1.0 h) these hold 1 of 4 GPUs and 3 are free; it needs 4.
        """
        from gpuschedlab.sim.explain.story import story

        return story(self, job)

    @property
    def never_ended(self) -> list[str]:
        """List of the names of the jobs that were left when nothing more was to happen; empty if the run was stopped before."""
        if self.info.get("until", 0.0) is not None:
            return []
        jobs = self.columns("jobs")
        return jobs["job_id"][np.isnan(jobs["end"])].tolist()

    @property
    def left(self) -> str:
        """The same in a sentence: how many, the first of them, and the nodes that are down; "" if there is none."""
        if not (jobs_left := self.never_ended):
            return ""
        jobs = self.columns("jobs")
        stopped_at = self.info["now"]
        waits = np.count_nonzero(np.isnan(jobs["start"]))
        down = len(
            {node for node, outage_start, outage_end in self.info["events"] if outage_start <= stopped_at < outage_end}
        )
        nodes = f"; {down} node{'s are' if down > 1 else ' is'} down and not repaired" if down else ""
        never = f", {waits} of them never started" if waits else ""
        return (
            f"{len(jobs_left):,} of {len(jobs['end']):,} jobs never end{never}: {', '.join(map(str, jobs_left[:NAMED]))}"
            f"{', ...' if len(jobs_left) > NAMED else ''}{nodes}. No average includes them."
        )

    def __repr__(self):
        job_end = self.columns("jobs")["end"]
        done = np.count_nonzero(~np.isnan(job_end))
        unfinished_jobs = f"; {self.left}" if self.left else ""
        return (
            f"Run({self.info['policy']}: {done} of {len(job_end)} jobs done on {self.info['cluster']}{unfinished_jobs})"
        )

    def _repr_html_(self):
        from gpuschedlab.metrics.display import column
        from gpuschedlab.table_display import Table

        labels = []
        metric_words = []
        for metric_name, metric_value in self.summary().items():
            metric = column(metric_name, [metric_value])
            if metric_value is not None:
                labels.append(metric.label)
                metric_words.append(f"{metric.cells[0]} {metric.unit}".strip())
        return Table(pl.DataFrame({"metric": labels, "value": metric_words}), caption=repr(self))._repr_html_()

    def to_parquet(self, folder: str | Path) -> Path:
        """Store the run in a folder, whole or not at all, with checksums (for `sha256sum -c SHA256SUMS`), and return its path.

        Raises
        ------
        RunError
            The folder cannot be written (a full disk, no permission); earlier files are untouched.
        """
        from gpuschedlab._files import parquet, sums

        folder = Path(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary_folder:
                for frame_name in FRAMES if self.decisions is None else (*FRAMES, LOG):
                    (Path(temporary_folder) / f"{frame_name}.parquet").write_bytes(parquet(getattr(self, frame_name)))
                (Path(temporary_folder) / "info.json").write_text(
                    json.dumps(self.info, indent=1, sort_keys=True, default=str)
                )
                folder.mkdir(exist_ok=True)
                (folder / f"{LOG}.parquet").unlink(missing_ok=True)  # of a run that was there before
                run_files = sorted(Path(temporary_folder).iterdir())
                (Path(temporary_folder) / SUMS).write_text(sums({run_file.name: run_file for run_file in run_files}))
                for run_file in (*run_files, Path(temporary_folder) / SUMS):
                    os.replace(run_file, folder / run_file.name)
        except OSError as error:
            raise RunError(
                f"run not stored in {folder}: {error.strerror or error}. Free some space, or choose another folder."
            ) from error
        return folder

    @classmethod
    def from_parquet(cls, folder: str | Path) -> "Run":
        """Read a `Run` that `to_parquet` stored.

        Raises
        ------
        RunError
            A file is missing, broken, or not as it was stored: the message names it.
        """
        from gpuschedlab._files import UNREADABLE, read_frame, verify

        folder = Path(folder)
        frames = {}
        logged = (folder / f"{LOG}.parquet").exists()
        try:
            for frame_name in (*FRAMES, LOG) if logged else FRAMES:
                file = folder / f"{frame_name}.parquet"
                frames[frame_name] = read_frame(file, folder / SUMS)
            file = folder / "info.json"
            verify(file, folder / SUMS)
            run_info = dict(json.loads(file.read_text()))
        except (*UNREADABLE, TypeError) as error:
            raise RunError(f"{file}: found {error}; expected a folder that Run.to_parquet wrote.") from error
        return cls(**frames, info=run_info)


for _name in FRAMES:
    setattr(Run, _name, Made(_name))


def left_of(runs: dict[str, Run]) -> list[str]:
    """Return a list of texts, the rest of each of some runs (`Run.left`) after its name; runs without one are left out."""
    return [f"{run_name}: {run.left}" for run_name, run in runs.items() if run.left]


def make_run(simulation, last: bool = False) -> Run:
    """Gather the results of a simulation up to now in a `Run`; `last`: it does not go on, and gives its logs away."""
    s = simulation
    run_info = {} if s.decisions is None else {"log": s.decisions.about(s.policy)}
    run_info |= {
        "policy": s.policy.name,
        "knobs": {
            knob_name: list(knob_value) if isinstance(knob_value, tuple) else knob_value
            for knob_name, knob_value in s.policy.knobs.items()
        },
        "interval": s.policy.interval,
        "cluster": str(s.cluster),
        "events": [[event.node, event.start, event.end] for event in s.cluster.events],
        "estimator": type(s.estimator).__name__,
        "sees_truth": s.estimator.sees_truth,
        "speeds": 0 if s.speeds is None else len(s.speeds.models),
        "elastic": s.prepared.elastic,
        "delays": {name: getattr(s.delays, name) for name in ("restart", "switch", "checkpoint", "kinds")},
        "seed": s.rng if isinstance(s.rng, int) else None,
        "now": s.now,
        "until": s.until,
        **{name: s.limits[name] for name in ("over", "types") if s.limits[name]},
        "seconds": s.seconds,
        "versions": versions(),
    }
    return Run(**parts_of(s, last), info=run_info, decisions=None if s.decisions is None else s.decisions.frame())


@cache
def versions() -> dict[str, str]:
    """Return a dict of the versions (text) of packages that a result depends on, those of estimators and solvers among them."""
    package_versions = {}
    for package_name in (
        "gpuschedlab",
        "numpy",
        "polars",
        "numba",
        "scipy",
        "scikit-learn",
        "xgboost",
        "highspy",
        "mip",
    ):
        try:
            package_versions[package_name] = version(package_name)
        except PackageNotFoundError:
            package_versions[package_name] = "not installed"
    return package_versions
