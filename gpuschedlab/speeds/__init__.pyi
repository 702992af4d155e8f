"""Public names of `speeds`, by module; loaded at first use."""

from .curves import Curves as Curves
from .delays import Delays as Delays
from .efficiency import Gradients as Gradients, gain as gain
from .profiles import single_speeds as single_speeds
from .spread import default_speeds as default_speeds, placement_speeds as placement_speeds
from .table import Speeds as Speeds
from .throughput import Throughput as Throughput, fit_throughput as fit_throughput, throughput_of as throughput_of
