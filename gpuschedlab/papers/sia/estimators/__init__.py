"""Estimates of a job's speed on a GPU type on which it has not run."""
