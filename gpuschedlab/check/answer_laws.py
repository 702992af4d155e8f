"""Laws of every answer that a round policy gives, field by field, as `law(seen, run, cluster) -> None, or the problem`.

They compare the answer with the events after it, so they check the engine as well as the policy; an answer that is impossible
the engine refuses by name before they see it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.optim import relative_gap
from gpuschedlab.sim import Allocation, Round, Wrapped

SLACK = 1e-6
LARGEST = 0.1
"""Relative gap of a policy without a knob for it."""


class Seen(NamedTuple):
    """An answer: when, to a view of which rows, its fields, within which relative gap, and its words on jobs that wait."""

    now: float
    index: np.ndarray
    answer: Allocation
    gap: float = LARGEST
    why: list | None = None

    def of(self, name: str, default) -> np.ndarray:
        """Return a field of the answer, an array with a value per job; the default if the answer does not say it."""
        answered_field = getattr(self.answer, name)
        if answered_field is None:
            return np.full(len(self.index), default)
        return np.asarray(answered_field)


@dataclass(frozen=True)
class Recorded(Wrapped):
    """A round policy that keeps its answers, in order, in `seen`."""

    policy: Round
    seen: list = field(default_factory=list, compare=False)

    def allocate(self, view) -> Allocation:
        """Return the policy's answer, an `Allocation`, and keep it in `seen`."""
        answer = self.policy.allocate(view)
        why = None
        if answer.why is not None:
            why = list(answer.why())
        self.seen.append(Seen(view.now, view.index.copy(), answer, getattr(self.policy, "gap", LARGEST), why))
        return answer


def _held(run, instant: float, *names: str) -> list[tuple]:
    """Return a list of rows, tuples of columns of the allocations, with a row per job and node that held GPUs just after an instant."""
    allocations = run.columns("allocations")
    rows = np.flatnonzero((allocations["start"] <= instant) & (allocations["end"] > instant + SLACK))
    return list(zip(*(allocations[name][rows].tolist() for name in names), strict=True))


def _of_round(run, instant: float, name: str):
    """Return the value of a column of `Run.rounds` for the last round at an instant; None without one."""
    rounds = run.columns("rounds")
    rows = np.flatnonzero(rounds["time"] == instant)
    if not len(rows):
        return None
    return rounds[name][rows[-1]]


def _each(law: Callable) -> Callable:
    """Return a law of a run, a function, from one of an answer: it reports the first problem, with its instant."""

    @wraps(law)
    def of_all(seen_answers, run, cluster) -> str | None:
        problems = ((seen_answer.now, law(seen_answer, run, cluster)) for seen_answer in seen_answers)
        return next((f"{problem}, at t={instant:g} s" for instant, problem in problems if problem is not None), None)

    return of_all


@_each
def gpus_are_held(s, run, cluster) -> str | None:
    """Jobs hold the GPUs that were answered, or none if the round says that they found no place.

    Return None, or the first breach of this law in words.
    """
    held_gpus = Counter()
    for job, gpus in _held(run, s.now, "job", "gpus"):
        held_gpus[job] += gpus
    wrong_positions = []
    for position, job_row in enumerate(s.index):
        difference = held_gpus.get(job_row, 0.0) - s.answer.gpus[position]
        if abs(difference) > 0.01 + SLACK:
            wrong_positions.append(position)
    placed = [position for position in wrong_positions if s.index[position] in held_gpus]
    if placed:
        position = placed[0]
        return (
            f"row {s.index[position]} of .jobs holds {held_gpus[s.index[position]]:g} GPUs; the answer gave "
            f"{s.answer.gpus[position]:g}"
        )
    job_ends = np.nan_to_num(run.columns("jobs")["end"], nan=np.inf)
    lost = [position for position in wrong_positions if job_ends[s.index[position]] > s.now + SLACK]
    if lost and "not placed" not in (_of_round(run, s.now, "status") or ""):
        return f"row {s.index[lost[0]]} of .jobs holds nothing; the answer gave {s.answer.gpus[lost[0]]:g} GPUs"


@_each
def types_are_held(s, run, cluster) -> str | None:
    """Jobs hold GPUs of the type that was answered.

    Return None, or the first breach of this law in words.
    """
    answered_type = dict(
        zip(s.index.tolist(), np.asarray(cluster.gpu_types)[np.asarray(s.answer.gpu_type, int)], strict=True)
    )
    for job, held_type in _held(run, s.now, "job", "gpu_type"):
        if job in answered_type and held_type != answered_type[job]:
            return f"row {job} of .jobs holds {held_type}; the answer gave {answered_type[job]}"


@_each
def named_nodes_are_held(s, run, cluster) -> str | None:
    """Jobs with named nodes hold just those.

    Return None, or the first breach of this law in words.
    """
    if s.answer.nodes is None:
        return None
    named_rows = np.asarray(s.answer.nodes, float)
    wanted = {(int(s.index[int(position)]), int(node)): gpus for position, node, gpus in named_rows}
    held_gpus = {(job, node): gpus for job, node, gpus in _held(run, s.now, "job", "node", "gpus")}
    for (job, node), gpus in wanted.items():
        if abs(held_gpus.get((job, node), 0.0) - gpus) > SLACK:
            return f"row {job} of .jobs holds {held_gpus.get((job, node), 0.0):g} GPUs of node {node}; the answer named {gpus:g}"


@_each
def partners_share(s, run, cluster) -> str | None:
    """A job and its partner hold the same GPUs of the same nodes, and others share none.

    Return None, or the first breach of this law in words.
    """
    partner_pairs = zip(s.index, s.of("partner", -1), s.of("gpus", 0), strict=True)
    host_of_job = {int(job): int(s.index[partner]) for job, partner, gpus in partner_pairs if partner >= 0 and gpus > 0}
    if not host_of_job and not run.allocations["guest"].any():
        return None
    nodes: dict[int, set] = {}
    guests = set()
    for job, node, gpus, is_guest in _held(run, s.now, "job", "node", "gpus", "guest"):
        nodes.setdefault(job, set()).add((node, gpus))
        if is_guest:
            guests.add(job)
    for job in sorted(guests):
        if job not in host_of_job:
            return f"row {job} of .jobs shares GPUs; the answer names no partner"
    for job, host in host_of_job.items():
        if job in nodes and host in nodes and nodes[job] != nodes[host]:
            return f"rows {job} and {host} of .jobs hold {nodes[job]} and {nodes[host]}; expected the same (node, GPUs)"


@_each
def merged_jobs_have_partners(s, run, cluster) -> str | None:
    """Only a job that names a partner is trained jointly with one.

    Return None, or the first breach of this law in words.
    """
    merged_alone = np.flatnonzero(s.of("merged", False).astype(bool) & (s.of("partner", -1) < 0))
    if len(merged_alone):
        return f"row {s.index[merged_alone[0]]} of .jobs is merged without a partner"


def sources_are_named(seen, run, cluster) -> str | None:
    """A job started from another's result only if an answer said so, and after that job had started.

    Return None, or the first breach of this law in words.
    """
    named = {
        (int(job_row), int(source_row))
        for seen_answer in seen
        for job_row, source_row in zip(seen_answer.index, seen_answer.of("source", -1), strict=True)
    }
    job_starts = run.jobs["start"].to_list()
    for job, source in enumerate(run.jobs["source"]):
        if source is not None and (job, source) not in named:
            return f"row {job} of .jobs started from the result of row {source}; no answer said so"
        if source is not None and job_starts[source] > run.allocations.filter(pl.col("job") == job)["end"].max():
            return f"row {job} of .jobs started from the result of row {source}, which had not started"


def profiling_is_named(seen, run, cluster) -> str | None:
    """A job is profiled only if an answer said so.

    Return None, or the first breach of this law in words.
    """
    named_for_profiling = {
        int(job_row)
        for seen_answer in seen
        for job_row in seen_answer.index[seen_answer.of("profiling", False).astype(bool)]
    }
    profiled_jobs = run.allocations.filter("profiling")["job"]
    odd = set(profiled_jobs.unique()) - named_for_profiling
    if odd:
        return f"row {min(odd)} of .jobs was profiled; no answer said so"


@_each
def delays_are_those_named(s, run, cluster) -> str | None:
    """A start that an answer named a kind of has a delay of that kind.

    Return None, or the first breach of this law in words.
    """
    kinds = {delay_kind: dict(seconds).values() for delay_kind, seconds in run.info["delays"].get("kinds", ())}
    named_delay = dict(zip(s.index.tolist(), s.of("delay", "").tolist(), strict=True))
    if not any(named_delay.values()):
        return None
    allocations = run.columns("allocations")
    delays = allocations["delay"]
    for row in np.flatnonzero((allocations["start"] == s.now) & ~np.isnan(delays)):
        job = int(allocations["job"][row])
        delay = float(delays[row])
        if named_delay.get(job) and delay not in kinds[named_delay[job]]:
            return f"row {job} of .jobs started with a delay of {delay:g} s; the answer named {named_delay[job]!r}"


@_each
def reserved_gpus_are_logged(s, run, cluster) -> str | None:
    """`Run.pools` holds the GPUs that were reserved.

    Return None, or the first breach of this law in words.
    """
    if run.pools.is_empty() and not s.answer.reserved:
        return None
    logged = {}
    for reserved_name, reserved_type, reserved_of_types in (
        run.pools.filter(pl.col("time") <= s.now).select("name", "gpu_type", "gpus").iter_rows()
    ):
        logged[reserved_name, reserved_type] = reserved_of_types
    wanted = {
        (reserved_name, reserved_type): g
        for reserved_name, reserved_of_types in s.answer.reserved.items()
        for reserved_type, g in zip(
            cluster.gpu_types, np.broadcast_to(reserved_of_types, len(cluster.gpu_types)), strict=True
        )
    }
    for name_and_type in logged.keys() | wanted.keys():
        if abs(logged.get(name_and_type, 0.0) - wanted.get(name_and_type, 0.0)) > SLACK:
            return (
                f"pool {name_and_type[0]} has {logged.get(name_and_type, 0.0):g} GPUs of {name_and_type[1]}; "
                f"the answer reserved {wanted.get(name_and_type, 0.0):g}"
            )


def rounds_are_on_time(seen, run, cluster) -> str | None:
    """The next round is no later than the instant that an answer requested.

    Return None, or the first breach of this law in words.
    """
    round_grid = run.info["interval"]
    for s, later in pairwise(seen):
        answered_wake = np.inf
        if s.answer.wake is not None:
            answered_wake = s.answer.wake
        latest = answered_wake
        if round_grid and np.isfinite(answered_wake):
            on_grid = np.ceil(answered_wake / round_grid) * round_grid
            # Where rounds end with their jobs, the grid is counted from one of them.
            from_round = s.now + np.ceil((answered_wake - s.now) / round_grid) * round_grid
            latest = max(on_grid, from_round)
        if later.now > latest + SLACK:
            return (
                f"the answer at t={s.now:g} s requested a round at {answered_wake:g} s; the next was at {later.now:g} s"
            )


@_each
def objectives_are_bounded(s, run, cluster) -> str | None:
    """No answer is worth more than its bound.

    Return None, or the first breach of this law in words.
    """
    answer_objective = float(s.answer.objective)
    answer_bound = float(s.answer.bound)
    if answer_objective > answer_bound + SLACK * max(1.0, abs(answer_bound)):
        return f"the objective {answer_objective:g} exceeds the bound {answer_bound:g}"


@_each
def statuses_are_words(s, run, cluster) -> str | None:
    """The status is a text; an answer that it calls optimal is as near to its bound as the policy's knob `gap` says.

    Return None, or the first breach of this law in words.
    """
    answer_status = s.answer.status
    answer_objective = float(s.answer.objective)
    answer_bound = float(s.answer.bound)
    if not isinstance(answer_status, str):
        return f"the status is {answer_status!r}"
    if (
        answer_status.split(",")[0] == "optimal"
        and (far := relative_gap(answer_objective, answer_bound)) > s.gap + SLACK
    ):
        return f"the status is {answer_status!r}, the objective {far:.2g} from its bound; expected at most {s.gap:g}"


@_each
def solvers_take_time(s, run, cluster) -> str | None:
    """The solver's seconds are part of the round's.

    Return None, or the first breach of this law in words.
    """
    round_seconds = _of_round(run, s.now, "seconds")
    if not (
        np.isnan(s.answer.seconds)
        or 0 <= s.answer.seconds <= (np.inf if round_seconds is None else round_seconds) + SLACK
    ):
        return f"the solver took {s.answer.seconds:g} s of a round of {round_seconds:g} s"


@_each
def waits_are_worded(s, run, cluster) -> str | None:
    """There is a text for each job, and an empty one for a job with GPUs.

    Return None, or the first breach of this law in words.
    """
    if s.why is None:
        return None
    if len(s.why) != len(s.index):
        return f"why has {len(s.why)} texts for {len(s.index)} jobs"
    for job_row, gpus, why_it_waits in zip(s.index, s.answer.gpus, s.why, strict=True):
        if not isinstance(why_it_waits, str) or (gpus > 0 and why_it_waits):
            expected = "a text"
            if gpus > 0:
                expected = "''"
            return f"why of row {job_row} of .jobs, which has {gpus:g} GPUs, is {why_it_waits!r}; expected {expected}"


LAWS = {
    "gpu_type": types_are_held,
    "gpus": gpus_are_held,
    "objective": objectives_are_bounded,
    "bound": objectives_are_bounded,
    "status": statuses_are_words,
    "nodes": named_nodes_are_held,
    "partner": partners_share,
    "merged": merged_jobs_have_partners,
    "source": sources_are_named,
    "profiling": profiling_is_named,
    "delay": delays_are_those_named,
    "reserved": reserved_gpus_are_logged,
    "wake": rounds_are_on_time,
    "seconds": solvers_take_time,
    "why": waits_are_worded,
}
"""The law of each field of `Allocation`."""
