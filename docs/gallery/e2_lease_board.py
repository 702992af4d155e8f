"""Leases and deadlines.

Which job has which GPUs in each lease under UniSched, and which deadlines are kept (circle) or missed (cross).
"""

# Group: Systems
# Notebook: 14_unisched
from gpuschedlab import plots
from gpuschedlab.widgets import SmallLeases

small = SmallLeases(nodes=2, jobs=15)
scenario = small(seed=0)

figure = plots.figure(plots.lease_board(scenario.run(small.policies["UniSched"])))
