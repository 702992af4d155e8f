"""Scheduling policies: one paper per file."""

from gpuschedlab.policies.gavel import Gavel
from gpuschedlab.policies.lucid import Lucid
from gpuschedlab.policies.optimus import Optimus
from gpuschedlab.policies.pop import Pop
from gpuschedlab.policies.sia import Sia
from gpuschedlab.policies.simple import Edf, Fifo, Sjf, Srtf
from gpuschedlab.policies.themis import Themis
from gpuschedlab.policies.tiresias import Tiresias

ALL = {cls.__name__.lower(): cls for cls in (Fifo, Sjf, Srtf, Edf, Tiresias, Themis, Lucid, Gavel, Optimus, Sia)}
"""Policies by the name that the command line uses."""

__all__ = ["ALL", "Pop", *(cls.__name__ for cls in ALL.values())]
