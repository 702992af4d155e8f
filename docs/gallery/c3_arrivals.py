"""Jobs submitted.

Arrivals over time: by day and night, and in bursts.
"""

# Group: Traces
# Notebook: 01_waiting
import gpuschedlab as lab
from gpuschedlab import plots

traces = {name: lab.generate(name, days=7, load=0.9, cluster_gpus=160, rng=0) for name in ("venus", "philly", "pai")}

figure = plots.figure(plots.arrivals({"philly": traces["philly"]}))
