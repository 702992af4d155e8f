"""Public names of `papers.clusters`, by module; loaded at first use."""

from .queues.kueue import Kueue as Kueue
from .recipe import Site as Site
from .schedulers.slurm import Slurm as Slurm
from .explorer import SiteExplorer as SiteExplorer
from .figures import plot_waits_by_day as plot_waits_by_day, waits_by_day as waits_by_day
from .metrics import start_errors as start_errors, start_errors_by as start_errors_by
