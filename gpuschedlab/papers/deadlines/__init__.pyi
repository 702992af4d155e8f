"""Public names of `papers.deadlines`, by module; loaded at first use."""

from .chronus import Chronus as Chronus
from .genie import Genie as Genie
from .orders import Hydra as Hydra, TriagedEdf as TriagedEdf, Urgent as Urgent
from .recipe import SmallLeases as SmallLeases
from .threesigma import ThreeSigma as ThreeSigma
from .unisched import UniSched as UniSched
from .explorer import UniSchedExplorer as UniSchedExplorer
