"""Public names of `papers.pollux`, by module; loaded at first use."""

from .policy import Pollux as Pollux
