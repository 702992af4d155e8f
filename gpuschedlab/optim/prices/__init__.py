"""A multiple-choice knapsack by prices: hulls, prices of GPU types, greedy repair, and a gap that is closed exactly."""
