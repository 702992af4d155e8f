"""An agent as a policy: a function from observations to actions decides which waiting job starts next."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.gym.dispatch import Dispatch
from gpuschedlab.knobs import Knob
from gpuschedlab.sim import Allocation, Round, View

PLACEMENTS = ("pack", "spread", "widest", "consolidate", "buddy")


def first_come(observation: dict[str, np.ndarray]) -> int:
    """First come, first served: return the index of the first row, 0, whether or not its job fits.

    Examples
    --------
    >>> Agent(first_come).rows
    64
    """
    return 0


@dataclass(frozen=True)
class Agent(Round):
    """Ask a function which waiting job starts next, until it picks one that does not fit.

    At each event (a job arrives or ends, a node fails or comes back) at which some of the first `rows` waiting jobs fits, the
    function is asked again and again: a row whose job fits starts that job; any other action ends the instant. No job is
    preempted.

    Parameters
    ----------
    act : callable
        From an observation (`Dispatch.observation`) to an action: a row, or with `actions="order"` a priority for each
        row; then all jobs that fit start, the highest first.
    actions : {"pick", "order"}
        Kind of actions.

    Differs from the paper in
    -------------------------
    It follows no single paper. Actions are those of DeepRM (a slot of the queue, or nothing; time stands still while jobs
    start), on nodes in place of one pool of resources.

    References
    ----------
    Mao et al., Resource Management with Deep Reinforcement Learning, HotNets'16, section 3.2.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> trace = lab.generate("venus", days=1, jobs=50, load=1.5, cluster_gpus=160, rng=1)
    >>> scenario = lab.Scenario(trace, lab.Cluster.homogeneous(20, 8))
    >>> mine, theirs = scenario.run(Agent(first_come)), scenario.run(lab.Fifo())
    >>> mine.jobs.equals(theirs.jobs)
    True
    """

    act: Callable[[dict[str, np.ndarray]], object]
    rows: Annotated[int, Knob(1, 4096, help="waiting jobs that the agent sees")] = 64
    placement: Annotated[str, Knob(choices=PLACEMENTS, help="which nodes a job is given")] = "consolidate"
    actions: Annotated[str, Knob(choices=("pick", "order"), help="whether it picks one job or orders all")] = "pick"
    interval = 0.0
    set_aside = ("rows", "placement", "actions", "interval")

    def allocate(self, view: View) -> Allocation:
        """Ask for actions until one ends the instant, and return the `Allocation`."""
        dispatch = Dispatch(view, self.rows, self.placement)
        while dispatch.hopeful:
            if not self.apply(dispatch, self.act(dispatch.observation())):
                break
        return dispatch.answer()

    def apply(self, dispatch: Dispatch, action: object) -> bool:
        """Put an action into force; return whether the instant goes on.

        Raises
        ------
        PolicyError
            It is no action.
        """
        if self.actions == "order":
            priorities = np.asarray(action, float)
            if priorities.shape != (self.rows,) or np.isnan(priorities).any():
                raise PolicyError(
                    f"{self.name}: found action {action!r}; expected ({self.rows},) priorities, one for each row."
                )
            dispatch.start_in_order(priorities)
            return False
        if not isinstance(action, int | np.integer) or not 0 <= action <= self.rows:
            raise PolicyError(
                f"{self.name}: found action {action!r}; expected a row, 0 to {self.rows - 1}, or {self.rows} to wait."
            )
        return dispatch.start(int(action))
