"""Slowdown by job size.

Slowdown is completion time over duration: 1 is a job that ran at once. Left the typical job of each size, right the unluckiest
percent.
"""

# Group: Comparing policies
# Notebook: 00_quickstart
import gpuschedlab as lab
from gpuschedlab import plots

trace = lab.generate("venus", days=2, jobs=1500, load=0.9, cluster_gpus=160, rng=0)
cluster = lab.Cluster.homogeneous(nodes=20, gpus_per_node=8)
runs = {policy.name: lab.simulate(trace, cluster, policy) for policy in (lab.Fifo(), lab.Srtf(), lab.Tiresias())}

figure = plots.plot_slowdown_by_size(runs)
