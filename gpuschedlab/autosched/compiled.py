"""Compiling ahead: a small use of AutoSched's own compiled code."""

import numpy as np

from gpuschedlab.autosched.forecast.features import Seen
from gpuschedlab.autosched.forecast.repository import observe
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario, Simulation


def use_compiled_code() -> None:
    """Make the features from which durations are forecast."""
    jobs = recurring_sample(60, 0)
    simulation = Simulation(Scenario(jobs, Cluster.homogeneous(1, 8)), Fifo())
    simulation.run()
    Seen(observe(simulation)).features(jobs.head(5).with_columns(executed=0.0), np.full(5, 20_000.0), 2)
