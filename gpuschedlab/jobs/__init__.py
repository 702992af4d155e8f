"""How fast jobs go: speed tables, and their builders from published profiles."""

from gpuschedlab.jobs.pollux import pollux_names, pollux_speeds
from gpuschedlab.jobs.profiles import RESTART, gavel_speeds, goodput_speeds, single_speeds
from gpuschedlab.jobs.speeds import Speeds
from gpuschedlab.jobs.spread import default_speeds, placement_speeds

__all__ = [
    "RESTART",
    "Speeds",
    "default_speeds",
    "gavel_speeds",
    "goodput_speeds",
    "placement_speeds",
    "pollux_names",
    "pollux_speeds",
    "single_speeds",
]
