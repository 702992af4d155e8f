"""The LogbookExplorer: what an operator's log says of a knob, and what is true."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.autosched import Rule, operate
from gpuschedlab.autosched.logbook.log import CONTEXT
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.metrics.intervals import SHORT
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer

HOUR, DAY = 3600.0, 86_400.0
EVERY = 2 * HOUR
INSTANTS = 16
"""At which an oracle forks."""


@dataclass(frozen=True)
class Operator(Knobbed):
    """How a knob was set, and the question that is asked."""

    reaction: Annotated[float, Knob(0, 4, step=0.1, help="how strongly the operator follows the load")] = 1.5
    coin: Annotated[float, Knob(0, 1, step=0.05, help="share of the intervals in which a coin decides")] = 0.1
    length: Annotated[int, Knob(3, 56, unit="days", help="days of the log")] = 21
    hold: Annotated[int, Knob(2, 96, unit="h", help="hours for which a value would be held")] = 48


class LogbookExplorer(KnobExplorer):
    """Estimates from an operator's log, each beside the oracle of its own question: forks of the simulation.

    Parameters
    ----------
    scenario : Scenario
        What the operator runs; of its trace the first `length` days are played.
    rule : Rule
        The knob and its values; `reaction` and `coin` are sliders.
    begin : dict, optional
        Values at which sliders begin.
    cache : Cache, optional
        Where results are kept.

    Examples
    --------
    See notebooks/10_causal.ipynb.
    """

    places = (plots.Place("answers", 380, wide=True),)

    def __init__(self, scenario, rule: Rule, begin: dict | None = None, cache: Cache | None = None):
        self.scenario, self.rule = scenario, rule
        super().__init__(Operator(**begin or {}), cache)

    def _compute(self):
        now = self.knobs.thing
        answer = self.cache.get((type(self), id(self.scenario), self.rule, now), lambda: self._answer(now))
        self.seconds = answer.seconds
        return answer.value

    def _answer(self, now: Operator) -> tuple:
        trace = self.scenario.trace.filter(pl.col("submit") < now.length * DAY)
        rule = replace(self.rule, reaction=now.reaction, coin=now.coin)
        log = operate(self.scenario.replace(trace=trace), rule, EVERY)
        ends, hold = (log.values[0], log.values[-1]), now.hold * HOUR
        brief = log.oracle(ends, hold=EVERY, jobs=EVERY, instants=INSTANTS)
        held = log.oracle(ends, hold=hold, jobs=hold, instants=INSTANTS)
        steps = max(1, round(hold / EVERY))
        # What an operator who follows the load does: of the context, only that has to be held fixed.
        graph = [("load", log.knob), (log.knob, "objective"), *((name, "objective") for name in CONTEXT)]
        asked = {"2 h: naive": ("naive", brief, {}), "2 h: load held fixed": ("backdoor", brief, {"graph": graph})}
        asked |= {"2 h: by trees": ("trees", brief, {}), "2 h: AIPW": ("aipw", brief, {})}
        asked[f"{now.hold} h: g-formula"] = ("g-formula", held, {"steps": steps})
        return log, {name: (log.estimate(how, **more), oracle) for name, (how, oracle, more) in asked.items()}

    def _numbers(self, answer) -> dict:
        return {"answers": plots.answers(answer[1])}

    def _words(self, answer) -> str:
        log, found = answer
        said = [f"{log.frame.height} intervals; {log.knob} {log.values[-1]:g} against {log.values[0]:g}"]
        for name, (estimate, oracle) in found.items():
            shown, exact = (np.expm1(e.effect[0]) for e in (estimate, oracle))
            short = f" ({SHORT})" if np.isnan(estimate.effect[1]) else ""
            said.append(f"{name} {shown:+.0%} delay{short}, forks {exact:+.0%}")
        overlap = found["2 h: load held fixed"][0].overlap
        silent = ", ".join(f"{value:g}" for value in overlap.filter(~pl.col("say"))["value"])
        return (
            "; ".join([*said, f"the log cannot say: {silent}" if silent else "every value was tried at every load"])
            + "."
        )
