"""scikit-learn's interface on all estimators: parameters, clones, scores, folds, searches, pipelines.

Estimators are found by their `fit` and `predict`, so that a new one is tested, too. Policies with a `fit` (Tiresias)
predict nothing and are none. No X is a matrix of numbers, which is what `check_estimator` feeds: of its checks those run that
look at parameters and tags.
"""

import importlib
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from present import here

import gpuschedlab
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators import Estimator, History, Noisy, Oracle, Requested, Runtime
from gpuschedlab.estimators.sklearn_api import Parameters, Regressor

base = pytest.importorskip("sklearn.base")
checks = pytest.importorskip("sklearn.utils.estimator_checks")
from sklearn.metrics import r2_score  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402

ROOT = Path(gpuschedlab.__file__).parent
MADE = {}
"""How to make those that need arguments, or show more with some."""
NORMALISED = set()
"""They keep a table as sorted pairs, features as an array of floats: equal to what was given, and not the same object."""
NOT_BY_ROWS = set()
"""What they see of a job depends on the others, so folds over rows mean nothing."""
ROWS = {}
"""Rows to learn from, and the name of the column that is y, of those that learn from other rows than jobs."""


def prompt_rows(count: int, rng):
    """Prompt jobs, and their durations."""
    from gpuschedlab.papers.prompttuner.jobs import PromptJobs

    return PromptJobs("low")(1).head(count), "duration"


def task_rows(count: int, rng):
    """Tasks, and how much each gains by another."""
    a, b = rng.random((2, count))
    tasks = pl.DataFrame({"source": "a", "target": [f"t{i}" for i in range(count)], "score": a})
    return tasks.with_columns(gain=0.3 - 0.4 * a + 0.05 * b), "gain"


def layer_rows(count: int, rng):
    """A knob, a metric that follows from it, and a goal that follows from the metric."""
    a, b = rng.random((2, count))
    metric = 2 * a + 0.1 * b
    return pl.DataFrame({"knob": a, "metric": metric, "goal": 3 * metric + 0.1 * rng.random(count)}), "goal"


if here("deadlines"):
    from gpuschedlab.estimators import LearningCurve

    MADE[LearningCurve] = lambda: LearningCurve(targets={"b": 0.5, "a": 0.9})
    NORMALISED.add(LearningCurve)
if here("prompttuner"):
    from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank
    from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound

    MADE[PromptBank] = lambda: PromptBank(np.random.default_rng(0).random((12, 3)), clusters=3)
    NORMALISED.add(PromptBank)
    ROWS[UpperBound] = prompt_rows
if here("ymir"):
    from gpuschedlab.papers.ymir.estimators.transferability import GainRegression

    ROWS[GainRegression] = task_rows
if here("autosched"):
    from gpuschedlab.autosched.causal.graph import Layers, full_graph
    from gpuschedlab.autosched.causal.model import CausalModel
    from gpuschedlab.autosched.forecast.ranges import RangePredictor

    GRAPH = full_graph(Layers(("knob",), ("metric",), ("goal",)))
    MADE[CausalModel] = lambda: CausalModel(GRAPH, rng=3, trees=5)
    ROWS[CausalModel] = layer_rows
    NOT_BY_ROWS.add(RangePredictor)  # it learns from a repository at an instant


@cache
def estimators() -> list[type]:
    """Classes of the package that learn and predict, in their modules' order."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        if "estimators" in path.parts or re.search(r"^    def fit\(|\bEstimator\):", path.read_text(), re.MULTILINE):
            module = importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
            own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
            found += [c for c in own if hasattr(c, "fit") and hasattr(c, "predict") and c is not Estimator]
    return found


def made(cls: type):
    return MADE.get(cls, cls)()


def rows_of(estimator, rows: int = 90) -> tuple[pl.DataFrame, str]:
    """Rows to learn from, and the name of the column that is y."""
    rng = np.random.default_rng(1)
    if make := ROWS.get(type(estimator)):
        return make(rows, rng)
    assert isinstance(estimator, Estimator)
    return recurring_sample(rows, rng), "duration"


def number(found) -> np.ndarray:
    return found.mean if isinstance(found, tuple) else found


def clones(estimator):
    """A clone is another object with parameters of the same values, and has learnt nothing."""
    copied = base.clone(estimator)
    assert copied is not estimator
    assert type(copied) is type(estimator)
    assert repr(copied.get_params()) == repr(estimator.get_params())
    assert set(vars(copied)) <= set(vars(made(type(estimator))) if type(estimator) in MADE else vars(type(estimator)()))


def takes_parameters(estimator):
    """What `get_params` gives makes it again, and `set_params` changes the object itself, or says what is wrong."""
    own = estimator.get_params(deep=False)
    assert repr(type(estimator)(**own).get_params()) == repr(estimator.get_params())
    assert estimator.set_params(**own) is estimator
    assert estimator.set_params() is estimator
    assert repr(estimator.get_params(deep=False)) == repr(own)
    with pytest.raises(EstimatorError, match=f"{type(estimator).__name__}: found .*nonsense.*; expected"):
        estimator.set_params(nonsense=1)
    with pytest.raises(EstimatorError, match="found .*nonsense__more.*; expected"):
        estimator.set_params(nonsense__more=1)


def passes_sklearns_checks(estimator):
    names = ["get_params_invariance", "estimator_cloneable", "estimator_repr"]
    if type(estimator) not in NORMALISED:
        names.append("set_params")
    if hasattr(estimator, "score"):
        names += ["estimator_tags_renamed", "valid_tag_types", "mixin_order", "estimator_get_tags_default_keys"]
    for check in (getattr(checks, f"check_{name}", None) for name in names):
        if check:  # releases differ in some
            check(type(estimator).__name__, estimator)


def scores(estimator):
    """Scores of folds are R2 of what it predicts, as scikit-learn computes it, with y apart or in X; also in a pipeline."""
    x, column = rows_of(estimator)
    folds = KFold(3)
    y = x[column]
    plain, apart = (cross_val_score(estimator, x, given, cv=folds) for given in (None, y.to_numpy()))
    expected = []
    for learn, held in folds.split(x):
        fitted = made(type(estimator)).fit(x[learn])
        expected.append(r2_score(y[held].to_numpy(), number(fitted.predict(x[held]))))
    assert plain == pytest.approx(expected)
    assert apart == pytest.approx(expected)
    other = x.with_columns(2 * y)
    aside = base.clone(estimator).fit(x, 2 * y)  # y counts, not the column that X has
    assert number(aside.predict(x)) == pytest.approx(number(base.clone(estimator).fit(other).predict(x)))
    assert aside.score(x, 2 * y) == pytest.approx(aside.score(other))
    piped = make_pipeline(FunctionTransformer(), base.clone(estimator)).fit(x, y)
    assert piped.score(x, y) == pytest.approx(base.clone(estimator).fit(x).score(x))
    assert number(piped.predict(x)) == pytest.approx(number(piped[-1].predict(x)))


def names_what_is_wrong(estimator):
    who = type(estimator).__name__
    x, column = rows_of(estimator)
    fitted = base.clone(estimator).fit(x)
    for call in (base.clone(estimator).fit, fitted.score):
        with pytest.raises(
            EstimatorError, match=rf"{who}: found y of shape \(3,\) for 90 rows .*expected one {column}"
        ):
            call(x, [1.0, 2.0, 3.0])
        with pytest.raises(EstimatorError, match=f"{who}: .* has no column {column}"):
            call(x.drop(column))
        with pytest.raises(EstimatorError, match=f"{who}: found a ndarray as .*expected a polars.DataFrame"):
            call(np.zeros((90, 2)), np.ones(90))
    with pytest.raises(EstimatorError, match=f"{who}: found 1 of 90 rows of y .*not finite; expected none"):
        fitted.score(x, [np.nan] + [1.0] * 89)


EVERY = (clones, takes_parameters, passes_sklearns_checks)
BY_ROWS = (scores, names_what_is_wrong)
RUNS = [(cls, check) for cls in dict.fromkeys([*estimators(), *MADE]) for check in EVERY]
RUNS += [(cls, check) for cls in estimators() if cls not in NOT_BY_ROWS for check in BY_ROWS]


def test_estimators_are_found():
    """Those of all places, and no policy."""
    found = set(estimators())
    assert found >= {History, Runtime, Oracle, Noisy} | NOT_BY_ROWS | set(ROWS)
    assert not {"Tiresias", "GanttPlayer"} & {cls.__name__ for cls in found}


@pytest.mark.filterwarnings("ignore:.*set_params:UserWarning")
@pytest.mark.parametrize(("cls", "check"), RUNS, ids=lambda thing: thing.__name__)
def test_it(cls, check):
    check(made(cls))


class NoParameters:
    """It has none of the interface."""

    fit = predict = lambda self, x: self


class KeepsOther(Parameters):
    """The argument is kept under another value."""

    def __init__(self, size=1):
        self.size = size + 1


class CopiesOnSet(KeepsOther):
    """`set_params` changes a copy."""

    def set_params(self, **params):
        return type(self)(**params)


class ClonesItself(Parameters):
    """A clone is the very same."""

    def __sklearn_clone__(self):
        return self


@dataclass(frozen=True)
class Flatters(Requested):
    """It scores itself, whatever it predicts."""

    def score(self, X, y=None):
        return 1.0


@dataclass(frozen=True)
class TakesNoY(History):
    """It learns from the durations in X alone, and says nothing of a wrong y."""

    def fit(self, history, y=None):
        return super().fit(history)


BROKEN = [(NoParameters, check) for check in EVERY] + [(KeepsOther, clones), (CopiesOnSet, takes_parameters)]
BROKEN += [(ClonesItself, clones), (CopiesOnSet, passes_sklearns_checks), (Flatters, scores), (TakesNoY, scores)]
BROKEN += [(TakesNoY, names_what_is_wrong)]


@pytest.mark.parametrize(("cls", "check"), BROKEN, ids=lambda thing: thing.__name__)
def test_a_broken_one_fails(cls, check):
    with pytest.raises((AssertionError, TypeError, AttributeError, pytest.fail.Exception)):
        check(cls())


def test_parameters_inside_are_reached_and_what_is_shared_stays():
    inner = History()
    noisy = Noisy(Noisy(inner, 0.1), 0.2)
    other = Noisy(inner)
    assert noisy.get_params()["estimator__estimator__half_life"] == 10.0
    assert noisy.set_params(estimator__estimator__half_life=3.0, error=0.5).error == 0.5
    assert inner.half_life == other.estimator.half_life == 10.0
    assert noisy == Noisy(Noisy(History(3.0), 0.1), 0.5)
    assert hash(noisy) == hash(Noisy(Noisy(History(3.0), 0.1), 0.5))
    assert noisy.set_params(estimator=Oracle()).estimator == Oracle()


def test_what_is_not_allowed_changes_nothing():
    noisy = Noisy(History(), 0.2).fit(recurring_sample(40, 0))
    for wrong in ({"error": -1.0}, {"error": 0.4, "estimator__half_life": -1.0}, {"rng": np.inf}, {"rng__more": 1}):
        with pytest.raises(EstimatorError, match="found .*expected"):
            noisy.set_params(**wrong)
        assert noisy == Noisy(History(), 0.2)
    assert noisy.set_params(error=0.0).predict(recurring_sample(5, 1)).shape == (5,)  # what it has learnt stays


def test_it_is_as_frozen_as_before():
    for name in ("error", "history_", "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(Noisy(), name, 1)
        with pytest.raises(FrozenInstanceError):
            delattr(Noisy(), name)


def test_a_search_finds_the_better_parameters():
    jobs = recurring_sample(200, 0)
    grid = {"estimator__prior": [0.0, 1e6], "error": [0.0, 2.0]}
    found = GridSearchCV(Noisy(History()), grid, cv=TimeSeriesSplit(3), scoring="neg_median_absolute_error")
    found.fit(jobs, jobs["duration"].to_numpy())
    assert found.best_params_ == {"estimator__prior": 0.0, "error": 0.0}
    assert found.best_estimator_.predict(jobs).shape == (200,)


@pytest.mark.parametrize(
    ("y", "score"), [([5.0, 5.0], 1.0), ([4.0, 4.0], 0.0), ([5.0], np.nan), ([], np.nan), ([4.0, 6.0], 0.0)]
)
def test_scores_at_the_edges(y, score):
    """Two rows alike, one row, none: as scikit-learn has it."""
    rows = len(y)
    jobs = pl.DataFrame({"job_id": [str(i) for i in range(rows)], "submit": [0.0] * rows, "gpus": [1.0] * rows})
    found = Requested(default=5.0).score(jobs, y)
    assert found == pytest.approx(score, nan_ok=True)
    if rows > 1:
        assert found == pytest.approx(r2_score(y, [5.0] * rows))


def test_without_scikit_learn_all_but_clones_works():
    """Parameters, fit, predict and score need none of it, and it is not loaded before it is asked for."""
    program = """
import sys
sys.modules["sklearn"] = None
import importlib
from gpuschedlab._faces import papers
for paper in papers():
    importlib.import_module(paper)
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.estimators import History, Noisy
jobs = recurring_sample(60, 0)
print(Noisy(History()).set_params(estimator__half_life=2.0, error=0.0).fit(jobs, jobs["duration"]).score(jobs) > 0.9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr


def test_those_by_rows_are_regressors():
    assert all(
        base.is_regressor(made(cls)) and issubclass(cls, Regressor) for cls in estimators() if cls not in NOT_BY_ROWS
    )
