"""Public names of `papers.sia`, by module; loaded at first use."""

from .configurations import sia_configurations as sia_configurations, sia_rigid as sia_rigid
from .policy import Sia as Sia
from .program import restart_factor as restart_factor, sia_round as sia_round
from .program import sia_steady_for as sia_steady_for, sia_utility as sia_utility
from .speeds import RESTART as RESTART, goodput_speeds as goodput_speeds
from .figures import bootstrap as bootstrap, plot_bootstrap as plot_bootstrap
from .figures import plot_worth as plot_worth, worth as worth
from .workload import read_workload as read_workload
