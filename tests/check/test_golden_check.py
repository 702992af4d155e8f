"""Golden answers of batteries, laws and recounts: what they say of sound runs, and of runs in which something was changed."""

from dataclasses import replace

import polars as pl
from golden_answers import digest, golden
from small_jobs import random_trace

from gpuschedlab import Cluster, Delays, Fifo, Outage, Scenario, Srtf
from gpuschedlab.check import laws
from gpuschedlab.check.estimator_battery import check_estimator
from gpuschedlab.check.policy_battery import check_policy, different, different_until
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.check.samples import elastic_sample, recurring_sample, small_trace
from gpuschedlab.check.stretches import stretches
from gpuschedlab.estimators import History

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
    found, policy = {}, Srtf()
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


@golden
def test_batteries():
    policies, learner = check_policy(Fifo()), check_estimator(History())
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
