"""The causal lab: a log of intervals whose knob follows the load, what it seems to say, and the simulated truth beside it."""
