"""How fast jobs go: speed tables, and their builders from published profiles."""

from gpuschedlab.speeds.pollux import pollux_names, pollux_speeds
from gpuschedlab.speeds.profiles import RESTART, gavel_speeds, goodput_speeds, single_speeds
from gpuschedlab.speeds.spread import default_speeds, placement_speeds
from gpuschedlab.speeds.table import Speeds

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
