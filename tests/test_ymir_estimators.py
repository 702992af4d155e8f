"""Ymir's estimators: distances and a planted line, loss curves, look-up tables, shipped gains; the Titan workloads."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.errors import EstimatorError, LabError, SpeedError
from gpuschedlab.estimators import Transferability
from gpuschedlab.estimators.digits_zoo import fisher, forward, fresh, rank_within_targets, zoo_figures
from gpuschedlab.estimators.iterations import LossCurve, iterations_after
from gpuschedlab.estimators.transferability import Line, task_distance
from gpuschedlab.speeds import transfer_speeds
from gpuschedlab.speeds.finetune import StepTimes, finetune_speeds
from gpuschedlab.speeds.switching import pipeline_switch


def test_distance_is_symmetric_and_zero_on_itself():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.exponential(size=(2, 30))
        assert task_distance(a, b) == pytest.approx(task_distance(b, a), abs=1e-12)
        assert task_distance(a, a) == 0
        assert 0 < task_distance(a, b) <= 1


def test_fisher_is_the_expected_square_of_the_gradient():
    """Against numerical gradients of log p(y|x), weighted by p, of some weights."""
    rng = np.random.default_rng(1)
    w, x = fresh(rng, 3), rng.random((4, 64))
    found, flat = fisher(w, x), 0
    for layer in (0, 1, 2, 3):
        for at in rng.integers(0, w[layer].size, 4):
            logs = []
            for step in (1e-5, -1e-5):
                w[layer].flat[at] += step
                logs.append(np.log(forward(w, x)[2]))
                w[layer].flat[at] -= step
            slope = (logs[0] - logs[1]) / 2e-5
            wanted = (forward(w, x)[2] * slope**2).sum(axis=1).mean()
            assert found[flat + at] == pytest.approx(wanted, rel=1e-3, abs=1e-9)
        flat += w[layer].size


def test_line_recovers_what_was_planted():
    score = np.random.default_rng(2).random(40)
    line = Line.fit(score, 0.3 - 1.5 * score)
    assert (line.slope, line.level) == (pytest.approx(-1.5), pytest.approx(0.3))
    with pytest.raises(EstimatorError, match="found 1 different scores"):
        Line.fit([0.1, 0.1], [1.0, 2.0])


def test_shipped_gains_are_ranked_by_the_embeddings():
    zoo = zoo_figures().with_columns(near=-pl.col("temporal_score"))
    assert zoo.height == 182
    rank, p = rank_within_targets(zoo, "near", "temporal_gain", draws=499)
    assert rank > 0
    assert p < 0.01


def test_iterations_by_hand():
    """1 / (k + 1): from 9 to 10 it falls by 0.0091; a third more lets the loss of 9 units be reached at 6.5."""
    curve = LossCurve(0.0, 1.0, 1.0)
    assert curve.converged(0.01) == 9
    assert curve.reaches(1 / 3, 9) == 7
    assert iterations_after(curve, 0.0, "target", 0.01) == 9
    with pytest.raises(EstimatorError, match="rule 'other'"):
        iterations_after(curve, 0.1, "other")
    with pytest.raises(EstimatorError, match="three at least"):
        LossCurve.fit([1, 2], [1.0, 0.5])


TRUE = np.array([[np.nan, 2.0, 0.5], [1.0, np.nan, np.nan], [3.0, 4.0, np.nan]])


def test_unknown_pairs_stay_unknown_and_noise_is_bounded():
    for mode in ("oracle", "target", "none"):
        found = Transferability(mode=mode, noise=0.4).factors("transfer", TRUE, ("a", "b", "c"))
        assert np.array_equal(np.isnan(found), np.isnan(TRUE))
    noisy = Transferability(noise=0.4).factors("merged", TRUE, ("a", "b", "c"))
    ratio = (noisy / TRUE)[~np.isnan(TRUE)]
    assert 0.6 <= ratio.min() < ratio.max() <= 1.4
    assert len(set(ratio)) == 5
    again = Transferability(noise=0.4).factors("merged", TRUE, ("a", "b", "c"))
    assert np.array_equal(noisy, again, equal_nan=True)


def test_target_mean_leaves_the_partner_out():
    """Of b after a: its factor after c. Of a beside b: its factor beside c."""
    after = Transferability(mode="target").factors("transfer", TRUE, ("a", "b", "c"))
    beside = Transferability(mode="target").factors("merged", TRUE, ("a", "b", "c"))
    assert (after[0, 1], after[1, 0]) == (4.0, 3.0)
    assert beside[0, 1] == 0.5


def test_transferability_passes_the_battery():
    lab.check_estimator(Transferability(mode="target", noise=0.2)).raise_if_failed()


def test_look_up_table_is_linear_and_is_updated():
    rows = pl.DataFrame({"placement": "2", "local_bsz": [2, 4], "step_time": [1.0, 2.0], "sync_time": [0.5, 0.5]})
    table = StepTimes(rows)
    assert table.seconds("2", 6) == pytest.approx(1.5)  # 3 samples each
    assert table.seconds("2", 16) == pytest.approx(2.0 + 1.5)  # two passes, one without synchronisation
    table.update("2", 4, 4.0, 0.5)
    assert table.seconds("2", 6) == pytest.approx(2.0)
    table.update("2", 3, 1.0)
    assert table.seconds("2", 6) == pytest.approx(1.0)
    with pytest.raises(SpeedError, match="found no rows"):
        StepTimes(rows.head(0))
    with pytest.raises(SpeedError, match="samples and epochs > 0"):
        finetune_speeds(table, pl.DataFrame({"model": ["m"], "batch_size": [4], "samples": [0], "epochs": [1.0]}))


def test_a_switch_in_reverse_is_never_later():
    rng = np.random.default_rng(3)
    for _ in range(50):
        args = rng.random(4)
        assert (pipeline_switch(4, *args) <= pipeline_switch(4, *args, reverse=False) + 1e-12).all()
    with pytest.raises(SpeedError, match="found 0 stages"):
        pipeline_switch(0, 1, 1, 1, 1)


@pytest.mark.data
def test_run_times_of_the_artifact(data_dir):
    from gpuschedlab.reproduce.ymir import run_times

    found = run_times(data_dir)
    assert found["jobs"] == 3229
    assert found["share"] >= 0.99


@pytest.mark.data
def test_titan_workloads(data_dir):
    from gpuschedlab.reproduce import titan

    table = titan.speeds(data_dir, "roberta-base")
    assert not (table.transfer == 0).any()  # what is never reached ends after ten epochs
    one = titan.scenario(data_dir, "roberta-base", 1.0)
    assert one.trace.height == 120
    merged, alone = (one.run(p).jobs["jct"].mean() for p in (lab.Ymir(), lab.Ymir(temporal=False, spatial=False)))
    assert merged < alone
    with pytest.raises(LabError, match="found foundation model 'gpt'"):
        titan.tasks(data_dir, "gpt")


def test_a_pair_of_a_task_with_itself_is_refused():
    alone = {"fm": "f", "task": "a", "learning_rate": 0.1, "grad_steps": 1}
    own = pl.DataFrame([alone | {"epoch": 1.0, "value": 0.9}])
    goal = own.select("task", "learning_rate", "grad_steps", target=pl.lit(0.5))
    after = pl.DataFrame({"fm": "f", "source": "a", "target": "a", "epoch": [1.0], "value": [0.9]})
    joint = pl.DataFrame({"fm": "f", "task_a": "a", "task_b": "b", "task": "a", "epoch": [1.0], "value": [0.9]})
    with pytest.raises(SpeedError, match="temporal: found task 'a' as its own partner"):
        transfer_speeds(own, after, joint, "f", goal)
    with pytest.raises(SpeedError, match="spatial: found task 'a' as its own partner"):
        transfer_speeds(own, after.head(0), joint.with_columns(task_b=pl.lit("a")), "f", goal)
