"""What Ymir's estimators say of pairs: symmetric distances, planted lines, hand-made curves, and the zoo's measured gains."""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import polars as pl
import pytest

from gpuschedlab._data import path
from gpuschedlab.check import check_estimator
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import EstimatorError, SpeedError
from gpuschedlab.estimators import Noisy, Transfers
from gpuschedlab.papers.ymir.estimators.iterations import LossCurve, fit_loss, iterations, joint_iterations, saved
from gpuschedlab.papers.ymir.estimators.tasks import YmirEstimator
from gpuschedlab.papers.ymir.estimators.transferability import (
    GainRegression,
    embedding_distance,
    joint_score,
    temporal_score,
    transfer_gain,
)
from gpuschedlab.papers.ymir.recipe import MergingCluster, digits_estimator, digits_pairs
from gpuschedlab.papers.ymir.speeds.switching import pipeline_switch
from gpuschedlab.papers.ymir.speeds.tasks import finetuning_jobs, task_speeds
from gpuschedlab.policies import Ymir
from gpuschedlab.sim import simulate
from gpuschedlab.speeds import transfer_speeds
from reproduce.papers.ymir.finetune import StepTimes
from reproduce.papers.ymir.gain_errors import GainErrors
from reproduce.papers.ymir.pairs import TargetMean


def test_distances_are_symmetric_and_0_for_the_same():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b, c = rng.exponential(1, (3, 40)) * (rng.random((3, 40)) < 0.8)
        assert embedding_distance(a, b) == embedding_distance(b, a) > 0
        assert embedding_distance(a, a) == 0
        assert embedding_distance(a, 0 * a) <= 1
        assert temporal_score(a, b, b) == embedding_distance(a, b)
        assert joint_score(a, a, b, c) == pytest.approx(
            (embedding_distance(a, b) - embedding_distance(b, c) + embedding_distance(b, a)) / 2
        )
    # By hand: (1/4, 3/4) and (3/4, 1/4) have the cosine 6/10.
    assert embedding_distance([1.0, 3.0], [3.0, 1.0]) == pytest.approx(0.4)


def test_regression_recovers_a_planted_line():
    rng = np.random.default_rng(1)
    tasks = [f"t{i}" for i in range(12)]
    pairs = pl.DataFrame([(a, b) for a in tasks for b in tasks if a != b], ["source", "target"], orient="row")
    pairs = pairs.with_columns(score=pl.Series(rng.uniform(0, 1, pairs.height)))
    gain = 0.3 - 0.5 * pairs["score"].to_numpy()
    found = GainRegression().fit(pairs, gain)
    assert (found.start_, found.slope_) == pytest.approx((0.3, -0.5))
    assert found.predict(pairs) == pytest.approx(gain)
    noisy = GainRegression().fit(pairs, gain + rng.normal(0, 0.02, len(gain)))
    assert (noisy.start_, noisy.slope_) == pytest.approx((0.3, -0.5), abs=0.02)


def test_the_mean_of_a_target_leaves_the_pair_itself_out():
    pairs = pl.DataFrame({"source": list("abxa"), "target": list("ttuv")})
    gain = np.array([0.1, 0.3, 0.5, 0.7])
    model = TargetMean().fit(pairs, gain)
    assert model.predict(pairs)[:2].tolist() == pytest.approx([0.3, 0.1])
    assert model.predict(pairs)[2] == pytest.approx((0.1 + 0.3 + 0.7) / 3)  # the only source of u: all other pairs
    assert model.predict(pl.DataFrame({"source": ["new"], "target": ["t"]})).tolist() == pytest.approx([0.2])


def test_errors_by_hand():
    found = GainErrors.of(["t", "t", "u", "u"], [0.1, -0.2, 0.0, 0.4], [0.2, -0.1, -0.1, 0.5])
    assert found.mae == pytest.approx(0.1)
    assert found.mape == pytest.approx(100 * (1 + 0.5 + 0.25) / 3)  # a gain of 0 has no percentage
    assert (found.sign, found.majority, found.within) == pytest.approx((0.75, 0.75, 1.0))


@pytest.mark.parametrize("mode", ["transfer", "merged"])
def test_scores_rank_the_measured_gains_of_the_zoo(mode):
    """Within a target, the lower score goes with the higher gain: more than 99 % of permutations of the sources."""
    pairs = pl.read_csv(path("zoo/zoo.csv")).filter(mode=mode).sort("target", "source")
    assert pairs.height == 14 * 13
    target, gain, score = (pairs[c].to_numpy() for c in ("target", "gain", "score"))
    ours = GainErrors.of(target, gain, -score).within
    rng = np.random.default_rng(0)
    by_target = gain.reshape(14, 13)
    drawn = [GainErrors.of(target, rng.permuted(by_target, axis=1).ravel(), -score).within for _ in range(199)]
    assert ours > 0
    assert (1 + np.sum(np.array(drawn) >= ours)) / 200 < 0.01


def test_loss_curves_are_recovered_and_iterations_counted():
    rng = np.random.default_rng(2)
    k = np.arange(1.0, 11)
    for square in (False, True):
        for _ in range(10):
            true = LossCurve(rng.uniform(0, 0.3), *rng.uniform(0.3, 2, 2), rng.uniform(0.05, 0.3) if square else 0.0)
            loss = true.of(k)
            found = fit_loss(k, loss, square=square)
            assert found.of(k) == pytest.approx(loss / loss[0], abs=5e-3)
    curve = LossCurve(0.05, 1.0, 0.5)
    drop = curve.of(np.arange(1, 200)) - curve.of(np.arange(2, 201))
    assert iterations(curve) == 1 + np.flatnonzero(drop <= 1e-3)[0]
    goal = curve.of(iterations(curve))
    assert iterations(curve, 0.2) == 1 + np.flatnonzero(curve.of(np.arange(1, 200)) / 1.2 <= goal)[0]
    gains = np.linspace(-0.5, 1, 31)
    needed = [iterations(curve, g) for g in gains]
    assert (np.diff(needed) <= 0).all()
    assert saved(curve, 0.0) == 1.0
    assert saved(LossCurve(0.5, 1.0, 1.0), -0.9) == 0.0  # it never gets there
    assert joint_iterations((100, 60), (10, 30), (500, 600)) == (2 * 1100 / 40, 3 * 1100 / 40)


TRUE = np.array([[np.nan, 2.0, 0.0], [0.5, np.nan, 1.5], [1.0, np.nan, np.nan]])
NAMES = ("a", "b", "c")


def test_curves_without_a_value_at_a_measured_iteration_are_passed_over():
    """The best coefficients for some b0 leave 0 at k = 0: what they say of the loss there is no number."""
    with np.errstate(all="raise"):
        found = fit_loss([0.0, 1.0, 2.0], [0.1, 1.0, 0.3])
    assert np.isfinite(found.of(np.arange(3.0))).all()


def test_factors_are_learnt_by_task_given_or_true():
    assert np.array_equal(Transfers(method="oracle").factors("merged", TRUE, NAMES), TRUE, equal_nan=True)
    joint = Transfers().factors("merged", TRUE, NAMES)  # rows are the task
    assert joint[0].tolist()[1:] == [0.0, 2.0]
    assert joint[2, 0] == pytest.approx((2 + 0 + 0.5 + 1.5) / 4)  # the only partner of c: all other pairs
    after = Transfers().factors("transfer", TRUE, NAMES)  # columns are the task
    assert after[:, 0].tolist()[1:] == [1.0, 0.5]
    given = Transfers(method="given", factors_given={("merged", "b", "a"): 1.25})
    found = given.factors("merged", TRUE, NAMES)
    assert found[0, 1] == 1.25
    assert np.isnan(np.delete(found.ravel(), 1)).all()
    for estimator in (Transfers(), given, Transfers(noise=0.4)):  # what cannot be run stays unknown
        assert np.isnan(estimator.factors("transfer", TRUE, NAMES)[np.isnan(TRUE)]).all()


def test_errors_are_bounded_and_belong_to_the_pair():
    exact = Transfers(method="oracle")
    noisy = Transfers(method="oracle", noise=0.4, seed=3)
    factor = noisy.factors("merged", TRUE, NAMES) / exact.factors("merged", np.where(TRUE == 0, 1.0, TRUE), NAMES)
    factor = factor[(TRUE > 0) & ~np.isnan(TRUE)]
    assert (np.abs(factor - 1) <= 0.4).all()
    assert len(np.unique(factor)) == len(factor)
    turned = noisy.factors("merged", TRUE[::-1, ::-1].copy(), NAMES[::-1])
    assert np.array_equal(turned[::-1, ::-1], noisy.factors("merged", TRUE, NAMES), equal_nan=True)


def test_an_estimator_like_others():
    check_estimator(Transfers).raise_if_failed()
    check_estimator(Transfers(Noisy())).raise_if_failed()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: embedding_distance([1.0], [-1.0]), "below 0"),
        (lambda: embedding_distance([1.0, 2.0], [1.0]), "expected as many"),
        (lambda: transfer_gain([0.5], [0.0]), "metric of 0 alone"),
        (lambda: GainRegression().predict(None), "fit before predict"),
        (lambda: TargetMean().fit(pl.DataFrame({"source": ["a"], "target": ["a"]}), [0.1]), "'a' with itself"),
        (lambda: TargetMean().fit(pl.DataFrame({"source": ["a"], "target": ["b"]}), [np.nan]), "were not measured"),
        (lambda: GainRegression().fit(pl.DataFrame({"source": ["a"], "target": ["b"]}), [0.1]), "no column 'score'"),
        (lambda: fit_loss([1.0], [0.5]), "2 or more"),
        (lambda: iterations(LossCurve(0, 1, 1), 0.1, rule="goal"), "'target' or 'paper'"),
        (lambda: iterations(LossCurve(0, 1, 1), -1.0), "above -1"),
        (lambda: joint_iterations((1, 0), (1, 1), (1, 1)), "numbers above 0"),
        (lambda: Transfers(factors_given={("merged", "a", "a"): 1.0}), "two different models"),
        (lambda: Transfers(factors_given={("joint", "a", "b"): 1.0}), "with a mode of"),
        (
            lambda: Transfers(
                method="given", factors_given={("merged", "b", "A"): 1.0, ("transfer", "z", "a"): 1.0}
            ).factors("merged", TRUE, NAMES),
            "found model 'A' and 1 more, which the speed table lacks; expected some of a, b, c",
        ),
    ],
)
def test_what_cannot_be_is_named(call, match):
    with pytest.raises(EstimatorError, match=match):
        call()


def test_fisher_is_the_expected_square_of_the_gradient(maker):
    """Of some weights, against numerical gradients of log p(y | x), weighted by p."""
    zoo = maker("zoo")
    rng = np.random.default_rng(1)
    body = [rng.normal(0, 0.2, (65, 48)), rng.normal(0, 0.2, (49, 48))]
    head = rng.normal(0, 0.5, (49, 3))
    images = rng.uniform(-1, 1, (4, 64))
    found = np.split(zoo.fisher(body, head, images), [65 * 48])
    for layer, marks in zip(body, found, strict=True):
        for at in rng.integers(0, layer.size, 5):
            logs = []
            for step in (1e-5, -2e-5):
                layer.flat[at] += step
                logs.append(np.log(zoo.forward(body, head, images)[1]))
            layer.flat[at] += 1e-5
            slope = (logs[0] - logs[1]) / 2e-5
            wanted = (zoo.forward(body, head, images)[1] * slope**2).sum(axis=1).mean()
            assert marks[at] == pytest.approx(wanted, rel=1e-3, abs=1e-9)


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


def test_a_switch_in_reverse_is_never_later():
    rng = np.random.default_rng(3)
    for _ in range(50):
        args = rng.random(4)
        assert (pipeline_switch(4, *args) <= pipeline_switch(4, *args, reverse=False) + 1e-12).all()
    with pytest.raises(SpeedError, match="found 0 stages"):
        pipeline_switch(0, 1, 1, 1, 1)


def test_a_pair_of_a_task_with_itself_is_refused():
    alone = {"fm": "f", "task": "a", "learning_rate": 0.1, "grad_steps": 1}
    own = pl.DataFrame([alone | {"epoch": 1.0, "value": 0.9}])
    goal = own.select("task", "learning_rate", "grad_steps", target=pl.lit(0.5))
    after = pl.DataFrame({"fm": "f", "source": "a", "target": "a", "epoch": [1.0], "value": [0.9]})
    joint = pl.DataFrame({"fm": "f", "task_a": "a", "task_b": "a", "task": "a", "epoch": [1.0], "value": [0.9]})
    with pytest.raises(SpeedError, match="temporal: found task 'a' as its own partner"):
        transfer_speeds(own, after, joint, "f", goal)
    with pytest.raises(SpeedError, match="spatial: found task 'a' as its own partner"):
        transfer_speeds(own, after.head(0), joint, "f", goal)


def test_shipped_tasks_and_what_there_is_not():
    speeds = task_speeds("vit", 3)
    assert speeds.merged.shape == speeds.transfer.shape == (3, 3)
    light, heavy = (finetuning_jobs(speeds, load=load, rng=1) for load in (0.5, 2.0))
    for jobs, load in ((light, 0.5), (heavy, 2.0)):
        assert (jobs["gpus"] * jobs["duration"]).sum() / (32 * 8 * 3600) == pytest.approx(load, abs=0.15)
    for wrong, match in (
        (lambda: task_speeds("vicuna"), "found foundation model 'vicuna'; expected one of roberta-base"),
        (lambda: task_speeds("vit", 10), "found 10 tasks; expected 1 to 9"),
        (lambda: finetuning_jobs(speeds, load=0.0), "numbers above 0"),
    ):
        with pytest.raises(SpeedError, match=match):
            wrong()


def test_run_times_of_the_artifact(data_dir):
    """All jobs that its Tiresias and SRTF started once, within 2 s."""
    from reproduce.papers.ymir.ours import run_times

    found = run_times(data_dir)
    assert found["jobs"] == 3229
    assert found["share"] >= 0.99


def test_times_between_profiled_gpus_are_linear_until_a_job_has_run():
    true = 1 / np.array([[8.0, 5.0, 4.0, 2.0, 1.0]] * 3)
    true[1, 1] = np.nan
    gpus = np.array([1, 2, 3, 4, 8])
    learnt = np.array([[0], [1], [2]])
    known = Transfers(look_up="few")
    assert known.learns_speeds
    assert not Transfers().learns_speeds
    found = 1 / known.rates(true, learnt, np.zeros(5, int), gpus)
    assert found[0] == pytest.approx([8, 6, 4, 2, 2])
    assert found[1] == pytest.approx([8, np.nan, 4, 2, 2], nan_ok=True)
    assert found[2] == pytest.approx(1 / true[2])


NONE = pl.DataFrame(schema={"mode": pl.Utf8, "source": pl.Utf8, "target": pl.Utf8, "gain": pl.Float64})

# --- tasks: losses, embeddings, measured pairs


def planted(unit="epochs", rule="target", **more):
    """Three tasks whose losses follow known curves, and pairs whose gains are on a line."""
    curves = {"a": LossCurve(0.05, 1.0, 0.5), "b": LossCurve(0.1, 0.9, 0.3), "c": LossCurve(0.02, 1.2, 0.8)}
    samples = {"a": 100.0, "b": 300.0, "c": 200.0}
    k = np.arange(1.0, 31.0)
    losses = pl.concat(
        pl.DataFrame({"task": t, "k": k, "loss": curve.of(k) / curve.of(1.0), "samples": samples[t], "batch": 10.0})
        for t, curve in curves.items()
    ).with_columns(**{name: pl.lit(value) for name, value in more.items()})
    rows = [(m, x, y, 0.1 * i) for m in ("transfer", "merged") for i, (x, y) in enumerate(permutations("abc", 2))]
    pairs = pl.DataFrame(rows, ["mode", "source", "target", "score"], orient="row")
    known = YmirEstimator(seen=30, unit=unit, rule=rule)
    return known.fit(losses, pairs=pairs.with_columns(gain=0.3 - 0.4 * pl.col("score"))), curves, samples


def test_factors_follow_from_curves_and_gains():
    """Epochs are those of the true curves, within one; of a joint training all samples count, as in equation 3.7."""
    known, curves, samples = planted()
    for task, curve in curves.items():
        drop = -np.diff(curve.of(np.arange(1, 200))) / curve.of(1)
        assert known.iterations_[task] == pytest.approx(1 + np.flatnonzero(drop <= 1e-3)[0], rel=0.05)
    for (mode, source, task), gain in known.gains_.items():
        then = known._iterations(task, gain)
        alone = known.iterations_[task]
        share = samples[task] / (samples[task] + samples[source]) if mode == "merged" else 1.0
        assert known.factors(mode, source, task) == pytest.approx(alone / then * share)
    # The pair takes as long as the slower of both: seconds on one GPU are samples here.
    a, b = (known._iterations(t, known.gains_["merged", s, t]) for s, t in ("ba", "ab"))
    steps = joint_iterations((a * 10, b * 30), (10, 10), (100, 300))
    both = [known.iterations_[t] * samples[t] / known.factors("merged", s, t) for s, t in ("ba", "ab")]
    assert max(both) == pytest.approx(max(steps) * 20)
    assert np.isnan(known.factors("transfer", "a", "z"))


def test_a_goal_is_where_a_task_ends_and_the_unit_decides_without_one():
    known, curves, _ = planted(goal=0.5)
    for task, curve in curves.items():
        k = np.arange(1, 100)
        assert known.iterations_[task] == pytest.approx(1 + np.flatnonzero(curve.of(k) / curve.of(1) <= 0.5)[0], abs=1)
    epochs = planted()[0]
    with pytest.warns(UserWarning, match="what was measured of") as told:
        slow = YmirEstimator(seen=4).fit(pl.DataFrame({"task": "a", "k": k, "loss": 1 / (1 + 0.02 * k)}))
    after, times = map(float, re.search(r"after (\d+) epochs, (\d+) times", str(told[0].message)).groups())
    assert times == round(after / 4)  # of the last that was measured
    assert slow.iterations_["a"] > 99 * 0.95
    steps = planted(unit="steps", rule="paper")[0]
    # An epoch is 10, 30 or 20 steps: one step saves less, so that the rule ends sooner than it does by epochs.
    for task, size in {"a": 10, "b": 30, "c": 20}.items():
        assert steps.iterations_[task] / size < epochs.iterations_[task]


@pytest.mark.parametrize(("unit", "samples", "batch"), [("epochs", 300, 10), ("steps", 300, 10), ("steps", 10, 40)])
def test_what_rests_on_the_far_end_of_a_curve_is_counted_in_its_unit(unit, samples, batch):
    """An epoch is so many steps; what is expected after many times of what was measured is warned of, in either unit."""
    k = np.arange(1.0, 5.0)
    size = samples / batch if unit == "steps" else 1.0
    losses = pl.DataFrame({"task": "a", "k": k, "loss": 1 / (1 + 0.02 * k), "goal": 0.05})
    losses = losses.with_columns(samples=pl.lit(samples), batch=pl.lit(batch))
    with pytest.warns(UserWarning, match="what was measured of") as told:
        known = YmirEstimator(unit=unit).fit(losses)
    after, times = map(float, re.search(rf"after (\d+) {unit}, (\d+) times", str(told[0].message)).groups())
    assert after == round(known.iterations_["a"])
    assert times == round(known.iterations_["a"] / (4 * size))


def test_a_policy_sees_what_was_fitted():
    known, _, _ = planted()
    shown = Transfers(method="fitted", fitted=known)
    jobs = pl.DataFrame({"job_id": ["1", "2"], "submit": 0.0, "gpus": 1.0, "model": ["a", "z"], "target": 10.0})
    jobs = jobs.with_columns(duration=600.0)
    assert shown.predict(jobs) == pytest.approx([60.0 * known.iterations_["a"], 600.0])
    true = np.ones((3, 3))
    np.fill_diagonal(true, np.nan)
    found = shown.factors("transfer", true, ("a", "b", "z"))
    assert found[0, 1] == known.factors("transfer", "a", "b")
    assert np.isnan(found[:, 2]).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: YmirEstimator().fit(pl.DataFrame({"task": ["a"]})), "found no column 'k' in losses"),
        (lambda: YmirEstimator().fit({"task": "a"}), "found a dict in losses"),
        (lambda: Transfers(fitted=YmirEstimator()), "has not been fitted"),
        (lambda: Transfers(method="fitted").factors("merged", np.ones((1, 1)), ("a",)), "without anything fitted"),
        (
            lambda: YmirEstimator().fit(planted()[0].losses_, {"z": np.ones((2, 4))}, NONE),
            "found task 'z' without a loss",
        ),
    ],
)
def test_what_was_not_fitted_is_told(call, said):
    with pytest.raises(EstimatorError, match=said):
        call()


def test_embeddings_rank_the_gains_that_were_not_measured():
    """Of the zoo's jobs: within a target, half of whose pairs are known, the others' order is told better than by chance."""
    within = []
    for seed in range(10):
        known = digits_estimator(0.5, seed)
        pairs = digits_pairs(0.5, seed)
        held = pairs.filter(pl.col("gain").is_null())
        said = [known.gains_[key] for key in held.select("mode", "source", "target").iter_rows()]
        within.append(GainErrors.of(held["mode"] + held["target"], held["true"], said).within)
    assert np.mean(within) > 0.3
    assert min(within) > 0


def test_jobs_of_the_zoo_follow_measured_curves():
    """True gains bring more than none, and what is fitted is what the recipe's policies see."""
    lab = MergingCluster(foundation="digits", data_sets=14, nodes=1, hours=4.0)
    assert lab.speeds.models[0] == "digits@inverted digit"
    with_gains = lab(seed=1)
    jct = {name: with_gains.run(policy).jobs["jct"].mean() for name, policy in lab.policies.items()}
    assert jct["Ymir"] < 0.95 * jct["Ymir, no merges"]
    fitted = lab.with_knobs(method="fitted")
    seen = fitted.gains().filter(mode="transfer", other="upright digit", task="rotated digit")
    known = digits_estimator(fitted.measured, 0)
    assert seen["expected"][0] == known.factors("transfer", "digits@upright digit", "digits@rotated digit")
    assert fitted(seed=1).run(fitted.ymir).jobs["end"].null_count() == 0


def test_shipped_tasks_have_curves_so_that_a_bad_merge_ends_soon():
    """A pair that is expected to gain and does not: it is split long before the job has done five times its own work."""
    speeds = task_speeds("vit")
    assert speeds.curves is not None
    at = {name: i for i, name in enumerate(speeds.models)}
    one, two = (i for i in (at["vit@mnist"], at["vit@fashion_mnist"]))
    for mode in ("merged", "transfer"):
        x = speeds.curves.measured(mode, [one], [two], 2.0)
        assert x[0] > 0
    ends = {}
    bad = task_speeds("roberta-large")
    pair = ("roberta-large@stsb", "roberta-large@sst2")
    for name, table in {"curves": bad, "none": replace(bad, curves=None)}.items():
        work = [bad.total[bad.models.index(m)] for m in pair]
        jobs = pl.DataFrame({"job_id": ["1", "2"], "submit": 0.0, "gpus": 1.0, "model": pair, "target": work})
        rate = [bad.rates([bad.models.index(m)], [0.0], [0], [1], [1])[0, 0] for m in pair]
        jobs = jobs.with_columns(duration=pl.Series(work) / pl.Series(rate))
        wrong = Transfers(method="given", factors_given={("transfer", *pair): 5.0})
        run = simulate(jobs, Cluster.homogeneous(1, 1, "v100"), Ymir(spatial=False), speeds=table, estimator=wrong)
        ends[name] = run.jobs["end"][1]
        assert run.jobs["restarts"][1] == (name == "curves")
    assert ends["curves"] < 0.8 * ends["none"]
    # Progress counts in epochs of the task alone: a joint epoch of two equal data sets is two of them.
    assert speeds.curves.measured("merged", [one], [two], 1.0)[0] == pytest.approx(2.0, abs=0.1)
    assert speeds.curves.measured("merged", [one], [-1], 1.0)[0] != speeds.curves.measured("own", [one], [-1], 1.0)[0]
    assert np.isinf(speeds.curves.measured("own", [one], [-1], 1000.0)[0])
