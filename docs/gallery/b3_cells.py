"""Buddy cells of a node.

How each node is split into cells of powers of two at one moment, and which job has which.
"""

# Group: What happened on the cluster
# Notebook: 01_waiting
from gpuschedlab import plots
from gpuschedlab.widgets import SmallCluster

small = SmallCluster(nodes=4, jobs=60, load=0.95, large=0.3)
run = small(seed=0).run(small.policies["buddy"])

figure = plots.figure(plots.cells(plots.seats(run), 40))
