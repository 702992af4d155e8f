"""scikit-learn's interface for anything with `fit`, whether or not scikit-learn is there: parameters, copies, scores."""

import copy
import inspect
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError


class Parameters:
    """Makes the arguments of a class its parameters: each is an attribute of the same name, `**options` a mapping of them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return a dict of the arguments that make it again; with `deep` also an inner estimator's (`estimator__error`)."""
        estimator_arguments = {}
        for argument_name, argument in inspect.signature(type(self)).parameters.items():
            argument_value = getattr(self, argument_name)
            estimator_arguments |= (
                argument_value if argument.kind is argument.VAR_KEYWORD else {argument_name: argument_value}
            )
        inside = {
            argument_name: argument_value.get_params()
            for argument_name, argument_value in estimator_arguments.items()
            if deep and isinstance(argument_value, Parameters)
        }
        return estimator_arguments | {
            f"{argument_name}__{inner}": argument_value
            for argument_name, inner_arguments in inside.items()
            for inner, argument_value in inner_arguments.items()
        }

    def set_params(self, **params) -> Self:
        """Change arguments of this very object and return it; an estimator inside is replaced by a changed copy.

        `with_knobs` copies.
        """
        estimator_arguments = self.get_params(deep=False)
        inside = {}
        for argument_name, argument_value in params.items():
            outer, nested, inner = argument_name.partition("__")
            (inside.setdefault(outer, {}) if nested else estimator_arguments)[inner or outer] = argument_value
        try:
            for outer, changes in inside.items():
                estimator_arguments[outer] = copy.copy(estimator_arguments[outer]).set_params(**changes)
            changed = type(self)(**estimator_arguments)
        except (TypeError, KeyError, AttributeError) as error:
            who = type(self).__name__
            known_parameters = ", ".join(self.get_params()) or "none"
            raise EstimatorError(
                f"{who}: found parameters {params} ({error}); expected some of {known_parameters}."
            ) from error
        vars(self).update(vars(changed))  # it may be frozen
        return self

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import clone

        # Not scikit-learn's own rule: that wants arguments kept as they were given, and here tables become sorted pairs.
        return type(self)(
            **{
                argument_name: clone(argument_value, safe=False)
                for argument_name, argument_value in self.get_params(deep=False).items()
            }
        )


class Regressor:
    """Adds `score` to an estimator of a number for each row of a frame, whose column `_target` y stands for."""

    _target: ClassVar[str]
    _advice: ClassVar[str] = ""

    def __new__(cls, *_, **__):
        """Return an instance that a pipeline can hold: the decorator that freezes the class has run by now, and not before."""
        _take_notes(cls)
        return super().__new__(cls)

    def score(self, X: pl.DataFrame, y=None) -> float:
        """R2 of the predictions: 1 if all are right, 0 if they are no better than the mean of y; nan below 2 rows.

        `y` (n,) is the truth for the n rows of `X`, by default its column of it. EstimatorError if some of it is not finite.
        """
        X = self._labelled(X, y)
        truth = X[self._target].to_numpy()
        if wrong_rows := int((~np.isfinite(truth)).sum()):
            found = f"{type(self).__name__}: found {wrong_rows} of {X.height} rows of y ({self._target}) not finite"
            raise EstimatorError(f"{found}; expected none. Leave them out.")
        if len(truth) < 2:
            return np.nan
        found = self.predict(X)
        found = found.mean if isinstance(found, tuple) else found  # a `Prediction` has a spread as well
        missed = ((truth - found) ** 2).sum()
        spread = ((truth - truth.mean()) ** 2).sum()
        return float(1 - missed / spread) if spread else float(missed == 0)

    def _labelled(self, X: pl.DataFrame, y, role_of_frame: str = "X") -> pl.DataFrame:
        """Return the frame X with y (n,) as its column of the truth, which it has already if y is None."""
        self._demand(X, (self._target,) if y is None else (), role_of_frame)
        if y is None:
            return X
        y = np.asarray(y, float)
        if y.shape != (X.height,):
            who = type(self).__name__
            rows_of_frame = f"{X.height} rows of the {role_of_frame}"
            raise EstimatorError(
                f"{who}: found y of shape {y.shape} for {rows_of_frame}; expected one {self._target} for each."
            )
        return X.with_columns(pl.Series(self._target, y))

    def _demand(self, frame: pl.DataFrame, columns: tuple[str, ...], role_of_frame: str) -> None:
        who = type(self).__name__
        if not isinstance(frame, pl.DataFrame):
            raise EstimatorError(
                f"{who}: found a {type(frame).__name__} as the {role_of_frame}; expected a polars.DataFrame."
            )
        if missing := [needed_column for needed_column in columns if needed_column not in frame.columns]:
            has = ", ".join(frame.columns)
            raise EstimatorError(
                f"{who}: the {role_of_frame} has no column {', '.join(missing)}; it has {has}.{self._advice}"
            )

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        tags = {"regressor_tags": RegressorTags(), "input_tags": InputTags(two_d_array=False)}
        return Tags(estimator_type="regressor", target_tags=TargetTags(required=False), no_validation=True, **tags)


@cache
def _take_notes(cls: type) -> None:
    """Let a frozen dataclass have the one attribute that a pipeline of scikit-learn 1.9 sets on it, and then deletes."""
    for method_name in ("__setattr__", "__delattr__"):
        if frozen := vars(cls).get(method_name):
            ways = {"_parent_callback_ctx": getattr(object, method_name)}
            setattr(
                cls, method_name, lambda self, key, *to, ways=ways, frozen=frozen: ways.get(key, frozen)(self, key, *to)
            )
