"""Logs and truths of the causal lab: the same seed, the same bytes; rows are runs; and what a world refuses."""

from dataclasses import replace

import numpy as np
import pytest

from autosched.lab.drawn_states import SET, drawn_graph, drawn_world
from gpuschedlab.autosched.lab.curve import Span
from gpuschedlab.autosched.lab.interval_log import COLUMNS, IntervalLog
from gpuschedlab.autosched.lab.outcomes import OUTCOMES
from gpuschedlab.autosched.lab.pools import Pools
from gpuschedlab.autosched.lab.sentences import Answers, change_words
from gpuschedlab.autosched.lab.truth import LEAST, Truth
from gpuschedlab.autosched.lab.world import IntervalWorld, knobs_offered
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import half_width
from gpuschedlab.policies import Fifo, Themis, Tiresias
from gpuschedlab.sim import Scenario

SMALL = IntervalWorld(jobs=50)


def test_a_log_that_grows_in_pieces_has_the_same_bytes():
    log = IntervalLog(SMALL, seed=2)
    counts = list(log.grow(10))
    assert counts == sorted(counts)
    assert counts[-1] == 10
    first = log.frame
    log.filled(20)
    whole = IntervalLog(SMALL, seed=2).filled(20)
    assert log.frame.equals(whole.frame)
    assert whole.frame[:10].equals(first)
    assert whole.frame.columns == list(COLUMNS)
    assert not IntervalLog(SMALL, seed=3).filled(10).frame.equals(first)


@pytest.mark.parametrize(("policy", "knob"), SET)
def test_a_row_is_what_a_run_says(policy, knob):
    """Of each policy and knob: time to finish, waiting and preemptions as the frames of `Scenario.run` have them."""
    world = SMALL.of(policy, knob)
    log = IntervalLog(world, seed=5).filled(2)
    load = float(np.exp(log.frame["load"][1]))
    part = Pools(world, (5, 1)).interval(1, load)
    scenario = Scenario(part.trace, world.cluster, delays=part.delays)
    jobs = scenario.run(world.at(world.value(log.frame["knob"][1]))).jobs
    took = jobs["end"] - jobs["submit"]
    assert log.frame["outcome"][1] == pytest.approx(np.log(took.mean() / jobs["duration"].mean()))
    assert log.frame["preempted"][1] == pytest.approx(np.log1p(jobs["preemptions"].mean()))
    assert scenario.summary()["load"] == pytest.approx(load)


def test_the_operator_follows_the_load():
    world = replace(SMALL, strictness=6.0, noise=0.0)
    strict = IntervalLog(world, seed=1).filled(20).frame
    order = strict.sort("load")["knob"].to_numpy()
    assert (np.diff(order) >= 0).all()
    assert order[-1] - order[0] > 1.0
    drawn = replace(SMALL, by_load=False)
    values = IntervalLog(drawn, seed=1).filled(40).frame
    assert abs(np.corrcoef(values["load"], values["knob"])[0, 1]) < 0.4


def test_the_truth_pairs_all_values_of_an_interval():
    values = SMALL.values(3)
    truth = Truth(SMALL, values, seed=1).filled(8)
    assert truth.table.shape == (8, 3)
    again = Truth(SMALL, values[[0, 2]], seed=1).filled(8)
    assert np.array_equal(truth.table[:, [0, 2]], again.table)
    difference = truth.table[:, 2] - truth.table[:, 0]
    span = truth.effect(0, 2)
    assert span.mean == pytest.approx(difference.mean())
    assert span.high - span.mean == pytest.approx(max(half_width(difference), LEAST))
    assert truth.half() == pytest.approx(np.maximum(half_width(truth.table), LEAST))


def test_a_truth_without_intervals_says_nothing():
    truth = Truth(SMALL, SMALL.values(2))
    assert np.isnan(truth.mean()).all()
    assert np.isnan(truth.filled(1).half()).all()
    assert np.isfinite(truth.mean()).all()
    assert np.isnan(truth.effect(0, 1).low)


def test_loads_of_the_truth_fill_their_range():
    truth = Truth(SMALL, [3.5], seed=4)
    shares = np.sort([np.log(truth._load(number) / 0.3) / np.log(2.0 / 0.3) for number in range(60)])
    assert np.abs(shares - (np.arange(60) + 0.5) / 60).max() < 2 / 60


@pytest.mark.parametrize("objective", OUTCOMES)
def test_each_objective_has_words(objective):
    world = replace(SMALL, objective=objective)
    outcome = OUTCOMES[objective]
    assert change_words(Span(-0.4, -0.5, -0.3), world) == f"33 % {outcome.less} (26 to 39)"
    both_signs = f"10 % {outcome.less} to 35 % {outcome.more}"
    assert change_words(Span(0.1, -0.1, 0.3), world) == f"11 % {outcome.more} ({both_signs})"
    assert change_words(Span(-0.1, np.nan, np.nan), world) == f"10 % {outcome.less} (no interval)"


def test_a_headline_says_three_numbers_and_who_is_right():
    from gpuschedlab.autosched.lab.backends import modelled
    from gpuschedlab.autosched.lab.edges import cut, lab_graph
    from gpuschedlab.autosched.lab.held_fixed import held, naive

    values = SMALL.values(3)
    frame = IntervalLog(SMALL, seed=2).filled(60).frame
    truth = Truth(SMALL, values, seed=2).filled(6).curve()
    graph = cut(lab_graph(), ("load", "knob"))
    curves = (naive(frame, values), held(graph, frame, values), modelled("path model", graph, frame, values))
    answers = Answers(SMALL, graph, *curves, truth, frame.height, 6)
    assert answers.model_number == change_words(curves[2].effect(0, -1), SMALL)
    for number in (answers.log_number, answers.truth_number, answers.model_number):
        assert number in answers.headline
    assert "60 rows" in answers.basis
    assert "6 simulated intervals" in answers.basis
    assert "The graph lacks load \N{RIGHTWARDS ARROW} knob." in answers.explanation
    assert answers.verdict in ("agrees", "misses", "wrong sign")


def test_forty_worlds_and_graphs_can_be_drawn():
    worlds = [drawn_world(1, number) for number in range(40)]
    assert len({(type(world.policy), world.knob) for world in worlds}) >= 6
    assert len({drawn_graph(1, number).edges for number in range(40)}) >= 15
    for world in worlds:
        values = world.values(12)
        assert world.low <= world.value(values[0]) < world.value(values[-1]) <= world.high


def test_what_a_world_refuses():
    with pytest.raises(EstimatorError, match="found knob 'metric' of Tiresias; expected a number"):
        IntervalWorld().of(Tiresias(), "metric")
    with pytest.raises(EstimatorError, match="expected a range within 0 to 1"):
        replace(IntervalWorld().of(Tiresias(), "pack_limit"), low=0.5, high=0.2)
    with pytest.raises(EstimatorError, match="a lowest load below the highest"):
        replace(IntervalWorld(), lowest_load=1.0, highest_load=1.0)
    leases = IntervalWorld().of(Themis(), "lease_term")
    assert leases.low == 2 * leases.restart
    with pytest.raises(EstimatorError, match="jobs would run no longer than they lose"):
        replace(leases, restart=3000.0)


def test_knobs_that_can_be_set():
    assert list(knobs_offered(Tiresias())) == ["queues", "thresholds", "starve_limit", "pack_limit"]
    assert "depth" in knobs_offered(Fifo())
    queues = IntervalWorld().of(Tiresias(), "queues")
    assert queues.values(12).tolist() == [1, 2, 3, 4, 5]
    assert [len(queues.at(value).thresholds) for value in (1.0, 2.0, 5.0)] == [0, 1, 4]
