"""Queue and utilisation over time.

Above, how many jobs wait; below, which share of the GPUs is in use. A long queue beside idle GPUs means that the free ones are too
scattered, or kept back.
"""

# Group: Comparing policies
# Notebook: 00_quickstart
import gpuschedlab as lab
from gpuschedlab import plots

trace = lab.generate("venus", days=2, jobs=1500, load=0.9, cluster_gpus=160, rng=0)
cluster = lab.Cluster.homogeneous(nodes=20, gpus_per_node=8)
runs = {policy.name: lab.simulate(trace, cluster, policy) for policy in (lab.Fifo(), lab.Srtf(), lab.Tiresias())}

figure = plots.plot_load_over_time(runs)
