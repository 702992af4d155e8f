"""Generated traces: what is exact, what must be near, what must not change."""

import dataclasses
import datetime

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import generate, load_preset, presets
from gpuschedlab.traces.generator import demand as answers
from gpuschedlab.traces.generator.attributes import (
    Latents,
    bucket_of,
    durations,
    gpu_counts,
    mean_work,
    quantile,
    spells,
)
from gpuschedlab.traces.generator.generate import MODELS
from gpuschedlab.traces.generator.submissions import HOUR, levels, memory, place
from gpuschedlab.traces.trace_statistics import autocorrelation, batches, demand, fano, hourly

WEEK = 7 * 86_400.0


@pytest.fixture(scope="module")
def month():
    return generate("venus", days=28, rng=7)


def columns(trace):
    return [trace[name].to_numpy() for name in ("submit", "gpus", "duration")]


# --- demands


@pytest.mark.parametrize("preset", ["pai", "philly", "venus"])
def test_jobs_and_load_are_what_was_asked(preset):
    trace = generate(preset, days=7, jobs=4_000, load=0.8, cluster_gpus=400, rng=1)
    assert trace.height == 4_000
    assert (trace["gpus"] * trace["duration"]).sum() / (400 * WEEK) == pytest.approx(0.8, abs=2e-3)
    assert trace["gpus"].max() <= 400
    assert trace["submit"].min() >= 0
    assert trace["submit"].max() < WEEK


def test_the_number_of_jobs_follows_rate_and_load():
    figures = load_preset("venus")
    assert generate("venus", days=2).height == round(figures.arrivals.per_hour * 48)
    assert generate("venus", days=2, rate=2.5).height == round(figures.arrivals.per_hour * 48 * 2.5)
    trace = generate("venus", days=60, load=0.9, cluster_gpus=800)
    assert trace.height == round(0.9 * 800 * 60 * 86_400 / mean_work(figures.marks))
    assert (trace["gpus"] * trace["duration"]).sum() / (800 * 60 * 86_400) == pytest.approx(0.9, rel=0.02)


@pytest.mark.parametrize("days", [0.1, 1.7, 9.01])
def test_any_length(days):
    trace = generate("pai", days=days, rng=2)
    assert trace["submit"].max() < days * 86_400
    assert trace.height == max(1, round(load_preset("pai").arrivals.per_hour * 24 * days))


def test_few_jobs():
    for jobs in (1, 2, 30):
        assert generate("philly", days=3, jobs=jobs, rng=jobs).height == jobs


def test_same_seed_same_bytes():
    for preset in presets():
        first, again = (generate(preset, days=3, rng=11) for _ in range(2))
        assert first.equals(again, null_equal=True)
        assert generate(preset, days=3, rng=np.random.default_rng(11)).equals(first)
        assert not generate(preset, days=3, rng=12)["submit"].equals(first["submit"])


def test_columns_and_clock():
    trace = generate("venus", days=1, start="2021-02-03 06:00:00", rng=0)
    assert trace.columns[:4] == ["job_id", "submit", "gpus", "duration"]
    assert {"user", "vc", "name", "model", "status", "clock"} <= set(trace.columns)
    assert trace.null_count().sum_horizontal()[0] == 0
    since = (trace["clock"] - datetime.datetime(2021, 2, 3, 6)).dt.total_seconds()
    assert since.cast(pl.Float64).to_list() == trace["submit"].to_list()
    assert (trace["submit"] == trace["submit"].floor()).all()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"days": 0}, "Amount.days: found 0;"),
        ({"days": -1}, "Amount.days: found -1;"),
        ({"days": np.nan}, "Amount.days: found nan;"),
        ({"jobs": 0}, "Amount.jobs: found 0;"),
        ({"jobs": 2.5}, "Amount.jobs: found 2.5; expected a whole number"),
        ({"rate": 0}, "Amount.rate: found 0;"),
        ({"rate": 2, "jobs": 5}, "expected rate=1 where jobs or load say"),
        ({"load": 0.9}, "expected load together with cluster_gpus"),
        ({"load": -1, "cluster_gpus": 8}, "Amount.load: found -1;"),
        ({"load": 0.5, "cluster_gpus": 0}, "Amount.cluster_gpus: found 0;"),
        ({"rate": 1e5, "days": 3_000}, "jobs to make"),
        ({"calibration": "venice"}, "'venice'; expected one of pai, philly, venus"),
    ],
)
def test_wrong_arguments_are_named(options, found):
    with pytest.raises(TraceError, match="found .*expected") as told:
        generate(**{"calibration": "pai"} | options)
    assert found in str(told.value)


def test_a_hundred_thousand_jobs_keep_their_distribution():
    trace = generate("pai", days=36, jobs=100_000, rng=0)
    marks = load_preset("pai").marks
    assert trace.height == 100_000
    share = trace["gpus"].value_counts(normalize=True).sort("gpus")["proportion"].to_numpy()
    assert np.abs(share - np.array(marks.gpu_share) / sum(marks.gpu_share)).max() < 2e-5


# --- exact by construction


def test_the_distributions_are_the_calibrated_ones(month):
    marks = load_preset("venus").marks
    _, gpus, duration = columns(month)
    share = np.array([np.mean(gpus == value) for value in marks.gpus])
    assert np.abs(share - np.array(marks.gpu_share)).max() < 1.1 / month.height
    bucket = bucket_of(marks, gpus)
    for k, table in enumerate(marks.duration):
        own = np.sort(duration[bucket == k])
        exact = quantile(table, (np.arange(4_000) + 0.5) / 4_000)
        # Stratified levels: at most one job's share off, and the rounding to whole seconds, which matters for short ones.
        long = np.mean(exact < 30)
        assert ks_2samp(own, np.rint(exact), method="asymp").statistic < 2.5 / len(own) + 0.01 + 0.05 * long


def test_counts_and_durations_are_ordered_by_their_latents():
    marks = load_preset("venus").marks
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 5_000))
    gpus = gpu_counts(marks, x, rng)
    assert (np.diff(gpus[np.argsort(x)]) >= 0).all()
    lasts = durations(marks, gpus, z, rng)
    one = gpus == 1
    assert (np.diff(lasts[one][np.argsort(z[one])]) >= 0).all()


def test_hours_hold_as_many_jobs_as_they_should():
    figures = dataclasses.replace(load_preset("philly").arrivals)
    slots = place(figures, 24 * 70, 71_000, 0, np.random.default_rng(3))
    assert len(slots.submit) == slots.size.sum() == 71_000
    assert (np.diff(slots.start) >= 0).all()
    assert slots.size.min() >= 1
    assert (slots.submit >= slots.start[slots.batch]).all()
    assert (slots.submit // HOUR == slots.hour[slots.batch]).all()  # no batch leaves its hour


def test_memory_has_the_autocorrelation_it_was_given():
    series = memory((2.0, 30.0), (0.5, 0.3), 300_000, np.random.default_rng(0), daily=0.1)
    assert series.std() == pytest.approx(1.0, abs=0.02)
    for lag in (1, 5, 12, 24, 48):
        daily = 0.1 * 0.4 ** (lag / 24) if lag % 24 == 0 else 0.0
        expected = 0.5 * np.exp(-lag / 2) + 0.3 * np.exp(-lag / 30) + daily
        assert autocorrelation(series, lag) == pytest.approx(expected, abs=0.02)


def test_spells_go_on_as_long_as_they_should():
    task = spells(0.3, 1.0, 50_000, np.random.default_rng(0))
    # A spell is new with probability 0.3, also where none is repeated from before the start.
    assert len(np.unique(task)) == pytest.approx(0.3 * 50_000, rel=0.03)
    # The batch before is repeated with probability 0.7 P(L = 1) = 0.35, and now and then by way of older ones.
    assert 0.35 < np.mean(task[1:] == task[:-1]) < 0.55


# --- how users answer to demand


def test_hold_changes_only_the_order_of_jobs():
    rng = np.random.default_rng(5)
    submit = np.sort(rng.random(3_000) * 1e5)
    gpus = rng.integers(1, 9, 3_000).astype(float)
    lasts = np.where(rng.random(3_000) < 0.3, rng.random(3_000) * 2e4 + 600.0, 30.0)
    order = answers.hold(submit, gpus, lasts, 250.0)
    assert sorted(order) == list(range(3_000))
    moved = order != np.arange(3_000)
    assert moved.any()
    assert (order[order] == np.arange(3_000)).all()  # pairs change places
    long = lasts > answers.SHORT
    seen = demand(submit[long[order]], gpus[order][long[order]], lasts[order][long[order]], submit)
    free = demand(submit[long], gpus[long], lasts[long], submit)
    assert free.max() > 350
    # Those still held at the end stand where they were; until then the ceiling holds (ending jobs leave a minute late).
    first_left = np.flatnonzero(long & ~moved & (free > 250))
    until = first_left[0] if len(first_left) else len(seen)
    assert seen[:until].max() <= 250


def test_demand_follows_its_level():
    figures = load_preset("venus")
    rng = np.random.default_rng(1)
    hours = 24 * 20
    slots = place(figures.arrivals, hours, 20_000, 0, rng)
    task = spells(0.3, 0.7, len(slots.size), rng)
    drawn = Latents(rng.standard_normal(20_000), rng.standard_normal(20_000))
    mean = 20_000 * mean_work(figures.marks) / (hours * HOUR)
    level = mean * np.repeat([0.6, 1.4], hours // 2)
    share = np.cumsum(figures.marks.gpu_share) / np.sum(figures.marks.gpu_share)
    error = {}
    for pull in (0.01, 1.0):
        gpus, lasts = answers.follow(figures.marks, pull, level, slots, task, drawn, np.random.default_rng(2))
        found = np.searchsorted(np.sort(gpus), figures.marks.gpus, side="right")
        assert np.abs(found - share * 20_000).max() <= 1  # whatever users answer, the mix is the calibrated one
        order = np.argsort(slots.submit)
        at = (np.arange(hours) + 0.5) * HOUR
        seen = demand(slots.submit[order], gpus[order], lasts[order], at)
        error[pull] = np.abs(np.log(seen / level))[48:].mean()
    assert error[1.0] < 0.6 * error[0.01]


def test_outcomes_have_their_shares():
    trace = generate("venus", days=60, rng=0)
    wanted = load_preset("venus").outcomes
    work = (trace["gpus"] * trace["duration"]).alias("work")
    for status, share in wanted["jobs"].items():
        assert (trace["status"] == status).mean() == pytest.approx(share, abs=0.01)
        mine = trace.with_columns(work).filter(status=status)["work"].sum() / work.sum()
        assert mine == pytest.approx(wanted["gpu_time"][status], abs=0.05)


# --- measures


def test_measures_by_hand():
    submit = np.array([0.0, 10.0, 50.0, 3_600.0, 7_300.0])
    assert hourly(submit, 2).tolist() == [3.0, 2.0]
    assert fano(np.array([1.0, 3.0])) == 0.5
    assert fano(np.zeros(3)) == 0.0
    found = batches(np.array([0.0, 30.0, 40.0, 80.0, 200.0]), np.array([1.0, 8.0, 1.0, 1.0, 1.0]))
    assert [part.tolist() for part in found] == [[0, 1, 0, 0, 2], [3, 1, 1]]
    assert batches(submit, np.ones(5), np.array(["a", "b", "a", "a", "a"]))[0].tolist() == [0, 1, 0, 2, 3]
    assert levels(3).tolist() == [0.0, pytest.approx(0.5), 1.0]


def test_shares_of_models_and_outcomes_are_all_of_the_jobs():
    assert sum(MODELS.values()) == pytest.approx(1)
    made = generate("venus", jobs=20_000, rng=3)["model"].value_counts(normalize=True)
    tasks = (
        generate("venus", jobs=20_000, rng=3)
        .group_by("name")
        .agg(pl.col("model").first())["model"]
        .value_counts(normalize=True)
    )
    assert set(made["model"]) == set(MODELS)
    for model, share in tasks.rows():
        assert share == pytest.approx(MODELS[model], abs=0.06)


def test_buckets_of_gpu_counts_end_at_powers_of_two():
    """Two counts are alike where both need the same doublings of one GPU."""
    from gpuschedlab.traces.generator.correlation import BUCKETS

    gpus = np.arange(1, 4097)
    doublings = np.array([(int(g) - 1).bit_length() for g in gpus])
    place = np.searchsorted(BUCKETS, gpus, side="right")
    assert np.array_equal(np.diff(place), np.diff(doublings))
    assert np.searchsorted(BUCKETS, 0.5, side="right") < place[0]
