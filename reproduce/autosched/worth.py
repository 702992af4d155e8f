"""From which price of an evaluation on it is worth measuring the past for a model, or for a portfolio."""

from __future__ import annotations

import math
import statistics

PLAIN = ("random", "search")
"""Methods that need nothing measured beforehand."""
OFFLINE = 210
"""Evaluations beforehand: 10 past days, each with the reference and 20 configurations."""


def evaluations(row: dict, method: str, within: float) -> int:
    """Evaluations of a case until a method is as near to the best known as asked; all of its own where it never is."""
    steps = row["steps"][method]
    near = (made for made, reward in steps if row["best"] / reward <= within)
    return next(near, steps[-1][0])


def worth(rows: list[dict], learnt: dict[str, str | None], prices: dict[str, float], within: float) -> list[dict]:
    """A row for each method that learns from the past and each price of an evaluation.

    Parameters
    ----------
    rows : list of dict
        Cases with room.
    learnt : dict
        By method the model that it asks, or None.
    prices : dict
        Seconds of an evaluation by their words.
    within : float
        Best known reward over that found, at which a search may stop.

    Returns
    -------
    list of dict
        `evaluations` until then on average, and `plain`, those of the best method that learns nothing; `decisions` after which what was
        spent beforehand is saved (inf: never).
    """
    plain, name = min((statistics.fmean(evaluations(row, name, within) for row in rows), name) for name in PLAIN)
    judged = []
    for method, kind in learnt.items():
        made = statistics.fmean(evaluations(row, method, within) for row in rows)
        asking = statistics.fmean(list(row["ways"][method].values())[-1][2] for row in rows)
        learning = statistics.fmean(row["trained"].get(kind, 0.0) for row in rows)
        for words, price in prices.items():
            saved = (plain - made) * price - asking
            beforehand = OFFLINE * price + learning
            decisions = beforehand / saved if saved > 0 else math.inf
            line = {"method": method, "price": words, "evaluations": made, "plain": plain, "plain method": name}
            judged.append(line | {"decisions": decisions})
    return judged
