"""Public names of `papers.copter`, by module; loaded at first use."""

from .explorers.copter_explorer import CopterExplorer as CopterExplorer
from .explorers.similar_rounds import SimilarRounds as SimilarRounds
from .solver.partition import Pop as Pop
from .solver.proximal import Copter as Copter
from .solver.relaxed import Relaxed as Relaxed
from .solver.sift import Sift as Sift
