"""GPUs requested.

Which share of the jobs requests how many GPUs, and which share of the GPU-time these jobs take.
"""

# Group: Traces
# Notebook: 01_waiting
import gpuschedlab as lab
from gpuschedlab import plots

traces = {name: lab.generate(name, days=7, load=0.9, cluster_gpus=160, rng=0) for name in ("venus", "philly", "pai")}

figure = plots.figure(plots.demand(traces))
