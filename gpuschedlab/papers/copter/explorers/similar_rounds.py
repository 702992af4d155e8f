"""Two rounds of Sia's program of which most jobs are the same, and how COpter solves the second, cold and warm."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.optim import MultipleChoice
from gpuschedlab.papers.copter.solver.proximal import Copter

TYPES = 3
SIZES = np.array([1, 2, 4, 8, 16])
"""GPU types of a round, and how many GPUs of a type a job may have."""


@dataclass(frozen=True)
class SimilarRounds(Knobbed):
    """Two rounds with concave speed-ups, different for each job and type; a share of the jobs is replaced between them.

    Examples
    --------
    >>> first, second = SimilarRounds(jobs=20, replaced=0.5).programs()
    >>> first.shape, int((first.keys != second.keys).sum())
    ((20, 15), 10)
    """

    replaced: Annotated[float, Knob(0, 1, step=0.01, help="share of the jobs that are new in the second round")] = 0.05
    jobs: Annotated[int, Knob(10, 400, step=10, help="jobs of a round")] = 120
    room: Annotated[float, Knob(0.5, 8, step=0.5, unit="GPUs per job", help="GPUs of all types, for each job")] = 3.0
    seed: Annotated[int, Knob(0, 99, help="of the jobs")] = 0

    def programs(self) -> tuple[MultipleChoice, MultipleChoice]:
        """Return a tuple of the two rounds, each a `MultipleChoice`."""
        rng = np.random.default_rng(self.seed)
        kinds = np.repeat(np.arange(TYPES), len(SIZES))
        gpus = np.tile(SIZES, TYPES)
        pace = rng.uniform(1, 4, (2, self.jobs, TYPES))[:, :, kinds]
        speed = pace * gpus ** rng.uniform(0.4, 0.95, (2, self.jobs, 1))
        replaced = rng.permutation(self.jobs) < round(self.replaced * self.jobs)
        speed[1, ~replaced] = speed[0, ~replaced]
        first_keys = np.arange(self.jobs)
        second_keys = np.where(replaced, first_keys + self.jobs, first_keys)
        from gpuschedlab.problems import sia_utility  # of another paper, which may not be there

        capacity = np.full(TYPES, max(round(self.room * self.jobs / TYPES), 1))

        def program(number: int, keys: np.ndarray) -> MultipleChoice:
            utility = sia_utility(speed[number], gpus, decimals=-1)
            return MultipleChoice(utility, kinds, gpus, capacity, keys=keys)

        return program(0, first_keys), program(1, second_keys)


def residuals(rounds: SimilarRounds, tol: float = 1e-5) -> dict[str, list]:
    """Solve the second round cold and warm, and return a dict of the residuals.

    Parameters
    ----------
    rounds : SimilarRounds
    tol : float
        Tolerance of both solvers.

    Returns
    -------
    dict of str to list of Residuals
        By way, "cold" and "warm", after each step.
    """
    first_round, second_round = rounds.programs()
    warm = Copter(tol=tol)
    warm.solve(first_round)
    warm.solve(second_round)
    cold = Copter(tol=tol)
    cold.solve(second_round)
    return {"cold": cold.trace, "warm": warm.trace}
