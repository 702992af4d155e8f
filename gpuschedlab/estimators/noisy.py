"""Any estimator, made worse by a known amount: how much accuracy does a policy need?"""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.estimators.base import Around, Estimator
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.knobs import Knob

_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)


@dataclass(frozen=True)
class Noisy(Around, Estimator):
    r"""Multiply another estimator's answer by lognormal noise of mean one.

    .. math:: \hat d_j = d_j \exp(\sigma z_j - \sigma^2 / 2), \quad \sigma^2 = \ln(1 + e^2),

    with :math:`z_j` standard normal, so that the factor has mean 1 and standard deviation `error` exactly.
    :math:`z_j` is a function of the job's id and the seed: a job has the same error alone, in a part of the
    trace, and in all of it. Estimates are disturbed at submission; its new estimates
    during a run (`update`) are not passed on.

    Parameters
    ----------
    estimator : Estimator
        The estimator that the noise is added to.
    error : float
        Standard deviation of the factor, >= 0 (0.3: thirty per cent).
    rng : int or numpy.random.Generator
        Seed; from a Generator one seed is drawn and kept.

    References
    ----------
    .. [1] Robustness to duration errors is tested by multiplicative noise in Hu et al., "Lucid", ASPLOS 2023,
       and in Park et al., "3Sigma", EuroSys 2018.

    Differs from the paper in
    -------------------------
    The papers draw relative errors from normal or uniform laws, which give negative durations beyond 100 %;
    this is lognormal.

    Examples
    --------
    >>> import polars as pl
    >>> jobs = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0]})
    >>> jobs = jobs.with_columns(duration=9.0)
    >>> both = Noisy(error=0.3, rng=1).predict(jobs)
    >>> bool(both[1] == Noisy(error=0.3, rng=1).predict(jobs[1:])[0]), bool(both[0] == both[1])
    (True, False)
    """

    estimator: Estimator = field(default_factory=Oracle)
    error: Annotated[float, Knob(0, 1e6, tuned=(0, 3), help="standard deviation of the factor")] = 0.3
    rng: Annotated[int, Knob(-(2**63), 2**63 - 1, tuned=(0, 99), help="seed")] = 0

    needs_history = False

    def __post_init__(self):
        if isinstance(self.rng, np.random.Generator):
            object.__setattr__(self, "rng", int(self.rng.integers(2**63)))
        super().__post_init__()

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        sigma = np.sqrt(np.log1p(self.error**2))
        return self.estimator.predict(jobs) * np.exp(sigma * normal_of(jobs["job_id"], self.rng) - sigma**2 / 2)


def normal_of(ids: pl.Series, seed: int) -> np.ndarray:
    """Return an array of one standard normal number for each id, the same for the same id and seed wherever it stands."""
    # The id's bytes (UTF-8) go through the 64-bit FNV-1a hash and two rounds of splitmix64, whose top 53 bits
    # are the two uniform numbers of the Box-Muller transform.
    id_bytes = np.array(ids.cast(pl.String).cast(pl.Binary).to_list(), dtype=np.bytes_)
    lengths = np.char.str_len(id_bytes)
    letters = id_bytes.view(np.uint8).reshape(len(id_bytes), -1) if len(id_bytes) else np.zeros((0, 0), np.uint8)
    mixed = np.full(len(id_bytes), _FNV_START)
    with np.errstate(over="ignore"):
        for letter_place in range(letters.shape[1]):  # over the letters of the longest id, not over jobs
            mixed = np.where(letter_place < lengths, (mixed ^ letters[:, letter_place]) * _FNV_PRIME, mixed)
        first_bits = _splitmix(mixed ^ _splitmix(np.array([seed % 2**64], np.uint64)))
        second_bits = _splitmix(first_bits)
    uniform_radius, uniform_angle = (
        ((bits >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53 for bits in (first_bits, second_bits)
    )
    return np.sqrt(-2 * np.log(uniform_radius)) * np.cos(2 * np.pi * uniform_angle)


def _splitmix(mixed_bits: np.ndarray) -> np.ndarray:
    """Return an array of one output of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, figure 17) for each state."""
    mixed_bits = mixed_bits + np.uint64(0x9E3779B97F4A7C15)
    mixed_bits = (mixed_bits ^ (mixed_bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed_bits = (mixed_bits ^ (mixed_bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed_bits ^ (mixed_bits >> np.uint64(31))
