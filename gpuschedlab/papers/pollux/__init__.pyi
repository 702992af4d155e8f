"""Public names of `papers.pollux`, by module; loaded at first use."""

from .policy import Pollux as Pollux
from .speeds.adaptive import adaptive_speeds as adaptive_speeds
from .speeds.profiles import pollux_elastic_speeds as pollux_elastic_speeds, pollux_names as pollux_names
from .speeds.profiles import pollux_speeds as pollux_speeds
from .speeds.tuned import tuned_jobs as tuned_jobs
