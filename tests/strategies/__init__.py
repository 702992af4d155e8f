"""Strategies of all that a user makes: `strategy_of(Cluster)`, `strategy_of(Tiresias)`, `arguments_of(Slurm)`.

Classes with knobs have theirs from the declarations, policies and estimators that hold others from the registries; the rest is
written by hand.
"""

from strategies.registry import arguments_of as arguments_of
from strategies.registry import strategy_of as strategy_of
