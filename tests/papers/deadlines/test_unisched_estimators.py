"""UniSched's estimators: suspensions against the sum and enumeration, speeds and curves against their own models and data."""

import itertools
from math import comb

import numpy as np
import polars as pl
import pytest

from gpuschedlab.check import check_estimator
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import EstimatorError
from gpuschedlab.papers.deadlines.estimators.families import FAMILIES, fit_curve
from gpuschedlab.papers.deadlines.estimators.learning_curve import LearningCurve, measurements_to, rising
from gpuschedlab.papers.deadlines.unisched import suspensions_slo
from gpuschedlab.sim import Round, simulate
from gpuschedlab.speeds import Curves, Speeds
from reproduce.papers.deadlines.curve_errors import StepTime


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (2, 3), (3, 7), (5, 5), (4, 9), (6, 11)])
def test_suspensions_are_the_sum_and_what_enumeration_counts(n, m):
    printed = sum(k * comb(n - 1, k) * comb(m - n + 1, k + 1) for k in range(n)) / comb(m, n)
    gaps = [sum(b - a > 1 for a, b in itertools.pairwise(c)) for c in itertools.combinations(range(m), n)]
    assert suspensions_slo([n], [m])[0] == pytest.approx(printed) == pytest.approx(np.mean(gaps))


def test_suspensions_of_hopeless_jobs():
    assert suspensions_slo([5, 0], [3, 0]).tolist() == [0, 0]


def test_step_times_are_exact_on_their_own_model():
    rng = np.random.default_rng(0)
    for _ in range(20):
        true = StepTime(*rng.uniform(0.1, 2, 3))
        found = StepTime.fit([1, 2, 2], [1, 1, 2], true.of([1, 2, 2], [1, 1, 2]))
        gpus = rng.integers(1, 65, 30)
        nodes = rng.integers(1, 9, 30)
        np.testing.assert_allclose(found.of(gpus, nodes), true.of(gpus, nodes))
    with pytest.raises(EstimatorError, match="at least one, all above 0"):
        StepTime.fit([1], [1], [0.0])


TRUE = {
    "vapor": (-0.15, -1.2, 0.01),
    "log": (0.95, 0.35),
    "weibull": (0.85, 0.1, 0.06, 0.9),
    "pow3": (0.9, 0.6, 0.6),
    "pow4": (0.9, 0.8, 1.0, 0.8),
    "loglog": (0.15, 1.7),
    "mmf": (0.88, 0.1, 0.08, 1.1),
    "janoschek": (0.85, 0.15, 0.08, 0.9),
    "hill": (0.9, 0.9, 3.0),
    "logpower": (0.9, 1.2, -0.9),
    "exp4": (0.85, 0.15, -0.4, 0.8),
}


def test_all_eleven_families_are_tried():
    assert TRUE.keys() == FAMILIES.keys()
    assert len(FAMILIES) == 11


@pytest.mark.parametrize("family", FAMILIES)
def test_fits_begin_from_learning_curves(family):
    """Where a fit begins is a metric between 0 and 1 that rises from its first epoch to its hundredth."""
    f, starts = FAMILIES[family]
    for start in starts:
        metric = f(np.arange(1.0, 101.0), *start)
        assert metric.min() > 0
        assert metric.max() < 1
        assert (np.diff(metric) > 0).all()


@pytest.mark.parametrize("family", TRUE)
def test_each_family_is_recovered(family):
    """From 30 points without noise, the metric at 90 within a hundredth, and where a level is reached within a tenth."""
    f, _ = FAMILIES[family]
    x = np.arange(1.0, 31.0)
    ensemble = fit_curve(x, f(x, *TRUE[family]), horizon=100)
    far = f(np.array([90.0]), *TRUE[family])[0]
    assert ensemble.mean([90.0])[0] == pytest.approx(far, abs=0.01)
    level = f(np.array([50.0]), *TRUE[family])[0]
    assert ensemble.reached(level, most=100, start=31) == pytest.approx(50, rel=0.1)


def test_weights_add_up_and_falling_families_are_dropped():
    x = np.arange(1.0, 21.0)
    rng = np.random.default_rng(0)
    noisy = fit_curve(x, 0.8 - 0.5 * x**-0.7 + rng.normal(0, 0.005, 20))
    assert sum(m.weight for m in noisy.members) == pytest.approx(1)
    far = np.linspace(20, 200, 50)
    for m in noisy.members:
        assert (np.diff(FAMILIES[m.name][0](far, *m.parameters)) >= -1e-6).all()
    assert not fit_curve(x, 0.8 - 0.02 * x).members  # it falls


def curve(data, model):
    """The metric by epoch at a model's middle batch size."""
    frame = data.filter(model=model)
    size = sorted(frame["batch_size"].unique())[frame["batch_size"].n_unique() // 2]
    return frame.filter(batch_size=size).sort("epoch")["metric"].to_numpy()


def test_errors_on_measured_curves_fall_with_progress(data_dir):
    """The epoch at which a level is reached that the curve has at 90 % of training: predicted at 20 % and at 80 %."""
    data = pl.read_parquet(data_dir / "profiles/validation.parquet")
    early = []
    late = []
    for model in ("cifar10", "imagenet", "deepspeech2", "yolov3"):
        y, _ = rising(curve(data, model), 0.0)
        best = np.maximum.accumulate(y)
        level = best[int(0.9 * len(y))]
        true = int(np.argmax(best >= level)) + 1
        for share, errors in ((0.2, early), (0.8, late)):
            seen = min(max(6, int(share * len(y))), true - 1)
            errors.append(abs(measurements_to(tuple(y[:seen]), float(level), float(len(y))) - true) / true)
    assert np.mean(late) < np.mean(early)
    assert np.mean(late) < 0.15


def test_refined_estimates_reach_the_policy_through_the_view():
    """A job that would train 1,000 epochs of 10 s reaches its target after about 60: the estimate falls towards 600 s."""
    from dataclasses import dataclass, field

    from gpuschedlab.sim import Allocation

    @dataclass(frozen=True)
    class Watching(Round):
        seen: list = field(default_factory=list, compare=False)
        interval = 60.0

        def allocate(self, view):
            self.seen.append((view.now, view.estimate.tolist()))
            return Allocation(np.zeros(len(view), int), view.gpus)

    x = np.arange(1.0, 101.0)
    points = pl.DataFrame({"model": "m", "progress": x, "metric": 0.9 - 0.6 / x})
    rates = pl.DataFrame({"model": ["m"], "gpu_type": ["gpu"], "n_gpus": [1], "progress": [1000.0], "rate": [0.1]})
    speeds = Speeds.from_frame(rates, curves=Curves.from_frame(points))
    jobs = pl.DataFrame(
        {"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [1000.0], "model": ["m"], "target": [100.0]}
    )
    policy = Watching()
    estimator = LearningCurve(targets={"m": 0.9 - 0.6 / 60})
    simulate(jobs, Cluster.homogeneous(1, 1, "gpu"), policy, speeds=speeds, estimator=estimator)
    by_time = {now: e[0] for now, e in policy.seen if e}
    first = by_time[0.0]
    assert first == pytest.approx(1000, rel=0.01)
    assert by_time[300.0] == pytest.approx(600, rel=0.05)


def test_the_battery():
    check_estimator(LearningCurve()).raise_if_failed()
