"""Policies of our papers, for editors; their order is that of `policies.ALL`. A paper that is not listed comes after them."""

from .optimus import Optimus as Optimus
from .pop import Pop as Pop
from .gavel import Gavel as Gavel, LenientRounds as LenientRounds
from .shockwave import Shockwave as Shockwave
from .pollux import Pollux as Pollux
from .sia import Sia as Sia
from .ymir import Ymir as Ymir
from .deadlines import Chronus as Chronus, UniSched as UniSched, Hydra as Hydra, Genie as Genie
from .deadlines import ThreeSigma as ThreeSigma, TriagedEdf as TriagedEdf, Urgent as Urgent
from .prompttuner import PromptTuner as PromptTuner, Infless as Infless, ElasticFlow as ElasticFlow
from .clusters import Kueue as Kueue, Slurm as Slurm
