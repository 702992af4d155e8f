"""Public names of `policies.shockwave`, by module; loaded at first use."""

from .policy import Shockwave as Shockwave
from .program import shockwave_window as shockwave_window
