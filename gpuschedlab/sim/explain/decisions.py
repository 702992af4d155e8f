"""The log of decisions: at each instant, why each waiting job waits; kept on request (`Scenario.run(policy, log=True)`).

The engine knows nothing of it. A logged simulation goes from event to event, as it would in one go, and after each decision
the log reads the engine's own state: its queues with the policy's compiled key, its nodes, and its placement rule. So what
the log says holds for preemption, gates, leases, profilers and limits of placement alike: nothing is derived anew, and
nothing that is read changes a run by a byte.
"""

from copy import copy

import numpy as np
import polars as pl

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.gate import BEHIND
from gpuschedlab.sim.engine.jobs.records import ALL, GREEDY, PLAN, STILL, WAITING
from gpuschedlab.sim.explain.explanation import row_of, waits_of
from gpuschedlab.sim.explain.looks import held_by, keys_now, next_instant, room_for, standing, waiting_jobs

STARTED, ROOM, NODES, BEHIND_HEAD, RESERVED, UNDECIDED, LEFT, UNPLACED, AT_WINDOW = range(9)
REASONS = ("started", "room", "nodes", "behind", "reserved", "undecided", "left", "unplaced", "window")
"""What a row of the log says of its job.

started : it was chosen and has GPUs from now on.
room : fewer GPUs are free than it needs.
nodes : enough GPUs are free, but the placement rule finds none that it may have.
behind : the first job of the queue does not fit, and the policy lets none pass it (`backfill="none"`).
reserved : it would fit, but by the estimates it would delay a job that is promised a start (`backfill="easy"`, `"plan"`).
undecided : no decision, or no plan, has looked at it since it began to wait; the next is due at `until`.
left : the round gave it no GPUs.
unplaced : the round gave it GPUs, and the placement rule found none for it.
window : it would fit, but by its estimate it would run into a window in which nodes are taken (`Window`).
"""

BEGINNINGS = ("", "submitted", "preempted", "failed", "profiled")
SUBMITTED, PREEMPTED, FAILED, PROFILED = range(1, 5)

CODES = {"time": "f8", "job": "i8", "reason": "i1", "began": "i1", "gated": "?", "place": "i4", "blocker": "i4"}
NUMBERS = ("key", "free", "missing", "ahead", "later", "leased", "until")
# The note: words of a round, by number (`Decisions.notes`); 0: none.
ROW = np.dtype([*CODES.items(), *((name, "f8") for name in NUMBERS), ("note", "i4")])
BLANK = np.array((*[0.0] * 6, -1, *[np.nan] * 6, np.inf, 0), ROW)
KEPT = ("reason", "gated", "blocker", "free", "missing", "until", "note")
"""A job gets a new row when one of these changes."""


class Decisions:
    """Log of a simulation's decisions so far: on all jobs with these names, or on one."""

    def __init__(self, names: pl.Series, one_job: bool | str = True):
        self.one = None
        if one_job is not True:
            self.one = row_of(names, str(one_job))
        jobs = len(names)
        self.waited = False  # the one job, at the last event
        self.parts: list[np.ndarray] = []
        self.last = np.zeros(jobs, ROW)  # of each job that waits, its last row
        self.seen = np.zeros(jobs, [("failures", "i4"), ("preemptions", "i4"), ("starts", "i4")])
        self.decided = -np.inf
        self.notes = {"": 0}

    def copy(self) -> "Decisions":
        """Return a log of its own, `Decisions` that are the same so far."""
        twin = copy(self)
        for attribute in ("parts", "last", "seen", "notes"):
            setattr(twin, attribute, getattr(self, attribute).copy())
        return twin

    def about(self, policy) -> dict:
        """Return a dict of how the policy decides, as `Run.info["log"]` keeps it."""
        if policy.rule()["rounds"][0] == 1:
            return {"kind": "round", "placement": policy.placement}
        says = (type(policy).key.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        rule = {
            rule_name: getattr(policy, rule_name, "") for rule_name in ("placement", "backfill", "preemptive", "first")
        }
        return {"kind": "order", "key": says, **rule}

    def follow(self, simulation, until: float):
        """Let a simulation go on until an instant (s), and log the state that each decision leaves."""
        rule = simulation.state.rule[0]
        if self.one is not None and rule["rounds"] == rule["interval"] == 0:
            # When it waits is known from a run without a log, which costs less than the steps between two waits; at an instant at
            # which nothing happens a simulation may not stop, as that splits sums.
            twin = simulation.copy()
            twin.decisions = None
            run = twin.run(until)
            tick_times = np.append(-np.inf, run.timeline["time"].to_numpy())
            for wait_start, wait_end in waits_of(run, self.one):
                event_before = tick_times[np.searchsorted(tick_times, wait_start) - 1]
                if simulation.now < event_before and wait_start < wait_end:
                    simulation.go(event_before, watch=until == np.inf)
                self._step(simulation, min(wait_end, until))
            simulation.go(until, watch=until == np.inf)
        else:
            self._step(simulation, until)

    def _step(self, simulation, until: float):
        """Let a simulation go on until an instant (s), event by event, and log the state that each leaves."""
        while not simulation.over:
            event_time = next_instant(simulation.state)
            if event_time > until or event_time >= 1e300:
                break
            simulation.go(event_time, watch=until == np.inf)
            self._record(simulation)
        simulation.go(until)

    def _record(self, simulation):
        """Log why jobs wait at this instant."""
        state = simulation.state
        instant = simulation.now
        decided = self._has_decided(simulation)
        if decided:
            self.decided = instant
        if self.one is not None:
            waited = self.waited
            self.waited = state.job["state"][self.one] == WAITING
            if not waited and not self.waited:
                return
        jobs = waiting_jobs(state)
        position = None
        if not decided:
            jobs = jobs[state.job["waiting_since"][jobs] > self.decided]
        self._record_started(simulation)
        if self.one is not None:
            jobs, position = self._near(simulation, jobs)
        if len(jobs) == 0:
            return
        decision_rows = _blank(instant, jobs)
        _measure(state, jobs, decision_rows)
        if state.rule["rounds"][0] == 0:
            _order(simulation, jobs, decision_rows)
        if self.decided < instant:
            decision_rows["reason"] = UNDECIDED
            decision_rows["until"] = state.scalar["decide_at"][0]
        elif state.rule["rounds"][0] == 1:
            self._of_round(simulation, jobs, decision_rows)
        if position is not None:
            decision_rows["place"] = position
            mine = jobs == self.one
            jobs = jobs[mine]
            decision_rows = decision_rows[mine]
        self._keep(state, jobs, decision_rows)

    def _near(self, simulation, jobs) -> tuple[np.ndarray, int | None]:
        """Return an array of the waiting jobs that say why the one job waits, and its place in the queue, as a pair.

        They are the job itself, the first of its queue, and those with a promise. The place is None if a round decides, or if the
        one job does not wait.
        """
        state = simulation.state
        job = self.one
        if state.rule["rounds"][0] == 1 or job not in jobs:
            return jobs[jobs == job], None
        job_keys = _keys(simulation, jobs, state.rule["moving"][0] == ALL)
        mine = np.searchsorted(jobs, [job])
        jobs_before, *_ = standing(state, jobs[mine], job_keys[mine], jobs, job_keys)
        position = int(jobs_before[0])
        if state.rule["backfill"][0] == GREEDY:
            return jobs[mine], position
        queue = state.job["stage"][jobs] == state.job["stage"][job]
        _, first_in_queue, *_ = standing(state, jobs[mine], job_keys[mine], jobs[queue], job_keys[queue])
        first_in_queue = first_in_queue.astype(np.int64)
        promised = state.reservation["job"][: state.scalar["reservations"][0]]
        promised = promised[np.isin(promised, jobs)]
        near = np.unique([job, *first_in_queue[first_in_queue >= 0], *promised])
        return near.astype(np.int64), position

    def _has_decided(self, simulation) -> bool:
        """Whether a decision was taken at this instant."""
        scalar = simulation.state.scalar[0]
        rule = simulation.state.rule[0]
        instant = simulation.now
        if rule["rounds"] == 1:
            answered_at, *_ = simulation.answered
            return answered_at == instant
        # A decision puts off the next one by the whole interval; what has happened since waits for less.
        soon = scalar["decide_at"] - instant < rule["interval"] * (1 - 1e-6)
        return rule["interval"] == 0 or not (scalar["dirty"] == 1 and soon)

    def _record_started(self, simulation):
        """Log which jobs have started at this instant."""
        state = simulation.state
        instant = simulation.now
        running = state.running[: state.scalar["running"][0]].astype(np.int64)
        began = np.sort(running[state.job["started"][running] == instant])
        began = began[state.job["starts"][began] != self.seen["starts"][began]]
        if not len(began):
            return
        started_rows = _blank(instant, began)
        started_rows["missing"] = 0
        started_rows["place"] = -1
        if state.rule["rounds"][0] == 0:
            started_rows["key"] = state.body["key"][began]
        self.seen["starts"][began] = state.job["starts"][began]
        self.last[began] = started_rows
        self.parts.append(started_rows)

    def _keep(self, state, jobs, decision_rows):
        """Append the rows that say something new, each with how the wait began if it is the first of one."""
        wait_begins = self.last["reason"][jobs] == STARTED
        if wait_begins.any():
            preemptions = state.job["preemptions"][jobs]
            failures = state.body["failures"][jobs]
            began = np.full(len(jobs), PREEMPTED)
            if state.rule["profile"][0] > 0:
                began[:] = PROFILED
            began[preemptions > self.seen["preemptions"][jobs]] = PREEMPTED
            began[failures > self.seen["failures"][jobs]] = FAILED
            began[state.job["starts"][jobs] == 0] = SUBMITTED
            decision_rows["began"] = np.where(wait_begins, began, 0)
            self.seen["preemptions"][jobs] = preemptions
            self.seen["failures"][jobs] = failures
        rows_before = self.last[jobs]
        news = wait_begins.copy()
        for kept_field in KEPT:
            news |= rows_before[kept_field] != decision_rows[kept_field]
        self.last[jobs[news]] = decision_rows[news]
        if news.any():
            self.parts.append(decision_rows[news])

    def _of_round(self, simulation, jobs, decision_rows):
        """Decision of the round on each waiting job, and its own words on it."""
        _, answer, why = simulation.answered
        has_gpus = np.zeros(len(simulation.state.job), bool)
        has_gpus[answer["job"][answer["slots"] > 0]] = True
        decision_rows["reason"] = np.where(has_gpus[jobs], UNPLACED, LEFT)
        decision_rows["place"] = -1
        if why is not None:
            note_of_job = dict(zip(answer["job"].tolist(), why(), strict=True))
            decision_rows["note"] = [self.notes.setdefault(note_of_job[job], len(self.notes)) for job in jobs.tolist()]

    def frame(self) -> pl.DataFrame:
        """Return the log as a frame (`Run.decisions`)."""
        decision_rows = np.frombuffer(b"".join(decision_part.tobytes() for decision_part in self.parts), ROW)
        decision_columns = {decision_field: decision_rows[decision_field] for decision_field in ROW.names}
        for decision_field, texts in (("reason", REASONS), ("began", BEGINNINGS), ("note", [*self.notes])):
            decision_columns[decision_field] = pl.Series(texts, dtype=pl.Utf8).gather(
                decision_rows[decision_field].astype(np.int64)
            )
        with_nulls = [pl.when(pl.col("until").is_finite()).then(pl.col("until"))]
        for decision_field in ("place", "blocker"):
            with_nulls.append(pl.when(pl.col(decision_field) >= 0).then(pl.col(decision_field)))
        for decision_field in ("key", "free", "ahead", "later", "leased"):
            with_nulls.append(pl.col(decision_field).fill_nan(None))
        for decision_field in ("began", "note"):
            with_nulls.append(pl.when(pl.col(decision_field) != "").then(pl.col(decision_field)))
        return pl.DataFrame(decision_columns).with_columns(with_nulls)


def _blank(instant: float, jobs: np.ndarray) -> np.ndarray:
    """Return an array of rows of an instant, one per job, that say nothing of their jobs yet."""
    blank_rows = np.full(len(jobs), BLANK)
    blank_rows["time"] = instant
    blank_rows["job"] = jobs
    return blank_rows


def _measure(state, jobs, decision_rows):
    """Free GPUs for each waiting job, and how many more it needs by the placement rule: too few, or on wrong nodes."""
    slots = state.body["slots"][jobs]
    room, placeable_slots = room_for(state, jobs)
    decision_rows["free"] = room / SLOTS
    decision_rows["missing"] = (slots - placeable_slots) / SLOTS
    decision_rows["reason"] = np.where(room < slots, ROOM, NODES)


def _order(simulation, jobs, decision_rows):
    """Keys, places in the order, and which job each one waits behind; of running jobs, which go before it."""
    state = simulation.state
    rule = simulation.state.rule[0]
    job_bodies = state.body
    decision_rows["gated"] = job_bodies["gated"][jobs] == 1
    job_keys = _keys(simulation, jobs, rule["moving"] == ALL)
    decision_rows["key"] = job_keys - BEHIND * decision_rows["gated"]
    waiting_order = np.lexsort((jobs, job_bodies["since"][jobs], job_keys))
    decision_rows["place"][waiting_order] = np.arange(len(jobs))
    if rule["preemptive"] == 1:
        _running(simulation, jobs, job_keys, decision_rows)
    if rule["backfill"] == GREEDY:
        return
    if rule["backfill"] == PLAN:
        _planned(state, jobs, decision_rows)
        return
    stage = state.job["stage"][jobs]
    stages_in_order = stage[waiting_order]
    for stage_number in np.unique(stage):
        queue = waiting_order[stages_in_order == stage_number]
        head_of_queue = queue[0]
        followers = queue[1:]
        decision_rows["reason"][followers] = BEHIND_HEAD
        decision_rows["blocker"][followers] = jobs[head_of_queue]
        decision_rows["missing"][followers] = decision_rows["missing"][head_of_queue]
        decision_rows["free"][followers] = decision_rows["free"][head_of_queue]


def _planned(state, jobs, decision_rows):
    """Which promise holds each job that would fit."""
    fits = np.flatnonzero(decision_rows["missing"] <= 0)
    promise = held_by(state, jobs[fits])
    decision_rows["reason"][fits] = UNDECIDED
    decision_rows["until"][fits] = state.scalar["decide_at"][0]
    decision_rows["reason"][fits[promise == -2]] = AT_WINDOW
    reserved = fits[promise >= 0]
    promised = state.reservation[promise[promise >= 0]]
    decision_rows["reason"][reserved] = RESERVED
    decision_rows["blocker"][reserved] = promised["job"]
    decision_rows["until"][reserved] = promised["start"]
    blockers = np.searchsorted(jobs, promised["job"])
    for decision_field in ("missing", "free"):
        decision_rows[decision_field][reserved] = decision_rows[decision_field][blockers]


def _keys(simulation, jobs, drift: bool) -> np.ndarray:
    """Return an array of the keys of jobs, those that the gate holds back behind all others; computed anew if they drift."""
    job_bodies = simulation.state.body
    if not drift:
        return job_bodies["key"][jobs]
    gated = job_bodies["gated"][jobs] == 1
    return keys_now(simulation.state, jobs) + np.where(gated, BEHIND, 0.0)


def _running(simulation, jobs, key, decision_rows):
    """GPUs held by running jobs that go before each waiting one, by later ones, and by later ones under a lease, until when."""
    state = simulation.state
    running = state.running[: state.scalar["running"][0]].astype(np.int64)
    running = running[state.body["guest"][running] == 0]
    theirs = _keys(simulation, running, state.rule["moving"][0] != STILL)
    _, _, ahead, later, leased, until = standing(state, jobs, key, running, theirs)
    decision_rows["ahead"] = ahead / SLOTS
    decision_rows["later"] = later / SLOTS
    decision_rows["leased"] = leased / SLOTS
    decision_rows["until"] = until
