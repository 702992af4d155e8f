"""A metric over two knobs.

A map: where on the plane of two knobs is it best?
"""

# Group: Sweeps
# Notebook: 02_policies
import tempfile

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.sweep import grid, sweep

trace = lab.generate("venus", days=1, jobs=600, load=0.9, cluster_gpus=48, rng=0)
scenario = lab.Scenario(trace, lab.Cluster.homogeneous(nodes=6, gpus_per_node=8), delays=lab.Delays(restart=60.0))
policies = grid(lab.Themis, f=[0.1, 0.4, 0.7, 0.9], lease_term=[600.0, 1800.0, 3600.0, 7200.0])
found = sweep(scenario, policies, tempfile.mkdtemp(), progress=False)

figure = plots.plot_sweep(found, "f", "lease_term", metric="rho_worst")
