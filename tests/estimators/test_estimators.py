"""Estimators: the battery on each, what they learn, and that nothing leaks."""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from gpuschedlab import simulate
from gpuschedlab.check import check_estimator
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators import ALL, KNOWN, Estimator, History, Noisy, Oracle, Runtime, known
from gpuschedlab.estimators.past import pasts, recall, with_kin
from gpuschedlab.policies import Srtf


@pytest.mark.parametrize("name", sorted(ALL))
def test_battery(name):
    check_estimator(ALL[name]).raise_if_failed()


@pytest.mark.parametrize(
    "estimator", [Noisy(History(), 0.5), Noisy(Noisy(Oracle(), 0.1), 2.0, rng=5), Runtime(recurrent=False)]
)
def test_battery_on_compositions(estimator):
    check_estimator(estimator).raise_if_failed()


@pytest.mark.parametrize("name", sorted(ALL))
def test_docstring_names_its_paper_and_what_differs(name):
    assert "Differs from the paper in\n" in ALL[name].__doc__


def log_errors(estimates, jobs):
    return np.log(estimates / jobs["duration"].to_numpy())


LEARNT = [History(), History(prior=0), History(statistic="mean"), Runtime(), Runtime(recurrent=False)]


@pytest.mark.parametrize("estimator", LEARNT)
def test_learnt_estimates_beat_the_median_of_all_jobs(estimator):
    past = recurring_sample(1500, rng=2)
    later = recurring_sample(500, rng=3)
    constant = np.median(np.abs(log_errors(past["duration"].median(), later)))
    learnt = np.median(np.abs(log_errors(estimator.fit(past).predict(later), later)))
    assert learnt < 0.5 * constant


@pytest.mark.parametrize("preset", ["venus", "philly", "pai"])
@pytest.mark.parametrize("estimator", [History(), Runtime()])
def test_on_generated_traces_learnt_estimates_beat_the_mean(preset, estimator):
    """Spread of the logarithm's error, fitted anew each day, against the mean logarithm of all before."""
    from gpuschedlab.traces import generate

    jobs = generate(preset, days=12, jobs=4000, rng=3)
    day = (pl.col("submit") / 86_400).floor()
    learnt = []
    constant = []
    for d in range(8, 12):
        past = jobs.filter(day < d)
        later = jobs.filter(day == d)
        learnt.append(log_errors(estimator.fit(past).predict(later), later))
        constant.append(log_errors(np.exp(past["duration"].log().mean()), later))
    assert np.std(np.concatenate(learnt)) < np.std(np.concatenate(constant))


def test_better_estimates_shorten_completion_times():
    past = recurring_sample(600, rng=2)
    later = recurring_sample(300, rng=3)
    cluster = Cluster.homogeneous(1, 4)
    mean = {
        name: simulate(later, cluster, Srtf(), estimator=e).jobs["jct"].mean()
        for name, e in {
            "oracle": Oracle(),
            "history": History().fit(past),
            "noise": Noisy(error=30.0),
        }.items()
    }
    assert mean["oracle"] < mean["history"] < mean["noise"]


def test_oracle_is_the_truth():
    jobs = recurring_sample(50, rng=0)
    assert Oracle().predict(jobs).tolist() == jobs["duration"].to_list()
    with pytest.raises(EstimatorError, match="no column duration"):
        Oracle().predict(jobs.drop("duration"))


def test_only_the_oracle_and_its_noise_see_the_truth():
    ours = {name: cls for name, cls in ALL.items() if cls.__module__.startswith("gpuschedlab.estimators.")}
    assert [name for name, cls in ours.items() if cls().sees_truth] == ["oracle", "noisy"]


# The door


def test_what_is_not_known_at_submission_stays_outside():
    run = simulate(recurring_sample(20, rng=0), Cluster.homogeneous(2, 4), Srtf())
    assert set(known(run.jobs).columns) == {"job_id", "submit", "gpus", "user", "vc", "name"}
    assert not {"duration", "status", "censored", "end", "jct"} & set(KNOWN)


def test_a_leaking_estimator_is_shown_nothing_to_leak():
    class Leaky(Estimator):
        needs_history = False

        def _predict(self, jobs):
            return jobs["duration"].to_numpy()

    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        Leaky().predict(recurring_sample(5, rng=0))


def test_columns_that_an_estimator_declares_are_let_through():
    class Priority(Estimator):
        needs_history = False
        reads = ("priority",)

        def _predict(self, jobs):
            return 10.0 * jobs["priority"].to_numpy()

    jobs = recurring_sample(3, rng=0).with_columns(priority=pl.Series([1, 2, 3]))
    assert Priority().predict(jobs).tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h[:0], "0 jobs"),
        (lambda h: h.drop("duration"), "no column duration"),
        (lambda h: h.with_columns(duration=pl.lit(0.0)), r"duration 0.0 s \(19 more like it\)"),
        (lambda h: h.with_columns(duration=pl.lit(math.nan)), "duration nan s"),
    ],
)
def test_a_bad_history_is_refused(change, message):
    with pytest.raises(EstimatorError, match=message):
        History().fit(change(recurring_sample(20, rng=0)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones(3), r"shape \(3,\) for 5 jobs"),
        (np.full(5, -1.0), "-1.0 s for job job-0 .4 more"),
        (np.full(5, np.nan), "nan s"),
    ],
)
def test_a_bad_answer_is_refused(answer, message):
    class Broken(Estimator):
        needs_history = False

        def _predict(self, jobs):
            return answer

    with pytest.raises(EstimatorError, match=message):
        Broken().predict(recurring_sample(5, rng=0))


@dataclass(frozen=True)
class Glance:
    """What `update` is shown, as far as these tests read it."""

    now: float
    index: np.ndarray
    estimate: np.ndarray
    executed: np.ndarray

    def __len__(self):
        return len(self.index)


GLANCE = Glance(30.0, np.array([2, 5]), np.array([10.0, 50.0]), np.array([8.0, 10.0]))


@pytest.mark.parametrize("name", sorted(ALL))
def test_by_default_there_is_nothing_new_during_a_run(name):
    assert ALL[name]().update(GLANCE) is None
    assert ALL[name]().renewed(GLANCE) is None


@dataclass(frozen=True)
class Renewing(Estimator):
    """At least `factor` times what has been executed."""

    factor: object = 2.0
    needs_history = False

    def update(self, view):
        return np.maximum(view.estimate, self.factor * view.executed)


def test_estimates_may_be_renewed_during_a_run():
    assert Renewing().renewed(GLANCE).tolist() == [16.0, 50.0]


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (np.array([1.0, np.inf]), r"Renewing estimates inf s for row 5 of the trace at t=30 s \(0 more"),
        (np.nan, r"Renewing estimates nan s for row 2 of the trace at t=30 s \(1 more like it\); expected finite"),
        (np.ones((3, 1)), r"Renewing gave estimates of shape \(3, 2\) for 2 jobs; expected \(2,\)"),
    ],
)
def test_a_bad_renewed_estimate_is_refused(factor, message):
    with pytest.raises(EstimatorError, match=message):
        Renewing(factor).renewed(GLANCE)


@pytest.mark.parametrize("cls", [History, Runtime])
def test_unfitted(cls):
    with pytest.raises(EstimatorError, match=rf"{cls.__name__}\(\)\.fit\(history\)"):
        cls().predict(recurring_sample(5, rng=0))
    with pytest.raises(EstimatorError, match="has not been fitted"):
        Noisy(cls()).predict(recurring_sample(5, rng=0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Noisy(error=-0.1),
        lambda: Noisy(error=math.nan),
        lambda: History(half_life=0),
        lambda: History(statistic="mode"),
        lambda: History(prior=-1),
        lambda: Runtime(trees=0),
        lambda: Runtime(rate=1.5),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(EstimatorError, match="expected"):
        make()


# The past


def table(*rows):
    schema = ["job_id", "submit", "gpus", "duration", "user", "name"]
    return with_kin(pl.DataFrame(rows, schema=schema, orient="row"))


PAST = table(
    ("a", 0.0, 1.0, 100.0, "ann", "bert-1"),
    ("b", 10.0, 2.0, 400.0, "ann", "bert-2"),
    ("c", 20.0, 1.0, 50.0, "bob", "cnn"),
    ("d", 200.0, 1.0, 900.0, "ann", None),
)


def test_the_papers_rule_falls_back_from_name_to_kin_to_demand_to_user_to_all():
    asked = table(
        ("0", 0.0, 1.0, 1.0, "ann", "bert-2"),  # the same name: 400
        ("1", 0.0, 1.0, 1.0, "ann", "bert-77"),  # ann's bert-#: 100 and 400
        ("2", 0.0, 1.0, 1.0, "ann", "new"),  # ann on 1 GPU: 100 and 900
        ("3", 0.0, 8.0, 1.0, "bob", "new"),  # bob: 50
        ("4", 0.0, 2.0, 1.0, "eve", "cnn"),  # 2 GPUs: 400
        ("5", 0.0, 8.0, 1.0, None, None),  # all
    )
    rule = History(half_life=1e12, prior=0)
    expected = [400, math.sqrt(100 * 400), math.sqrt(100 * 900), 50, 400, (100 * 400 * 50 * 900) ** 0.25]
    np.testing.assert_allclose(rule.fit(PAST).predict(asked), expected, rtol=1e-6)
    means = History(half_life=1e12, prior=0, statistic="mean").fit(PAST).predict(asked)
    np.testing.assert_allclose(means, [400, 250, 500, 50, 400, 362.5], rtol=1e-6)


def test_a_prior_is_worth_so_many_jobs():
    asked = table(("4", 0.0, 2.0, 1.0, "eve", None))  # one job on 2 GPUs (400 s) against all (mean 362.5 s)
    estimate = History(prior=3, statistic="mean").fit(PAST).predict(asked)[0]
    assert estimate == pytest.approx((1 * 400 + 3 * 362.5) / (1 + 3))


def test_priors_are_learnt_from_how_much_users_repeat_themselves():
    jobs = recurring_sample(900, rng=6)
    order = np.random.default_rng(0).permutation(jobs.height)
    strangers = jobs.with_columns(user=jobs["user"].gather(order), name=jobs["name"].gather(order))
    level = ("user", "gpus")  # in this trace these two tell the task
    assert History().fit(jobs).priors_[level] <= 1
    assert History().fit(strangers).priors_[level] >= 30


def test_recent_jobs_count_more():
    # after a half-life of one job: 400 counts 1, 100 counts 1/2
    asked = table(("0", 0.0, 1.0, 1.0, "ann", "bert-9"))
    estimate = History(half_life=1.0, statistic="mean", prior=0).fit(PAST).predict(asked)
    assert estimate[0] == pytest.approx((400 + 100 / 2) / 1.5)


def test_statistics_of_the_past_hold_only_jobs_that_had_finished():
    asked = PAST.with_columns(submit=pl.Series([100.0, 100.1, 410.1, 1e9]), user=pl.lit("ann"))
    found = recall(pasts(PAST, 1e12)[("user",)], ("user",), asked, at="submit")
    assert found["count"].to_list() == [
        0,
        1,
        2,
        3,
    ]  # a ends at 100, b at 410, d at 1100; not before, and not at that instant
    assert found["last"].to_list()[1:] == [math.log(100), math.log(400), math.log(900)]


def test_training_features_do_not_see_the_trained_job_or_later_ones():
    """Poison the durations from the last jobs on: the features of all earlier rows stay as they were."""
    jobs = with_kin(recurring_sample(80, rng=5))
    late = jobs["submit"][60]
    poisoned = jobs.with_columns(
        duration=pl.when(pl.col("submit") + pl.col("duration") >= late).then(1e9).otherwise(pl.col("duration"))
    )
    for keys in (("user", "kin"), ("user",), ()):
        one, other = (recall(pasts(j, 5.0)[keys], keys, jobs[:61], at="submit") for j in (jobs, poisoned))
        assert one.equals(other)


def test_runtime_learns_the_hour_and_says_what_mattered():
    n = np.arange(2000)
    night = (n % 24) < 6
    jobs = pl.DataFrame(
        {
            "job_id": n.astype(str),
            "submit": 3600.0 * n,
            "gpus": 1.0,
            "duration": np.where(night, 10_000.0, 100.0),
        }
    )
    model = Runtime(recurrent=False).fit(jobs)
    np.testing.assert_allclose(model.predict(jobs[:48]), jobs["duration"][:48], rtol=0.05)
    gain = model.booster_.get_score(importance_type="total_gain")
    assert max(gain, key=gain.get) == "hour"
    shifted = jobs.with_columns(clock=pl.from_epoch((pl.col("submit") + 12 * 3600).cast(pl.Int64), time_unit="s"))
    other = Runtime(recurrent=False).fit(shifted).predict(shifted[:24])
    np.testing.assert_allclose(other, jobs["duration"][:24], rtol=0.05)


def test_estimates_of_a_fitted_model_stay_within_what_it_has_seen():
    jobs = recurring_sample(300, rng=0)
    model = Runtime().fit(jobs)
    estimates = model.predict(jobs.with_columns(gpus=pl.lit(1e5), user=pl.lit("x")))
    assert jobs["duration"].min() <= estimates.min() <= estimates.max() <= jobs["duration"].max()
