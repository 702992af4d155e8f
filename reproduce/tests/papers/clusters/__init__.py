"""Slurm and Kueue, sites, replays and what-if questions."""
