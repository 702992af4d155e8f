"""One round of PromptTuner, step by step, as its own code decides it; and again for other deadlines of one job."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.papers.prompttuner.policy import PromptTuner, Turn
from gpuschedlab.papers.prompttuner.warm_pools import NO_MODEL, demand_of
from gpuschedlab.policies.steps import Case, Step, spell
from gpuschedlab.sim.simulation import Simulation

LISTING = (
    "algorithm 1: for each pending job, earliest deadline first",
    "    A = fewest idle GPUs of its pool with T(A) <= T_slo",
    "    if there is one: start on A GPUs",
    "algorithm 2: for each job that is still pending",
    "    late on any number of GPUs: leave it for the end",
    "    DelaySchedulable, A = 1, 2, ...: does E have A GPUs by the deadline - T(A)?",
    "    if so: claim them in E, and wait",
    "    A = fewest cold GPUs with T(A) + T_cold <= T_slo",
    "    if there is one: warm A GPUs up",
    "late jobs: last, on their fewest GPUs",
)
"""Listing of a round, as corrected (`PromptTuner`); `Step.line` counts from 1."""

HEAD = ("job", "LLM", "due in", "T(A)", "decided")
LINES = {"late": 5, "waits": 7, "none": 8, "warms": 9}
WORDS = {"waits": "waits for GPUs of its pool", "none": "stays pending", "late": "late: last", "starts": "starts"}


class Ready(NamedTuple):
    """E of a pool: its LLM; (seconds until ready, GPUs) of each entry; seconds to the job's latest start (nan: none), and deadline."""

    llm: str
    entries: list[tuple[float, float]]
    latest: float
    due: float


@dataclass
class _Noted(Turn):
    """A round that notes each of its steps."""

    def __post_init__(self):
        super().__post_init__()
        self.steps = []
        self.decided = {}
        self.shown = list(self.pending)
        self.at = -1
        job_cells = ((self.view.job_id(i), self.pool_name(i), spell(self.left(i)), self.times(i)) for i in self.shown)
        self.cells = dict(zip(self.shown, job_cells))

    def note(self, line: int, read: str, decided: str, latest: float = np.nan):
        """Keep a step of the job that the round looks at, with E as it is now."""
        own_ready_times = dict(self.ready)
        pool_key = self.key(self.at)
        times = self.ready_times(pool_key) if pool_key in self.pools.pools else []
        ready_entries = [(float(max(instant - self.now, 0.0)), gpus) for instant, gpus, _ in times]
        self.ready = own_ready_times  # the round makes its own E, later
        state = Ready(self.pool_name(self.at), ready_entries, latest - self.now, self.left(self.at))
        self.steps.append(Step(line, read, decided, self.rows(), (self.shown.index(self.at),), state))

    def pool_name(self, i: int) -> str:
        return self.view.model_name(i) or NO_MODEL

    def rows(self) -> list[tuple[str, ...]]:
        """Return a list of tuples: the pending jobs, and the decision for each so far."""
        return [(*self.cells[i], self.decided.get(i, "")) for i in self.shown]

    def times(self, i: int, cold: float = 0.0) -> str:
        """Return T(A) of the first few A as a text."""
        seconds = self.demand.seconds[i]
        gpus = self.demand.gpus[i]
        able = np.flatnonzero(np.isfinite(seconds))[:4]
        times = [f"{spell(seconds[k] + cold)} on {gpus[k]:g}" for k in able]
        return ", ".join(times)

    def start_if_in_time(self, i: int) -> int:
        self.at, pool = i, self.pools.pools.get(self.key(i))
        idle = pool.ready if pool else 0
        level = super().start_if_in_time(i)
        on = f"{self.demand.gpus[i, max(level, 0)]:g}"
        self.decided[i] = f"starts on {on}" if level >= 0 else ""
        start_words = f"It starts on {on}." if level >= 0 else "No such A: it stays pending."
        read = f"T_slo = {spell(self.left(i))}; {idle:g} idle GPUs; T(A): {self.times(i)}."
        self.note(3 if level >= 0 else 2, read, start_words)
        return level

    def _wait(self, key, gpus: float, most: float, busy: bool) -> float:
        instant = super()._wait(key, gpus, most, busy)
        if np.isfinite(most):
            seconds_to_start = most - self.now
            wait_words = "They are not ready by then."
            if np.isfinite(instant):
                wait_words = f"They are ready in {spell(instant - self.now)}: it can wait."
            start = (
                f"it must start within {spell(seconds_to_start)}"
                if seconds_to_start >= 0
                else f"it had to start {spell(-seconds_to_start)} ago"
            )
            self.note(6, f"With {gpus:g} GPU{'s' if gpus > 1 else ''} {start}.", wait_words, most)
        return instant

    def wait_or_warm_up(self, i: int) -> str:
        self.at, cold = i, self.pools.cold(self.view, self.key(i)[1])
        decision = super().wait_or_warm_up(i)
        bought = cold - self.pools.cold(self.view, self.key(i)[1])
        self.decided[i] = WORDS.get(decision, f"warms up {bought:g}")
        wait = self.ready_at(i) - self.now
        slo = f"T_slo = {spell(self.left(i))}"
        read = {"late": f"{slo}; at best it takes {spell(self.least[i])}.", "waits": f"{slo}."}
        cold_words = f"{slo}; {cold:g} cold GPUs; T(A) + T_cold: {self.times(i, wait)}."
        decision_words = {"waits": "The GPUs are claimed in E.", "late": "Nothing helps: it is served at the end."}
        self.note(
            LINES[decision], read.get(decision, cold_words), decision_words.get(decision, f"It {self.decided[i]}.")
        )
        return decision

    def serve(self, i: int) -> str:
        self.at = i
        decision = super().serve(i)
        self.decided[i] = f"late: {WORDS.get(decision, 'warms GPUs up')}"
        self.note(10, "Idle and warming GPUs that nobody waits for.", f"It is {self.decided[i]}.")
        return decision


def busiest_round(scenario, policy: PromptTuner, most: int = 8):
    """Return the `View` of the round of a run with the most pending jobs, but no more than `most`, before it is decided."""
    simulation = Simulation(scenario, policy)
    most_pending = 0
    busiest = None
    while (view := simulation.ask()) is not None:
        pending = int((~view.running).sum())
        if most_pending < pending <= most:
            most_pending = pending
            busiest = simulation.copy()
        simulation.answer(view, simulation.policy.allocate(view))
    if busiest is None:
        raise RunError(
            f"busiest_round: found no round with 1 to {most} pending jobs; expected one. Give more jobs, or a higher `most`."
        )
    return busiest.ask()


def decided_again(view, policy: PromptTuner, due: dict[int, float]) -> _Noted:
    """Decide a round once more, step by step, and return it as `_Noted`; the view stays as it is.

    Some jobs have other deadlines (instants), `due`.
    """
    again = view.take(np.arange(len(view)), memory=copy.deepcopy(view.memory))
    demand = demand_of(again, policy.most)
    moved = demand.due.copy()
    moved[list(due)] = list(due.values())
    return policy.decided(again, demand._replace(due=moved), _Noted)


def cases_of(view, policy: PromptTuner, job: str | None = None, count: int = 13) -> tuple[list[Case], int, str]:
    """Return a tuple: the round for several deadlines of one pending job, a list of `Case`; the place of its own; and its name.

    `job`: its name; by default the first that cannot wait for GPUs of its pool, or else the first.
    """
    demand = demand_of(view, policy.most)
    turn = decided_again(view, policy, {})
    named = {view.job_id(i): i for i in turn.shown}
    if job is not None and job not in named:
        raise RunError(f"steps: found no pending job {job!r} at {view.now:g} s; expected one of {', '.join(named)}.")
    cannot = (pending_name for pending_name, i in named.items() if turn.decided[i] != WORDS["waits"])
    job = job or next(cannot, next(iter(named)))
    i = named[job]
    able = demand.seconds[i][np.isfinite(demand.seconds[i])]
    own_due = float(demand.due[i])
    wait = float(able.max() + demand.warm_up[i])
    farthest = 1.5 * max(own_due - view.now, wait)
    nearby = view.now + np.linspace(able.min() / 2, farthest, count - 1)
    dues = {own_due, *nearby.tolist()}
    turns = {due: decided_again(view, policy, {i: due}) for due in sorted(dues)}
    cases = []
    for due, turn_at_due in turns.items():
        title = f"due in {spell(due - view.now)}"
        cases.append(Case(title, HEAD, turn_at_due.steps))
    return cases, list(turns).index(own_due), job
