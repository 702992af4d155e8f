"""Golden answers of batteries, laws and recounts: what they say of sound runs, and of runs in which something was changed."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from golden_answers import digest, golden
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


@golden
def test_laws_of_changed_runs():
    trace = random_trace(20, 3, 1.4, 16).filter(pl.col("gpus") <= 8)
    cluster = replace(Cluster.parse("1x8,2x4"), events=(Outage(0, 500.0, 900.0),))
    scenario = Scenario(trace, cluster, delays=Delays(restart=20.0, checkpoint=100.0))
    found = {}
    policy = Srtf()
    run = scenario.run(policy)
    cases = {"sound": run} | {
        name: replace(run, **{frame: getattr(run, frame).with_columns(**change)})
        for name, (frame, change) in CHANGES.items()
    }
    for name, each in cases.items():
        said = [str(law(each, scenario.cluster)) for law in LAWS]
        found[name] = [
            *(text[:160] for text in said if text != "None"),
            str(books_add_up(each, scenario, ((0.0, policy),)))[:200],
        ]
    other = scenario.run(Fifo())
    found["different"] = [
        str(different(run, other, "w")),
        str(different_until(900.0, run, other, "w")),
        str(different(run, run, "w")),
    ]
    held = stretches(run, pl.Series(range(20)).to_numpy())
    found["stretches"] = digest([list(held[job]) for job in held])
    return found


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


@golden
def test_laws_of_single_changes():
    """What the laws say where one number of a run, or of what a policy answered, is another."""
    kinds = pl.DataFrame({"model": ["a"] * 4 + ["b"] * 4, "gpu_type": "v100", "n_gpus": [1, 2, 3, 4] * 2, "rate": 1.0})
    trace = random_trace(9, 5, 1.4, 8).with_columns(
        pl.col("submit") * 0.02,
        pl.col("duration") * 0.1,
        gpus=pl.Series([1.0, 1, 2, 1, 4, 3, 1, 2, 1]),
        model=pl.Series([*"abaabbaba"]),
    )
    speeds = Speeds.from_frame(kinds, relative=True, sharing={(a, b): 0.6 for a in "ab" for b in "ab"})
    cluster = Cluster((Nodes("v100", 2, 4),), (Outage(0, 60.0, 90.0),))
    scenario = Scenario(
        trace, cluster, speeds=speeds, delays=Delays(checkpoint=100.0, kinds={"warm": 3.0}), until=2000.0
    )
    recorded = Recorded(Rich())
    run = scenario.run(recorded)
    found = {}
    plain = scenario.run(Tiresias())
    for what, each, policy in (("rounds", run, recorded), ("order", plain, Tiresias())):
        for name, changed in {"sound": each, **one_by_one(each, 2)}.items():
            said = [law(changed, cluster) for law in LAWS] + [books_add_up(changed, scenario, ((0.0, policy),))]
            if what == "rounds" and name.startswith(("allocations", "pools", "jobs.end")):
                said += [law(recorded.seen, changed, cluster) for law in ANSWERED]
            found[f"{what} {name}"] = [text for text in said if text is not None]
    at = next(i for i, seen in enumerate(recorded.seen) if (seen.answer.partner >= 0).any())
    seen = recorded.seen[at]
    for name, values in ANSWERS.items():
        for value in values:
            value = value(seen.answer) if callable(value) else value
            answer = replace(seen.answer, **{name: value})
            others = [*recorded.seen[:at], seen._replace(answer=answer), *recorded.seen[at + 1 :]]
            said = [law(others, run, cluster) for law in ANSWERED]
            found[f"answer {name} {value}"] = [text.partition(" of a round of")[0] for text in said if text is not None]
    return found


ANSWERED = list(dict.fromkeys(answer_laws.LAWS.values()))
ANSWERS = {
    "gpus": [lambda a: a.gpus + 0.5, lambda a: a.gpus + 1.5e-6, lambda a: 0 * a.gpus],
    "nodes": [lambda a: [(i, 1 - n, g) for i, n, g in a.nodes], lambda a: a.nodes[1:]],
    "partner": [lambda a: -np.ones(len(a.gpus), int), lambda a: np.roll(a.partner, 1)],
    "merged": [lambda a: np.ones(len(a.gpus), bool)],
    "source": [lambda a: np.arange(len(a.gpus))],
    "profiling": [lambda a: ~a.profiling],
    "delay": [lambda a: np.full(len(a.gpus), "warm", object)],
    "reserved": [{"kept": [2.0]}, {"kept": [1.0 + 1.5e-6]}, {}],
    "wake": [0.0, None],
    "objective": [9.5 + 1.5e-5, 9.5 + 2e-6, 9.0, 8.5],
    "status": ["optimal", "optimal, cached", "feasible", 3],
    "seconds": [-1.0, 1e9],
}


@golden
def test_batteries():
    policies = check_policy(Fifo())
    learner = check_estimator(History())
    reports = [{check.name: check.problem for check in each.checks} for each in (policies, learner)]
    return {
        "reports": reports,
        "summary": policies.summary(),
        "html": digest(policies._repr_html_()),
        "words": [str(learner), repr(policies)],
    }


@golden
def test_samples():
    jobs, speeds = elastic_sample()
    return {
        "small": digest(small_trace(30, 2)),
        "elastic": digest([jobs, speeds]),
        "recurring": digest(recurring_sample(40, 1)),
    }
