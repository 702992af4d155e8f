"""Sweeps: policies x knobs x scenarios x seeds, each cell kept as soon as it is done.

`grids` makes policies from knobs, `scenarios` crosses traces with clusters, `plan` lists the cells, `identity` names a
cell, `work` computes one, `store` keeps it, `driver` runs them all, and `result` is the frame of all.
"""

from gpuschedlab.sweep.driver import sweep
from gpuschedlab.sweep.plan import grid
from gpuschedlab.sweep.result import Sweep
from gpuschedlab.sweep.scenarios import cross

__all__ = ["Sweep", "cross", "grid", "sweep"]
