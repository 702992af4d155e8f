"""Causes of a reward.

A causal graph from logs: which knob acts on which metric, and through it on the reward (AutoSched).
"""

# Group: Systems
# Notebook: 10_causal
import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.autosched import Layers, learn_graph

rng = np.random.default_rng(0)
k = rng.random((500, 4))
waiting = 2 * k[:, 0] - 2 * k[:, 1] + 0.4 * rng.standard_normal(500)
restarts = 2 * k[:, 1] + 2 * k[:, 3] + 0.4 * rng.standard_normal(500)
worth = restarts + 0.8 * waiting + 0.4 * rng.standard_normal(500)
log = pl.DataFrame(k, schema=["k0", "k1", "k2", "k3"]).with_columns(waiting=waiting, restarts=restarts, worth=worth)
graph = learn_graph(log, Layers(("k0", "k1", "k2", "k3"), ("waiting", "restarts"), ("worth",)))

figure = plots.figure(plots.causes(graph))
