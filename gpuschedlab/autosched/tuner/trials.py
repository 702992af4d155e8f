"""Results of a search: its trials, and the best of them."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.tuner.measure import Measurement, sample
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.errors import EstimatorError


@dataclass(frozen=True)
class Trial:
    """One round of algorithm 3, up to 0 those measured at the start: the reference, the configuration in force, hints.

    Parameters
    ----------
    asked, u : (k,) array
        Coordinates as sampled, and as projected.
    fate : {"measured", "rejected", "known"}
        "known": projection led to a configuration that was measured before.
    predicted, reward, best : float
        Reward that the causal model predicted (nan without one), the measured one (nan if rejected), and the best so far: ratios
        to the reference, above 1 for better.
    fixed : tuple of str
        Axes that the scope holds from now on.
    """

    round: int
    asked: np.ndarray
    u: np.ndarray
    policy: object
    fate: str
    predicted: float
    reward: float
    measurement: Measurement | None
    best: float
    fixed: tuple[str, ...] = ()


class Asked(NamedTuple):
    """Rounds in which a causal model was asked, trials that it `rejected` unmeasured, and the measurements that these `saved`."""

    rounds: tuple[int, ...] = ()
    rejected: list[Trial] = []
    saved: int = 0


@dataclass
class Tuning:
    """Result of a search: its trials, the best policy and its reward, and its cost."""

    space: Space
    objective: str
    trials: list[Trial] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ranking(self) -> list[Trial]:
        """Return a list of the measured trials (`Trial`), each configuration once, by reward; the earliest first of equals."""
        measured = [trial for trial in self.trials if trial.fate == "measured"]
        return sorted(measured, key=lambda trial: -trial.reward)

    @property
    def best(self) -> Trial:
        """Measured `Trial` with the highest reward; EstimatorError if none was measured, as there were no jobs."""
        if not self.measured:
            raise EstimatorError("Tuning.best: found no measured trial; expected one. There were no jobs to tune on.")
        return self.ranking[0]

    def leaders(self, count: int = 4) -> tuple:
        """Return a tuple of the policies of the best trials, best first."""
        return tuple(trial.policy for trial in self.ranking[:count])

    @property
    def measured(self) -> int:
        """Number of configurations that were simulated."""
        return sum(trial.fate == "measured" for trial in self.trials)

    @property
    def asked(self) -> Asked:
        """`Asked`: the questions to the causal model in this search, and their results."""
        rejected = [trial for trial in self.trials if trial.fate == "rejected"]
        measured = {trial.policy for trial in self.trials if trial.fate == "measured"}
        rounds = tuple(trial.round for trial in self.trials if trial.predicted == trial.predicted)
        return Asked(rounds, rejected, len({trial.policy for trial in rejected} - measured))

    @property
    def samples(self) -> pl.DataFrame:
        """Frame of rows for the causal model: coordinates, log ratios of metrics and of the reward to the reference."""
        axis_names = [axis.name for axis in self.space.axes]
        done = [trial for trial in self.trials if trial.fate == "measured"]
        reference = done[0].measurement
        return pl.DataFrame(
            [sample(trial.u, axis_names, trial.measurement, reference, self.objective) for trial in done]
        )
