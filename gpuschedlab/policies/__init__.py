"""Scheduling policies: one paper per file."""

from gpuschedlab.policies.gavel import Gavel
from gpuschedlab.policies.lucid import Lucid
from gpuschedlab.policies.optimus import Optimus
from gpuschedlab.policies.pollux import Pollux
from gpuschedlab.policies.pop import Pop
from gpuschedlab.policies.shockwave import Shockwave
from gpuschedlab.policies.sia import Sia
from gpuschedlab.policies.simple import Edf, Fifo, Sjf, Srtf
from gpuschedlab.policies.themis import Themis, ThemisRounds
from gpuschedlab.policies.tiresias import Tiresias

_CLASSES = (Fifo, Sjf, Srtf, Edf, Tiresias, Themis, ThemisRounds, Lucid, Gavel, Shockwave, Optimus, Pollux, Sia)
ALL = {cls.__name__.lower(): cls for cls in _CLASSES}
"""Policies by the name that the command line uses."""

__all__ = ["ALL", "Pop", *(cls.__name__ for cls in ALL.values())]
