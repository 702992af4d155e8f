"""A metric over a knob.

Lines over one knob; with several seeds, means, and from the least seed to the largest.
"""

# Group: Sweeps
# Notebook: 02_policies
import tempfile

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.sweep import grid, sweep

trace = lab.generate("venus", days=1, jobs=600, load=0.9, cluster_gpus=48, rng=0)
scenario = lab.Scenario(trace, lab.Cluster.homogeneous(nodes=6, gpus_per_node=8), delays=lab.Delays(restart=60.0))
policies = grid(lab.Tiresias, thresholds=[100.0, 1e3, 1e4, 1e5, 1e6])
found = sweep(scenario, policies, tempfile.mkdtemp(), progress=False)

figure = plots.plot_sweep(found, "thresholds", metric="jct_mean")
