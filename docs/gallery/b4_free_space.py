"""Free GPUs, and GPUs that waiting jobs request.

Where the second line is above the first, jobs wait for want of GPUs; where GPUs are free and jobs wait, they are too scattered.
"""

# Group: What happened on the cluster
# Notebook: 01_waiting
from gpuschedlab import plots
from gpuschedlab.widgets import SmallCluster

small = SmallCluster(nodes=4, jobs=60, load=0.95, large=0.3)
run = small(seed=0).run(small.policies["buddy"])

figure = plots.figure(plots.free_space(run))
