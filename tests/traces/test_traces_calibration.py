"""Calibration: what is measured in a trace, stored, and tuned."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import Calibration, calibrate, generate, load_preset
from gpuschedlab.traces.generator import calibration, fitting
from gpuschedlab.traces.trace_statistics import fano, hourly

WEEK = 7 * 86_400.0


@pytest.fixture(scope="module")
def month():
    return generate("venus", days=28, rng=7)


# --- calibration


def test_calibrating_what_was_generated_gives_it_back(month):
    figures = load_preset("venus")
    found = calibrate(month, name="again")
    assert found.start == "2020-07-06 00:00:00"
    assert found.arrivals.per_hour == pytest.approx(figures.arrivals.per_hour, rel=1e-3)
    assert np.corrcoef(found.arrivals.hour, figures.arrivals.hour)[0, 1] > 0.9
    # 28 days of the preset are not all of it: the rare GPU counts may be missing.
    share = dict(zip(found.marks.gpus, found.marks.gpu_share))
    assert all(abs(share.get(g, 0) - s) < 1e-3 for g, s in zip(figures.marks.gpus, figures.marks.gpu_share))
    made = generate(found, days=28, rng=1)
    assert (
        ks_2samp(np.log(made["duration"].to_numpy()), np.log(month["duration"].to_numpy()), method="asymp").statistic
        < 0.02
    )
    counts = [hourly(t["submit"].to_numpy(), 28 * 24) for t in (made, month)]
    assert fano(counts[0]) == pytest.approx(fano(counts[1]), rel=0.25)


def test_a_calibration_survives_its_json():
    figures = load_preset("philly")
    assert Calibration.from_json(figures.to_json()) == figures


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "x"}', '{"format": "gpuschedlab calibration", "version": 2}']
)
def test_a_broken_calibration_is_named(text):
    with pytest.raises(TraceError, match=r"mine\.json: found something else than a calibration"):
        Calibration.from_json(text, source="mine.json")


def test_tuning_takes_what_waits_most_like_the_trace(month, monkeypatch):
    """Waits here are the pull, and with a seed some noise: what is nearest to the trace's is chosen."""
    monkeypatch.setattr(fitting, "RECENCIES", (1.0,))
    monkeypatch.setattr(fitting, "STEPS", (0,))
    monkeypatch.setattr(fitting, "SHARES", (0.25,))
    monkeypatch.setattr(fitting, "PULLS", (0.5, 1.5, 2.5))
    monkeypatch.setattr(fitting, "FULL", (0.9,))
    monkeypatch.setattr(fitting, "_log_waits", lambda figures, waits, seed: np.array([figures.demand.pull + seed % 2]))
    trace = month.filter(pl.col("submit") < WEEK)
    found = calibrate(trace, name="tuned", waits=lambda trace, days: np.array([np.exp(2.1) - fitting.NO_WAIT]))
    free = calibrate(trace, name="tuned")
    assert found.demand.pull == 1.5
    assert found.marks.z_spell == pytest.approx(0.25 * (found.marks.z_spell + found.marks.z_batch), abs=1e-3)
    assert found.marks.z_spell + found.marks.z_batch == pytest.approx(free.marks.z_spell + free.marks.z_batch, abs=1e-3)
    assert found.demand.ceiling == pytest.approx(free.demand.ceiling, rel=1e-3)


def test_too_little_to_calibrate(month):
    with pytest.raises(TraceError, match="found 50 jobs in .* h; expected at least 200"):
        calibrate(month.head(50))


@pytest.mark.parametrize("preset", ["pai", "philly", "venus"])
def test_presets_are_small_figures_with_their_origin(preset):
    figures = load_preset(preset)
    text = figures.to_json()
    assert len(text) < 60_000
    assert "CC-BY-4.0" in figures.origin
    # Tables of at most some hundred figures: nothing of the length of a trace.
    longest = max((len(v) for v in walk(json.loads(text)) if isinstance(v, list)), default=0)
    assert longest <= 129
    assert sum(figures.marks.gpu_share) == pytest.approx(1, abs=1e-4)


def walk(value):
    yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(one)


def test_batches_an_hour_are_a_power_of_its_jobs():
    """Hours of 4, 16, 64 and 256 jobs, in 2, 4, 8 and 16 batches: the root."""
    counts = np.tile([4, 16, 64, 256], 6)
    hour = np.repeat(np.arange(len(counts)), np.sqrt(counts).astype(int)).astype(float)
    size = np.sqrt(counts[hour.astype(int)])
    scale, power, _ = calibration._batching(counts, hour, size)
    assert (scale, power) == (pytest.approx(1, abs=0.05), pytest.approx(0.5, abs=0.02))


def test_shares_have_five_digits_and_those_of_outcomes_four():
    frame = pl.DataFrame({"status": ["a", "b", "b"], "gpus": [1.0] * 3, "duration": [1.0, 1.0, 5.0]})
    assert calibration._shares(frame, "status") == {"b": 0.66667, "a": 0.33333}
    assert calibration._shares(frame, "model") == {}
    assert calibration._outcomes(frame) == {"jobs": {"a": 0.3333, "b": 0.6667}, "gpu_time": {"a": 0.1429, "b": 0.8571}}
