"""The time-sharing penalty of Sia (thesis 3.5.6): jobs that had little service lately cost more without GPUs."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

COSTLY = 0.1
"""Share of the window from which on a restart outweighs a rigid job's turn; chosen so that turns lose a tenth of their time at most."""


@dataclass
class Service:
    """Rounds in which jobs had GPUs, of the last W = window / interval, and the penalty that follows.

    The constant, plus W less the rounds that it was served, for a job that ran in the last round; plus W for one that was not
    served in any; plus nothing for one that has had a turn and waits for the window to pass. A rigid job cannot make room by
    shrinking: one whose restart takes more than `COSTLY` of the window keeps its GPUs as one that was not served.

    `window` is tau (s); less than a round: the penalty is constant.
    """

    window: float = 0.0
    rounds: deque = field(default_factory=deque)

    def penalty(self, view, constant: float) -> float | np.ndarray:
        """Return an array (n,): cost of a job without GPUs. Return the constant, a float, if nothing is shared."""
        window_rounds = int(self.window // view.interval) if self.window else 0
        if not window_rounds:
            return constant
        self.rounds.append(view.index[view.running])
        while len(self.rounds) > window_rounds:
            self.rounds.popleft()
        served = sum(np.isin(view.index, served_rows) for served_rows in self.rounds).astype(int)
        served[view.running & ~view.elastic & (view.restart > COSTLY * self.window)] = 0
        return constant + np.where(view.running, window_rounds - served, np.where(served == 0, window_rounds, 0))
