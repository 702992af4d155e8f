"""The programs themselves, as arrays: what each round, merge or lease optimises."""

from gpuschedlab.problems.configurations import sia_configurations, sia_rigid
from gpuschedlab.problems.gavel import gavel_finish_time, gavel_max_min, gavel_max_sum, gavel_water_filling
from gpuschedlab.problems.shockwave import shockwave_window
from gpuschedlab.problems.sia import restart_factor, sia_round, sia_steady_for, sia_utility

__all__ = [
    "gavel_finish_time",
    "gavel_max_min",
    "gavel_max_sum",
    "gavel_water_filling",
    "restart_factor",
    "shockwave_window",
    "sia_configurations",
    "sia_rigid",
    "sia_round",
    "sia_steady_for",
    "sia_utility",
]
