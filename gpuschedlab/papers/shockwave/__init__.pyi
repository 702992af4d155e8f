"""Public names of `papers.shockwave`, by module; loaded at first use."""

from .policy import Shockwave as Shockwave
from .program import shockwave_window as shockwave_window
