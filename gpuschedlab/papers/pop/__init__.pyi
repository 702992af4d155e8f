"""Public names of `papers.pop`, by module; loaded at first use."""

from .policy import Pop as Pop
