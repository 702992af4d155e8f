"""Runs: what happened, as frames."""

import json
import os
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuschedlab._files import UNREADABLE, parquet, read_frame, sums, verify
from gpuschedlab.cluster.placement import SLOTS
from gpuschedlab.errors import RunError
from gpuschedlab.sim.engine.state import DONE
from gpuschedlab.sim.reserved import limited_to_up

if TYPE_CHECKING:
    from gpuschedlab.sim.explanation import Explanation

SUMS = "SHA256SUMS"
"""File with the checksums of the others in a run's folder."""

FRAMES = ("jobs", "timeline", "allocations", "rounds", "pools")
LOG = "decisions"
"""Frame that only a run with a log of decisions has."""
ROUNDS = dict.fromkeys(("time", "seconds", "objective", "bound"), pl.Float64)
ROUNDS |= {"status": pl.Utf8, "solving": pl.Float64}
POOLS = {"time": pl.Float64, "name": pl.Utf8, "gpu_type": pl.Utf8, "gpus": pl.Float64}


@dataclass(frozen=True)
class Run:
    """What happened to a trace under a policy; times in seconds from the trace's zero.

    Parameters
    ----------
    jobs : polars.DataFrame
        The trace's columns and, for each job: `start, end, jct, queueing, executed, overhead, lost, shared, profiled` (s),
        `attained` (GPU-s), `preemptions, restarts, failures, gpu_type, nodes, contention`, `source` (row of the job whose
        result it started from). Null where it has not happened.
    timeline : polars.DataFrame
        `time, used, running, waiting, demanded, capacity, largest_free`: a row holds until the next.
    allocations : polars.DataFrame
        `job` (row of jobs), `node, gpu_type, gpus, start, end`, `guest` (true where another job owns the shared GPUs),
        `profiling` (true where they are held without progress, as a round asked for).
    rounds : polars.DataFrame
        `time, seconds, objective, bound, status, solving`: what each round of a round policy cost (s; `solving`: of it in
        the solver, where the policy says so) and proved; empty otherwise.
    pools : polars.DataFrame
        `time, name, gpu_type, gpus`: GPUs reserved for a purpose; a row holds until the next of its name and type.
    info : dict
        Policy, knobs, cluster, seed, versions and its other inputs.
    decisions : polars.DataFrame, optional
        Why each waiting job waits, where that was logged (`Scenario.run(policy, log=True)`): `time, job` (row of jobs),
        `reason` (`gpuschedlab.sim.decisions.REASONS`), `began` (how the wait began, in its first row: submitted, preempted,
        failed with a node, profiled), `gated` (held back by the policy's gate), `place` (waiting jobs that go before it),
        `blocker` (row of the job that it waits behind), `key` (its place in the policy's order, lowest first), `free` (GPUs
        of the GPU type that has most), `missing` (GPUs that it, or the job that it waits behind, lacks), of preemptive
        policies `ahead, later, leased` (GPUs held by running jobs that go before it, by later ones that may be preempted, and
        by later ones under a lease), `until` (s: of that lease, reservation, or next decision). A row holds until the next
        of its job.
    """

    jobs: pl.DataFrame
    timeline: pl.DataFrame
    allocations: pl.DataFrame
    rounds: pl.DataFrame
    pools: pl.DataFrame
    info: dict
    decisions: pl.DataFrame | None = None

    def summary(self) -> dict:
        """Metrics by name (see `gpuschedlab.metrics.METRICS` for units)."""
        from gpuschedlab.metrics import summary

        return summary(self)

    def explain(self, job: str | int) -> "Explanation":
        """Why a job waited, instant by instant, from the log of decisions.

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
        from gpuschedlab.sim.explanation import explain

        return explain(self, job)

    def __repr__(self):
        done = self.jobs["end"].count()
        return f"Run({self.info['policy']}: {done} of {self.jobs.height} jobs done on {self.info['cluster']})"

    def _repr_html_(self):
        rows = "".join(f"<tr><th>{k}</th><td>{v:.6g}</td></tr>" for k, v in self.summary().items() if v is not None)
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"

    def to_parquet(self, folder: str | Path) -> Path:
        """Store the run in a folder, whole or not at all, with checksums (`sha256sum -c SHA256SUMS` checks them, too).

        Raises
        ------
        RunError
            The folder cannot be written (a full disk, no permission); what was there before is untouched.
        """
        folder = Path(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as made:
                for name in FRAMES if self.decisions is None else (*FRAMES, LOG):
                    (Path(made) / f"{name}.parquet").write_bytes(parquet(getattr(self, name)))
                (Path(made) / "info.json").write_text(json.dumps(self.info, indent=1, sort_keys=True, default=str))
                folder.mkdir(exist_ok=True)
                (folder / f"{LOG}.parquet").unlink(missing_ok=True)  # of a run that was there before
                parts = sorted(Path(made).iterdir())
                (Path(made) / SUMS).write_text(sums({part.name: part for part in parts}))
                for part in (*parts, Path(made) / SUMS):
                    os.replace(part, folder / part.name)
        except OSError as error:
            raise RunError(
                f"run not stored in {folder}: {error.strerror or error}. Free some space, or choose another folder."
            ) from error
        return folder

    @classmethod
    def from_parquet(cls, folder: str | Path) -> "Run":
        """Read a run that `to_parquet` stored.

        Raises
        ------
        RunError
            A file is missing, broken, or not what was stored: the message names it.
        """
        folder = Path(folder)
        frames = {}
        logged = (folder / f"{LOG}.parquet").exists()
        for name in (*FRAMES, LOG) if logged else FRAMES:
            try:
                frames[name] = read_frame(folder / f"{name}.parquet", folder / SUMS)
            except OSError as error:
                raise RunError(
                    f"{folder / name}.parquet: found {error}; expected a folder that Run.to_parquet wrote."
                ) from error
        try:
            verify(folder / "info.json", folder / SUMS)
            info = dict(json.loads((folder / "info.json").read_text()))
        except (*UNREADABLE, TypeError) as error:
            raise RunError(
                f"{folder / 'info.json'}: found {error}; expected a folder that Run.to_parquet wrote."
            ) from error
        return cls(**frames, info=info)


def _null(values: np.ndarray, valid: np.ndarray) -> pl.Series:
    return pl.Series(np.where(valid, values, 0)).set(pl.Series(~valid), None)


def make_run(simulation) -> Run:
    """Gather the frames of a simulation in its present state."""
    s = simulation.state
    types = pl.Series(simulation.cluster.gpu_types, dtype=pl.Utf8)
    job, body = s.job, s.body
    started, done = np.isfinite(body["first"]), job["state"] == DONE
    measured = {
        "start": _null(body["first"], started),
        "end": _null(body["end"], done),
        "jct": _null(body["end"] - job["submit"], done),
        "queueing": job["queued"],
        "executed": job["executed"],
        "attained": job["attained"] * body["jobs"],
        "overhead": body["overhead"],
        "lost": body["lost"],
        "preemptions": job["preemptions"],
        "restarts": np.maximum(job["starts"] - 1, 0).astype(np.int32),
        "failures": body["failures"],
        "gpu_type": types.gather(_null(body["type"], started)),
        "nodes": body["nodes"],
        "shared": body["shared"],
        "profiled": body["idled"],
        "source": _null(body["source"], body["source"] >= 0),
        "contention": job["contention"],
    }
    jobs = simulation.trace.with_columns(**{k: pl.Series(k, v, strict=False) for k, v in measured.items()})
    ticks = s.ticks[: s.scalar["ticks"][0]]
    if len(ticks) and ticks["time"][-1] < simulation.now:
        ticks = np.append(ticks, ticks[-1:])
        ticks["time"][-1] = simulation.now
    timeline = pl.DataFrame(
        {"time": ticks["time"], "used": ticks["used"] / SLOTS, "running": ticks["running"], "waiting": ticks["waiting"]}
        | {name: ticks[name] / SLOTS for name in ("demanded", "capacity")}
        | {"largest_free": ticks["largest"].astype(float)}
    )
    rows = s.stretches[: s.scalar["stretches"][0]]
    node_type = simulation.cluster.node_type
    allocations = pl.DataFrame(
        {
            "job": rows["job"].astype(np.int64),
            "node": rows["node"],
            "gpu_type": types.gather(node_type[rows["node"]]),
            "gpus": rows["slots"] / SLOTS,
            "start": rows["start"],
            "end": rows["end"],
            "guest": rows["guest"].astype(bool),
            "profiling": rows["idle"].astype(bool),
        }
    )
    rounds = pl.DataFrame(simulation.rounds, schema=ROUNDS, orient="row")
    pools = limited_to_up(pl.DataFrame(simulation.pools, schema=POOLS, orient="row"), allocations, simulation.cluster)
    decisions = None if simulation.decisions is None else simulation.decisions.frame()
    return Run(jobs, timeline, allocations, rounds, pools, simulation.info(), decisions)
