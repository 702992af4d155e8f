"""The logbook: an operator's log, forks of it, and what estimators say where the answer is known."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.autosched import Log, Rule, identify, operate, read_log
from gpuschedlab.autosched.logbook.log import CONTEXT, restricted_mean
from gpuschedlab.autosched.logbook.play import FLOOR, Holding, counted, fork
from gpuschedlab.errors import EstimatorError
from gpuschedlab.widgets import LogbookExplorer
from reproduce.autosched import logbook as bench

HOUR = 3600.0
DAY = 86_400.0


# --- a log of which all is known: the operator follows the load, which delays jobs


def known(days=40, coin=0.2, seed=0, effect=1.0) -> Log:
    """Hourly: the load is a cause of knob and outcome; the knob adds -1 at each step up, so that the truth is (0, -1, -2) and a mean."""
    rng = np.random.default_rng(seed)
    n = 24 * days
    load = rng.normal(size=n)
    followed = np.digitize(load + 0.3 * rng.normal(size=n), (-0.5, 0.5))
    knob = np.where(rng.random(n) < coin, rng.integers(0, 3, n), followed)
    queueing = 2 * load - knob + 0.3 * rng.normal(size=n)
    outcome = 3 * load - effect * knob + 0.3 * rng.normal(size=n)
    zero = np.zeros(n)
    columns = {"time": HOUR * np.arange(n), "seen": HOUR * np.arange(n), "knob": knob.astype(float), "load": load}
    columns |= {
        "came": zero,
        "count": zero,
        "queueing": queueing,
        "objective": outcome,
        "jobs": zero + 5,
        "open_jobs": zero,
    }
    return Log(pl.DataFrame(columns), "knob", n * HOUR)


@pytest.mark.parametrize("method", ["adjusted", "ridge", "trees", "AIPW", "g-formula"])
def test_an_estimate_that_holds_the_load_fixed_finds_the_effect(method):
    """The log's own, and those that the arena sets beside it."""
    from scenes.estimators import asked

    if method == "adjusted":
        found = known().estimate(method, ("load",))
        assert (found.low < found.high).all()
        assert found.best == 2.0
        mean = found.mean
        effect = found.effect
    else:
        mean, effect = asked(known(), method, ("load",))
    assert np.diff(mean) == pytest.approx([-1, -1], abs=0.4 if method == "trees" else 0.15)
    assert effect[0] == pytest.approx(mean[-1] - mean[0])
    assert effect[1] < effect[0] < effect[2]


def test_the_naive_estimate_has_the_wrong_sign():
    """High loads have high knobs: the mean of rows rises where the knob lowers it."""
    log = known()
    found = log.estimate("naive")
    assert found.mean == pytest.approx([log.frame.filter(knob=v)["objective"].mean() for v in (0.0, 1.0, 2.0)])
    assert (np.diff(found.mean) > 0.3).all()
    assert found.best == 0.0
    assert found.adjust == ()


def test_of_a_coin_alone_the_naive_estimate_is_right():
    found = known(coin=1.0).estimate("naive")
    truth = known(coin=1.0).frame["load"].mean() * 3 + np.array([0, -1, -2])
    assert ((found.low < truth) & (truth < found.high)).all()


def test_a_graph_says_what_to_hold_fixed():
    log = known()
    edges = [("load", "knob"), ("load", "objective"), ("knob", "queueing"), ("knob", "objective"), ("load", "queueing")]
    found = log.estimate("backdoor", outcome="objective", graph=edges, interval=False)
    assert found.adjust == ("load",)
    assert found.mean.tolist() == log.estimate(adjust=("load",), interval=False).mean.tolist()
    hidden = [("mood", "knob"), ("mood", "objective"), ("knob", "objective")]
    with pytest.raises(EstimatorError, match="the effect of knob on objective is not identifiable"):
        log.estimate("backdoor", graph=hidden)


def test_identify_by_hand():
    """Pearl's figure 3.4 in small: a collider must not be held fixed; of two blocks the smaller is taken."""
    collider = [("a", "z"), ("b", "z"), ("a", "x"), ("b", "y"), ("x", "y")]
    assert identify(collider, "x", "y", "abz") == ()
    chain = [("u", "x"), ("u", "w"), ("w", "y"), ("x", "m"), ("m", "y")]
    assert identify(chain, "x", "y", ["w", "m"]) == ("w",)
    with pytest.raises(EstimatorError, match="not identifiable"):
        identify(chain, "x", "y", ["m"])


def test_a_network_answers_as_its_tables_by_hand():
    """One binary column, shares as they are: P(y | do(a)) is the adjusted mean, up to K2's one imaginary row a state."""
    pytest.importorskip("causalnex", reason="causalnex is not installed; make installs it")
    rng = np.random.default_rng(0)
    n = 4000
    load = rng.integers(0, 2, n).astype(float)
    knob = np.where(rng.random(n) < 0.8, load, 1 - load)
    base = known(days=1).frame[:1].drop("time", "load", "knob", "objective")
    frame = pl.concat([base] * n).with_columns(
        time=HOUR * np.arange(n), load=load, knob=knob, objective=2 * load - knob
    )
    from scenes.estimators import asked

    found, _ = asked(Log(frame, "knob", n * HOUR), "CausalNex", ("load",), interval=False)
    assert found == pytest.approx([2 * load.mean(), 2 * load.mean() - 1], abs=0.02)


def test_the_overlap_report_names_what_the_log_cannot_say():
    """Without a coin nobody chose the highest value at low loads."""
    silent = known(coin=0.0).estimate(adjust=("load",), interval=False)
    assert silent.overlap["say"].to_list() == [False, True, False]
    assert silent.best is None
    assert "the log cannot say" in silent._repr_html_()
    tossed = known(coin=1.0).estimate(adjust=("load",), interval=False)
    assert tossed.overlap["say"].all()
    assert tossed.overlap["rows"].sum() == known().frame.height
    assert "the log cannot say" not in tossed._repr_html_()


# --- read from a file


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_log_survives_a_file(tmp_path, ending):
    log = known(2)
    path = tmp_path / f"log.{ending}"
    log.frame.write_csv(path) if ending == "csv" else log.frame.write_parquet(path)
    again = read_log(path, "knob", closed=2 * DAY)
    assert again.frame.equals(log.frame)
    with pytest.raises(EstimatorError, match=r"Log.oracle: found a log from a file"):
        again.oracle()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"seen": pl.col("time") + 1},
            r"row 1 \(time 0\): found a context seen after the knob was set.*; and 47 more rows",
        ),
        (
            {"time": pl.col("time") + pl.when(pl.int_range(pl.len()) > 5).then(60).otherwise(0)},
            r"row 7 .*found a gap or an overlap",
        ),
        ({"open_jobs": pl.int_range(pl.len()) == 9}, "row 10 .*found jobs that had not ended"),
        ({"load": None}, "found no column load"),
        ({"time": pl.from_epoch(pl.col("time"))}, "found time of Datetime.*expected a number in each row"),
        ({"seen": pl.when(pl.int_range(pl.len()) > 5).then("seen")}, "found seen of Float64, 6 of them missing"),
        (
            {"time": -pl.col("time"), "seen": -pl.col("time")},
            "expected rows 3600 s apart. Add missing intervals, sort rows",
        ),
    ],
)
def test_a_log_that_would_mislead_is_refused(tmp_path, change, problem):
    path = tmp_path / "log.parquet"
    frame = known(2).frame
    frame = (
        frame.drop("load")
        if "load" in change
        else frame.with_columns(**change).with_columns(pl.col("open_jobs").cast(pl.Int64))
    )
    frame.write_parquet(path)
    with pytest.raises(EstimatorError, match=problem):
        read_log(path, "knob", closed=2 * DAY)


def test_rows_that_are_marked_are_left_out(tmp_path):
    path = tmp_path / "log.csv"
    last = pl.int_range(pl.len()) == pl.len() - 1
    known(2).frame.with_columns(open_jobs=last.cast(pl.Int64), censored=last).write_csv(path)
    assert read_log(path, "knob", closed=2 * DAY).frame.height == 47
    with pytest.raises(EstimatorError, match="an interval that was not over"):
        read_log(path, "knob", closed=1.5 * DAY)
    path.write_text("")
    with pytest.raises(EstimatorError, match="expected a log as CSV or parquet"):
        read_log(path, "knob", closed=DAY)


def test_what_a_log_does_not_hold_is_named():
    log = known(2)
    for given, problem in (
        ({"method": "magic"}, "found method 'magic'"),
        ({"adjust": ("mood",)}, "found column 'mood'"),
    ):
        with pytest.raises(EstimatorError, match=problem):
            log.estimate(**given)


# --- played


CLUSTER = lab.Cluster.homogeneous(4, 8)


@pytest.fixture(scope="module")
def log():
    trace = lab.generate("venus", days=4, jobs=600, load=1.0, cluster_gpus=32, rng=1).filter(pl.col("gpus") <= 16)
    scenario = lab.Scenario(trace, CLUSTER, delays=lab.Delays(restart=60.0))
    return operate(scenario, Rule(lab.Tiresias(), "thresholds", (1e3, 1e5, 1e7)), 4 * HOUR)


def test_the_log_is_what_happened(log):
    """Its rows from a run that sets the same values: contexts before, outcomes of the jobs of each interval."""
    scenario, rule, every, _ = log.source
    simulation = scenario.simulation(rule.at(rule.values[0]))
    jobs = log.frame["jobs"].sum()
    assert jobs == scenario.trace.height
    assert log.frame["open_jobs"].sum() == 0
    for i, value in enumerate(log.frame["thresholds"]):
        inside = simulation.snapshot().jobs
        there = inside["submitted"] & ~inside["done"]
        assert log.frame["load"][i] == pytest.approx(inside["gpus"][there].sum() / 32)
        simulation.switch(rule.at(value))
        simulation.advance((i + 1) * every)
    run = simulation.run()
    own = run.jobs.filter(pl.col("submit").is_between(5 * every, 6 * every, closed="left"))
    delay = (own["jct"] - own["duration"]).mean()
    assert log.frame["objective"][5] == pytest.approx(np.log(FLOOR + delay), abs=1e-9)
    assert log.frame["done"].sum() * HOUR <= (run.jobs["gpus"] * run.jobs["duration"]).sum()
    assert log.frame["speed"].max() <= 1 + 1e-9


def test_a_fork_with_the_value_of_the_log_is_the_log(log):
    """Held for the interval, and then the rule goes on: the delay of the interval's jobs is the row's own."""
    scenario, rule, every, until = log.source
    simulation = scenario.simulation(rule.at(log.frame["thresholds"][0]))
    row = log.frame["load"].arg_max() - 1
    for i in range(row):
        simulation.switch(rule.at(log.frame["thresholds"][i]))
        simulation.advance((i + 1) * every)
    holding = Holding(every, hold=every, then=None, until=until, which=every)
    found = {v: fork(simulation, rule, v, holding) for v in rule.values}
    assert found[log.frame["thresholds"][row]] == pytest.approx(log.frame["objective"][row], abs=1e-6)
    assert len({*found.values()}) > 1


def test_the_oracle_of_a_value_held_for_good_by_hand(log):
    """From the beginning on, and all jobs counted, it is the run under the constant."""
    scenario, rule, every, until = log.source
    for value in rule.values[:2]:
        run = scenario.run(rule.at(value)).jobs
        holding = Holding(every, hold=np.inf, then=None, until=until, which=1e9)
        found = fork(scenario.simulation(rule.at(value)), rule, value, holding)
        assert found == pytest.approx(np.log(FLOOR + (run["jct"] - run["duration"]).mean()), abs=1e-9)
    held = log.oracle(hold=every, jobs=every, then=1e5, instants=3)
    assert held.values == (1e3, 1e5, 1e7)
    assert (held.low < held.mean).all()
    assert not np.array_equal(held.mean, log.oracle(jobs=every, instants=3).mean)
    with pytest.raises(EstimatorError, match="found 0 of 3 instants with jobs that count"):
        log.oracle(jobs=1e-6, instants=3)


def test_jobs_that_a_fork_counts():
    jobs = {"submit": np.array([0.0, 1.0, 10.0, 20.0, 9e3]), "done": np.array([True, False, False, False, False])}
    assert counted(jobs, 10.0, 15.0).tolist() == [2, 3]
    assert counted(jobs, 10.0, "system").tolist() == [1, 2, 3]


def test_a_log_that_is_read_at_once_has_open_jobs(log):
    scenario, rule, every, _ = log.source
    early = operate(scenario, rule, every, wait=0.0)
    assert early.frame.select("thresholds", "load").equals(log.frame.select("thresholds", "load"))
    assert early.frame["open_jobs"].sum() > 0
    assert (
        early.frame["objective"] <= log.frame["objective"] + 1e-9
    ).mean() < 1  # those left out are not all the slow ones
    assert (early.frame["restricted"] <= every).all()


def test_a_restricted_mean_by_hand():
    """Of 1, 2+ and 3 (limit 4): survival 2/3 from 1, 0 from 3."""
    found = restricted_mean(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), 4.0)
    assert found == pytest.approx(1 + 2 * 2 / 3)
    spent = np.random.default_rng(0).exponential(2.0, 50)
    assert restricted_mean(spent, np.full(50, True), 3.0) == pytest.approx(np.minimum(spent, 3.0).mean())


def test_a_rule_follows_the_load_and_tosses_its_coin():
    quiet = Rule(lab.Tiresias(), "pack_limit", (0.0, 1.0), noise=0.0, coin=0.0)
    assert [quiet.choose(load, 3) for load in (0.5, 2.0)] == [0.0, 1.0]
    coin = Rule(lab.Tiresias(), "pack_limit", (0.0, 1.0), coin=1.0)
    drawn = [coin.choose(0.01, i) for i in range(400)]
    assert 0.4 < np.mean(drawn) < 0.6
    assert [coin.choose(9.0, i) for i in range(400)] == drawn
    with pytest.raises(EstimatorError, match="Rule: found knob 'speed'"):
        Rule(lab.Tiresias(), "speed", (0.0, 1.0))
    with pytest.raises(EstimatorError, match="operate: found every=0"):
        operate(None, quiet, 0.0)


def test_the_question_is_held_fixed_with_context(log):
    """All that `estimate` offers runs on a played log, and names its columns."""
    found = log.estimate()
    assert found.adjust == CONTEXT
    assert np.isfinite(found.mean).all()
    assert log.estimate(outcome="speed", interval=False).higher


def test_forks_go_on_until_the_effect_is_narrow_or_every_interval_is_forked(log):
    wide = log.oracle((1e3, 1e7), hold=4 * HOUR, jobs=4 * HOUR, instants=4)
    narrow = log.oracle((1e3, 1e7), hold=4 * HOUR, jobs=4 * HOUR, instants=4, narrow=0.3 * np.ptp(wide.effect))
    every = log.oracle((1e3, 1e7), hold=4 * HOUR, jobs=4 * HOUR, instants=log.frame.height)
    assert np.ptp(narrow.effect) <= max(0.3 * np.ptp(wide.effect), np.ptp(every.effect))
    assert log.oracle((1e3, 1e7), hold=4 * HOUR, jobs=4 * HOUR, narrow=0.0).effect == pytest.approx(
        every.effect, abs=0.2
    )


# --- the bench


def test_the_bench_compares_choices_with_the_best_constant():
    ways = dict.fromkeys((*bench.FORKS, *bench.WAYS, "ended", "restricted"), 1.0)
    rows = [{"case": "pack-venus", "seed": s} | ways | {"jobs of 1 h": r} for s, r in enumerate((1.0, 1.21, 1.01, 1.1))]
    found = next(row for row in bench.judge(rows) if row["way"] == "jobs of 1 h")
    assert found["chosen_over_best"] == pytest.approx((1.21 * 1.01 * 1.1) ** 0.25)
    assert (found["seeds"], found["within"], found["tried"], found["tried_within"]) == (4, 2, 1.102, 5)
    assert found["low"] < found["chosen_over_best"] < found["high"]


def test_a_case_of_the_bench_in_small(monkeypatch):
    """Two days of it: every way chooses a value, and the same seed measures the same."""
    for name, value in {"DAYS": 3, "NODES": 4, "OTHERS": 1, "INSTANTS": 4, "MANY": 4}.items():
        monkeypatch.setattr(bench, name, value)
    bench.scenario_of.cache_clear()
    row, again = (bench.measure(None, "thresholds-venus", 3) for _ in range(2))
    bench.scenario_of.cache_clear()
    assert row == again
    assert all(1 <= row[way] <= row["worst"] for way in (*bench.FORKS, *bench.WAYS, "ended", "restricted"))
    (found,) = bench.effects([row])
    assert found["naive_misses"] == row["naive_misses"]


# --- shown


def test_the_explorer_says_what_its_bars_are(log):
    explorer = LogbookExplorer(log.source[0], Rule(lab.Tiresias(), "thresholds", (1e3, 1e6)), {"length": 3})
    played, found = explorer._answer()
    assert played.frame["time"].max() < 3 * DAY
    estimate, oracle = found["nothing held fixed"]
    assert estimate.effect[0] == pytest.approx(estimate.mean[-1] - estimate.mean[0])
    held = found["load held fixed"][0]
    assert held.adjust == ("load",)
    every = played.oracle((1e3, 1e6), hold=2 * HOUR, jobs=2 * HOUR, instants=played.frame.height)
    assert np.ptp(oracle.effect) <= max(0.2 * abs(estimate.effect[0] - held.effect[0]), 1.01 * np.ptp(every.effect))
    for name, (each, _) in found.items():
        assert f"{name} {np.expm1(each.effect[0]):+.0%} delay" in explorer.status.value
    low, high = np.expm1(oracle.effect[1:])
    assert f"forks {np.expm1(oracle.effect[0]):+.0%} ({low:+.0%} to {high:+.0%})" in explorer.status.value
    (head,) = explorer.page.comparisons  # what the forks found of the knob's ends, judged by their interval
    assert head.now == pytest.approx(np.exp(oracle.mean[-1]))
    assert head.before == pytest.approx(np.exp(oracle.mean[0]))
    assert head.names == ("thresholds 1e+06", "thresholds 1000")
    assert head.main in explorer.status.value
    assert (head.kind == "less") == (oracle.effect[2] < 0 and head.value >= 1.03)
    bars = explorer.board.drawings["answers"].data
    assert list(bars[0]["y"]) == [pair[0].effect[0] for pair in found.values()]
    assert bars[1]["error_y"]["array"][0] == pytest.approx(oracle.effect[2] - oracle.effect[0])
    assert oracle.effect[2] > oracle.effect[0]
    before = explorer.status.value
    explorer.knobs["coin"].value = 1.0
    assert explorer.status.value != before
    assert not explorer.error.outputs
