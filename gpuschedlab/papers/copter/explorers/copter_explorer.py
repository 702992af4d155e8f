"""The CopterExplorer: two rounds of Sia's program, the second solved cold and warm."""

from typing import ClassVar

import numpy as np

from gpuschedlab import plots
from gpuschedlab.metrics.sentence import Amount
from gpuschedlab.metrics.who_pays import counted
from gpuschedlab.papers.copter.explorers.price_paths import price_map
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds, residuals
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer

EVALUATIONS = Amount("evaluations", "the second round takes", "{:,.0f} evaluations", "with")
TITLES = {"worst": "All residuals, second round", "primal": "GPUs beyond their number, second round"}


class CopterExplorer(KnobExplorer):
    """Watch the residuals of COpter fall, cold and warm, as more or fewer jobs are replaced; parameters as for `KnobExplorer`.

    Left the residuals of the second round, from nothing and from the first round; right the prices of two GPU types, and how
    COpter and a coordinate descent find them.

    Attributes
    ----------
    evaluations : dict of str to float
        Evaluations of the dual that the second round took, "cold" and "warm".

    Examples
    --------
    >>> explorer = CopterExplorer(SimilarRounds(jobs=20))
    >>> explorer.knobs["replaced"].value = 0.0
    >>> explorer.evaluations["warm"] < explorer.evaluations["cold"]
    True

    See notebooks/06_copter.ipynb.
    """

    places = (
        plots.Place("residuals", 340, least=220),
        plots.Place("prices", 340, least=220),
        plots.Place("gap", 340, more=True),
    )
    kept: ClassVar = {"replaced": (0.0, 0.02, 0.05, 0.2, 1.0), "room": (1.0, 3.0)}
    begin = SimilarRounds

    def _compute(self, rounds: SimilarRounds) -> tuple:
        return residuals(rounds), price_map(rounds)

    def _page(self, answer) -> Page:
        traces, prices = answer
        self.evaluations = {solver_way: trace[-1].evaluations for solver_way, trace in traces.items()}
        ways = "; ".join(
            f"{solver_way} {len(trace)} steps, {trace[-1].evaluations:.0f} evaluations"
            for solver_way, trace in traces.items()
        )
        both = (self.evaluations["warm"], self.evaluations["cold"])
        return Page(
            {"residuals": trace_lines(traces, "worst"), "prices": prices, "gap": trace_lines(traces, "primal")},
            comparisons=(counted(EVALUATIONS, *both, ("a warm start", "a cold one")),),
            words=f"Second round: {ways}.",
        )


def trace_lines(traces: dict[str, list], residual: str) -> plots.Lines:
    """Return the `Lines` of residuals over evaluations of the dual, in powers of ten, each from the step that was last done.

    Parameters
    ----------
    traces : dict of str to list of Residuals
        By way (`residuals`).
    residual : {"worst", "primal"}
        Which of the residuals.
    """
    most_evaluations = max(trace[-1].evaluations for trace in traces.values())
    evaluations = np.arange(1, int(most_evaluations) + 1)
    residual_lines = {}
    for solver_way, trace in traces.items():
        steps = np.searchsorted([step.evaluations for step in trace], evaluations, side="right")
        sizes = [max(getattr(step, residual), 1e-12) for step in trace]
        log_residuals = np.log10([np.nan, *sizes])[steps]
        residual_lines[solver_way] = np.where(evaluations <= trace[-1].evaluations, log_residuals, np.nan)
    return plots.Lines(
        TITLES[residual], "evaluations of the dual", "largest, power of ten", evaluations, residual_lines
    )
