"""Interruptions.

How often a job was preempted, restarted or met a failure, on average.
"""

# Group: Comparing policies
# Notebook: 02_policies
import gpuschedlab as lab
from gpuschedlab import plots

trace = lab.generate("venus", days=2, jobs=1500, load=0.9, cluster_gpus=160, rng=0)
outages = tuple(lab.Outage(node=n, start=3600.0 * (1 + n), end=3600.0 * (3 + n)) for n in range(10))
cluster = lab.Cluster((lab.Nodes("v100", 20, 8),), outages)
runs = {policy.name: lab.simulate(trace, cluster, policy) for policy in (lab.Fifo(), lab.Srtf(), lab.Tiresias())}

figure = plots.plot_interruptions(runs)
