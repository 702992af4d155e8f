"""The search for better knobs: the space, the samplers, the measurements, the causal tuner."""
