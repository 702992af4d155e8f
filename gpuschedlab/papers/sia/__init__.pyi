"""Public names of `papers.sia`, by module; loaded at first use."""

from .configurations import sia_configurations as sia_configurations, sia_rigid as sia_rigid
from .policy import Sia as Sia
from .program import restart_factor as restart_factor, sia_round as sia_round
from .program import sia_steady_for as sia_steady_for, sia_utility as sia_utility
from .speeds.goodput import RESTART as RESTART, goodput_speeds as goodput_speeds
from .speeds.kinds import best_batch as best_batch, hybrid_speeds as hybrid_speeds
from .speeds.kinds import inference_speeds as inference_speeds, job_names as job_names, job_speeds as job_speeds
