"""The LogbookExplorer: a knob's effect by an operator's log, and in truth."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.autosched import Rule, operate
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.metrics.sentence import Amount, Difference
from gpuschedlab.metrics.who_pays import counted
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer

DAY = 86_400.0
EVERY = 7200.0
NARROW = 0.2
"""Width of the oracle's interval at most, beside the figure that it is compared with: the distance of the estimates, or its own."""
DELAY = Amount("delay", "jobs are delayed by", "", "with")


@dataclass(frozen=True)
class Operator(Knobbed):
    """How a knob was set."""

    reaction: Annotated[float, Knob(0, 4, step=0.1, help="how strongly the operator follows the load")] = 1.5
    coin: Annotated[float, Knob(0, 1, step=0.05, help="share of the intervals in which a coin decides")] = 0.1
    length: Annotated[int, Knob(3, 56, unit="days", help="days of the log")] = 21


class LogbookExplorer(KnobExplorer):
    """Estimates from an operator's log beside the oracle of their question: as many forks of the simulation as tell them apart.

    Parameters
    ----------
    scenario : Scenario
        Scenario that the operator runs; of its trace the first `length` days are played.
    rule : Rule
        The knob and its values; `reaction` and `coin` are sliders.
    begin : dict, optional
        Values at which sliders begin.

    Examples
    --------
    See notebooks/11_arena.ipynb.
    """

    places = (plots.Place("answers", 380, wide=True, least=220),)
    kept: ClassVar = {"reaction": (0.0, 1.5, 4.0), "coin": (0.1, 0.3, 1.0)}

    def __init__(self, scenario, rule: Rule, begin: dict | None = None):
        self.scenario = scenario
        self.rule = rule
        super().__init__(Operator(**begin or {}))

    def _compute(self, operator: Operator) -> tuple:
        trace = self.scenario.trace.filter(pl.col("submit") < operator.length * DAY)
        log = operate(
            self.scenario.replace(trace=trace),
            replace(self.rule, reaction=operator.reaction, coin=operator.coin),
            EVERY,
        )
        estimates = {"nothing held fixed": log.estimate("naive"), "load held fixed": log.estimate(adjust=("load",))}
        apart = abs(np.subtract(*(log_estimate.effect[0] for log_estimate in estimates.values())))
        oracle = log.oracle((log.values[0], log.values[-1]), hold=EVERY, jobs=EVERY, narrow=NARROW * apart)
        return log, {estimator_name: (estimate, oracle) for estimator_name, estimate in estimates.items()}

    def _page(self, answer) -> Page:
        figures = {"answers": plots.answers(answer[1])}
        return Page(figures, comparisons=(self._comparison(answer),), words=self._estimates(answer))

    def _comparison(self, answer) -> Difference:
        """Return the effect between the knob's ends by the forks as a `Difference`, judged by their interval."""
        log = answer[0]
        oracle = answer[1]["load held fixed"][1]
        setting_names = tuple(f"{log.knob} {value:g}" for value in oracle.values[::-1])
        return counted(DELAY, *np.exp(oracle.mean[::-1]).tolist(), setting_names, float(np.ptp(oracle.effect[1:])) / 2)

    def _estimates(self, answer) -> str:
        """Sentence on the knob's effect by the log in both ways, and by the forks."""
        log, estimates = answer
        estimate_clauses = [f"{log.frame.height} intervals; {log.knob} {log.values[-1]:g} against {log.values[0]:g}"]
        estimate_clauses += [
            f"{estimator_name} {np.expm1(estimate.effect[0]):+.0%} delay"
            for estimator_name, (estimate, _) in estimates.items()
        ]
        estimate, oracle = estimates["load held fixed"]
        low, high = np.expm1(oracle.effect[1:])
        estimate_clauses.append(f"forks {np.expm1(oracle.effect[0]):+.0%} ({low:+.0%} to {high:+.0%})")
        silent = ", ".join(f"{value:g}" for value in estimate.overlap.filter(~pl.col("say"))["value"])
        estimate_clauses.append(f"the log cannot say: {silent}" if silent else "every value was tried at every load")
        return "; ".join([*estimate_clauses, *estimate.words]) + "."
