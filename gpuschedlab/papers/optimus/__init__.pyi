"""Public names of `papers.optimus`, by module; loaded at first use."""

from .policy import Optimus as Optimus
