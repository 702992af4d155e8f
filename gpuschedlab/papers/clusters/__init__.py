"""A site's own cluster: shares, usage, priorities and quotas as Slurm and Kueue document them, replayed against its own log."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
