"""PromptTuner at window 0, where no GPU is reused: by hand, and beside an independent simulation in rounds of 50 ms."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
import pytest

from gpuschedlab.policies import PromptTuner
from gpuschedlab.sim import Delays
from papers.prompttuner.small_runs import jobs, most, run_of, starts

GRID = 0.05
EPS = 1e-6
ALONE = PromptTuner(window=0.0)


# --- by hand, T_cold = 10 s


def test_a_job_does_not_wait_for_gpus_that_no_job_will_get():
    """The first job's GPU is cold again at 20 s: the second, due at 36 s, warms up its own at once."""
    trace = jobs((0, 10, 20), (1, 10, 35))
    assert starts(run_of(trace, ALONE)) == [10.0, 11.0]
    assert starts(run_of(trace, PromptTuner())) == [10.0, 20.0]


def test_late_jobs_do_not_run_one_after_another():
    """No GPU comes back to the pool, so each late job warms up one of its own, as long as there are cold ones."""
    trace = jobs(*[(0, 20, 5)] * 4)
    assert starts(run_of(trace, ALONE, gpus=3)) == [10.0, 10.0, 10.0, 40.0]
    assert starts(run_of(trace, PromptTuner(), gpus=3)) == [10.0, 30.0, 50.0, 70.0]


def test_late_jobs_leave_cold_gpus_to_those_that_can_be_in_time():
    """Two cold GPUs, and a job that needs both."""
    run = run_of(jobs((0, 20, 5), (0, 20, 20)), ALONE, gpus=2)
    assert starts(run) == [30.0, 10.0]


def test_gpus_that_become_warm_at_other_instants_are_not_there_together():
    """The third job would be in time on two GPUs at 11 s, but those of the others are warm at 10 s and at 11 s: it warms up three."""
    trace = jobs((0, 10, 20), (1, 10, 20), (2, 8, 13))
    run = run_of(trace, ALONE, gpus=8)
    assert starts(run) == [10.0, 11.0, 12.0]
    assert most(run, "warming a") == 5


# --- an independent simulation of the thesis's algorithms at window 0


@dataclass
class Case:
    """A small instance: rows (submit, work, seconds to the deadline, LLM) of jobs, GPUs, seconds of warm and cold starts."""

    rows: list
    gpus: int
    warm: float
    cold: float
    late: str

    @cached_property
    def sizes(self) -> range:
        """Numbers of GPUs that a job can have."""
        return range(1, min(self.gpus, 4) + 1)

    def takes(self, i: int, gpus: int) -> float:
        """T_i: seconds on warm GPUs."""
        return self.warm + self.rows[i][1] / gpus


@dataclass
class Reference:
    """Both algorithms round after round; a GPU is cold, warming for an LLM, just warm in this round, or busy."""

    case: Case
    busy: list = field(default_factory=list)  # (end, GPUs)
    warming: list = field(default_factory=list)  # (ready, LLM), one a GPU
    fresh: dict = field(default_factory=dict)  # LLM -> GPUs that are warm in this round
    found: dict = field(default_factory=dict)  # job -> (start, end)

    def run(self) -> list:
        """Start and end of each job; None: never."""
        waits = list(range(len(self.case.rows)))
        tick = 0
        while waits and tick < 4_000:
            self.now = tick * GRID
            self.busy = [(end, gpus) for end, gpus in self.busy if end > self.now + EPS]
            self.fresh = {llm: sum(at <= self.now + EPS and of == llm for at, of in self.warming) for llm in "ab"}
            self.warming = [(at, of) for at, of in self.warming if at > self.now + EPS]
            waiting = [i for i in waits if self.case.rows[i][0] <= self.now + EPS]
            waiting.sort(key=self.due)
            if waiting:
                self.round(waiting)
            waits = [i for i in waits if i not in self.found]
            tick += 1
        return [self.found.get(i, (None, None)) for i in range(len(self.case.rows))]

    def due(self, i: int) -> float:
        return self.case.rows[i][0] + self.case.rows[i][2]

    def in_time(self, i: int, gpus: int, instant: float) -> bool:
        """Whether a job that starts at an instant ends by its deadline."""
        return instant + self.case.takes(i, gpus) <= self.due(i) + EPS

    def cold(self) -> int:
        """GPUs that are neither busy, nor warming, nor warm."""
        return self.case.gpus - sum(g for _, g in self.busy) - len(self.warming) - sum(self.fresh.values())

    def start(self, i: int, gpus: int):
        end = self.now + self.case.takes(i, gpus)
        self.fresh[self.case.rows[i][3]] -= gpus
        self.busy.append((end, gpus))
        self.found[i] = (self.now, end)

    def round(self, waiting: list):
        """Algorithm 1, Algorithm 2, and the jobs that are late anyway."""
        for i in waiting:
            enough = [
                a for a in self.case.sizes if a <= self.fresh[self.case.rows[i][3]] and self.in_time(i, a, self.now)
            ]
            if enough:
                self.start(i, enough[0])
        waiting = [i for i in waiting if i not in self.found]
        late = [i for i in waiting if not self.in_time(i, self.case.sizes[-1], self.now)]
        # E: GPUs that a job may wait for; busy ones are cold as soon as they are free
        ready = {llm: [self.now] * self.fresh[llm] + sorted(at for at, of in self.warming if of == llm) for llm in "ab"}
        soon = np.ceil((self.now + self.case.cold - self.case.warm) / GRID - EPS) * GRID
        for i in waiting:
            llm = self.case.rows[i][3]
            if i not in late and not self.delay_schedulable(i, ready[llm]):
                enough = [a for a in self.case.sizes if a <= self.cold() and self.in_time(i, a, soon)]
                self.warming += [(soon, llm)] * enough[0] if enough else []
        for i in late if self.case.late == "last" else ():
            llm = self.case.rows[i][3]
            if ready[llm]:
                if ready[llm].pop(0) <= self.now + EPS:
                    self.start(i, 1)
            elif self.cold() > 0:
                self.warming.append((soon, llm))

    def delay_schedulable(self, i: int, ready: list) -> bool:
        """Whether a job is in time on GPUs that become warm at one instant; these are its own then."""
        for a in self.case.sizes:
            for instant in dict.fromkeys(ready):
                if ready.count(instant) >= a and self.in_time(i, a, instant):
                    for _ in range(a):
                        ready.remove(instant)
                    return True
        return False


def drawn(rng) -> Case:
    """Up to nine jobs of two LLMs within 20 s on up to eight GPUs; some instants lie on the grid, some do not."""
    n = int(rng.integers(2, 10))
    digits = int(rng.integers(1, 4))
    submit = np.sort(rng.uniform(0, 20, n).round(digits))
    work = rng.uniform(1, 20, n).round(digits)
    warm = float(rng.choice([0, 1, 0.33]))
    cold = warm + float(rng.choice([1, 3.3, 5, 10]))
    due = (rng.uniform(0.4, 3, n) * work + rng.choice([0, cold], n) + 0.1).round(digits)
    rows = list(zip(submit.tolist(), work.tolist(), due.tolist(), rng.choice(["a", "b"], n).tolist(), strict=True))
    return Case(rows, int(rng.integers(1, 9)), warm, cold, str(rng.choice(["last", "drop"])))


@pytest.mark.parametrize("seed", range(10))
def test_at_window_0_all_events_are_those_of_an_independent_simulation(seed):
    """200 random instances in ten parts: starts and ends of all jobs."""
    rng = np.random.default_rng(seed)
    for each in range(20):
        case = drawn(rng)
        assert_same_events(case, f"{each}: {case}")


def test_a_job_that_can_just_be_in_time_in_a_round_is_late_in_the_next():
    """The second comes at the last instant at which the first could be in time, 1.7 + 8.1 - 6.2 = 3.6 s, and begins that round."""
    case = Case([(1.7, 5.2, 8.1, "b"), (3.6, 17.4, 19.1, "a")], 1, 1.0, 4.3, "last")
    assert Reference(case).run()[0] == pytest.approx((6.95, 13.15))
    assert_same_events(case)


def assert_same_events(case: Case, where: str = ""):
    """Starts and ends of all jobs are those of the reference."""
    delays = Delays(kinds={"warm": case.warm, "cold": case.cold})
    run = run_of(jobs(*case.rows), PromptTuner(window=0.0, late=case.late), gpus=case.gpus, delays=delays, until=200.0)
    expected = pl.DataFrame(Reference(case).run(), schema=["start", "end"], orient="row")
    for name in ("start", "end"):
        ours = run.jobs[name].to_list()
        theirs = expected[name].to_list()
        assert ours == [None if t is None else pytest.approx(t, abs=1e-6) for t in theirs], f"{name} {where}"
