"""The ScaleExplorer: the price of a GPU, and what is lost in parts, as the cluster grows."""

from typing import ClassVar

import numpy as np

from gpuschedlab import plots
from gpuschedlab.metrics.sentence import Amount
from gpuschedlab.metrics.who_pays import counted
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer

UTILITY = Amount("utility", "the round is worth", "{:,.1f}")
PARTS = (1, 2, 4, 8)


class ScaleExplorer(KnobExplorer):
    """Move the GPUs of a round: the price of a GPU of each type, each job's choice, and POP's loss over its parts.

    Parameters as for `KnobExplorer`; the first of its two rounds is solved.

    Examples
    --------
    >>> explorer = ScaleExplorer(SimilarRounds(jobs=20))
    >>> scarce = explorer.prices.max()
    >>> explorer.knobs["room"].value = 8.0
    >>> bool(explorer.prices.max() < scarce)
    True
    """

    places = (plots.Place("hull", 340, least=220), plots.Place("parts", 340, least=240))
    kept: ClassVar = {"room": (0.5, 1.0, 2.0, 3.0, 5.0, 8.0)}

    begin = SimilarRounds

    def _compute(self, rounds: SimilarRounds) -> tuple:
        return price_and_parts(rounds)

    def _page(self, answer) -> Page:
        problem, chosen, lost = answer
        self.prices = chosen.prices
        names = ("prices", f"POP in {PARTS[-1]} parts")
        divided = (1 - lost[-1]) * chosen.bound
        each = ", ".join(f"{price:.3f}" for price in chosen.prices)
        waiting = int((chosen.choice < 0).sum())
        return Page(
            {"hull": price_tag(problem, chosen), "parts": parts_lost(lost)},
            comparisons=(counted(UTILITY, chosen.objective, divided, names),),
            words=f"Prices {each}; {waiting} of {problem.shape[0]} jobs wait; gap {chosen.gap:.1e}.",
        )


def price_and_parts(rounds: SimilarRounds) -> tuple:
    """The first round, its choice by prices, and the share lost by POP in each of `PARTS`."""
    from gpuschedlab.optim import solve, solve_mckp

    problem = rounds.programs()[0]
    chosen = solve_mckp(problem.utility, problem.kinds, problem.gpus, problem.capacity)
    lost = [1 - solve(problem, "pop", parts=k, inner="prices").objective / chosen.bound for k in PARTS]
    return problem, chosen, np.array(lost)


def price_tag(problem, chosen, job: int = 0):
    """One job's worth over GPUs of each type, less their price, as `plots.Lines`: it takes the highest point above 0."""
    sizes = np.unique(problem.gpus)
    values = {}
    for kind, price in enumerate(chosen.prices):
        mine = problem.kinds == kind
        values[f"type {kind}, price {price:.3f}"] = problem.utility[job, mine] - price * problem.gpus[mine]
    return plots.Lines(f"Job {job}: worth less price", "GPUs", "utility", sizes, values)


def parts_lost(lost: np.ndarray):
    """Share of the bound that POP loses, over its parts, as `plots.Lines`."""
    return plots.Lines("POP: lost of the bound", "parts", "%", np.array(PARTS), {"POP": 100 * lost})
