"""Learning curves: the metric at each progress, for a job alone, trained jointly, or started from another's result."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab._knob import tuple_of
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.checks import check_rows, index_of, need_columns, typed

MODES = ("own", "merged", "transfer")
"""Alone; jointly with the other model; after the other model, from its result."""

COLUMNS = ("mode", "model", "other", "progress", "metric")


@dataclass(frozen=True, eq=False)
class Curves:
    """Metric by progress of K curves of M models, linear between the points measured.

    Progress is counted in the model's own units of training (such as epochs), whatever they are worth: a job
    that progresses at `merged` or `transfer` times its own speed is at its progress over that factor here.

    Parameters
    ----------
    models : tuple of str
        The M names that `model` and `other` refer to.
    mode : (K,) int array
        Index into `MODES`.
    model, other : (K,) int arrays
        Whose metric it is, and the partner or source (-1: none, its own curve).
    first : (K + 1,) int array
        Points of curve k are first[k] .. first[k + 1] - 1.
    progress, metric : (P,) float arrays
        Points; progress ascends within a curve.

    See Also
    --------
    Curves.from_frame : builds one, and checks it.

    Examples
    --------
    >>> frame = pl.DataFrame({"model": ["a", "a"], "progress": [1.0, 3.0], "metric": [0.5, 0.9]})
    >>> Curves.from_frame(frame).at([0, 0, 0, 0], [0.5, 1.0, 2.0, 9.0]).round(3).tolist()
    [nan, 0.5, 0.7, 0.9]
    """

    models: tuple[str, ...]
    mode: np.ndarray
    model: np.ndarray
    other: np.ndarray
    first: np.ndarray
    progress: np.ndarray
    metric: np.ndarray

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, models: Iterable[str] | None = None) -> "Curves":
        """Build `Curves` from a long frame: one row per measurement, in any order.

        Parameters
        ----------
        frame : polars.DataFrame
            `model`, `progress` (>= 0) and `metric` (finite); optional `mode` (``own``, ``merged`` or
            ``transfer``; null: own) and `other` (the partner, or the source of a transfer; null for own).
        models : iterable of str, optional
            Order of the models; by default all names, sorted.

        Raises
        ------
        SpeedError
            A column is missing, a value is wrong, a point is given twice, or a name is not among `models`.
        """
        frame = _checked(frame)
        every_name = pl.concat([frame["model"], frame["other"].drop_nulls()])
        in_curves = every_name.unique().sort().to_list()
        names = tuple(in_curves)
        if models is not None:
            # Of a text each letter is a name.
            names = tuple_of(
                [*models] if isinstance(models, str) else models, str, SpeedError, "Curves: models", "names of models"
            )
        if strange := [name for name in in_curves if name not in names]:
            raise SpeedError(
                f"Curves: found model {strange[0]!r}; expected one of {', '.join(names)}. Add it to models."
            )
        words = {"mode": MODES, "model": names, "other": names}
        codes = [index_of(pl.col(column), known) for column, known in words.items()]
        frame = frame.with_columns(codes).sort(COLUMNS[:4])
        curve = frame.select(COLUMNS[:3]).to_numpy()
        new = np.ones(len(curve), bool)
        new[1:] = (curve[1:] != curve[:-1]).any(axis=1)
        first = np.append(np.flatnonzero(new), len(curve))
        mode, model, other = np.ascontiguousarray(curve[first[:-1]].T)
        return cls(names, mode, model, other, first, frame["progress"].to_numpy(), frame["metric"].to_numpy())

    @classmethod
    def join(cls, a: "Curves", b: "Curves") -> "Curves":
        """Put the curves of different models together into one `Curves`.

        Raises
        ------
        SpeedError
            Both have a point of the same curve.
        """
        return cls.from_frame(pl.concat([a.frame(), b.frame()]), dict.fromkeys(a.models + b.models))

    def under(self, models: Iterable[str]) -> "Curves":
        """Return the same `Curves` with the models in another order, or among more."""
        return self if self.models == tuple(models) else self.from_frame(self.frame(), models)

    def frame(self) -> pl.DataFrame:
        """Return all points as the long frame of `from_frame`: `mode, model, other, progress, metric`."""
        lengths = np.diff(self.first)
        model_names = pl.Series(self.models, dtype=pl.Utf8)
        mode, model, partner = (
            pl.Series(np.repeat(curve_codes, lengths)) for curve_codes in (self.mode, self.model, self.other)
        )
        return pl.DataFrame(
            {
                "mode": pl.Series(MODES).gather(mode),
                "model": model_names.gather(model),
                "other": model_names.gather(partner.set(partner < 0, None)),
                "progress": self.progress,
                "metric": self.metric,
            }
        )

    def at(self, model, progress) -> np.ndarray:
        """Return an array (n,) of the metric that each job trained alone shows.

        Parameters
        ----------
        model : (n,) int array
            Indices into `models`; -1 gives nan.
        progress : (n,) float array
            Progress made, in units of the curve.

        Returns
        -------
        (n,) float array
            Linear between two points, the last point's value beyond it; nan before the first (nothing has been
            measured yet), and where the model has no curve.

        Raises
        ------
        SpeedError
            Arrays of different lengths, or a model that does not exist.
        """
        return self.at_pair("own", model, np.full(np.shape(model), -1), progress)

    def at_pair(self, mode: str, model, other, progress) -> np.ndarray:
        """Return an array (n,) of the metric that each job shows in a pair; as `at`.

        Parameters
        ----------
        mode : {"own", "merged", "transfer"}
            Alone, trained jointly with `other`, or started from its result.
        model, other : (n,) int arrays
            Whose metric, and the partner or source (-1: none).
        progress : (n,) float array
            Progress made in that mode, in units of the curve.
        """
        if mode not in MODES:
            raise SpeedError(f"Curves.at_pair: found mode {mode!r}; expected one of {', '.join(MODES)}.")
        model, other = (np.asarray(model_codes, np.int64) for model_codes in (model, other))
        progress = np.asarray(progress, np.float64)
        if not model.shape == other.shape == progress.shape:
            shapes = f"{model.shape} models, {other.shape} others, {progress.shape} progress"
            raise SpeedError(f"Curves: found {shapes}; expected (n,) of each.")
        for model_role, model_index in (("model", model), ("other", other)):
            if model_index.size and not -1 <= model_index.min() <= model_index.max() < len(self.models):
                wrong_index = model_index.max() if model_index.max() >= len(self.models) else model_index.min()
                raise SpeedError(f"Curves: found {model_role} {wrong_index}; expected -1 to {len(self.models) - 1}.")
        shown_metric = np.full(model.shape, np.nan)
        for curve_jobs, span in self._found(mode, model, other):
            shown_metric[curve_jobs] = np.interp(
                progress[curve_jobs], self.progress[span], self.metric[span], left=np.nan
            )
        return shown_metric

    def measured(self, mode: str, model, other, count: float) -> np.ndarray:
        """Return an array (n,): progress at a numbered measurement of each curve, linear between two.

        inf beyond the last, nan without a curve.

        Parameters
        ----------
        mode : {"own", "merged", "transfer"}
        model, other : (n,) int arrays
            Whose curve, and the partner or source (-1: none).
        count : float
            1: the first measurement.
        """
        model, other = (np.asarray(model_codes, np.int64) for model_codes in (model, other))
        progress_measured = np.full(model.shape, np.nan)
        for curve_jobs, span in self._found(mode, model, other):
            points = np.append(0.0, self.progress[span])
            progress_measured[curve_jobs] = np.interp(count, np.arange(len(points)), points, right=np.inf)
        return progress_measured

    def _found(self, mode: str, model, partner):
        """Yield the rows (n,) and points of each curve that some of so many models have."""
        keys = self._key(self.mode, self.model, self.other)
        wanted = np.where(model >= 0, self._key(MODES.index(mode), model, partner), -1)
        curve = np.searchsorted(keys, wanted)
        has_curve = np.append(keys, -2)[curve] == wanted
        for curve_number in np.unique(curve[has_curve]):
            yield has_curve & (curve == curve_number), slice(self.first[curve_number], self.first[curve_number + 1])

    def _key(self, mode, model, partner):
        """Return an array of numbers that ascend with (mode, model, other)."""
        model_count = len(self.models)
        return (mode * model_count + model) * (model_count + 1) + partner + 1

    def __repr__(self):
        curves_by_mode = ", ".join(
            f"{curve_count} {mode}"
            for mode, curve_count in zip(MODES, np.bincount(self.mode, minlength=3))
            if curve_count
        )
        return f"Curves({len(self.models)} models; {curves_by_mode or 'none'})"


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with all columns in canonical types, or raise SpeedError."""
    need_columns(frame, "Curves", ("model", "progress", "metric"), "mode", "other")
    column_types = {"texts": (pl.Utf8, "mode", "model", "other"), "numbers": (pl.Float64, "progress", "metric")}
    frame = typed(frame, "Curves", column_types, {"mode": None, "other": None}).with_columns(
        pl.col("mode").fill_null("own")
    )
    trained_alone = pl.col("mode") == "own"
    progress = pl.col("progress")
    twice = pl.struct(COLUMNS[:4]).is_duplicated()
    rules = {
        "model": (pl.col("model").is_not_null(), "a name"),
        "mode": (pl.col("mode").is_in(MODES), f"one of {', '.join(MODES)}"),
        "other": (trained_alone == pl.col("other").is_null(), "a name, or null where the mode is own"),
        "progress": (progress.is_finite() & (progress >= 0) & ~twice, "a finite number >= 0, once in a curve"),
        "metric": (pl.col("metric").is_finite(), "a finite number"),
    }

    def word(row: dict) -> str:
        pair = f" with {row['other']!r}" if row["other"] is not None else ""
        return f"Curves: the {row['mode']} curve of model {row['model']!r}{pair}"

    check_rows(frame, rules, word)
    return frame
