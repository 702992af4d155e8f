"""Recorded contests: what the file holds, the same bytes, errors, and contests that go on from it."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from autosched.recorder import record
from gpuschedlab import _data
from gpuschedlab.autosched import CausalGraph, Contest, Layers, Tuner
from gpuschedlab.autosched.recipe import TunedDays
from gpuschedlab.autosched.recording.hour import FUTURES
from gpuschedlab.autosched.recording.recording import FORMAT, SHIPPED, VERSION, Recording
from gpuschedlab.autosched.recording.resume import resumed
from gpuschedlab.autosched.recording.strength import strengths
from gpuschedlab.errors import RunError

HOUR = 3600.0
RECIPE = TunedDays(days=0.2, jobs=160, nodes=3)


def made(recipe=RECIPE, known=None):
    sizes = {"instants": 6, "configurations": 24, "others": ("default", "once", "selftune"), "known": known}
    return Contest(recipe(0), lab.Tiresias(), tuner=Tuner.thesis(iterations=6, check=6), **sizes)


@pytest.fixture(scope="module")
def played():
    """A contest that was played hour by hour, and recorded."""
    contest = made()
    return contest, record(contest, RECIPE)


def test_what_is_written_is_read_again(played, tmp_path):
    _, recording = played
    again = Recording.read(recording.write(tmp_path / "one.gz"))
    assert again.hours == recording.hours
    assert again.jobs.equals(recording.jobs)
    assert again.content == json.loads(json.dumps(recording.content))


def test_the_same_seed_writes_the_same_bytes(played, tmp_path):
    contest, recording = played
    one = recording.write(tmp_path / "one.gz").read_bytes()
    other = record(made(known=contest.known), RECIPE).write(tmp_path / "other.gz").read_bytes()
    assert one == other


def test_hours_hold_what_the_contest_did(played):
    contest, recording = played
    assert (
        [hour.now for hour in recording.hours]
        == [d.now for d in contest.decisions]
        == [0, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR]
    )
    for hour, decision in zip(recording.hours, contest.decisions, strict=True):
        assert (hour.reason, hour.switched, hour.cause) == (decision.reason, decision.switched, decision.cause)
        assert [trial.fate for trial in hour.trials] == [trial.fate for trial in decision.tuning.trials]
        assert bool(hour.sentence) == hour.switched
        gains = [np.exp(np.mean(logs)) for logs in decision.again.values()]
        assert [np.exp(np.mean(np.log(found))) for _, found in hour.again] == pytest.approx(gains, rel=1e-3)
        if hour.again:
            assert hour.gain == pytest.approx(max(gains), rel=1e-3) or hour.switched
            assert hour.turn not in hour.ranks
    assert [d.policy.knobs for d in contest.decisions] == [recording.policy_at(i).knobs for i in range(5)]
    assert recording.hours[1].before == recording.hours[0].after


def test_arrivals_are_those_of_the_trace(played):
    contest, recording = played
    trace = contest.loop.simulation.trace
    found = recording.arrivals
    bins = int(-found["start"] // found["step"])
    assert sum(found["jobs"][bins:]) == trace.height
    assert found["jobs"][bins] == trace.filter(pl.col("submit") < found["step"]).height
    first = trace.filter(pl.col("submit") < found["step"])
    assert found["service"][bins] == round(float((first["gpus"] * first["duration"]).sum()) / HOUR)


def test_the_last_hour_and_its_futures(played):
    """Futures add up to what is forecast for a day; those of the past are the past once more."""
    contest, recording = played
    submit = contest.loop.simulation.trace["submit"]
    for hour in recording.hours[1:]:
        assert sum(hour.recent) == ((submit > hour.now - HOUR) & (submit <= hour.now)).sum()
        assert len(hour.jobs) == len(hour.service) == len(hour.horizon) == len(hour.owed) == FUTURES
        assert all(sum(jobs) <= whole for jobs, (whole, _) in zip(hour.jobs, hour.horizon, strict=True))
        assert all(len(jobs) == 48 for jobs in hour.jobs)


def test_jobs_and_averages_agree(played):
    """The table has all jobs of every line, played to their end; the averages are of those that had ended in time."""
    contest, recording = played
    for name in recording.lines:
        jobs = contest.simulations[name].snapshot().jobs
        assert recording.jobs[name].null_count() == 0
        ended = recording.jobs[name].filter(pl.Series(jobs["done"]))
        assert float(ended.mean()) == pytest.approx(recording.averages[name][-1], abs=0.2)


def test_the_ladder_is_of_all_jobs_and_of_the_decisions(played):
    """Its ends are the lines default, tuned once and AutoSched on the very same jobs; its rows are what the decisions say."""
    contest, recording = played
    switched = [d for d in contest.decisions if d.switched]
    ladder = recording.ladder
    jct = recording.jobs
    assert ladder["hour"].to_list() == [d.now / HOUR for d in switched]
    assert len(switched) > 0
    assert ladder["announced"].to_list() == pytest.approx([d.gain for d in switched], abs=1e-4)
    assert ladder["realised"].to_list() == pytest.approx([d.realised.ratio for d in switched], abs=1e-4)
    assert ladder["low"][0] == pytest.approx(switched[0].interval[0], abs=1e-4)
    for place, name in ((0, "once"), (-1, "autosched")):
        assert ladder["so far"][place] == pytest.approx(jct["default"].mean() / jct[name].mean(), rel=1e-4)


def test_some_of_the_rejected_are_measured(played):
    """As the probe of that very search measures them, on what was searched on; nothing else has such a number."""
    contest, recording = played
    would = [(hour, t) for hour in recording.hours for t in hour.trials if t.would is not None]
    assert {t.fate for _, t in would} == {"rejected"}
    saved = [d.asked.saved for d in contest.decisions]
    assert [hour.saved for hour in recording.hours] == saved
    last = recording.hours[-1]
    decision = contest.decisions[-1]
    for recorded, trial in zip(last.trials, decision.tuning.trials, strict=True):
        if recorded.would is not None:
            first = decision.tuning.trials[0].measurement.value
            assert recorded.would == pytest.approx(first / contest.loop.probed(trial.policy).value, abs=1e-4)


def test_curves_follow_the_model(played):
    contest, recording = played
    last = recording.hours[-1]
    for axis in recording.axes:
        mean, low, high = last.curves[axis["name"]]
        assert len(mean) == len(axis["choices"]) or len(mean) == 21
        assert all(a <= b <= c for a, b, c in zip(low, mean, high, strict=True))
    ends = np.exp(contest._along("pack_limit", np.array([0.0, 1.0])).mean)
    assert [last.curves["pack_limit"][0][i] for i in (0, -1)] == pytest.approx(ends, abs=1e-3)


def test_values_are_those_of_the_axes(played):
    contest, recording = played
    for i, axis in enumerate(contest.space.axes):
        for u in (0.0, 0.25, 1.0):
            assert recording.value(i, u) == pytest.approx(axis.value(u)) or recording.value(i, u) == axis.value(u)


@pytest.mark.parametrize("hours", [0, 2, 5])
def test_a_contest_goes_on_as_it_did(played, hours):
    """Decisions are repeated up to an hour; the next one is taken, and is the recorded one."""
    contest, recording = played
    again = resumed(recording, hours)
    assert again.now == again.forecast.now == hours * HOUR, "what is shown first is the forecast of that hour"
    assert [d.reason for d in again.decisions] == [d.reason for d in contest.decisions[:hours]]
    assert again.policy == (contest.decisions[hours - 1].policy if hours else contest.space.policy)
    if hours == 2:
        list(again.hour())
        assert again.decisions[-1].reason == contest.decisions[hours].reason
        assert again.decisions[-1].policy == contest.decisions[hours].policy
        assert again.averages["selftune"] == pytest.approx(contest.averages["selftune"][: hours + 1], abs=0.1)
        assert again.averages["autosched"] == pytest.approx(contest.averages["autosched"][: hours + 1], abs=0.1)


def test_strengths_by_hand():
    """M = 2 k - c and r = -m, of independent k and c with spread 1: 2 / sqrt(5), -1 / sqrt(5), -1."""
    k = np.repeat([-1.0, 1.0], 2)
    c = np.tile([-1.0, 1.0], 2)
    m = 2 * k - c
    graph = CausalGraph(Layers(("k",), ("m",), ("r",), context=("c",)), (("k", "m"), ("c", "m"), ("m", "r")))
    found = strengths(graph, np.column_stack([k, c, m, -m]))
    assert found == {
        ("k", "m"): (pytest.approx(2 / 5**0.5), 1),
        ("c", "m"): (pytest.approx(-1 / 5**0.5), -1),
        ("m", "r"): (pytest.approx(-1.0), -1),
    }


def test_strengths_add_up_along_paths():
    """K raises m by 1, and r both itself by 1 (declared) and through m by -3: its total effect on r is negative."""
    layers = Layers(("k",), ("m",), ("r",), direct=(("k", "r"),))
    graph = CausalGraph(layers, (("k", "m"), ("k", "r"), ("m", "r")))
    k = np.repeat([-1.0, 1.0], 2)
    e = np.tile([-1.0, 1.0], 2)
    m = k + e
    r = k - 3 * m
    found = strengths(graph, np.column_stack([k, m, r]))
    assert found["k", "r"] == (pytest.approx(-2 / np.std(r)), -1)
    assert found["m", "r"] == (pytest.approx(-3 * np.std(m) / np.std(r)), -1)


def test_a_category_has_strength_and_no_sign():
    graph = CausalGraph(Layers(("k",), ("m",), ("r",), {"k": 3}), (("k", "m"), ("m", "r")))
    k = np.array([0.0, 0.5, 1.0] * 2)
    m = np.array([0.0, 5.0, 0.0] * 2)
    assert strengths(graph, np.column_stack([k, m, m]))["k", "m"] == (pytest.approx(1.0), 0)


def test_another_trace_is_refused(played):
    contest, _ = played
    with pytest.raises(RunError, match="another trace than that of tuneddays:days=0.1"):
        record(contest, TunedDays(days=0.1))


def named(**more) -> bytes:
    return gzip.compress(json.dumps({"format": FORMAT} | more).encode(), mtime=0)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"not gzip", "found no recording"),
        (gzip.compress(b"{"), "found no recording"),
        (gzip.compress(b"[]"), "found no recorded contest"),
        (named(version=0), "of version 0; expected version"),
        (named(version=VERSION), "lacks 'axes'"),
    ],
    ids=("text", "object", "list", "version", "parts"),
)
def test_files_that_hold_no_recording(content, found, tmp_path):
    (path := tmp_path / "bad.gz").write_bytes(content)
    with pytest.raises(RunError, match=found) as error:
        Recording.read(path)
    assert str(path) in str(error.value)


def test_a_file_that_was_cut_off(played, tmp_path):
    path = played[1].write(tmp_path / "cut.gz")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(RunError, match="found no recording"):
        Recording.read(path)
    with pytest.raises(RunError, match="found no recording .*No such file"):
        Recording.read(tmp_path / "none.gz")


def test_hours_that_were_not_played(played):
    with pytest.raises(RunError, match=r"found hour 2.5; expected a whole one, 0 to 5"):
        resumed(played[1], 2.5)


def test_the_one_that_ships_is_whole():
    """Three days of 2,500 jobs, every hour, under 400 kB."""
    assert _data.path(SHIPPED).stat().st_size < 400_000
    shipped = Recording.read()
    assert [hour.now for hour in shipped.hours] == [HOUR * i for i in range(72)]
    assert shipped.made["recipe"] == json.loads(json.dumps(TunedDays().to_dict()))
    assert shipped.lines == ("default", "fixed", "once", "selftune", "search", "autosched")
