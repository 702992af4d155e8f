"""Exercises of the notebooks: each checks an answer, and returns a `Verdict` with a sentence that helps.

What is right is computed by another way than the one asked for, at each call; there is no list of answers.
"""

from exercises.policies import consolidated, dispersion, paired_interval, response_ratio, waiting_avoided
from exercises.programs import best_choices, link_price, price_bound, proximal_step
from exercises.sharing import admitted, pair_worth, pool_bill, reserved
from exercises.tuning import adjusted, coverage, times_as_good
from exercises.verdict import Verdict

__all__ = [
    "Verdict",
    "adjusted",
    "admitted",
    "best_choices",
    "consolidated",
    "coverage",
    "dispersion",
    "link_price",
    "pair_worth",
    "paired_interval",
    "pool_bill",
    "price_bound",
    "proximal_step",
    "reserved",
    "response_ratio",
    "times_as_good",
    "waiting_avoided",
]
