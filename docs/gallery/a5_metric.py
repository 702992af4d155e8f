"""One metric of several runs.

Any metric of the table of `metrics.METRICS`, a bar for each run.
"""

# Group: Comparing policies
# Notebook: 02_policies
import gpuschedlab as lab
from gpuschedlab import plots

trace = lab.generate("venus", days=2, jobs=1500, load=0.9, cluster_gpus=160, rng=0)
cluster = lab.Cluster.homogeneous(nodes=20, gpus_per_node=8)
runs = {policy.name: lab.simulate(trace, cluster, policy) for policy in (lab.Fifo(), lab.Srtf(), lab.Tiresias())}

figure = plots.plot_metric_bars(runs, "jct_mean")
