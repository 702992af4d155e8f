"""Effects on systems that the estimators were not built on: right, with an interval, or refused by name."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab._extras import has
from gpuschedlab.autosched import CausalGraph, CausalModel, Layers, Log, full_graph, identify
from gpuschedlab.autosched.causal.adjustment import adjusted, calmed, spline
from gpuschedlab.errors import EstimatorError

needs_causalnex = pytest.mark.skipif(not has("causalnex"), reason="causalnex is not installed; make installs it")
LAYERS = Layers(("knob",), ("wait", "restarts"), ("reward",), context=("load",))
GRAPH = CausalGraph(
    LAYERS,
    (
        *(("load", to) for to in ("knob", "wait", "restarts")),
        *(("knob", to) for to in ("wait", "restarts")),
        *((metric, "reward") for metric in ("wait", "restarts")),
    ),
)
TRUE = -0.546


def linear(seed, rows=1000, hidden=0.0):
    """A knob that follows the load, and two metrics; .2 -> .8 of the knob changes the reward by -.546."""
    draw = np.random.default_rng(seed).standard_normal
    load = draw(rows)
    other = hidden * draw(rows)
    knob = 0.5 + 0.22 * load + 0.12 * draw(rows) + 0.2 * other
    wait = load - 0.6 * knob + 0.1 * draw(rows)
    restarts = 0.5 * load + 0.5 * knob + 0.1 * draw(rows)
    reward = wait - 0.62 * restarts + other + 0.1 * draw(rows)
    columns = {"load": load, "knob": knob, "wait": wait, "restarts": restarts, "reward": reward}
    return pl.DataFrame(columns)


def change(model, knob="knob", goal="reward", low=0.2, high=0.8):
    return model.do({knob: high})[goal].mean[0] - model.do({knob: low})[goal].mean[0]


def test_do_is_right_on_a_linear_system_with_a_confounder():
    """Trees alone say -.29, having split on the load first."""
    found = [change(CausalModel(GRAPH).fit(linear(seed))) for seed in range(6)]
    assert np.mean(found) == pytest.approx(TRUE, abs=0.05)
    assert found[0] == pytest.approx(TRUE, abs=0.05)


def test_an_effect_has_an_interval_that_holds_it():
    """Of forty systems; of the naive kind, on no columns, none does."""
    holds = []
    naive = []
    halves = []
    for seed in range(40):
        rows = linear(seed)
        x = rows.select("load").to_numpy()
        a = rows["knob"].to_numpy()
        y = rows["reward"].to_numpy()
        for columns, seen in ((x, holds), (x[:, :0], naive)):
            found = adjusted(columns, a, y, (0.2, 0.8))
            seen.append(abs(found.effect - TRUE) <= found.half)
            halves.append(found.half)
    assert sum(holds) >= 36
    assert np.median(halves) < 0.08
    assert not any(naive)


def test_dead_knobs_do_not_hide_the_one_that_acts():
    """Twenty knobs, eighteen of them dead; the first changes the reward by .405."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        k = rng.random((500, 20))
        load = rng.standard_normal(500)
        wait = load + 0.8 * k[:, 0] - 0.5 * k[:, 1] + 0.4 * rng.standard_normal(500)
        restarts = 0.7 * load - 0.3 * k[:, 0] + 0.6 * k[:, 1] + 0.4 * rng.standard_normal(500)
        reward = 0.6 * wait - 0.65 * restarts + 0.3 * rng.standard_normal(500)
        names = [f"k{i}" for i in range(20)]
        rows = pl.DataFrame(k, schema=names).with_columns(load=load, wait=wait, restarts=restarts, reward=reward)
        layers = Layers(tuple(names), ("wait", "restarts"), ("reward",), context=("load",))
        found.append(change(CausalModel(full_graph(layers)).fit(rows), "k0"))
    assert found == pytest.approx([0.405] * 4, abs=0.08)


@needs_causalnex
def test_causalnex_refuses_where_its_states_leave_confounding():
    """Three states of the load: within one the knob still follows it, and the sign would be wrong."""
    model = CausalModel(GRAPH, backend="causalnex").fit(linear(0))
    with pytest.raises(EstimatorError, match="found 3 states of load, which leave confounding inside a state"):
        model.do({"knob": 0.8})
    with pytest.raises(EstimatorError, match="inside a state"):
        model.effect("knob", 0.2, 0.8)
    tossed = linear(0).with_columns(knob=pl.Series(np.random.default_rng(1).random(1000)))
    tossed = tossed.with_columns(wait=pl.col("load") - pl.col("knob"), restarts=pl.col("load") * 0.1)
    tossed = tossed.with_columns(reward=pl.col("wait") - pl.col("restarts"))
    assert change(CausalModel(GRAPH, backend="causalnex").fit(tossed)) < 0


def test_a_backend_that_differs_by_more_than_the_interval_is_remarked_on():
    model = CausalModel(GRAPH).fit(linear(1))
    assert model.effect("knob", 0.2, 0.8).word == ""
    model.core.do = lambda interventions, given: dict.fromkeys(LAYERS.names, (interventions["knob"],) * 3)
    found = model.effect("knob", 0.2, 0.8)
    assert found.do == pytest.approx(0.6)
    assert found.word == "do of backend 'boosted' says +0.6, outside the interval: believe neither"


def test_an_effect_is_refused_by_name():
    model = CausalModel(GRAPH).fit(linear(0))
    for given, problem in (
        (("wait", 0.0, 1.0, "knob"), "no path from wait to knob"),
        (("mood", 0.0, 1.0), "found 'mood'"),
        (("knob", 0.2, 8.0), "found 0.2 and 8; expected values that were seen"),
    ):
        with pytest.raises(EstimatorError, match=problem):
            model.effect(*given)
    follows = linear(0).with_columns(knob=0.5 + 0.22 * pl.col("load"))
    with pytest.raises(EstimatorError, match="load held fixed: what is held fixed leaves 0.0% of its variance"):
        CausalModel(GRAPH).fit(follows).effect("knob", 0.2, 0.8)
    two = linear(0).with_columns(knob=(pl.col("load") > 0).cast(pl.Float64))
    with pytest.raises(EstimatorError, match="0 rows have 0 in a quarter of what is held fixed"):
        CausalModel(GRAPH).fit(two).effect("knob", 0.0, 1.0)
    with pytest.raises(EstimatorError, match="30 rows are too few"):
        CausalModel(GRAPH).fit(linear(0, 30)).effect("knob", 0.4, 0.6)
    with pytest.raises(EstimatorError, match="no path from load to knob"):
        identify([("knob", "reward"), ("load", "reward")], "load", "knob", ["reward"])


def test_what_the_terms_do_not_fit_is_refused():
    """A wave that four knots do not follow, and that trees do."""
    rng = np.random.default_rng(0)
    x = rng.random((1000, 1))
    a = rng.integers(0, 2, 1000) * 1.0
    wave = np.sin(25 * x[:, 0]) + a + 0.1 * rng.standard_normal(1000)
    assert "the model does not fit: trees explain" in adjusted(x, a, wave, (0.0, 1.0)).refusal
    assert adjusted(x, a, 2 * x[:, 0] + a + 0.1 * rng.standard_normal(1000), (0.0, 1.0)).refusal == ""


def test_the_strength_is_that_of_a_hidden_cause_that_explains_the_effect_away():
    """By hand: with no columns and a knob of two values, from the t of the difference of two means (Cinelli and Hazlett, 2020)."""
    rng = np.random.default_rng(0)
    a = np.repeat((0.0, 1.0), 200)[rng.permutation(400)]
    y = 0.5 * a + rng.standard_normal(400)
    found = adjusted(np.empty((400, 0)), a, y, (0.0, 1.0))
    error = np.sqrt(sum(y[a == v].var() / 200 for v in (0, 1)))
    f = (y[a == 1].mean() - y[a == 0].mean()) / error / np.sqrt(398)
    assert found.effect == pytest.approx(y[a == 1].mean() - y[a == 0].mean())
    assert found.mean == pytest.approx([y[a == v].mean() for v in (0, 1)])
    assert found.strength == pytest.approx((np.sqrt(f**4 + 4 * f**2) - f**2) / 2, rel=0.02)
    hidden = [
        CausalModel(GRAPH).fit(linear(s, hidden=h)).effect("knob", 0.2, 0.8).strength for s in (0,) for h in (0, 1)
    ]
    assert all(0 < strength < 1 for strength in hidden)


def test_heavy_tails_are_taken_as_logarithms():
    z = np.random.default_rng(0).standard_normal(500)
    assert calmed(np.exp(z))(np.exp(z)) == pytest.approx(z)
    assert calmed(z)(z) == pytest.approx(z)
    counts = np.floor(np.exp(z))
    assert np.isfinite(calmed(counts)(np.array([-1.0, 0.0, 3.0]))).all()


def test_a_spline_bends_between_its_knots_alone():
    """A line beyond the outer knots, and through values of few kinds."""
    seen = np.linspace(0, 1, 101)
    terms = spline(np.linspace(1.0, 2.0, 5), seen)
    assert np.diff(terms, n=2, axis=0) == pytest.approx(0.0, abs=1e-9)
    assert spline(seen, np.array([0.0, 1.0])).shape == (101, 1)


# --- what a log can say


def log_of(effect=-1.0, rows=600, seed=0, **columns) -> Log:
    """Two-hourly rows: the load has a heavy tail, the operator follows its logarithm, and a coin decides a fifth."""
    rng = np.random.default_rng(seed)
    load = np.exp(rng.standard_normal(rows))
    knob = np.where(
        rng.random(rows) < 0.2, rng.integers(0, 2, rows), np.log(load) + 0.5 * rng.standard_normal(rows) > 0
    )
    objective = 2 * np.log(load) + effect * knob + 0.5 * rng.standard_normal(rows)
    time = 7200.0 * np.arange(rows)
    zero = np.zeros(rows)
    found = {"time": time, "seen": time, "knob": knob * 1.0, "load": load, "came": zero, "count": zero}
    found |= {"objective": objective, "queueing": objective + 1, "jobs": zero + 5, "open_jobs": zero}
    return Log(pl.DataFrame(found).with_columns(**columns), "knob", 7200.0 * rows)


def test_the_default_holds_a_heavy_load_fixed():
    """Ridge on the load itself is off."""
    from scenes.estimators import asked

    found = [log_of(seed=seed).estimate(adjust=("load",)) for seed in range(20)]
    holds = [low <= -1.0 <= high for _, low, high in (e.effect for e in found)]
    assert sum(holds) >= 17
    assert all(e.sure and e.best == 1.0 for e in found)
    ridge = [asked(log_of(seed=seed), "ridge", ("load",), interval=False)[1][0] for seed in range(5)]
    assert abs(np.mean(ridge) + 1.0) > 3 * abs(np.mean([e.effect[0] for e in found]) + 1.0)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"adjust": ("load", "objective")}, "the outcome 'objective' among the columns that are held fixed"),
        ({"method": "backdoor"}, "method 'backdoor' without a graph"),
        ({"method": "backdoor", "graph": [("load", "knob"), ("load", "objective")]}, "no path from knob to objective"),
        (
            {"method": "backdoor", "graph": [("knob", "objective"), ("objective", "knob")]},
            "found a circle in the graph",
        ),
    ],
)
def test_a_question_that_cannot_be_answered_is_an_error(given, problem):
    with pytest.raises(EstimatorError, match=problem):
        log_of().estimate(**given)


def test_a_log_that_cannot_answer_is_an_error_or_says_so(tmp_path):
    with pytest.raises(EstimatorError, match="found knob 1 in all 600 rows; expected two values or more"):
        log_of(knob=pl.lit(1.0)).estimate()
    with pytest.raises(EstimatorError, match="found no row with all of knob"):
        log_of(knob=pl.lit(None, pl.Float64)).estimate()
    day = log_of(rows=12).estimate(adjust=("load",))
    assert np.isnan(day.effect[1:]).all()
    assert not day.sure
    assert "12 rows are too few" in day._repr_html_()
    alone = log_of(knob=(pl.col("load") > 1).cast(pl.Float64)).estimate(adjust=("load",))
    assert alone.best is None
    assert not alone.sure
    assert "the log names no best" in alone._repr_html_()
    same = log_of().estimate(outcome="jobs", adjust=("load",))
    assert same.refusal == "jobs is 5 in all rows"
    assert same.best is None
    wave = log_of(objective=(3 * pl.col("load")).sin() * 5).estimate(adjust=("load",))
    assert "the model does not fit" in wave.refusal
    assert wave.best is None


def test_a_column_that_is_no_number_is_named():
    words = log_of(load=pl.format("{} GPUs", "load"))
    with pytest.raises(EstimatorError, match="found column 'load' of String; expected numbers"):
        words.estimate()
    with pytest.raises(EstimatorError, match="found column 'load'; expected some of time"):
        Log(log_of().frame.drop("load"), "knob", 1e9).estimate(adjust=("came",))
    once = log_of().estimate(adjust=("load",)).effect
    assert log_of().estimate(adjust="load").effect == pytest.approx(once)
    assert log_of().estimate(adjust=("load", "load")).effect == pytest.approx(once)


def test_a_knob_of_any_value_is_not_cut_before_what_confounds_it_is_held_fixed():
    """Within a third the knob still follows the load: an effect of thirds is 14 % off, and sure."""
    holds = []
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        knob = np.log(log_of(seed=seed).frame["load"].to_numpy()) * 0.8 + rng.standard_normal(600)
        follows = log_of(seed=seed, knob=pl.Series(knob))
        objective = 1.5 * follows.frame["load"].log() - knob + 0.4 * pl.Series(rng.standard_normal(600))
        found = Log(follows.frame.with_columns(objective=objective), "knob", 1e9).estimate(adjust=("load",))
        assert len(found.values) == 3
        if found.sure:
            holds.append(found.effect[1] <= found.values[0] - found.values[-1] <= found.effect[2])
    assert len(holds) >= 10
    assert np.mean(holds) >= 0.8


def test_no_best_is_named_where_what_is_held_fixed_decides_the_value():
    """The load has nothing to do with it: the operator goes by the count alone."""
    count = pl.Series(np.random.default_rng(0).poisson(20, 600) * 1.0)
    found = log_of(count=count, knob=(count > 20).cast(pl.Float64)).estimate(adjust=("count",))
    assert found.refusal == "0 rows have 0 in a quarter of what is held fixed"
    assert found.best is None
    assert "the log names no best" in found._repr_html_()
    flat = log_of(load=pl.lit(1.0)).estimate("naive")  # a load that never changes takes nothing away
    assert flat.overlap["say"].all()


def test_rows_without_noise_have_an_effect():
    night = np.arange(400) % 2.0
    rows = pl.DataFrame({"knob": np.where(np.arange(400) % 5 == 0, 1 - night, night), "load": night})
    rows = rows.with_columns(wait=2 * pl.col("load") - pl.col("knob"), restarts=pl.col("load"))
    rows = rows.with_columns(reward=pl.col("wait") - pl.col("restarts"))
    found = CausalModel(GRAPH).fit(rows).effect("knob", 0.0, 1.0)
    assert (found.value, found.low, found.high) == pytest.approx((-1.0, -1.0, -1.0))
    assert found.strength == pytest.approx(1.0)
    assert found.word == ""


def test_words_say_what_an_estimate_is_of():
    later = log_of().estimate(adjust=("load", "queueing"))
    assert "queueing came after knob was set: what passes through it is not counted" in later.words
    nulls = log_of(knob=pl.when(pl.int_range(pl.len()) > 5).then("knob")).estimate(adjust=("load",))
    assert "6 of 600 rows do not hold all of knob, load, objective" in nulls.words
    many = log_of(knob=pl.col("knob") + pl.int_range(pl.len()) / 600).estimate(adjust=("load",))
    assert len(many.values) == 3
    assert many.values == pytest.approx(sorted(many.values))
    assert "knob has 600 values: the mean of each third is asked about" in many.words
    plain = log_of().estimate(adjust=("load",))
    assert plain.words == (
        f"a hidden cause of knob and objective that explains {plain.strength:.0%} of what is left of each would explain the effect away",
    )
