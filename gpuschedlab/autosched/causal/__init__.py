"""What the knobs of a scheduler cause: the causal graph, and models learnt on it."""
