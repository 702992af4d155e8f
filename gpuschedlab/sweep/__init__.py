"""Sweeps: policies x knobs x traces x clusters x seeds, each cell kept as soon as it is done.

`grids` makes policies from knobs, `plan` lists the cells, `identity` says what a cell is, `work` computes one,
`store` keeps it, `driver` runs them all, and `result` is what comes out.
"""

from gpuschedlab.sweep.driver import sweep
from gpuschedlab.sweep.grids import grid
from gpuschedlab.sweep.result import Sweep

__all__ = ["Sweep", "grid", "sweep"]
