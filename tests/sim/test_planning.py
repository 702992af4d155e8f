"""Planned backfill: golden outcomes, a planner in plain Python on a pool, what is promised, and what is refused."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from few import few
from hypothesis import given, settings
from hypothesis import strategies as st
from random_queues import outcome, random_rule, random_scenario, under_easy
from small_jobs import jobs

from gpuschedlab import Cluster, Fifo, Noisy, Plan, Scenario, Sjf, simulate
from gpuschedlab.errors import PolicyError
from gpuschedlab.estimators import Requested
from gpuschedlab.knobs import word_of
from gpuschedlab.parse import policy_of
from gpuschedlab.policies import Edf
from gpuschedlab.speeds import Speeds

INF = math.inf
SEEDS = range(few(60, 80))
BEFORE = Path(__file__).with_name("golden") / "easy.txt"
"""Outcomes of EASY backfill, seed by seed."""


def planned(depth: float = INF, **plan) -> Fifo:
    return Fifo(backfill="plan", depth=depth, placement="pack", plan=Plan(**plan))


def test_easy_backfill_decides_as_before():
    assert [under_easy(seed) for seed in SEEDS] == BEFORE.read_text().split()[: len(SEEDS)]


def test_plans_of_depth_0_and_1_are_greedy_and_easy_backfill():
    differ = 0
    for seed in SEEDS:
        scenario = random_scenario(seed)
        rule = random_rule(seed)
        found = {}
        for word, depth in (("greedy", 0), ("easy", 1), ("none", None)):
            own = {"backfill": word} if depth is None else {"backfill": "plan", "depth": depth}
            found[word] = outcome(scenario.run(Fifo(**own, placement=rule, patience=100.0)))
        if seed % 3 == 0:  # EASY has its own list
            assert found["easy"] == under_easy(seed)
        assert found["greedy"] == outcome(scenario.run(Fifo(backfill="greedy", placement=rule, patience=100.0))), seed
        differ += len(set(found.values())) == 3
    assert differ > len(SEEDS) * 2 / 3


# --- a planner in plain Python, which counts GPUs: all that there is to a plan where they stand on one node


class Planner:
    """Starts of jobs by a plan that is made anew at each event."""

    def __init__(self, trace: pl.DataFrame, estimates, gpus: int, depth: float, plan: Plan):
        self.jobs = list(zip(trace["submit"], trace["gpus"], trace["duration"], estimates, strict=True))
        self.gpus = gpus
        self.depth = depth
        self.plan = plan

    def slot(self, time: float) -> float:
        """End of the slot in which an instant lies."""
        unit = self.plan.resolution
        return math.ceil(time / unit - 1e-9) * unit if unit else time

    def taken(self, held, time: float) -> float:
        """GPUs that are held or promised at an instant."""
        return sum(gpus for begin, end, gpus in held if begin <= time < end)

    def earliest(self, held, now: float, gpus: float, seconds: float) -> float:
        """First instant at which a job fits for as long as it says."""
        # More are taken only where a claim begins.
        for begin in sorted({now} | {end for _, end, _ in held if end > now}):
            until = self.slot(begin + seconds)
            inside = {begin, *(start for start, _, _ in held if begin < start < until)}
            if all(self.taken(held, t) + gpus <= self.gpus for t in inside):
                return begin
        return INF

    def starts(self) -> list[float]:
        """From event to event."""
        start = {}
        end = {}
        now = 0.0
        while len(start) < len(self.jobs):
            waiting = [j for j, job in enumerate(self.jobs) if job[0] <= now and j not in start]
            self.decide(now, waiting, start, end)
            now = min([e for e in end.values() if e > now] + [job[0] for job in self.jobs if job[0] > now])
        return [start[j] for j in range(len(self.jobs))]

    def decide(self, now: float, waiting, start, end):
        running = [j for j in start if end[j] > now]
        held = [(now, self.slot(max(now, start[j] + self.jobs[j][3])), self.jobs[j][1]) for j in running]
        free = self.gpus - sum(self.jobs[j][1] for j in running)
        promises = blocked = 0
        for place, j in enumerate(waiting):
            submit, gpus, duration, estimate = self.jobs[j]
            if blocked and place >= self.plan.tested:
                return
            begin = self.earliest(held, now, gpus, estimate)
            if begin == now and gpus <= free:
                start[j] = now
                end[j] = now + duration
                free -= gpus
            else:
                blocked = 1
                if promises >= self.depth or begin - now > self.plan.window or now - submit < self.plan.min_age:
                    continue
                promises += 1
            held.append((begin, self.slot(begin + estimate), gpus))


PLANS = [
    (0, Plan()),
    (1, Plan()),
    (2, Plan()),
    (5, Plan(tested=8)),
    (INF, Plan()),
    (INF, Plan(tested=6)),
    (INF, Plan(window=400)),
    (INF, Plan(resolution=100)),
    (3, Plan(min_age=150)),
]


@pytest.mark.parametrize(("depth", "plan"), PLANS, ids=lambda value: str(value)[:60])
def test_a_planner_in_plain_python_starts_the_same_jobs(depth, plan):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        trace = pl.DataFrame(
            {
                "job_id": [f"j{i:02}" for i in range(60)],
                "submit": np.cumsum(rng.integers(1, 60, 60)).astype(float),
                "gpus": rng.choice([1.0, 2.0, 3.0, 6.0], 60),
                "duration": rng.integers(1, 300, 60).astype(float),
            }
        )
        scenario = Scenario(trace, Cluster.homogeneous(1, 6), estimator=Noisy(error=0.7 * (seed % 2), rng=seed))
        estimates = scenario.knowledge.predict(scenario.trace)
        right = Planner(trace, estimates, 6, depth, plan).starts()
        found = scenario.run(Fifo(backfill="plan", depth=depth, placement="pack", plan=plan)).jobs["start"]
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-6, err_msg=f"seed {seed}")


# --- promises


def promised(scenario, policy) -> tuple[dict, pl.DataFrame]:
    """Start that each job was first promised, and the jobs of the run."""
    jobs = scenario.run(policy).jobs
    simulation = scenario.simulation(policy)
    first = {}
    for time in sorted({*jobs["submit"], *jobs["end"]}):
        simulation.advance(time)
        state = simulation.state
        for row in state.reservation[: state.scalar["reservations"][0]]:
            first.setdefault(int(row["job"]), float(row["start"]))
    return first, jobs


JOB = st.tuples(st.integers(0, 40), st.integers(1, 4), st.integers(1, 90), st.sampled_from([1.0, 1.0, 1.5, 4.0]))


def told(rows) -> Scenario:
    """Jobs (s since the last one, GPUs, s, estimate over the truth) on four GPUs."""
    gap, gpus, duration, over = zip(*rows, strict=True)
    trace = pl.DataFrame(
        {
            "job_id": [f"{i:02}" for i in range(len(rows))],
            "submit": np.cumsum(gap).astype(float),
            "gpus": [float(g) for g in gpus],
            "duration": [float(d) for d in duration],
            "requested_time": [d * o for d, o in zip(duration, over, strict=True)],
        }
    )
    return Scenario(trace, Cluster.homogeneous(4, 1), estimator=Requested())


@given(rows=st.lists(JOB, min_size=2, max_size=40), depth=st.sampled_from([1, 3, INF]))
@settings(max_examples=60, deadline=None)
def test_no_job_starts_later_than_it_was_first_promised_where_promises_are_kept(rows, depth):
    first, jobs = promised(told(rows), planned(depth, keep=True))
    late = {j: (at, jobs["start"][j]) for j, at in first.items() if jobs["start"][j] > at + 1e-6}
    assert not late


@pytest.mark.compiled
def test_plans_made_anew_break_promises_that_others_keep():
    """So that the test above can fail."""
    rng = np.random.default_rng(1)
    late = {True: 0, False: 0}
    for _ in range(40):
        rows = [
            (int(a), int(b), int(c), float(o)) for a, b, c, o in rng.integers([0, 1, 1, 1], [30, 5, 90, 5], (60, 4))
        ]
        for keep in late:
            first, jobs = promised(told(rows), planned(keep=keep))
            late[keep] += sum(jobs["start"][j] > at + 1e-6 for j, at in first.items())
    assert late[True] == 0
    assert late[False] > 10


@pytest.mark.compiled
def test_with_exact_estimates_it_does_not_matter_whether_promises_are_kept():
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = [(int(a), int(b), int(c), 1.0) for a, b, c in rng.integers([0, 1, 1], [40, 5, 90], (60, 3))]
        kept, anew = (told(rows).run(planned(keep=keep)).jobs["start"].to_list() for keep in (True, False))
        assert kept == anew


@pytest.mark.parametrize("policy", [Sjf(backfill="plan", depth=3), planned(4, every=60), planned(4, keep=True)])
def test_a_log_of_plans_changes_nothing_and_names_who_holds_a_job(policy):
    rows = np.random.default_rng(1).integers([0, 1, 1], [40, 5, 90], (60, 3))
    scenario = told([(int(a), int(b), int(c), 1.0) for a, b, c in rows])
    plain = scenario.run(policy)
    logged = scenario.run(policy, log=True)
    assert plain.jobs.equals(logged.jobs)
    reserved = logged.decisions.filter(pl.col("reason") == "reserved")
    assert reserved.height > 0
    assert (reserved["until"] >= reserved["time"]).all()
    assert (reserved["blocker"] != reserved["job"]).all()


# --- the doors


def test_a_plan_is_a_knob_and_a_record():
    assert policy_of("fifo:backfill=plan,depth=inf") == Fifo(backfill="plan", depth=INF)
    assert word_of(Fifo(backfill="plan", depth=INF)) == "fifo:backfill=plan,depth=inf"
    assert Fifo.project({"depth": INF, "backfill": "plan"})["depth"] == INF


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Plan(tested=0), r"Plan.tested: found 0; expected 1 to 10000 jobs"),
        (lambda: Plan(keep=True, every=30), "expected keep only with every=0 and resolution=0"),
        (lambda: Fifo(backfill="plan", depth=-1), "Fifo.depth: found -1; expected 0 to 100 jobs"),
        (lambda: Fifo(backfill="plan", plan="deep"), r"Fifo.plan: found 'deep'; expected Plan"),
        (lambda: Fifo(backfill="plan", interval=60, plan=Plan(every=30)), "expected one of them"),
    ],
)
def test_what_no_plan_is(make, message):
    with pytest.raises(PolicyError, match=message):
        simulate(random_scenario(0).trace, Cluster.homogeneous(4, 8), make())


def test_nothing_is_promised_beside_jobs_that_may_be_suspended():
    @dataclass(frozen=True)
    class Hasty(Edf):
        backfill = "plan"

    with pytest.raises(PolicyError, match="found backfill='plan' and preemptive=True"):
        Hasty().rule()


def test_a_plan_is_as_deep_on_the_nodes_of_each_type():
    """Depth 1: the first job that waits for type a has a promise, and the first for b, before which the last, which fits, does not go."""
    rows = [(0, 2, 100), (0, 2, 50), (1, 2, 10), (2, 3, 10), (3, 1, 100)]
    trace = jobs(*rows, model=["m", "n", "m", "n", "n"])
    rates = [(m, t, 1, g, 1.0) for m, t, most in (("m", "a", 2), ("n", "b", 3)) for g in range(1, most + 1)]
    speeds = Speeds.from_frame(
        pl.DataFrame(rates, ["model", "gpu_type", "n_nodes", "n_gpus", "rate"], orient="row"), relative=True
    )
    run = Scenario(trace, Cluster.parse("1x2:a,1x3:b"), speeds=speeds).run(planned(1))
    assert run.jobs["start"].to_list() == [0, 0, 100, 50, 60]
