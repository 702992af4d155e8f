"""CausalNex, mended: structure learning, a fitted network, and interventions worked out by hand."""

import itertools
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from gpuschedlab._extras import has
from gpuschedlab.autosched.causal import causalnex as cn
from gpuschedlab.errors import EstimatorError, MissingExtra

pytestmark = pytest.mark.skipif(not has("causalnex"), reason="causalnex is not installed; make installs it")

# A season decides both who takes the drug and who recovers, so seeing it taken is not the same as giving it.
COUNTS = {  # (season, drug): people who recovered, and who did not
    (0, "no"): (60, 40),
    (0, "yes"): (320, 80),
    (1, "no"): (80, 320),
    (1, "yes"): (40, 60),
}
EDGES = [("season", "drug"), ("season", "recovered"), ("drug", "recovered")]


def people() -> pl.DataFrame:
    rows = [
        {"season": season, "drug": drug, "recovered": recovered}
        for (season, drug), counts in COUNTS.items()
        for recovered, count in zip((True, False), counts, strict=True)
        for _ in range(count)
    ]
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def network():
    return cn.fit_network(EDGES, people(), prior=None)


def by_hand(drug: str) -> float:
    """Back-door adjustment: sum over seasons of P(season) P(recovered | season, drug)."""
    total = sum(sum(counts) for counts in COUNTS.values())
    share = {s: sum(sum(c) for (season, _), c in COUNTS.items() if season == s) / total for s in (0, 1)}
    return sum(share[s] * COUNTS[s, drug][0] / sum(COUNTS[s, drug]) for s in (0, 1))


def test_notears_finds_a_known_linear_structure():
    rng = np.random.default_rng(7)
    a, d = rng.normal(size=(2, 2_000))
    b = 1.5 * a + rng.normal(size=2_000)
    c = -2.0 * b + 0.8 * d + rng.normal(size=2_000)
    found = cn.learn_structure(pl.DataFrame({"a": a, "b": b, "c": c, "d": d}), threshold=0.3)
    weights = {(u, v): w for u, v, w in found.edges.data("weight")}
    assert set(weights) == {("a", "b"), ("b", "c"), ("d", "c")}
    assert weights["a", "b"] == pytest.approx(1.5, abs=0.1)
    assert weights["b", "c"] == pytest.approx(-2.0, abs=0.1)
    assert weights["d", "c"] == pytest.approx(0.8, abs=0.1)


def test_notears_keeps_away_from_forbidden_edges_and_keeps_lone_variables():
    rng = np.random.default_rng(1)
    a, lone = rng.normal(size=(2, 500))
    frame = pl.DataFrame({"a": a, "b": 2 * a + rng.normal(size=500), "lone": lone})
    found = cn.learn_structure(frame, threshold=0.3, tabu_edges=[("a", "b")])
    assert set(found.edges) == {("b", "a")}
    assert set(found.nodes) == {"a", "b", "lone"}
    assert set(cn.learn_structure(frame, threshold=0.3, lasso=0.1, tabu_child_nodes=["a"]).edges) == {("a", "b")}


def test_notears_wants_finite_numbers():
    for values in (["x", "y"], [1.0, None], [1.0, float("nan")], [1.0, float("inf")]):
        with pytest.raises(EstimatorError, match="column 'b'"):
            cn.learn_structure(pl.DataFrame({"a": [1.0, 2.0], "b": values}))


def test_the_fitted_network_holds_the_shares_of_the_data(network):
    for (season, drug), (yes, no) in COUNTS.items():
        given = network.cpds["recovered"].T.xs((drug, season), level=("drug", "season"))
        assert given[True].item() == pytest.approx(yes / (yes + no))
    assert network.cpds["season"].loc[1].item() == pytest.approx(0.5)


def test_a_prior_fills_what_was_never_seen():
    rows = pl.DataFrame({"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]})
    fitted = cn.fit_network([("a", "b")], rows, prior="K2")
    assert fitted.cpds["b"].loc[0].tolist() == pytest.approx([3 / 5, 1 / 3])


def test_do_intervention_is_adjustment_and_not_observation(network):
    engine = cn.load().InferenceEngine(network)
    before = engine.query()["recovered"][True]
    seen = engine.query({"drug": "yes"})["recovered"][True]
    assert before == pytest.approx(0.5)
    assert seen == pytest.approx(360 / 500)
    engine.do_intervention("drug", {"yes": 1.0, "no": 0.0})
    done = engine.query()
    assert done["recovered"][True] == pytest.approx(by_hand("yes")) == pytest.approx(0.6)
    assert done["season"][1] == pytest.approx(0.5)
    engine.reset_do("drug")
    assert engine.query()["recovered"][True] == pytest.approx(before)
    assert engine.query({"drug": "yes"})["recovered"][True] == pytest.approx(seen)


@pytest.mark.parametrize("drug", ["yes", "no"])
def test_do_query_is_adjustment(network, drug):
    found = cn.do_query(network, {"drug": drug})
    assert found["recovered"][True] == pytest.approx(by_hand(drug))
    assert found["drug"][drug] == pytest.approx(1.0)
    assert found["season"] == pytest.approx({0: 0.5, 1: 0.5})
    mixed = cn.do_query(network, {"drug": {"yes": 0.25, "no": 0.75}})
    assert mixed["recovered"][True] == pytest.approx(0.25 * by_hand("yes") + 0.75 * by_hand("no"))


def test_do_query_observes_under_an_intervention(network):
    found = cn.do_query(network, {"drug": "no"}, {"season": 1})
    assert found["recovered"][True] == pytest.approx(80 / 400)


def test_do_query_equals_enumeration_when_the_graph_falls_apart():
    rng = np.random.default_rng(3)
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "e")]
    frame = pl.DataFrame({name: rng.integers(0, 2, 400) for name in "abcde"})
    fitted = cn.fit_network(edges, frame)
    for given in ({"e": 1}, {"b": 0, "c": 1}, {"a": 1, "d": 0}, dict.fromkeys("abcde", 1), {}):
        expected = enumerate_all(fitted, edges, given)
        found = cn.do_query(fitted, given)
        for name in "abcde":
            assert found[name] == pytest.approx(expected[name]), (given, name)


def enumerate_all(fitted, edges, given):
    """Truncated factorisation by summing over all states."""
    marginal = {name: {0: 0.0, 1: 0.0} for name in "abcde"}
    for states in itertools.product((0, 1), repeat=5):
        world = dict(zip("abcde", states, strict=True))
        p = 1.0
        for name in "abcde":
            if name in given:
                p *= world[name] == given[name]
                continue
            table = fitted.cpds[name]
            key = tuple(world[parent] for parent in table.columns.names if parent) or ("",)
            p *= float(table.loc[world[name]][key if len(key) > 1 else key[0]])
        for name, state in world.items():
            marginal[name][state] += p
    return marginal


def test_wrong_graphs_and_states_are_told(network):
    frame = pl.DataFrame({name: [0, 1] for name in ("a", "b", "c", "d", "not ok")})
    for edges in ([("a", "x")], [("a", "not ok")], [], [("a", "b"), ("b", "a")], [("a", "b"), ("c", "d")]):
        with pytest.raises(EstimatorError, match="fit_network: .*expected|Expected"):
            cn.fit_network(edges, frame)
    for given in (
        {"drug": "maybe"},
        {"pill": "yes"},
        {"drug": {"yes": 0.7, "no": 0.7}},
        {"drug": {"maybe": 1.0}},
    ):
        with pytest.raises(EstimatorError, match="do_query: found"):
            cn.do_query(network, given)
    with pytest.raises(EstimatorError, match="do_query: found season = 2"):
        cn.do_query(network, {"drug": "yes"}, {"season": 2})


@pytest.mark.skipif(has("torch"), reason="torch is installed, so nothing stands in for it")
def test_nothing_pretends_to_be_torch():
    code = (
        "import sys, gpuschedlab.autosched.causal.causalnex as cn; cn.load(); assert 'torch' not in sys.modules\n"
        "from causalnex.structure import DAGRegressor\n"
        "try: DAGRegressor()\n"
        "except ImportError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "CausalNex's DAG estimators need torch: pip install torch"
    assert told.stderr == ""


def test_what_is_missing_is_told_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="^causal networks need pandas: .*, then pip install --no-deps"):
        cn.load.__wrapped__()
