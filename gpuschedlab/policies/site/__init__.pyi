"""Public names of `policies.site`, by module; loaded at first use."""

from .recipe import Site as Site
from .slurm import Slurm as Slurm
