"""Sia's bootstrapped speeds (thesis 3.3.2): estimates for a job on a GPU type before it has run there on several GPUs."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.estimators.base import Around, Estimator
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.knobs import Knob


@dataclass(frozen=True)
class Bootstrap(Around, Estimator):
    """Learn how fast jobs are from a profile of one GPU of each type, and from where they have run.

    Until a job has run on several GPUs of some type, it is expected to scale perfectly. Once it has, on type A, its speed
    there is known, and elsewhere expected to be xput_B(1) / xput_A(1) xput_A(N) (equation 3.1), until it has run on several
    GPUs of type B, too. A job that needs several GPUs at least has these for one.

    Parameters
    ----------
    mode : {"bootstrap", "none", "oracle"}
        ``none``: without profiles, types on which it never ran are expected to be as fast as one on which it did.
        ``oracle``: all speeds are known.
    durations : Estimator
        Knowledge of durations.

    Differs from the paper in
    -------------------------
    If a job has run on several GPUs its goodput is known on all numbers of them: the paper fits Pollux's model, whose
    errors on the same measurements are 2 to 20 % (reproduce/papers/pollux/throughput.csv). Profiling takes no GPU time here; in the
    paper it takes less than 20 GPU-seconds a type. Which configurations a job can run on at all is known.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, sections 3.3.2 and 3.5.8.

    Examples
    --------
    >>> true = np.array([[1.0, 1.5, 3.0, 5.0]])  # 1 and 2 GPUs of two types
    >>> types, gpus = np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2])
    >>> [Bootstrap().rates(true, np.array([ran]), types, gpus).tolist() for ran in ([0, 0], [2, 0], [2, 2])]
    [[[1.0, 2.0, 3.0, 6.0]], [[1.0, 1.5, 3.0, 4.5]], [[1.0, 1.5, 3.0, 5.0]]]
    """

    mode: Annotated[str, Knob(choices=("bootstrap", "none", "oracle"), help="what is known before a job has run")] = (
        "bootstrap"
    )
    durations: Estimator = field(default_factory=Oracle)

    needs_history: ClassVar[bool] = False
    inner: ClassVar[str] = "durations"

    @property
    def learns_speeds(self) -> bool:
        """Whether speeds are to be learnt."""
        return self.mode != "oracle"

    def rates(self, true: np.ndarray, learnt: np.ndarray, types: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """Return an array of expected rates, as in `Estimator.rates`."""
        expected_rates = true.copy()
        if self.mode == "oracle":
            return expected_rates
        columns = [np.flatnonzero(types == t) for t in range(learnt.shape[1])]
        columns = [possible_columns[np.argsort(gpus[possible_columns], kind="stable")] for possible_columns in columns]
        for i in np.flatnonzero((learnt < 2).any(axis=1)):
            possible_columns = [c[true[i, c] > 0] for c in columns]
            self._expect(expected_rates[i], true[i], learnt[i], possible_columns, gpus)
        return expected_rates

    def _expect(self, expected_rates, true, learnt, possible_columns, gpus):
        """Fill in one job's expected rates (C,): `own` are its possible configurations on each type, fewest GPUs first."""
        types_there = [t for t, c in enumerate(possible_columns) if len(c)]
        if not types_there:
            return
        most_learnt = max(types_there, key=lambda t: learnt[t])  # where it has run on the most, or nowhere
        shape = possible_columns[most_learnt]
        single = {t: true[possible_columns[t][0]] for t in types_there}
        if self.mode == "none":
            learnt_rate = single[most_learnt] if learnt[most_learnt] else 1.0
            single = {t: single[t] if learnt[t] else learnt_rate for t in types_there}
        for t in types_there:
            if learnt[t] == 2:
                continue
            units = gpus[possible_columns[t]] / gpus[possible_columns[t][0]]
            scaling = units.astype(float)
            if learnt[most_learnt] == 2:
                learnt_scale = gpus[shape] / gpus[shape[0]]
                speedup = true[shape] / true[shape[0]]
                scaling = np.where(
                    units <= learnt_scale[-1],
                    np.interp(units, learnt_scale, speedup),
                    speedup[-1] * units / learnt_scale[-1],
                )
            expected_rates[possible_columns[t]] = single[t] * scaling
