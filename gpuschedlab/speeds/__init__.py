"""How fast jobs go: speed tables, learning curves, delays, and their builders from published profiles."""

from gpuschedlab.speeds.adaptive import adaptive_speeds
from gpuschedlab.speeds.curves import Curves
from gpuschedlab.speeds.delays import Delays
from gpuschedlab.speeds.efficiency import Gradients, gain
from gpuschedlab.speeds.kinds import best_batch, hybrid_speeds, inference_speeds, job_names, job_speeds
from gpuschedlab.speeds.pollux import pollux_elastic_speeds, pollux_names, pollux_speeds
from gpuschedlab.speeds.profiles import RESTART, gavel_speeds, goodput_speeds, single_speeds
from gpuschedlab.speeds.spread import default_speeds, placement_speeds
from gpuschedlab.speeds.table import Speeds
from gpuschedlab.speeds.throughput import Throughput, fit_throughput, throughput_of
from gpuschedlab.speeds.transfer import Transfer, transfer_speeds
from gpuschedlab.speeds.tuned import tuned_jobs

__all__ = [
    "RESTART",
    "Curves",
    "Delays",
    "Gradients",
    "Speeds",
    "Throughput",
    "Transfer",
    "adaptive_speeds",
    "best_batch",
    "default_speeds",
    "fit_throughput",
    "gain",
    "gavel_speeds",
    "goodput_speeds",
    "hybrid_speeds",
    "inference_speeds",
    "job_names",
    "job_speeds",
    "placement_speeds",
    "pollux_elastic_speeds",
    "pollux_names",
    "pollux_speeds",
    "single_speeds",
    "throughput_of",
    "transfer_speeds",
    "tuned_jobs",
]
