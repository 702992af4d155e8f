"""Scheduling policies: one paper per file."""

from gpuschedlab.policies.chronus import Chronus
from gpuschedlab.policies.deadlines import Hydra, TriagedEdf, Urgent
from gpuschedlab.policies.elasticflow import ElasticFlow
from gpuschedlab.policies.gavel import Gavel
from gpuschedlab.policies.genie import Genie
from gpuschedlab.policies.infless import Infless
from gpuschedlab.policies.lucid import Lucid
from gpuschedlab.policies.optimus import Optimus
from gpuschedlab.policies.pollux import Pollux
from gpuschedlab.policies.pop import Pop
from gpuschedlab.policies.prompttuner import PromptTuner
from gpuschedlab.policies.shockwave import Shockwave
from gpuschedlab.policies.sia import Sia
from gpuschedlab.policies.simple import Edf, Fifo, Sjf, Srtf
from gpuschedlab.policies.themis import Themis, ThemisRounds
from gpuschedlab.policies.threesigma import ThreeSigma
from gpuschedlab.policies.tiresias import Tiresias
from gpuschedlab.policies.unisched import UniSched
from gpuschedlab.policies.ymir import Ymir

_ORDERS = (Fifo, Sjf, Srtf, Edf, Tiresias, Themis, Lucid)
_ROUNDS = (ThemisRounds, Gavel, Shockwave, Optimus, Pollux, Sia, Ymir)
_DEADLINES = (Chronus, UniSched, Hydra, Genie, ThreeSigma, TriagedEdf, Urgent)
_PROMPTS = (PromptTuner, Infless, ElasticFlow)
ALL = {cls.__name__.lower(): cls for cls in _ORDERS + _ROUNDS + _DEADLINES + _PROMPTS}
"""Policies by the name that the command line uses."""

__all__ = ["ALL", "Pop", *(cls.__name__ for cls in ALL.values())]
