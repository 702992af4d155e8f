"""The causal lab: a log of intervals whose knob follows the load, its apparent effect, and the simulated truth beside it."""
