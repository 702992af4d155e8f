"""Two metrics against each other.

Each point is a configuration; those on the line are not beaten in both metrics by any other.
"""

# Group: Sweeps
# Notebook: 04_your_policy
import tempfile

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.sweep import grid, sweep

trace = lab.generate("venus", days=1, jobs=600, load=0.9, cluster_gpus=48, rng=0)
scenario = lab.Scenario(trace, lab.Cluster.homogeneous(nodes=6, gpus_per_node=8), delays=lab.Delays(restart=60.0))
policies = grid(lab.Tiresias, thresholds=[100.0, 1e3, 1e4, 1e5, 1e6])
found = sweep(scenario, policies, tempfile.mkdtemp(), progress=False)

figure = plots.plot_sweep(found, "jct_mean", "preemptions")
