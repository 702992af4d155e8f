"""Deadlines against best effort.

Violations of deadlines against the completion times of best-effort jobs, for several policies.
"""

# Group: Systems
# Notebook: 14_unisched
from gpuschedlab import plots
from gpuschedlab.widgets import SmallLeases

small = SmallLeases(nodes=2, jobs=15)
scenario = small(seed=0)
runs = {name: scenario.run(policy) for name, policy in small.policies.items()}

figure = plots.figure(plots.trade_off(runs, "UniSched"))
