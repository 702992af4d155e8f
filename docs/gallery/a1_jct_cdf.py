"""Distribution of completion times.

Each line shows the share of jobs (up) that ended within a time (right) of their submission. Further left is better; where lines
cross, one policy serves the quick jobs and the other the slow ones.
"""

# Group: Comparing policies
# Notebook: 00_quickstart
import gpuschedlab as lab
from gpuschedlab import plots

trace = lab.generate("venus", days=2, jobs=1500, load=0.9, cluster_gpus=160, rng=0)
cluster = lab.Cluster.homogeneous(nodes=20, gpus_per_node=8)
runs = {policy.name: lab.simulate(trace, cluster, policy) for policy in (lab.Fifo(), lab.Srtf(), lab.Tiresias())}

figure = plots.plot_jct_cdf(runs)
