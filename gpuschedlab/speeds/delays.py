"""Delays: time that a job holds GPUs without progress, by start and by the last job on the GPUs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
import polars as pl

from gpuschedlab._knob import check_number
from gpuschedlab.errors import SpeedError

OTHERS = "*"
"""Stands for all models that a kind of start does not name."""
LEAST_PERIOD = 1e-6
"""Seconds between checkpoints, at least, if they are not taken all the time (0): so many of 1e-308 s that none is the last."""


@dataclass(frozen=True)
class Delays:
    """Time that a job holds GPUs without progress.

    Parameters
    ----------
    restart : float
        Seconds at each start after the first, on top of `switch`.
    switch : float
        Seconds at each start. Columns `restart` and `switch` of a trace override these job by job.
    checkpoint : float, optional
        Seconds between checkpoints, to which a node failure throws a job back: at least 1e-6. 0: nothing is lost; None: a
        checkpoint is taken only when the job is suspended.
    kinds : mapping of str to float or mapping, optional
        Seconds before progress at a start of each kind that a policy may name (such as ``warm``, ``cold``,
        ``pipelined``): one number, or numbers by model, with ``*`` for all other models. Kept as sorted pairs:
        ``(("cold", (("*", 30.0),)), ...)``.

    Raises
    ------
    SpeedError
        A time is negative or not finite, or a kind or model has no name.

    Examples
    --------
    >>> delays = Delays(restart=20, kinds={"warm": 2, "cold": {"vicuna": 50, "*": 20}})
    >>> delays.names, delays.table(["gpt2", "vicuna"]).tolist()
    (('cold', 'warm'), [[20.0, 50.0], [2.0, 2.0]])
    """

    restart: float = 0.0
    switch: float = 0.0
    checkpoint: float | None = None
    kinds: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self):
        for delay_name in ("restart", "switch"):
            check_number(getattr(self, delay_name), SpeedError, f"Delays.{delay_name}", "seconds, 0 or more")
        if self.checkpoint is not None:
            expected = f"seconds, 0 or {LEAST_PERIOD:g} or more, or None"
            check_number(self.checkpoint, SpeedError, "Delays.checkpoint", expected, finite=False)
            if 0 < self.checkpoint < LEAST_PERIOD:
                raise SpeedError(f"Delays.checkpoint: found {self.checkpoint!r}; expected {expected}.")
        # A tuple can be hashed, pickled and written as JSON; a copy by `dataclasses.replace` passes it in again.
        seconds_by_kind = {
            start_kind: {OTHERS: kind_seconds}
            if isinstance(kind_seconds, Real)
            else _named(kind_seconds, f" of {start_kind!r}")
            for start_kind, kind_seconds in _named(self.kinds).items()
        }
        _check_kinds(seconds_by_kind)
        pairs = {}
        for start_kind, seconds_of in seconds_by_kind.items():
            of_models = sorted((model, float(seconds)) for model, seconds in seconds_of.items())
            pairs[start_kind] = tuple(of_models)
        object.__setattr__(self, "kinds", tuple(sorted(pairs.items())))

    @property
    def names(self) -> tuple[str, ...]:
        """Tuple of the names of the K kinds, sorted: the rows of `table`."""
        return tuple(start_kind for start_kind, _ in self.kinds)

    def table(self, models: Iterable[str | None]) -> np.ndarray:
        """Return an array (K, n) of the seconds before progress of each job at a start of each kind.

        Parameters
        ----------
        models : iterable of str or None
            Model of each of the n jobs; None: it has none.

        Returns
        -------
        (K, n) float array
            Rows as in `names`; nan if a kind says nothing of a model.
        """
        models = pl.Series(models, dtype=pl.Utf8)
        seconds_of_kinds = []
        for _, seconds in self.kinds:
            seconds_of_others = dict(seconds).get(OTHERS, math.nan)
            seconds_of_models = models.replace_strict(dict(seconds), default=seconds_of_others, return_dtype=pl.Float64)
            seconds_of_kinds.append(seconds_of_models.fill_null(seconds_of_others).to_numpy())
        return np.array(seconds_of_kinds).reshape(len(self.kinds), len(models))

    def seconds(self, kind: str, models: Iterable[str | None]) -> np.ndarray:
        """Return an array (n,) of the seconds before progress of each job at a start of one kind.

        Raises
        ------
        SpeedError
            There is no such kind, or it says nothing of one of the models.

        Examples
        --------
        >>> Delays(kinds={"cold": {"vicuna": 50.0}}).seconds("cold", ["vicuna", "gpt2"])
        Traceback (most recent call last):
        gpuschedlab.errors.SpeedError: Delays.kinds: 'cold' says nothing of model 'gpt2'; expected ...
        """
        if kind not in self.names:
            raise SpeedError(
                f"Delays.kinds: found no kind {kind!r}; expected one of {', '.join(self.names) or '(none)'}. "
                f"Add it: Delays(kinds={{{kind!r}: seconds}})."
            )
        models = list(models)
        delay_seconds = self.table(models)[self.names.index(kind)]
        if len(lacking := np.flatnonzero(np.isnan(delay_seconds))):
            raise SpeedError(
                f"Delays.kinds: {kind!r} says nothing of model {models[lacking[0]]!r}; expected seconds for it, or for "
                f"{OTHERS!r}, all others. {len(lacking) - 1} more jobs like it."
            )
        return delay_seconds


def _named(pairs, of_kind: str = "") -> dict:
    """Return a mapping, or the pairs of one, as a dict."""
    try:
        return dict(pairs)
    except (TypeError, ValueError) as error:
        raise SpeedError(
            f"Delays.kinds{of_kind}: found {pairs!r}; expected seconds by name, such as {{'warm': 2.0}}."
        ) from error


def _check_kinds(seconds_by_kind: dict[str, dict[str, float]]) -> None:
    """Raise SpeedError unless all names are texts and all times finite seconds."""
    for start_kind, seconds_of_models in seconds_by_kind.items():
        if not isinstance(start_kind, str) or not start_kind:
            raise SpeedError(f"Delays.kinds: found kind {start_kind!r}; expected a name, such as 'warm'.")
        if not seconds_of_models:
            raise SpeedError(f"Delays.kinds: {start_kind!r} names no model; expected seconds, or seconds by model.")
        for model, seconds in seconds_of_models.items():
            if not isinstance(model, str) or not model:
                raise SpeedError(
                    f"Delays.kinds: {start_kind!r} has model {model!r}; expected a name, or {OTHERS!r} for others."
                )
            if not isinstance(seconds, Real) or not 0 <= seconds < math.inf:
                raise SpeedError(
                    f"Delays.kinds: {start_kind!r} of model {model!r} is {seconds!r}; expected finite seconds, 0 or more."
                )
