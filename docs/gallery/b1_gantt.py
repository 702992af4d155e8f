"""Jobs on each node.

A row is a node, a bar is a job, as high as its share of the node's GPUs. A red triangle ends a stretch before its job was done. Hover
for a job's whole life.
"""

# Group: What happened on the cluster
# Notebook: 02_policies
import gpuschedlab as lab
from gpuschedlab import plots

trace = lab.generate("venus", days=1, jobs=500, load=0.9, cluster_gpus=64, rng=0)
run = lab.simulate(trace, lab.Cluster.homogeneous(nodes=8, gpus_per_node=8), lab.Srtf())

figure = plots.plot_gantt(run, start=6 * 3600, end=12 * 3600)
