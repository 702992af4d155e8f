"""Public names of `papers.gavel`, by module; loaded at first use."""

from .policy import Gavel as Gavel
from .lenient_rounds import LenientRounds as LenientRounds
from .program import gavel_finish_time as gavel_finish_time, gavel_max_min as gavel_max_min
from .program import gavel_max_sum as gavel_max_sum, gavel_water_filling as gavel_water_filling
