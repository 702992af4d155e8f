"""Public names of `policies`, by module or paper; loaded at first use. Their order is that of `ALL`."""

from collections.abc import Mapping

from gpuschedlab.sim.policy import Policy

from .simple import Fifo as Fifo, Sjf as Sjf, Srtf as Srtf, Edf as Edf
from .tiresias import Tiresias as Tiresias
from .themis import Themis as Themis
from .lucid import Lucid as Lucid
from .themis import ThemisRounds as ThemisRounds
from .gavel import Gavel as Gavel
from .shockwave import Shockwave as Shockwave
from .optimus import Optimus as Optimus
from .pollux import Pollux as Pollux
from .sia import Sia as Sia
from .ymir import Ymir as Ymir
from .deadlines import Chronus as Chronus, UniSched as UniSched, Hydra as Hydra, Genie as Genie
from .deadlines import ThreeSigma as ThreeSigma, TriagedEdf as TriagedEdf, Urgent as Urgent
from .prompttuner import PromptTuner as PromptTuner, Infless as Infless, ElasticFlow as ElasticFlow
from .site import Kueue as Kueue, Slurm as Slurm
from .pop import Pop as Pop

ALL: Mapping[str, type[Policy]]
