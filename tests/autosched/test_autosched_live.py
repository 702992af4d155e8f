"""The contest of tuners, the figures of a search, and the command line."""

import json
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import CausalGraph, Contest, Decision, Layers, Tuner, Tuning
from gpuschedlab.autosched.methods import METHODS
from gpuschedlab.cli import main
from gpuschedlab.speeds import default_speeds

CLUSTER = lab.Cluster.homogeneous(4, 8)
BRIEF = replace(METHODS["autosched"].tuner, iterations=40)
"""A wide search of a fifth of the rounds: what is shown of it has the same parts."""
DAY = 86_400.0
HOUR = 3600.0


@pytest.fixture(scope="module")
def stretch():
    """Two days of history and one to play."""
    whole = lab.generate("venus", days=3, jobs=1200, load=1.1, cluster_gpus=32, rng=0).filter(pl.col("gpus") <= 16)
    whole = whole.with_columns(pl.col("submit") - 2 * DAY)
    return whole.filter(pl.col("submit") < 0), whole.filter(pl.col("submit") >= 0)


def make(stretch, policy=None, **options):
    history, trace = stretch
    delays = lab.Delays(restart=60.0)
    scenario = lab.Scenario(trace, CLUSTER, history=history, speeds=default_speeds, delays=delays)
    return Contest(
        scenario, policy or lab.Tiresias(), **{"instants": 6, "configurations": 16, "tuner": BRIEF} | options
    )


@pytest.fixture(scope="module")
def first(stretch):
    """A contest made in full; the others begin with its offline phase and its best fixed configuration."""
    return make(stretch)


def begun(monkeypatch, stretch, first) -> Contest:
    """A contest that begins with the offline phase and the best fixed configuration of the first one."""
    best = SimpleNamespace(policy=first.simulations["fixed"].policy)
    found = SimpleNamespace(best=best, leaders=lambda: first.loop.given)
    monkeypatch.setattr("gpuschedlab.autosched.contest.gather", lambda *_, **__: first.samples)
    monkeypatch.setattr("gpuschedlab.autosched.contest.best_fixed", lambda *_, **__: found)
    return make(stretch)


@pytest.fixture
def contest(monkeypatch, stretch, first):
    return begun(monkeypatch, stretch, first)


@pytest.fixture(scope="module")
def whole(stretch, first):
    """A contest of which two hours were played without a stop, and the steps of the second: nobody changes it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        played = begun(monkeypatch, stretch, first)
        list(played.hour())
        return played, list(played.hour())


def test_an_hour_is_played_by_all(whole):
    contest, steps = whole
    assert [type(s) for s in steps if isinstance(s, Decision)] == [Decision]
    assert any(isinstance(s, Tuning) and s.trials for s in steps)
    assert contest.now == 2 * HOUR
    assert {s.now for s in contest.simulations.values()} == {2 * HOUR}
    assert len(contest.decisions) == 2
    assert set(contest.averages) == {"time", "default", "fixed", "once", "selftune", "search", "autosched"}


def test_an_hour_that_was_stopped_goes_on_where_it_stood(contest, whole):
    """Wherever it is left, no tuner decides twice, and the results are as if it had not been left."""
    pauses = 0
    while contest.now < 2 * HOUR:
        hour = contest.hour()
        pauses = pauses + 1
        for _ in range(pauses):
            step = next(hour, "played")
            while isinstance(step, Tuning) and contest.loops["autosched"].last < contest.now:
                step = next(hour, "played")  # a search that is left begins anew, with a model that has learnt
        hour.close()
    assert pauses > 3
    for name, loop in contest.loops.items():
        assert [d.now for d in loop.decisions] == [0.0, HOUR], name
    assert contest.averages == whole[0].averages


def test_each_tuner_learns_by_itself(contest, stretch):
    both = make(stretch, others=("thesis",))
    list(both.loops["thesis"].trying())
    rows = [len(both.loops[name].model.rows) for name in ("thesis", "autosched")]
    assert rows[0] > rows[1] == contest.samples.height


def test_who_never_tunes_is_as_if_alone(whole, stretch):
    alone = lab.Simulation(
        lab.Scenario(stretch[1], CLUSTER, speeds=default_speeds(CLUSTER), delays=lab.Delays(restart=60.0)),
        lab.Tiresias(),
    )
    alone.advance(2 * HOUR)
    jct = alone.result().jobs["jct"].drop_nulls()
    assert whole[0].averages["default"][-1] == pytest.approx(jct.mean())


def test_the_forecast_knows_no_future(stretch):
    """Durations of unfinished jobs and all later arrivals changed: the same forecast, trials and decision."""
    history, trace = stretch
    found = []
    for other in (False, True):
        changed = trace
        if other:
            late = trace.with_columns(
                duration=pl.when(pl.col("submit") + pl.col("duration") > 6 * HOUR).then(9 * DAY).otherwise("duration"),
                gpus=pl.when(pl.col("submit") > 6 * HOUR).then(1.0).otherwise("gpus"),
            )
            changed = late
        contest = make((history, changed), others=(), instants=3, configurations=8)
        loop = contest.loops["autosched"]
        contest.simulations["autosched"].advance(6 * HOUR)
        decision = loop.decide()
        forecast = contest.forecast.trace.select("submit", "gpus", "duration")
        found.append((forecast.rows(), [(t.fate, t.u.tolist(), t.reward) for t in decision.tuning.trials][:2]))
    assert found[0][0] == found[1][0]
    assert repr(found[0][1]) == repr(found[1][1])


@pytest.mark.parametrize("policy", [lab.Themis(), lab.Lucid(profiler_nodes=1)], ids=lambda p: p.name)
def test_other_policies_are_tuned_too(stretch, policy):
    contest = make(stretch, policy, others=("default",), instants=3, configurations=8)
    list(contest.hour())
    assert contest.tuning.objective == policy.goals[0]
    assert set(policy.watched) <= set(contest.samples.columns)


# --- figures


def test_numbers_of_a_graph():
    graph = CausalGraph(Layers(("k",), ("m",), ("r",), context=("c",)), (("k", "m"), ("c", "m"), ("m", "r")))
    found = plots.causes(graph, lit=[("k", "m")], held=["k"])
    assert found.data[0]["x"].tolist() == [0, 0, 1, 2]
    drawn = plots.figure(found)
    assert [shape.line.width for shape in drawn.layout.shapes] == [4, 1, 1]
    assert drawn.data[0].hovertext[:3] == ("<b>k</b> (fixed)", "<b>c</b> (given)", "<b>m</b>")
    assert len(set(drawn.data[0].marker.symbol[:3])) == 3


def test_figures_of_a_search_tell_fates_apart_without_colour(whole):
    contest, _ = whole
    numbers = plots.tried(contest.tuning, contest.policy)
    drawn = plots.figure(numbers)
    symbols = [t.marker.symbol for t in drawn.data[:3]]
    assert len(set(symbols)) == 3
    assert sum(len(t.x) for t in drawn.data[:3]) == len(contest.tuning.trials)


# --- the command line


WORDS = "tune --hours 4 --jobs 60 --cluster 4x8 --load 1.1 --rounds 4 --history 1 --restart 60 --methods default"


def tune_words(*methods):
    return [*WORDS.split(), *methods]


def test_tune_compares(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*tune_words("autosched"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [m["method"] for m in told["methods"]] == ["default", "autosched"]
    assert told["methods"][1]["decisions"] >= 3
    assert main(["tune", "--methods", "magic"]) != 0
    assert "search" in capsys.readouterr().err


def test_tune_keeps_its_decisions_and_resumes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(tune_words("selftune")) == 0
    first = capsys.readouterr().out
    assert main(tune_words("selftune")) != 0  # decisions are there already
    assert "Resume it" in capsys.readouterr().err
    assert main([*tune_words("selftune"), "--resume"]) == 0
    shown = capsys.readouterr().out
    assert "selftune: resumed after" in shown
    decided, _, compared = first.partition("average JCT (h)")
    rows = [line.split() for line in decided.splitlines() if line.startswith("selftune ")]
    journal = (tmp_path / "runs" / "tune" / "selftune.jsonl").read_text().splitlines()
    assert sum(int(row[row.index("to") + 2] if "to" in row else row[2]) for row in rows) == len(journal) - 1 > 3
    changed = [*tune_words("selftune"), "--resume", "--restart", "600"]
    assert main(changed) != 0
    assert "another loop" in capsys.readouterr().err
    monkeypatch.setattr("gpuschedlab.sweep.identity.digest", lambda _: "of a file that has changed")
    assert main([*tune_words("selftune"), "--resume"]) != 0
    assert "of another loop: what files and classes hold" in capsys.readouterr().err
    again = shown.partition("average JCT (h)")[2]
    assert again.splitlines()[2].split()[:4] == compared.splitlines()[2].split()[:4]


def test_tuner_options_reach_the_loop(stretch):
    contest = make(stretch, tuner=Tuner.thesis(iterations=1), others=())
    list(contest.hour())
    assert max(t.round for t in contest.tuning.trials) == 1
