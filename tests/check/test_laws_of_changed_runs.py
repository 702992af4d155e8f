"""Laws of runs and answers: they find nothing in a sound run, and each number that was changed in another."""

import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from small_jobs import random_trace

from gpuschedlab import Allocation, Cluster, Delays, Fifo, Outage, Round, Scenario, Srtf, Tiresias
from gpuschedlab.check import answer_laws, laws
from gpuschedlab.check.answer_laws import Recorded
from gpuschedlab.check.estimator_battery import check_estimator
from gpuschedlab.check.policy_battery import check_policy, different, different_until
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.check.samples import elastic_sample, recurring_sample, small_trace
from gpuschedlab.check.stretches import stretches
from gpuschedlab.cluster import Nodes
from gpuschedlab.estimators import History
from gpuschedlab.speeds import Speeds
from gpuschedlab.traces import validate

CHANGES = {
    "ends later": ("jobs", {"end": pl.col("end") + 7}),
    "more preemptions": ("jobs", {"preemptions": pl.col("preemptions") + 1}),
    "less attained": ("jobs", {"attained": pl.col("attained") * 0.9}),
    "more overhead": ("jobs", {"overhead": pl.col("overhead") + 3}),
    "waits longer": ("jobs", {"queueing": pl.col("queueing") + 5}),
    "more failures": ("jobs", {"failures": pl.col("failures") + 1}),
    "held longer": ("allocations", {"end": pl.col("end") + 4}),
    "more GPUs": ("allocations", {"gpus": pl.col("gpus") + 1}),
    "another node": ("allocations", {"node": (pl.col("node") + 1) % 3}),
    "no delay": ("allocations", {"delay": pl.col("delay") * 0}),
    "less used": ("timeline", {"used": pl.col("used") - 1}),
    "more running": ("timeline", {"running": pl.col("running") + 1}),
    "more capacity": ("timeline", {"capacity": pl.col("capacity") + 2}),
    "less waiting": ("timeline", {"waiting": pl.col("waiting") + 1}),
}
LAWS = [
    getattr(laws, name)
    for name in (
        "all_finish",
        "capacity_holds",
        "reserved_gpus_fit",
        "bills_add_up",
        "gpu_time_is_conserved",
        "littles_law_holds",
    )
]
LAWS += [getattr(laws, name) for name in ("times_add_up", "nodes_were_asked_for", "idle_time_is_left_out")]


NOTICED = {
    "ends later": "ended at",
    "more preemptions": "preemptions is 1",
    "less attained": "the timeline to",
    "more overhead": "overhead is 3 s",
    "waits longer": "waited 5",
    "more failures": "failures is 1",
    "held longer": r"gave 8 GPUs at .*; it has 4",
    "more GPUs": r"gave 5 GPUs at .*; it has 4",
    "another node": r"gave 8 GPUs at .*; it has 4",
    "no delay": "with a delay of 0 s; expected 20 s",
    "less used": "the timeline to",
    "more running": "completion times to",
    "more capacity": "utilisation is",
    "less waiting": "completion times to",
}
"""Words by which each change is reported."""


@pytest.fixture(scope="module")
def sound():
    """A run on nodes of two sizes, one of which fails for a while; its scenario and policy."""
    trace = random_trace(20, 3, 1.4, 16).filter(pl.col("gpus") <= 8)
    cluster = replace(Cluster.parse("1x8,2x4"), events=(Outage(0, 500.0, 900.0),))
    scenario = Scenario(trace, cluster, delays=Delays(restart=20.0, checkpoint=100.0))
    policy = Srtf()
    return scenario, policy, scenario.run(policy)


def reports(run, scenario, policy) -> list[str]:
    """Problems that the laws, and the sums of all books, find in a run."""
    found = [law(run, scenario.cluster) for law in LAWS] + [books_add_up(run, scenario, ((0.0, policy),))]
    return [text for text in found if text is not None]


def test_laws_find_nothing_in_a_sound_run(sound):
    scenario, policy, run = sound
    assert reports(run, scenario, policy) == []


@pytest.mark.parametrize("change", CHANGES)
def test_laws_find_each_column_that_is_changed(sound, change):
    scenario, policy, run = sound
    frame, values = CHANGES[change]
    changed = replace(run, **{frame: getattr(run, frame).with_columns(**values)})
    assert re.search(NOTICED[change], "\n".join(reports(changed, scenario, policy)))


def test_runs_differ_from_the_instant_on_at_which_they_do(sound):
    scenario, _, run = sound
    other = scenario.run(Fifo())
    assert different(run, run, "w") is None
    assert re.match(r"\.jobs row \d+: contention is .* w; expected the same", different(run, other, "w"))
    first = min(min(a, b) for a, b in zip(run.jobs["start"], other.jobs["start"], strict=True) if a != b)
    assert different_until(first - 1, run, other, "w") is None
    assert different_until(run.jobs["end"].max(), run, other, "w") is not None


def test_stretches_of_a_job_are_its_allocations_without_gaps(sound):
    _, _, run = sound
    held = stretches(run, np.arange(run.jobs.height))
    for job, parts in held.items():
        own = run.allocations.filter(pl.col("job") == job)
        assert sum(own["gpus"] * (own["end"] - own["start"])) == pytest.approx(run.jobs["attained"][job])
        assert len(list(parts)) == own["start"].n_unique()


@dataclass(frozen=True)
class Rich(Round):
    """Jobs in order of submission, in pairs where they can share, on nodes that are named; one GPU is kept for later."""

    interval = 20.0

    def allocate(self, view):
        n = len(view)
        gpus = np.zeros(n)
        partner = np.full(n, -1)
        nodes = []
        free = np.full(len(view.up), 4.0) * view.up
        for i in np.argsort(view.submit, kind="stable").tolist():
            host = next((k for k in np.flatnonzero(gpus).tolist() if partner[k] < 0 and k not in partner), None)
            if view.gpus[i] == 1 and host is not None and gpus[host] == 1:
                gpus[i] = 1
                partner[i] = host
            elif free.max() >= view.gpus[i]:
                gpus[i], node = view.gpus[i], int(free.argmax())
                free[node] -= gpus[i]
                nodes.append((i, node, gpus[i]))
        words = [f"job {row} waits" if g == 0 else "" for row, g in zip(view.index, gpus, strict=True)]
        return Allocation(
            np.zeros(n, int), gpus, nodes=nodes, partner=partner, profiling=(gpus == 3) & (view.age < 20), wake=view.now + 13.0,
            objective=9.0, bound=9.5, status="optimal", seconds=0.0, reserved={"kept": [float(free.max() > 0)]},
            why=lambda: words,
        )  # fmt: skip


MUCH = {"node": 1 - pl.col("node"), "job": (pl.col("job") + 1) % 9}


def one_by_one(run, row: int) -> dict:
    """A run with one of its numbers changed, much or by more than rounding does, by what was changed."""
    found = {}
    for name in ("jobs", "allocations", "timeline", "pools", "rounds"):
        frame = getattr(run, name)
        at = pl.int_range(pl.len()) == row % max(frame.height, 1)
        for column, kind in frame.schema.items():
            if kind.is_numeric() and frame.height and column not in ("seconds", "solving"):
                for word, other in (
                    ("much", MUCH.get(column, pl.col(column) * 1.1 + 1)),
                    ("little", pl.col(column) + 1.5e-6),
                ):
                    if word == "much" or kind.is_float():
                        changed = pl.when(at).then(other.cast(kind)).otherwise(column).alias(column)
                        found[f"{name}.{column} {word}"] = replace(run, **{name: frame.with_columns(changed)})
    return found


REQUESTS = {"jobs.gpus", "jobs.nodes", "jobs.source", "jobs.contention", "allocations.source"}
GAUGES = {"timeline.demanded", "timeline.largest_free", "rounds.time", "rounds.objective", "rounds.bound"}
UNCHECKED = REQUESTS | GAUGES
"""Columns that no law concerns: requests, which are those of the trace, and gauges that nothing else adds up to."""

ORDER_ALONE = {"allocations.partner"}
ROUNDS_ALONE = {"jobs.submit"}
"""Columns of the two runs that no law concerns: nobody shares under an order; a round may begin after a submission."""

COARSE = {"timeline.capacity", "timeline.time"}
"""Columns whose change by less than a rounding moves no sum."""


@pytest.fixture(scope="module")
def rich():
    """A scenario with shared GPUs, pools, an outage and delays; its runs by an order and by rounds, whose answers are recorded."""
    kinds = pl.DataFrame({"model": ["a"] * 4 + ["b"] * 4, "gpu_type": "v100", "n_gpus": [1, 2, 3, 4] * 2, "rate": 1.0})
    trace = random_trace(9, 5, 1.4, 8).with_columns(
        pl.col("submit") * 0.02,
        pl.col("duration") * 0.1,
        gpus=pl.Series([1.0, 1, 2, 1, 4, 3, 1, 2, 1]),
        model=pl.Series([*"abaabbaba"]),
    )
    speeds = Speeds.from_frame(kinds, relative=True, sharing={(a, b): 0.6 for a in "ab" for b in "ab"})
    cluster = Cluster((Nodes("v100", 2, 4),), (Outage(0, 60.0, 90.0),))
    delays = Delays(checkpoint=100.0, kinds={"warm": 3.0})
    scenario = Scenario(trace, cluster, speeds=speeds, delays=delays, until=2000.0)
    recorded = Recorded(Rich())
    return scenario, recorded, scenario.run(recorded), scenario.run(Tiresias())


def columns_of(reports_by_change: dict) -> set[str]:
    """Columns whose changes were reported by no law."""
    return {name.rpartition(" ")[0] for name, found in reports_by_change.items() if not found}


def test_laws_find_each_single_number_of_an_order_that_is_changed(rich):
    scenario, _, _, run = rich
    found = {name: reports(changed, scenario, Tiresias()) for name, changed in one_by_one(run, 2).items()}
    much = {name: text for name, text in found.items() if name.endswith(" much")}
    little = {name: text for name, text in found.items() if name.endswith(" little")}
    there = {name.rpartition(" ")[0] for name in found}
    assert reports(run, scenario, Tiresias()) == []
    assert columns_of(much) == (UNCHECKED | ORDER_ALONE) & there
    assert columns_of(little) - COARSE == UNCHECKED & {name.rpartition(" ")[0] for name in little}


def test_laws_find_each_single_number_of_rounds_that_is_changed(rich):
    scenario, recorded, run, _ = rich

    def found(changed):
        answers = [law(recorded.seen, changed, scenario.cluster) for law in ANSWERED]
        return reports(changed, scenario, recorded) + [text for text in answers if text is not None]

    by_change = {name: found(changed) for name, changed in one_by_one(run, 2).items()}
    much = {name: text for name, text in by_change.items() if name.endswith(" much")}
    little = {name: text for name, text in by_change.items() if name.endswith(" little")}
    there = {name.rpartition(" ")[0] for name in by_change}
    assert found(run) == []
    assert columns_of(much) == (UNCHECKED | ROUNDS_ALONE) & there
    assert columns_of(little) - COARSE == (UNCHECKED | ROUNDS_ALONE) & {name.rpartition(" ")[0] for name in little}


ANSWERED = list(dict.fromkeys(answer_laws.LAWS.values()))
ANSWERS = [
    ("gpus", lambda answer: answer.gpus + 0.5, "the answer gave 1.5"),
    ("gpus", lambda answer: answer.gpus + 1.5e-6, ""),
    ("gpus", lambda answer: 0 * answer.gpus, "the answer gave 0"),
    (
        "nodes",
        lambda answer: [(row, 1 - node, gpus) for row, node, gpus in answer.nodes],
        "of node 0; the answer named 1",
    ),
    ("nodes", lambda answer: answer.nodes[1:], ""),
    ("partner", lambda answer: np.full(len(answer.gpus), -1), "the answer names no partner"),
    ("partner", lambda answer: np.roll(answer.partner, 1), "the answer names no partner"),
    ("merged", lambda answer: np.ones(len(answer.gpus), bool), "merged without a partner"),
    ("source", lambda answer: np.arange(len(answer.gpus)), ""),
    ("profiling", lambda answer: ~answer.profiling, ""),
    ("delay", lambda answer: np.full(len(answer.gpus), "warm", object), "a delay of 0 s; the answer named 'warm'"),
    ("reserved", lambda answer: {"kept": [2.0]}, "the answer reserved 2"),
    ("reserved", lambda answer: {"kept": [1.0 + 1.5e-6]}, "the answer reserved 1"),
    ("reserved", lambda answer: {}, "the answer reserved 0"),
    ("wake", lambda answer: 0.0, "requested a round at 0 s"),
    ("wake", lambda answer: None, ""),
    ("objective", lambda answer: 9.5 + 1.5e-5, "exceeds the bound 9.5"),
    ("objective", lambda answer: 9.5 + 2e-6, ""),
    ("objective", lambda answer: 9.0, ""),
    ("objective", lambda answer: 8.5, "the objective 0.11 from its bound"),
    ("status", lambda answer: "optimal, cached", ""),
    ("status", lambda answer: "feasible", ""),
    ("status", lambda answer: 3, "the status is 3"),
    ("seconds", lambda answer: -1.0, "the solver took -1 s"),
    ("seconds", lambda answer: 1e9, r"the solver took 1e\+09 s"),
]
"""A field of an answer, another value of it, and the words of the law that finds it; empty if it is as good."""


@pytest.mark.parametrize(("field", "value", "words"), ANSWERS)
def test_laws_find_a_run_that_is_not_its_answers(rich, field, value, words):
    scenario, recorded, run, _ = rich
    at = next(i for i, seen in enumerate(recorded.seen) if (seen.answer.partner >= 0).any())
    seen = recorded.seen[at]
    answer = replace(seen.answer, **{field: value(seen.answer)})
    others = [*recorded.seen[:at], seen._replace(answer=answer), *recorded.seen[at + 1 :]]
    found = [law(others, run, scenario.cluster) for law in ANSWERED]
    said = "\n".join(text for text in found if text is not None)
    assert re.search(words, said) if words else said == ""


def test_a_battery_says_how_many_checks_passed():
    policies = check_policy(Fifo())
    assert not any(policies.summary().values())
    assert policies._repr_html_().count("✔ passed") == len(policies.checks)
    learner = check_estimator(History())
    assert str(learner).startswith(f"History: {len(learner.checks)} of {len(learner.checks)} checks passed")


def test_samples_are_valid_and_have_the_parts_that_they_are_for():
    small = small_trace(30, 2)
    assert small.height == 30
    assert validate(small).equals(small)
    assert not small_trace(30, 3).equals(small)
    jobs, speeds = elastic_sample()
    assert set(jobs["model"].drop_nulls()) <= set(speeds.models)
    recurring = recurring_sample(40, 1)
    assert recurring.height == 40
    assert recurring["name"].n_unique() < 40
