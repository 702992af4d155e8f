"""Why the average JCT changed: shares by hand, laws that shares obey, and what a decision says."""

import itertools
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.autosched import Space, Tuner, attach, true_forecast, why
from gpuschedlab.autosched.attribution import EXACT, PARTS, jct_parts, shapley
from gpuschedlab.autosched.decision import Decision
from gpuschedlab.autosched.tuned_loops import Loops
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.cli.progress import Progress
from gpuschedlab.errors import EstimatorError

HOUR = 3600.0
DAY = 86_400.0
ONE, TWO = lab.Cluster.homogeneous(1, 1), lab.Cluster.homogeneous(1, 2)


def share_of(found, cause: str) -> float:
    """Share of one cause (s); 0 of one that is the same on both sides."""
    return float(found.shares[found.causes.index(cause)].sum()) if cause in found.causes else 0.0


def jobs(*rows):
    """Trace of jobs of one GPU: name, submission, duration."""
    return pl.DataFrame(rows, schema=["job_id", "submit", "duration"], orient="row").with_columns(gpus=1.0)


def week(seed: int, load: float = 1.0, days: float = 1.0, count: int = 150) -> pl.DataFrame:
    found = lab.generate("venus", days=days, jobs=count, load=load, cluster_gpus=32, rng=seed)
    return found.filter(pl.col("gpus") <= 16)


def value_of(formula):
    return lambda on: np.array([formula(*on)], float)


# --- shares


def test_shares_of_a_sum_are_its_terms():
    shares, error = shapley(value_of(lambda a, b: 2 * (1 + 4 * a) + 3 * (2 - 5 * b)), 2)
    assert (shares.ravel().tolist(), error.tolist()) == ([8, -15], [0, 0])


def test_a_product_is_divided_evenly():
    """Y = ab from (0, 0) to (1, 1): one at a time says 0 and 0."""
    shares, _ = shapley(value_of(lambda a, b: a * b), 2)
    assert shares.ravel().tolist() == [0.5, 0.5]


def test_shares_of_every_order_are_their_mean():
    """The definition itself, for a game of four that has no form."""
    table = dict(zip(itertools.product((False, True), repeat=4), np.random.default_rng(0).random((16, 2)), strict=True))
    found = np.zeros((4, 2))
    for order in itertools.permutations(range(4)):
        for k, i in enumerate(order):
            before = tuple(j in order[:k] for j in range(4))
            found[i] += table[tuple(j in order[: k + 1] for j in range(4))] - table[before]
    assert shapley(table.get, 4)[0] == pytest.approx(found / 24, abs=1e-14)


def test_of_many_causes_orders_are_drawn():
    """Eight in a row that act in pairs: half for the ends, 1 for the others; they add up, and lie in their intervals."""
    count = EXACT + 2
    asked = []

    def value(on):
        asked.append(on)
        return np.array([sum(a and b for a, b in itertools.pairwise(on)), 0.0])

    shares, error = shapley(value, count, rng=0)
    assert shares.sum(axis=0) == pytest.approx([count - 1, 0], abs=1e-12)
    assert len(asked) == len({*asked}) <= 2**count
    assert (error > 0.02).all()
    assert (error < 0.15).all()
    assert (np.abs(shares[:, 0] - [0.5, *[1] * (count - 2), 0.5]) < 2 * error).all()
    assert shapley(value_of(lambda *on: sum(on)), count)[1] == pytest.approx(0, abs=1e-12)


# --- a change


def test_a_second_gpu_and_a_longer_job_by_hand():
    """One GPU: 10 and 15 s; a second saves b's wait of 5 s; b of 20 s instead of 10 costs 10 s, whether it waits or not."""
    before = lab.Scenario(jobs(("a", 0.0, 10.0), ("b", 5.0, 10.0)), ONE)
    after = lab.Scenario(jobs(("a", 0.0, 10.0), ("b", 5.0, 20.0)), TWO)
    found = why((before, lab.Fifo()), (after, lab.Fifo()))
    assert (found.before.tolist(), found.after.tolist()) == ([2.5, 0, 0, 10], [0, 0, 0, 15])
    rows = dict(zip(found.causes, found.shares.tolist(), strict=True))
    assert rows == {"mix": [0, 0, 0, 5], "nodes": [-2.5, 0, 0, 0]}
    assert found.runs == 4
    assert found.sentence == (
        "Average JCT 0.003 -> 0.004 h (+0.001 h): mix +0.001 h (work +0.001 h), nodes -0.001 h (queueing -0.001 h)."
    )


def test_four_parts_of_a_jct_by_hand():
    """At 50 s two alike jobs, one row, have 50 s to run; they make way from 60 to 80 s, and restart for 10 s."""
    rows = [("long", 0.0, 100.0, 2.0), ("short", 60.0, 20.0, 1.0)]
    trace = pl.DataFrame(rows, schema=["job_id", "submit", "duration", "jobs"], orient="row").with_columns(gpus=2.0)
    simulation = lab.Simulation(lab.Scenario(trace, TWO, delays=lab.Delays(restart=10.0)), lab.Srtf())
    simulation.advance(50.0)
    probe = Probe(lab.Scenario.of(simulation), lab.Srtf(), forecast=true_forecast(simulation, DAY))
    assert jct_parts(probe, lab.Srtf()) == pytest.approx([2 * 20 / 3, 2 * 10 / 3, 0, (2 * 50 + 20) / 3])
    assert jct_parts(probe, lab.Srtf()).sum() == pytest.approx(probe(lab.Srtf()).value, abs=1e-9)


def test_a_slow_gpu_is_slowdown():
    """Half the speed: a job of 10 s takes 20; the one that waits for it waits 20."""
    table = [{"model": "m", "gpu_type": "v100", "n_gpus": 1, "progress": np.inf, "rate": 0.5}]
    trace = jobs(("a", 0.0, 10.0), ("b", 0.0, 10.0)).with_columns(model=pl.lit("m"), target=10.0)
    plain, slow = (lab.Scenario(trace, ONE, speeds=s) for s in (None, lab.Speeds.from_frame(pl.DataFrame(table))))
    found = why((plain, lab.Fifo()), (slow, lab.Fifo()))
    assert found.causes == ("speeds",)
    assert found.shares.ravel().tolist() == [5, 0, 10, 0]


def test_jobs_in_the_system_are_a_cause_of_their_own():
    """The same job comes 10 s after the beginning; on one side another still has 50 s to run. Clocks differ."""
    empty = (lab.Scenario(jobs(("b", 10.0, 10.0)), ONE), lab.Fifo())
    busy = lab.Simulation(lab.Scenario(jobs(("a", 0.0, 100.0), ("b", 60.0, 10.0)), ONE), lab.Fifo())
    busy.advance(50.0)
    found = why(empty, (lab.Scenario.of(busy), lab.Fifo(), true_forecast(busy, DAY)))
    assert found.before.sum() == 10
    assert found.after.sum() == (50 + 50) / 2
    assert (share_of(found, "backlog"), share_of(found, "arrivals"), share_of(found, "mix")) == (40, 0, 0)


def test_more_jobs_are_arrivals_and_repeat_the_others_evenly():
    """Two jobs become four, of the same two kinds: nothing is left for the mix, though names and rows differ."""
    before = lab.Scenario(jobs(("a", 0.0, 10.0), ("b", 100.0, 30.0)), ONE)
    rows = [("c", 0.0, 10.0), ("d", 5.0, 10.0), ("e", 100.0, 30.0), ("f", 100.0, 30.0)]
    found = why((before, lab.Fifo()), (lab.Scenario(jobs(*rows), ONE), lab.Fifo()))
    assert share_of(found, "mix") == 0
    assert share_of(found, "arrivals") == pytest.approx((10 + 15 + 30 + 60) / 4 - 20)


@pytest.fixture(scope="module")
def change():
    """A week later: other jobs, more of them, a node less, other knobs."""
    delays = lab.Delays(restart=60.0)
    scenarios = (
        lab.Scenario(week(seed, load), lab.Cluster.homogeneous(nodes, 8), delays=delays)
        for seed, load, nodes in ((0, 0.9, 4), (1, 1.2, 3))
    )
    return [*zip(scenarios, (lab.Tiresias(), lab.Tiresias(starve_limit=2.0, thresholds=(3600.0,))), strict=True)]


def test_shares_add_up_to_the_change(change):
    found = why(*change)
    assert set(found.causes) == {"arrivals", "mix", "nodes", "thresholds_1", "starve_limit"}
    assert found.runs == 2**5
    assert found.shares.sum(axis=0) == pytest.approx(found.after - found.before, abs=1e-9)
    for end, (scenario, policy) in zip((found.before, found.after), change, strict=True):
        assert end.sum() == pytest.approx(scenario.run(policy).summary()["jct_mean"], abs=1e-9)
    back = why(*change[::-1])
    assert [share_of(back, c) for c in found.causes] == pytest.approx(
        [-share_of(found, c) for c in found.causes], abs=1e-6
    )


@pytest.mark.parametrize("seed", range(8))
def test_what_is_the_same_has_no_share(change, seed):
    """Nodes that are equal but not identical, simulated in every combination with arrivals and a knob: exactly 0."""
    (scenario, policy), twin = change[0], lab.Cluster.homogeneous(4, 8)
    later = week(10 + seed)

    def value(on):
        arrivals, nodes, knob = on
        changed = scenario.replace(
            trace=later if arrivals else scenario.trace, cluster=twin if nodes else scenario.cluster
        )
        return jct_parts(Probe(changed, policy), replace(policy, pack_limit=0.0) if knob else policy)

    shares, _ = shapley(value, 3)
    assert shares[1].tolist() == [0, 0, 0, 0]
    assert np.abs(shares[0]).max() > 0
    same = why((scenario, policy), (scenario.replace(trace=later, cluster=twin), policy))
    assert share_of(same, "nodes") == 0
    assert same.runs == 4


def test_a_threshold_of_a_queue_that_is_not_there_has_no_share(change):
    scenario, policy = change[0]
    space = Space(lab.Tiresias(), ["queues", "thresholds", "starve_limit"])
    names = [axis.name for axis in space.axes]
    probe = Probe(scenario, policy)
    before, after = (np.array([0.25, u, u + 0.1, u + 0.2, 2 * u, v]) for u, v in ((0.3, 0.0), (0.45, 0.02)))
    assert names.index("thresholds_4") == 4
    shares, _ = shapley(lambda on: jct_parts(probe, space.decode(np.where(on, after, before))), len(names))
    assert shares[4].tolist() == [0, 0, 0, 0]
    assert np.abs(shares[1]).max() > 1


def test_two_classes_are_one_cause(change):
    (scenario, _), _ = change
    found = why((scenario, lab.Fifo()), (scenario, lab.Srtf()))
    assert found.causes[0] == "policy"
    assert found.changes[0] == ("Fifo", "Srtf")
    assert share_of(found, "policy") == pytest.approx(found.after.sum() - found.before.sum(), abs=1e-9)
    assert share_of(found, "policy") < 0


def test_a_table_and_a_page(change):
    found = why(*change)
    table = found.table
    assert table.columns == ["cause", "from", "to", "share", "error", *PARTS]
    assert table["share"].abs().is_sorted(descending=True)
    assert table.filter(cause="starve_limit").rows()[0][1:3] == ("0", "2")
    for shown in (found.sentence, found._repr_html_(), repr(found)):
        assert "starve limit" in shown
        assert "starve_limit" not in shown


def test_what_cannot_be_compared_is_named(change):
    with pytest.raises(EstimatorError, match=r"why: found DataFrame; expected \(scenario, policy\)"):
        why(change[0], (change[0][0].trace, lab.Tiresias()))


# --- a decision


@pytest.fixture(scope="module")
def switched():
    """A decision that leaves a configuration that makes many jobs wait."""
    scenario = lab.Scenario(week(3, 1.3, 2, 400), lab.Cluster.homogeneous(4, 8), delays=lab.Delays(restart=60.0))
    simulation = scenario.simulation(lab.Tiresias(thresholds=(1e8,)))
    simulation.advance(30 * HOUR)
    loop = attach("selftune", simulation, tuner=Tuner(12))
    return loop.decide("day")


def test_a_decision_explains_the_knobs_that_changed(switched):
    """On the futures that judged, not the one that was searched."""
    assert switched.switched
    assert "why" not in vars(switched)  # nothing was simulated for it yet
    kept = switched.record()
    found = switched.why
    for side, policy in ((found.before, switched.before), (found.after, switched.policy)):
        assert side.sum() == pytest.approx(np.mean([probe(policy).value for probe in switched.probes]), abs=1e-9)
    assert found.shares.sum() == pytest.approx(found.after.sum() - found.before.sum(), abs=1e-9)
    assert switched.record() == kept


def test_its_sentence_is_its_numbers(switched):
    """How many knobs, from what to what; one gain, that of the futures that judge; and each share by a word."""
    sentence = switched.sentence
    rows = switched.why.table.to_dicts()
    sliders = {axis.name: axis.words for axis in Space(switched.before).axes}
    assert "thresholds_1" not in sentence
    assert sentence.startswith(f"{len(rows)} knobs: {sliders[rows[0]['cause']]} {rows[0]['from']} -> {rows[0]['to']}, ")
    old, new, gain = map(
        float, re.search(r"average JCT ([\d.]+) -> ([\d.]+) h on 1 future \(([\d.]+) times\): ", sentence).groups()
    )
    assert (old, new) == pytest.approx((switched.why.before.sum() / HOUR, switched.why.after.sum() / HOUR), abs=6e-3)
    assert gain == pytest.approx(switched.gain, abs=6e-3)
    for row in rows:
        word = "saves" if row["share"] < 0 else "costs" if row["share"] > 0 else "changes nothing,"
        assert f"{sliders[row['cause']]} {word} {abs(row['share']) / HOUR:.3f} h" in sentence
    assert "act only together" not in sentence


def test_shares_that_cancel_are_said_to(switched):
    """Two knobs of which one saves what the other costs: a reader is not left with hours that never were."""
    table = pl.DataFrame(
        {"cause": ["a", "b"], "from": ["1", "1"], "to": ["2", "2"], "share": [-80 * HOUR, 79.3 * HOUR]}
    )
    why = SimpleNamespace(table=table, before=np.array([3.3 * HOUR]), after=np.array([2.6 * HOUR]))
    found = replace(switched)
    vars(found)["why"] = why
    assert "average JCT 3.30 -> 2.60 h on 1 future" in found.sentence
    assert found.sentence.endswith("these knobs act only together, so that no part of it is the share of one.")
    assert "80.0" not in found.sentence


def test_the_interval_of_a_gain_is_in_the_sentence(switched):
    policy = switched.policy
    probe = switched.probes[0]
    several = replace(switched, gain=1.06, again={policy: [0.05, 0.07]}, probes=(probe, probe))
    low, high = several.interval
    assert f"h on 2 futures (1.06 times; 90 %: {low:.2f} to {high:.2f})" in several.sentence
    assert several.why.before.sum() == pytest.approx(switched.why.before.sum())


def test_the_command_says_it(switched, capsys):
    loop = SimpleNamespace(journal=SimpleNamespace(records=[]), steps=lambda _: [switched], decisions=[switched])
    loops = SimpleNamespace(_attached=lambda *_: loop, progress=Progress(sys.stdout), _headed=True, end=HOUR)
    loops.space = switched.tuning.space
    Loops._loop(loops, "selftune", SimpleNamespace(policy=switched.before))
    row, sentence = capsys.readouterr().out.splitlines()
    assert "switched: " in row
    assert sentence == f"  {switched.sentence}"


def test_a_decision_from_a_journal_has_no_forecast(switched):
    kept = Decision.of(switched.record(), switched.tuning.space)
    assert (kept.policy, kept.sentence) == (switched.policy, "")
    with pytest.raises(EstimatorError, match="found no forecast"):
        _ = kept.why
