"""How the tuned line of a race is tuned: by which method, with how many simulations, for which goal, in which belief."""

from dataclasses import dataclass
from typing import Annotated

from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.autosched.methods import METHODS, Method
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed

HOUR = 3600.0
FUTURES = 4
"""Other likely futures on which the best are measured again."""
WAYS = {
    "search": "simulates configurations on likely futures",
    "causal model": "the same, and a causal model of the knobs rejects what it predicts to be worse",
    "last hour": "simulates configurations on the last hour once more",
    "true future": "simulates configurations on what will really come: no tuner can",
}
"""Methods by the words of the control, and the description of each."""
NAMES = {"search": "search", "causal model": "autosched", "last hour": "selftune", "true future": "optimal"}
TWIN = "restart of the twin"
KNOWN = "true restart"
BELIEFS = (TWIN, KNOWN, "believed restart")
"""Cost of a restart in the tuner's simulator: as the history's log shows it, as it is, or as the reader says."""


@dataclass(frozen=True)
class LiveTuning(Knobbed):
    """Settings of the tuner that a reader may change while it runs.

    Examples
    --------
    >>> LiveTuning(evaluations=12).tuner.iterations
    16
    """

    raises = EstimatorError
    way: Annotated[str, Knob(choices=tuple(WAYS), words="tuned by", help="how configurations are found")] = "search"
    evaluations: Annotated[
        int, Knob(1, 400, log=True, words="tries an hour", help="configurations tried an hour; once a day a third more")
    ] = 12
    goal: Annotated[str, Knob(choices=tuple(GOALS), help="what is to be small")] = "average"
    horizon: Annotated[float, Knob(1, 72, log=True, unit="h", words="looks ahead", help="how far a forecast looks")] = (
        4.0
    )
    every: Annotated[
        float, Knob(1, 24, step=1, unit="h", words="decides every", help="hours from one decision to the next")
    ] = 1.0
    belief: Annotated[
        str,
        Knob(
            choices=BELIEFS,
            words="it believes the",
            help="restart in the tuner's simulator; where it is the true one, reading it from the log cannot pay",
        ),
    ] = KNOWN
    believed: Annotated[
        float, Knob(0, 3600, step=60, unit="s", words="believed restart", help="if it believes one")
    ] = 60.0

    @property
    def causal(self) -> bool:
        """Whether a causal model is asked."""
        return self.method.tuner.causal

    @property
    def method(self) -> Method:
        """`Method` by which the tuner is put together."""
        return METHODS[NAMES[self.way]]

    @property
    def tuner(self) -> Tuner:
        """`Tuner` of so many rounds: wide once a day, a check every hour; a model is fitted once a day."""
        wide = self.evaluations + self.evaluations // 3
        if self.causal:
            return Tuner.thesis(iterations=wide, check=self.evaluations, batch=1e6)
        if self.way == "last hour":
            return Tuner.thesis(causal=False, iterations=wide, check=self.evaluations)
        return Tuner(wide, check=self.evaluations, alone=wide // 2)

    def options(self) -> dict:
        """Return a dict of the controller's options: every hour or so, no pruning, no look for bursts."""
        seconds = self.every * HOUR
        options = {"check": 0.0, "interval": seconds, "wide": max(24 * HOUR, seconds)}
        if self.way in ("search", "causal model"):
            options |= {"futures": FUTURES, "prune": None}
        return options
