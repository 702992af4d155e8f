"""AutoSched at its doors: what does not fit is refused at once, by a message with the way out."""

import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.autosched import (
    Aggregator,
    CausalModel,
    Contest,
    Journal,
    Space,
    Tuner,
    Tuning,
    attach,
    gather,
    train,
    true_forecast,
)
from gpuschedlab.autosched import command as tune
from gpuschedlab.autosched.causal.graph import full_graph
from gpuschedlab.autosched.controller import FUTURES, THRESHOLD
from gpuschedlab.autosched.decision import Decision
from gpuschedlab.autosched.decision_rows import Rows
from gpuschedlab.autosched.tuner.offline import layers_of
from gpuschedlab.cli import main, progress
from gpuschedlab.errors import EstimatorError, PolicyError, RunError, TraceError
from gpuschedlab.knobs import Knob
from reproduce.autosched.parts import PARTS

CLUSTER = lab.Cluster.homogeneous(8, 8)
HOUR = 3600.0
DAY = 86_400.0


@pytest.fixture(scope="module")
def stretch():
    whole = lab.generate("venus", days=3, jobs=600, load=1.1, cluster_gpus=64, rng=0)
    whole = whole.with_columns(pl.col("submit") - 2 * DAY)
    return whole.filter(pl.col("submit") < 0), whole.filter(pl.col("submit") >= 0)


def scenario(stretch):
    return lab.Scenario(stretch[1], CLUSTER, history=stretch[0])


def loop(stretch, history=None, method="search", **options):
    simulation = lab.Simulation(lab.Scenario(stretch[1], CLUSTER), lab.Tiresias())
    history = stretch[0] if history is None else history
    return attach(method, simulation, history=history, **{"tuner": Tuner(2)} | options)


def told(decisions):
    return [(d.now, d.jobs, d.gain) for d in decisions]


def test_a_history_is_put_in_order_and_may_share_names_with_the_trace(stretch):
    usual = told(loop(stretch).run(3 * HOUR))
    assert usual[-1][1] > 50
    shuffled = stretch[0].sample(fraction=1, shuffle=True, seed=1)
    assert told(loop(stretch, shuffled).run(3 * HOUR)) == usual
    namesakes = stretch[0].with_columns(job_id=pl.Series(stretch[1]["job_id"].to_list() * 3).head(stretch[0].height))
    namesakes = namesakes.unique("job_id", maintain_order=True)
    loop(stretch, namesakes, "selftune").run(3 * HOUR)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            lambda h: h.with_columns(pl.col("submit") + 3 * DAY),
            EstimatorError,
            "history: found a job submitted at .* same clock",
        ),
        (lambda h: h.to_dicts(), TraceError, "history: found a list; expected a polars.DataFrame"),
        (lambda h: h.lazy(), TraceError, "history: found a LazyFrame"),
        (lambda h: h.drop("submit"), TraceError, "history.*submit"),
        (lambda h: h.drop("duration"), TraceError, "history.*duration"),
        (lambda h: h.with_columns(duration=np.nan), TraceError, "history, row 1, column duration"),
        (
            lambda h: h.with_columns(submit=pl.from_epoch(pl.col("submit").cast(pl.Int64))),
            TraceError,
            "history.*submit",
        ),
        (
            lambda h: h.with_columns(gpus=128.0),
            EstimatorError,
            "history: found a job of 128 GPUs; expected at most the 64",
        ),
    ],
)
def test_a_history_that_does_not_fit_is_refused(stretch, change, error, said):
    with pytest.raises(error, match=said):
        loop(stretch, change(stretch[0]))


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.9}, {"threshold": np.nan}, {"interval": 0.0}, {"interval": np.nan}, {"check": -1.0}, {"burst": 0.0},
        {"seed": None}, {"seed": -1}, {"horizon": np.nan}, {"horizon": -5.0}, {"aggregator": False, "method": "optimal"},
        {"similarity": "dtw"}, {"predictor": "svm"},
    ],
)  # fmt: skip
def test_a_loop_that_makes_no_sense_is_refused(stretch, options):
    model = CausalModel(full_graph(layers_of(Space(lab.Tiresias()))))
    with pytest.raises(EstimatorError, match="expected"):
        loop(stretch, model=model, **options)


@dataclass(frozen=True)
class Vague(lab.Srtf):
    """Tunes for an unknown goal."""

    goals = ("happiness",)


def test_a_goal_that_is_unknown_is_told_before_anything_is_played(stretch):
    simulation = lab.Simulation(lab.Scenario(stretch[1], CLUSTER), Vague())
    with pytest.raises(PolicyError, match="found goals .'happiness'.*expected some of jct, fair"):
        attach("selftune", simulation, history=stretch[0])


def test_options_that_a_sampler_does_not_take_are_refused():
    with pytest.raises(EstimatorError, match="found options {'speed': 1} of bluefin: .*speed"):
        Tuner(options={"speed": 1})
    with pytest.raises(EstimatorError, match="expected 1 or 2"):
        Tuner(options={"feedback": 3})


def test_a_search_that_measured_nothing_has_no_best():
    with pytest.raises(EstimatorError, match="found no measured trial"):
        Tuning(Space(lab.Tiresias()), "jct").best  # noqa: B018


def test_jobs_are_aggregated_once(stretch):
    simulation = lab.Simulation(lab.Scenario(stretch[1], CLUSTER), lab.Tiresias())
    once = Aggregator()(true_forecast(simulation, DAY))
    with pytest.raises(EstimatorError, match="aggregated already"):
        Aggregator()(once)


@pytest.mark.parametrize("method", ["selftune", "search", "optimal"])
def test_a_loop_goes_on_where_it_was_pickled(stretch, method):
    space = Space(lab.Tiresias())
    model = train(gather(scenario(stretch).past, space, instants=2, configurations=12), space)
    first = loop(stretch, method=method, model=model)
    first.run(2 * HOUR)
    second = pickle.loads(pickle.dumps(first))
    assert told(second.run(5 * HOUR)) == told(first.run(5 * HOUR))
    assert (len(first.decisions), repr(second)) == (5, repr(first))


def test_a_method_of_ones_own_is_put_around_a_simulation(stretch):
    """AutoSched without one of its parts, as benches and the notebook of its results take it; what it lacks is named by its sentence."""
    found = loop(stretch, method=PARTS["no-controller"], tuner=None)
    assert (found.aggregator, found.tuner) == (None, Tuner.thesis(causal=False, iterations=10, check=10))
    assert loop(stretch, method=PARTS["no-causal"], tuner=None).model is None
    assert not loop(stretch, method=PARTS["no-future"], tuner=Tuner()).forecaster.arrivals
    with pytest.raises(EstimatorError, match="method AutoSched without trace aggregator: found no causal model"):
        loop(stretch, method=PARTS["no-aggregator"], tuner=None)


def test_a_loop_without_end_ends_with_the_last_job(stretch):
    few = stretch[1].head(5)
    simulation = lab.Simulation(lab.Scenario(few, CLUSTER), lab.Tiresias())
    found = attach("selftune", simulation, tuner=Tuner(1)).run(np.inf)
    assert found
    assert simulation.result().jobs["end"].null_count() == 0


def test_a_model_of_other_knobs_is_refused(stretch):
    space = Space(lab.Tiresias())
    sizes = {"instants": 2, "configurations": 12}
    samples = gather(scenario(stretch).past, space, **sizes)
    model = train(samples, space)
    turned = Space(lab.Tiresias(), space.names[::-1])
    with pytest.raises(EstimatorError, match="found a causal model of knobs metric, .* expected pack_limit"):
        loop(stretch, method="autosched", tuner=Tuner.thesis(), model=model, space=turned)
    given = list(model.graph.layers.given)
    assert model.predict(samples).mean.tolist() == model.predict(samples.select(given)).mean.tolist()
    assert model.predict(samples.select(given[::-1])).mean.tolist() == model.predict(samples).mean.tolist()
    with pytest.raises(EstimatorError, match="found a space of Themis; expected one of Tiresias"):
        loop(stretch, space=Space(lab.Themis()))
    with pytest.raises(EstimatorError, match="found 2 of the columns; expected metric"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(EstimatorError, match="do: found 'q'"):
        model.do({"q": 0.0})
    with pytest.raises(EstimatorError, match="has not learnt"):
        CausalModel(full_graph(layers_of(space))).predict(samples)


@pytest.mark.parametrize(
    "options", [{"instants": 0}, {"configurations": -3}, {"horizon": np.nan}, {"horizon": -1.0}, {"load": np.nan}]
)
def test_an_offline_phase_of_no_size_is_refused(stretch, options):
    with pytest.raises(EstimatorError, match="gather: found"):
        gather(scenario(stretch).past, Space(lab.Tiresias()), **options)


@pytest.mark.parametrize("others", ["selftune", ("self-tune",), ("autosched",)])
def test_a_contest_of_unknown_tuners_is_refused(stretch, others):
    with pytest.raises(EstimatorError, match="expected a tuple of some of default, fixed, once, search, thesis"):
        Contest(scenario(stretch), lab.Tiresias(), others=others)


def test_a_contest_is_of_a_causal_tuner(stretch):
    with pytest.raises(EstimatorError, match=r"expected a causal tuner, such as Tuner.thesis"):
        Contest(scenario(stretch), lab.Tiresias(), tuner=Tuner())


@dataclass(frozen=True)
class Clashing(lab.Ordered):
    """Has a knob that is called like a metric."""

    queueing: Annotated[float, Knob(0, 1, help="nothing")] = 0.5

    @staticmethod
    def key(now, job, knobs):
        return job.submit


@pytest.mark.parametrize(
    ("policy", "names"),
    [(Clashing(), None), (lab.Tiresias(), ["queues"] * 2), (lab.Tiresias(), "queues"), (lab.Tiresias, None)],
)
def test_a_space_that_cannot_be_told_apart_is_refused(policy, names):
    with pytest.raises(PolicyError, match="expected"):
        Space(policy, names)


def test_what_a_simulation_cannot_switch_to_leaves_it_whole(stretch):
    simulation = lab.Simulation(lab.Scenario(stretch[1], CLUSTER), lab.Tiresias())
    for wrong in (None, lab.Tiresias):
        with pytest.raises(PolicyError, match="expected an instance of"):
            simulation.switch(wrong)
    assert simulation.run().jobs["end"].null_count() == 0


def test_a_journal_that_was_not_resumed_is_never_appended_to(stretch, tmp_path):
    path = tmp_path / "a.jsonl"
    loop(stretch, method="selftune", journal=Journal(path, {"a": 1})).run(3 * HOUR)
    before = path.read_bytes()
    journal = Journal(path, {"a": 1}, resume=True)
    again = loop(stretch, method="selftune", journal=journal)
    with pytest.raises(RunError, match="Controller.resume first"):
        again.run(HOUR)
    assert path.read_bytes() == before
    once = loop(stretch, method="selftune")
    once.resume(journal.records)
    with pytest.raises(EstimatorError, match="Resume once"):
        once.resume(journal.records)
    path.write_bytes(before + b"[1]\n[2]\n")
    with pytest.raises(RunError, match="found no decision"):
        Journal(path, {"a": 1}, resume=True)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RunError, match="found no journal"):
        Journal(path, {"a": 1}, resume=True)


TUNE = ["tune", "--cluster", "8x8", "--hours", "2", "--rounds", "2"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_tune_asks_for_a_history_before_it_begins(stretch, here, capsys):
    stretch[1].write_parquet("b.parquet")
    assert main([*TUNE, "--trace", "b.parquet"]) == 2
    assert "Give --history DAYS" in capsys.readouterr().err
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ("autoshed", "--methods autoshed: expected some of default, fixed, autosched, .* Did you mean autosched[?]"),
        ("default seach", "--methods seach: .* Did you mean search[?]"),
        ("xyzzy", "--methods xyzzy: expected some of .*optimal, believed[.]$"),
    ],
)
def test_an_unknown_method_is_wrong_usage_with_a_suggestion(here, methods, said, capsys):
    assert main(["tune", "--methods", *methods.split()]) == 2
    found = capsys.readouterr()
    assert re.search(said, found.err.strip())
    assert (found.out, found.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("methods", "expected"),
    [("default selftune autosched", "expected selftune.jsonl or autosched.jsonl"), ("default fixed", "do not tune")],
)
def test_tune_resumes_nothing_where_nothing_is_kept(here, methods, expected, capsys):
    assert main([*TUNE, "--methods", *methods.split(), "--resume"]) == 2
    found = capsys.readouterr()
    assert "--resume: found no decisions in runs/tune; " in found.err
    assert expected in found.err
    assert "Leave --resume out to begin anew" in found.err
    assert found.out == ""
    assert not (here / "runs").exists()


def test_a_method_that_was_not_reached_begins_when_the_others_are_resumed(stretch, here, capsys):
    stretch[1].write_parquet("b.parquet")
    words = [*TUNE, "--trace", "b.parquet", "--methods", "default", "selftune"]
    assert main(words) == 0
    assert main([*words, "optimal", "--resume"]) == 0
    told = capsys.readouterr().out
    assert "selftune: resumed after 2 decisions" in told
    assert "optimal: resumed" not in told
    assert len((here / "runs/tune/optimal.jsonl").read_text().splitlines()) == 3


def test_what_a_method_of_tune_begins_with_does_not_depend_on_the_others(here, monkeypatch):
    """History's best configurations for all that take hints, and each method's own threshold, in whatever order they come."""
    begun = {}

    def record(method, *given, **options):
        loop = attach(method, *given, **options)
        begun[method] = (len(loop.given), loop.threshold, loop.futures)
        loop.steps = lambda until: ()
        return loop

    monkeypatch.setattr("gpuschedlab.autosched.attach", record)
    words = [
        "--cluster",
        "2x8",
        "--jobs",
        "40",
        "--load",
        "1.1",
        "--history",
        "1",
        "--hours",
        "2",
        "--rounds",
        "2",
        "--methods",
    ]
    assert main(["tune", *words, "search", "selftune", "thesis", "optimal"]) == 0
    assert begun == {
        "search": (4, THRESHOLD, FUTURES),
        "selftune": (0, THRESHOLD, 0),
        "thesis": (0, 1.1, 0),
        "optimal": (4, THRESHOLD, 0),
    }
    assert main(["tune", *words, "thesis", "--threshold", "1.3", "--out", "other"]) == 0
    assert begun["thesis"] == (0, 1.3, 0)


def test_tune_says_what_it_is_about_to_do_before_it_reads_or_imports_anything(here, capsys, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "recipe_in", interrupted)
    assert main(["tune"]) == 130
    found = capsys.readouterr()
    first = "tuning tiresias on venus, 72 h, load 1.1, cluster 32x8, seed 0: default, selftune, search, autosched"
    assert found.out.splitlines() == [first, "loading the simulator", "reading the trace"]
    assert "interrupted; no decision was taken" in found.err
    assert main(["tune", "--hours", "5"]) == 130  # options of one's own: nothing else changes
    assert capsys.readouterr().out.splitlines()[0] == first.replace("72 h, load 1.1", "5 h").replace("32x8", "70x8")
    script = "import sys; from gpuschedlab.autosched import command; print(*{'numba', 'gpuschedlab.sim', 'xgboost'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_phase_of_tune_is_followed(here, capsys, monkeypatch):
    """Where there is no terminal: a line when it begins, and others while it lasts."""
    monkeypatch.setattr(progress, "EVERY", 0.005)
    small = "--cluster 2x8 --jobs 40 --load 1.1 --history 1 --hours 2 --rounds 2"
    assert main(["tune", *small.split(), "--methods", "default", "fixed", "autosched"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begun = [line for line in lines if " so far" not in line]
    phases = [
        "loading the simulator",
        "reading the trace",
        "default: running",
        "fixed: searching",
        "fixed: running",
        "offline phase",
        "learning the causal model",
    ]
    at = [next(i for i, line in enumerate(begun) if line.startswith(phase)) for phase in phases]
    assert at == sorted(at)
    assert any(re.match(r"offline phase: .*: [1-9]\d* of 16 instants, \d+ s so far", line) for line in lines)
    assert any(re.match(r"autosched: \d of \d h, \d+ s so far", line) for line in lines)
    assert sum("as good as" in line for line in lines) == 1


def test_a_bar_follows_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    shown = progress.Progress(progress.sys.stdout)
    with shown.phase("offline phase", 4, "instants") as advance:
        advance(1)
        shown.say("a row")
        advance(4)
    found = capsys.readouterr()
    assert found.out == "offline phase\na row\n"
    assert "0 of 4 instants" in found.err


def decision(hour, gain=1.0, cause="hour", switched=False, measured=3, **knobs):
    policy = lab.Tiresias(**knobs)
    return Decision(hour * HOUR, cause, policy, switched, gain, "", None, 10, 10, 0.1, measured)


def test_decisions_in_which_nothing_happens_share_a_row():
    rows = Rows("selftune", {"queues": 2, "thresholds": (57_600.0,)})
    found = []
    for d in [
        decision(0, measured=0),
        decision(1, 1.004),
        decision(2.5, 1.3, "burst", True, queues=3, thresholds=(9.5, 1e6)),
        *(decision(h, 1.0) for h in range(3, 8)),
        decision(8, 1.06),
        decision(9, 1.12, "hour", True, queues=3, thresholds=(9.5, 1e5)),
        decision(10, measured=0),
    ]:
        found += rows.add(d)
    assert [" ".join(row.split()) for row in [*found, *rows.rest()]] == [
        "selftune 0.0 to 1.0 2 3 1.00 kept: no better configuration",
        "selftune 2.5 1 3 1.30 switched (burst of arrivals): queues 2 -> 3, thresholds (57,600) -> (9.5, 1,000,000)",
        "selftune 3.0 to 8.0 6 18 1.06 kept: gain below the threshold",
        "selftune 9.0 1 3 1.12 switched: thresholds (9.5, 1,000,000) -> (9.5, 100,000)",
        "selftune 10.0 1 0 1.00 kept: no jobs in the forecast",
    ]
    assert rows.rest() == []
