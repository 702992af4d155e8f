"""The schedulers of real clusters, Slurm and Kueue, and what they order and count by."""
