"""Effects of a scheduler's knobs: the causal graph, and models learnt on it."""
