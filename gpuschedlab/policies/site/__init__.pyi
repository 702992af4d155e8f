"""Public names of `policies.site`, by module; loaded at first use."""

from .kueue import Kueue as Kueue
from .recipe import Site as Site
from .slurm import Slurm as Slurm
