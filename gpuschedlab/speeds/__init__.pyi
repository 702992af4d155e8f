"""Public names of `speeds`, by module; loaded at first use."""

from .curves import Curves as Curves
from .delays import Delays as Delays
from .profiles import single_speeds as single_speeds
from .spread import default_speeds as default_speeds, placement_speeds as placement_speeds
from .table import Speeds as Speeds
