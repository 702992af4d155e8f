"""Workshop of gpuschedlab: published runs beside ours, budgets, recorders, planted faults. It holds tools, and small tests of these."""
