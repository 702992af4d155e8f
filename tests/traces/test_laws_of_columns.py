"""Values of each column of a trace: those that are taken, those that are refused and by which words; statistics by hand; refusals."""

import datetime

import numpy as np
import polars as pl
import pytest

from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.traces import (
    calibrate,
    generate,
    known_at,
    offered_load,
    scale_load,
    slice_trace,
    split,
    validate,
    value_table,
)
from gpuschedlab.traces.generator import attributes, correlation, submissions
from gpuschedlab.traces.generator.presets import load_preset
from gpuschedlab.traces.schema import with_jobs
from gpuschedlab.traces.trace_statistics import autocorrelation, batches, fano, hourly
from gpuschedlab.traces.trace_statistics import demand as gpus_at

NOON = datetime.datetime(2020, 1, 1, 12)
BASE = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 5.0], "gpus": [0.5, 4.0], "duration": [60.0, 9.5]})
REFUSED = {
    "job_id": ([["a", "a"], ["a", None]], "a text that no other job has"),
    "submit": ([[-1.0, 2.0], [None, 1.0], [np.nan, 1.0], [1e12, 1.0]], "seconds since the trace's start, from 0 up"),
    "gpus": ([[0.0, 1.0], [1.5, 2.0], [-1.0, 1.0], [None, 1.0], [1e9, 1.0]], "a fraction below 1 or a whole number"),
    "duration": ([[0.0, 1.0], [-5.0, 1.0], [np.inf, 1.0], [None, 2.0]], "above 0 and at most ten years"),
    "deadline": ([[0.0, 1.0], [-1.0, 3.0], [1e11, 1.0]], "seconds since submission, above 0"),
    "status": ([["done", "failed"]], "completed, failed or killed"),
    "kind": ([["hard", "strict"]], "best_effort, strict or soft"),
    "requested_time": ([[0.0, 1.0], [-2.0, 1.0]], "seconds above 0, or inf: no limit"),
    "think_time": ([[-1.0, 2.0]], "seconds from 0 up"),
    "restart": ([[-1.0, 2.0]], "at each start after the first, from 0 up"),
    "target": ([[0.0, 2.0]], "progress units, above 0"),
}
"""Columns, values of which one row is bad, and the words of what is expected."""
BAD = [(column, values, words) for column, (lists, words) in REFUSED.items() for values in lists]


@pytest.mark.parametrize(("column", "values", "words"), BAD)
def test_a_bad_value_is_named_and_the_other_row_is_kept(column, values, words):
    frame = BASE.with_columns(pl.Series(column, values, strict=False))
    bad = 1 if column == "job_id" else 0
    job = "" if column == "job_id" else r" \(job a\)"
    with pytest.raises(TraceError, match=rf"t, row {bad + 1}, column {column}{job}: found .*; expected .*{words}"):
        validate(frame, source="t")
    good, apart = validate(frame, source="t", on_bad="drop")
    assert good["job_id"].to_list() == ["a" if bad else "b"]
    assert good[column].to_list() == [values[1 - bad]]
    assert words in apart["problem"][0]


TAKEN = {
    "job_id": [["", "b"]],
    "gpus": [[0.25, 16.0]],
    "deadline": [[None, 2.0]],
    "status": [[None, "killed"], ["completed", "failed"]],
    "kind": [["soft", "best_effort"]],
    "clock": [[NOON, NOON - datetime.timedelta(1)], [NOON, None]],
    "requested_time": [[np.inf, None]],
    "gpu_types": [[["a"], None], [[], ["b"]]],
    "colour": [["red", "blue"]],
    "think_time": [[5.0, None]],
    "restart": [[5.0, None]],
    "target": [[5.0, None]],
    "started": [[0.0, 2.0], [-5.0, None]],
    "parent": [["b", None], ["x", "a"]],
    "shape": [["1g.5gb", None]],
    "machines": [[0, 1], [2, None]],
}
GOOD = [(column, values) for column, lists in TAKEN.items() for values in lists]


@pytest.mark.parametrize(("column", "values"), GOOD)
def test_a_sound_value_stays_as_it_is(column, values):
    found = validate(BASE.with_columns(pl.Series(column, values, strict=False)))
    assert found[column].to_list() == values
    assert validate(found).equals(found)


def test_rows_are_ordered_numbers_become_names_and_truth_is_filled():
    assert validate(BASE.with_columns(submit=pl.Series([5.0, 2.0])))["job_id"].to_list() == ["b", "a"]
    assert validate(BASE.with_columns(job_id=pl.Series([1, 2])))["job_id"].to_list() == ["1", "2"]
    for values in ([True, None], [1, 0]):
        assert validate(BASE.with_columns(censored=pl.Series(values)))["censored"].to_list() == [True, False]


def test_columns_of_another_kind_are_refused_row_by_row():
    for column, values in {"submit": ["x", "y"], "clock": ["now", "then"], "gpu_types": ["a", "b"]}.items():
        with pytest.raises(TraceError, match=f"column {column} .*; and 1 more row"):
            validate(BASE.with_columns(pl.Series(column, values)), source="t")


@pytest.mark.parametrize(("column", "other"), [("deadlines", "rewards"), ("rewards", "deadlines")])
def test_a_value_table_needs_both_columns(column, other):
    frame = BASE.with_columns(pl.Series(column, [[1.0, 2.0], [1.0]]))
    with pytest.raises(TraceError, match=f"expected also {other}. Give them, or drop {column}"):
        validate(frame)


@pytest.mark.parametrize(
    ("deadlines", "rewards"),
    [
        ([[10.0, 20.0], [5.0]], [[1.0], [2.0]]),
        ([[20.0, 10.0], [5.0]], [[1.0, 2.0], [2.0]]),
        ([[10.0], None], [None, [1.0]]),
    ],
)
def test_deadlines_and_rewards_are_as_many_and_ascend(deadlines, rewards):
    kind = pl.List(pl.Float64)
    frame = BASE.with_columns(deadlines=pl.Series(deadlines, dtype=kind), rewards=pl.Series(rewards, dtype=kind))
    with pytest.raises(TraceError):
        validate(frame)


def test_value_tables_by_hand():
    kind = pl.List(pl.Float64)
    soft = BASE.with_columns(
        deadlines=pl.Series([[10.0, 20.0, 40.0], None], dtype=kind),
        rewards=pl.Series([[100.0, 50.0, 50.0], None], dtype=kind),
    )
    found = validate(soft)
    assert found["deadlines"].to_list() == [[10.0, 20.0, 40.0], None]
    hard = validate(BASE.with_columns(deadline=pl.Series([120.0, None])))
    assert [part.tolist() for part in value_table(found)] == [[[10, 20, 40], [np.inf] * 3], [[100, 50, 50], [0, 0, 0]]]
    assert [part.tolist() for part in value_table(hard)] == [[[120], [np.inf]], [[100], [0]]]


# --- statistics by hand


def test_statistics_by_hand():
    submit = np.array([0.0, 10.0, 3600.0, 7199.0, 9000.0])
    counts = hourly(submit, 4)
    assert list(counts) == [2, 2, 1, 0]
    assert fano(counts) == pytest.approx(np.var(counts) / np.mean(counts))
    wave = np.tile([0.0, 1.0, 0.0, -1.0], 50) + 5
    assert autocorrelation(wave, 4) == pytest.approx(1.0, abs=0.05)
    assert autocorrelation(wave, 2) == pytest.approx(-1.0, abs=0.05)
    held = gpus_at(
        np.array([0.0, 50.0]), np.array([2.0, 3.0]), np.array([100.0, 100.0]), np.array([10.0, 60.0, 120.0, 200.0])
    )
    assert list(held) == [2.0, 5.0, 3.0, 0.0]


def test_jobs_of_a_batch_are_alike_and_close():
    submit = np.array([0.0, 1.0, 2.0, 5000.0, 5001.0])
    gpus = np.array([1.0, 1.0, 1.0, 8.0, 8.0])
    batch, sizes = batches(submit, gpus, None)
    assert (batch.tolist(), sizes.tolist()) == ([0, 0, 0, 1, 1], [3, 2])
    batch, sizes = batches(submit, gpus, np.array(["a", "b", "a", "b", "b"]))
    assert (batch.tolist(), sizes.tolist()) == ([0, 1, 0, 2, 2], [2, 1, 2])


def test_parts_of_the_generator_keep_their_ranges():
    figures = load_preset("venus")
    rng = np.random.default_rng(6)
    slots = submissions.place(figures.arrivals, 60, 500, 37, rng)
    assert slots.size.sum() == len(slots.submit) == 500
    assert ((slots.submit >= 0) & (slots.submit <= 60 * 3600)).all()
    assert np.bincount(slots.batch).tolist() == slots.size.tolist()
    spell = attributes.spells(figures.marks.new_spell, figures.marks.recency, len(slots.size), rng)
    assert spell.max() < len(slots.size)
    drawn = attributes.latents(figures.marks, slots, spell, rng)
    gpus = attributes.gpu_counts(figures.marks, drawn.x, rng)
    assert (gpus > 0).all()
    assert (attributes.durations(figures.marks, gpus, drawn.z, rng) > 0).all()
    shares = np.asarray(correlation.same_spell(0.07, 1.5))
    assert ((shares >= 0) & (shares <= 1)).all()
    alike, falling = (correlation.recurrence(np.array(near), 1.0) for near in ([0.9] * 8, np.linspace(0.8, 0.1, 8)))
    assert np.isfinite(np.asarray(alike, float)).all()
    assert np.isfinite(np.asarray(falling, float)).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_calibration_has_the_figures_of_its_trace(seed):
    trace = generate("philly", days=6, rate=0.5, rng=seed)
    own = calibrate(trace, name="own")
    again = generate(own, days=6, rng=seed + 50)
    assert again.height == pytest.approx(trace.height, rel=0.25)
    assert again["gpus"].mean() == pytest.approx(trace["gpus"].mean(), rel=0.35)
    assert again["duration"].median() == pytest.approx(trace["duration"].median(), rel=0.5)
    bare = calibrate(trace.drop("clock", "user", "vc", "status", strict=False), users=7, vcs={"x": 1.0})
    made = generate(bare, days=3, rng=1)
    assert set(made["vc"]) == {"x"}
    assert made["user"].n_unique() <= 7


def test_cuts_and_loads_of_a_trace():
    """A cut at an instant holds the jobs that had come, and none of what came of them."""
    made = generate("pai", days=2, jobs=120, rng=9)
    known = known_at(made, 0.5 * made["submit"].max())
    assert (known["submit"] <= 0.5 * made["submit"].max()).all()
    assert known.height == made.filter(pl.col("submit") <= 0.5 * made["submit"].max()).height
    assert scale_load(made, 2.5)["submit"].max() == pytest.approx(made["submit"].max() / 2.5)
    assert offered_load(scale_load(made, load=0.7, cluster_gpus=16), 16) == pytest.approx(0.7, rel=1e-6)
    first, second = split(made, 40_000)
    assert first.height + second.height == made.height
    assert slice_trace(made, 5, 4000)["submit"].max() <= 4000


SMALL = validate(BASE)
REFUSALS = [
    (lambda: generate("nobody"), "no preset 'nobody'"),
    (lambda: generate(days=0), "days"),
    (lambda: generate(jobs=0), "jobs"),
    (lambda: generate(rate=2, jobs=5), "rate"),
    (lambda: generate(load=0.5), "cluster_gpus"),
    (lambda: generate(load=90, cluster_gpus=1e8, days=3000), "jobs"),
    (lambda: generate(rate=-1), "rate"),
    (lambda: offered_load(SMALL, 0), "0"),
    (lambda: offered_load(SMALL.head(1), 4), "a span of 0.0 s"),
    (lambda: scale_load(SMALL), "load"),
    (lambda: scale_load(SMALL, 0), "0"),
    (lambda: scale_load(SMALL, 2, load=1, cluster_gpus=4), "load"),
    (lambda: slice_trace(SMALL, 1e9), "1e"),
    (lambda: split(SMALL, 0), "0"),
    (lambda: with_jobs(SMALL.head(0), "me"), "me"),
    (lambda: known_at(pl.DataFrame({"a": [1]})), "submit"),
    (lambda: calibrate(SMALL), "jobs"),
]
"""Calls that are refused, and a word of the refusal."""


@pytest.mark.parametrize(("call", "words"), REFUSALS)
def test_refusals_name_what_was_found(call, words):
    with pytest.raises(LabError, match=words):
        call()
