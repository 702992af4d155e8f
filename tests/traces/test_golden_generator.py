"""Golden answers of generated traces, calibrations, and of what looks at traces, cuts and changes them."""

import datetime

import numpy as np
import polars as pl
import pytest
from golden_answers import golden, refusal

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import (
    calibrate,
    describe,
    generate,
    known_at,
    load_preset,
    offered_load,
    presets,
    scale_load,
    slice_trace,
    split,
    validate,
    value_table,
)
from gpuschedlab.traces.generator import attributes, correlation, demand, fitting, submissions, users
from gpuschedlab.traces.schema import with_jobs
from gpuschedlab.traces.trace_statistics import autocorrelation, batches, fano, hourly
from gpuschedlab.traces.trace_statistics import demand as gpus_at

ASKED = {
    "plain": {"days": 3},
    "short": {"days": 0.3, "rng": 1},
    "jobs": {"jobs": 300, "days": 2, "rng": 2},
    "load": {"load": 0.4, "cluster_gpus": 48, "days": 2, "rng": 3},
    "jobs and load": {"jobs": 200, "load": 0.9, "cluster_gpus": 20, "days": 1.5, "start": "2021-03-06 13:00"},
    "rate": {"rate": 0.3, "days": 9, "rng": 5, "start": datetime.datetime(2020, 1, 1, 5)},
}


@pytest.mark.parametrize("preset", presets())
@golden
def test_generated_traces(preset):
    return {name: generate(preset, **asked) for name, asked in ASKED.items()}


def busy(days: float, seed: int) -> pl.DataFrame:
    return generate("philly", days=days, rate=0.5, rng=seed)


@golden
def test_calibrations():
    long = generate("venus", days=17, rate=0.5, rng=3)
    short = busy(3, 1)
    bare = short.drop("clock", "user", "vc", "status", strict=False)
    own = calibrate(long, name="own")
    return {
        "long": own,
        "short": calibrate(short, name="short", start="2021-05-05 07:30", days=4),
        "bare": calibrate(bare, users=7, vcs={"x": 1.0}),
        "again": generate(own, days=1, rng=2),
        "refused": [refusal(calibrate, bare.head(20)), refusal(calibrate, bare, days=1)],
    }


def waits(trace, days):
    """Stands for mean waits of a queue, by hours of the day."""
    work = (trace["gpus"] * trace["duration"]).to_numpy()
    return np.convolve(work, np.ones(5) / 5)[: len(work)] ** 0.5


@golden
def test_refusals():
    calls = [
        lambda: generate("nobody"),
        lambda: generate(days=0),
        lambda: generate(jobs=0),
        lambda: generate(rate=2, jobs=5),
        lambda: generate(load=0.5),
        lambda: generate(load=90, cluster_gpus=1e8, days=3000),
        lambda: generate(rate=-1),
        lambda: offered_load(SMALL, 0),
        lambda: offered_load(SMALL.head(1), 4),
        lambda: scale_load(SMALL),
        lambda: scale_load(SMALL, 0),
        lambda: scale_load(SMALL, 2, load=1, cluster_gpus=4),
        lambda: slice_trace(SMALL, 1e9),
        lambda: split(SMALL, 0),
        lambda: with_jobs(SMALL.head(0), "me"),
        lambda: known_at(pl.DataFrame({"a": [1]})),
    ]
    return [refusal(call) for call in calls]


NOON = datetime.datetime(2020, 1, 1, 12)
SMALL = pl.DataFrame(
    {
        "job_id": list("abcdefgh"),
        "submit": [0.0, 10.0, 10.0, 600.0, 3700.0, 7200.5, 90_000.0, 180_000.0],
        "gpus": [0.25, 1.0, 2.0, 3.0, 8.0, 16.0, 33.0, 5.0],
        "duration": [60.0, 1.0, 9.5, 4000.0, 86_400.0, 7.0, 1200.0, 3.0],
        "user": ["u", None, "v", "u", "u", "w", "w", None],
        "name": ["t1", "t1", None, "t2", "t2", "t3", "t3", "t3"],
        "status": ["completed", "failed", "killed", None, "completed", "completed", "killed", "failed"],
        "clock": [NOON + datetime.timedelta(seconds=s) for s in (0, 10, 10, 600, 3700, 7200.5, 90_000, 180_000)],
        "deadline": [120.0, None, 30.0, 9000.0, 1e5, 8.0, None, 3.5],
    }
)


@golden
def test_looked_at_cut_and_changed():
    made = generate("pai", days=2, jobs=120, rng=9)
    shifted = SMALL.with_columns(pl.col("submit") - 5000.0)
    soft = SMALL.drop("deadline").with_columns(
        deadlines=pl.Series([[10, 20, 40], None, [5], [7, 9], None, [1], [2, 3], [4]], dtype=pl.List(pl.Float64)),
        rewards=pl.Series([[100, 50, 50], None, [0], [9, 3], None, [1], [5, 5], [4]], dtype=pl.List(pl.Float64)),
    )
    return {
        "described": [
            describe(trace) for trace in (SMALL, made, SMALL.head(1), SMALL.head(0), known_at(SMALL, 7000.0))
        ],
        "load": [offered_load(SMALL, 40), offered_load(SMALL, 40, days=3)],
        "scaled": [scale_load(SMALL, 2.5), scale_load(made, load=0.7, cluster_gpus=16)],
        "sliced": [slice_trace(SMALL, 5, 4000), slice_trace(SMALL, 601), *split(SMALL, 3700)],
        "known": [
            known_at(SMALL),
            known_at(SMALL, 650),
            known_at(shifted),
            known_at(shifted, -4000),
            known_at(SMALL, 0),
        ],
        "values": [value_table(validate(trace)) for trace in (SMALL, soft, SMALL.drop("deadline"))],
    }


WRONG = {
    "job_id": [["a", "a"], ["a", None], ["", "b"], [1, 2]],
    "submit": [[-1.0, 2.0], [None, 1.0], [float("nan"), 1.0], ["x", "y"], [1e12, 1.0], [5.0, 2.0]],
    "gpus": [[0.0, 1.0], [1.5, 2.0], [-1.0, 1.0], [None, 1.0], [1e9, 1.0]],
    "duration": [[0.0, 1.0], [-5.0, 1.0], [float("inf"), 1.0], [None, 2.0]],
    "deadline": [[0.0, 1.0], [None, 2.0], [-1.0, 3.0], [1e11, 1.0]],
    "status": [["done", "failed"], [None, "killed"]],
    "kind": [["hard", "strict"], ["soft", "best_effort"]],
    "clock": [["now", "then"], [NOON, NOON - datetime.timedelta(1)], [NOON, None]],
    "requested_time": [[0.0, 1.0], [float("inf"), None], [-2.0, 1.0]],
    "deadlines": [[[3.0, 2.0], [1.0]], [[], [1.0]], [None, [1.0]]],
    "rewards": [[[1.0, 2.0], [1.0]], [[3.0], None]],
    "gpu_types": [[["a"], None], [[], ["b"]], ["a", "b"]],
    "colour": [["red", "blue"]],
    "think_time": [[-1.0, 2.0], [5.0, None]],
    "restart": [[-1.0, 2.0], [5.0, None]],
    "target": [[0.0, 2.0], [5.0, None]],
    "started": [[0.0, 2.0], [-5.0, None]],
    "censored": [[True, None], [1, 0]],
    "parent": [["b", None], ["x", "a"]],
    "shape": [["1g.5gb", None]],
    "machines": [[0, 1], [2, None]],
}


@golden
def test_wrong_columns():
    base = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 5.0], "gpus": [0.5, 4.0], "duration": [60.0, 9.5]})
    found = {}
    for column, lists in WRONG.items():
        for i, values in enumerate(lists):
            frame = base.with_columns(pl.Series(column, values, strict=False))
            for on_bad in ("raise", "drop"):
                try:
                    made = validate(frame, source="t", on_bad=on_bad)
                except TraceError as error:
                    made = str(error)
                found[f"{column} {i} {on_bad}"] = made
    return found


@golden
def test_statistics():
    rng = np.random.default_rng(4)
    submit = np.sort(np.floor(rng.uniform(0, 90_000, 200)))
    gpus = rng.choice([1.0, 2.0, 8.0], 200)
    duration = rng.lognormal(5, 1.5, 200)
    counts = hourly(submit, 25)
    vc = rng.choice(["a", "b"], 200)
    return {
        "hourly": counts,
        "fano": fano(counts),
        "autocorrelation": [autocorrelation(counts, lag) for lag in (1, 5, 24)],
        "batches": [*batches(submit, gpus, None), *batches(submit, gpus, vc)],
        "demand": gpus_at(submit, gpus, duration, np.arange(0, 90_000, 1800.0)),
    }


@golden
def test_parts_of_the_generator():
    figures = load_preset("venus")
    rng = np.random.default_rng(6)
    slots = submissions.place(figures.arrivals, 60, 500, 37, rng)
    spell = attributes.spells(figures.marks.new_spell, figures.marks.recency, len(slots.size), rng)
    drawn = attributes.latents(figures.marks, slots, spell, rng)
    gpus = attributes.gpu_counts(figures.marks, drawn.x, rng)
    duration = attributes.durations(figures.marks, gpus, drawn.z, rng)
    level = demand.usual(figures.demand, 300.0, 60, rng)
    followed = demand.follow(figures.marks, figures.demand.pull, level, slots, spell, drawn, rng)
    order = np.argsort(slots.submit, kind="stable")
    held = demand.hold(slots.submit[order], gpus[order], duration[order], 200.0)
    user = users.users(gpus, duration, spell[slots.batch], slots.batch, 17, rng)
    return {
        "slots": slots,
        "spell": spell,
        "drawn": drawn,
        "gpus": gpus,
        "duration": duration,
        "level": level,
        "followed": followed,
        "held": held,
        "user": user,
        "task": users.recur(slots.submit, gpus, duration, user, spell[slots.batch], slots.batch, rng),
        "work": attributes.mean_work(figures.marks),
        "same": correlation.same_spell(0.07, 1.5),
        "near": correlation.batch_correlations(gpus, drawn.z, slots.batch, slots.size),
        "recur": [correlation.recurrence(np.array(near), 1.0) for near in ([0.9] * 8, np.linspace(0.8, 0.1, 8))],
    }


@pytest.mark.compiled("generates hundreds of traces")
@golden
def test_figures_tuned_by_waits():
    trace = busy(2.5, 4)
    return fitting.tune(calibrate(trace), trace, lambda frame, days: float(waits(frame, days).mean()))
