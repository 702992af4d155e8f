"""Public names of `papers.deadlines`, by module; loaded at first use."""

from .chronus import Chronus as Chronus
from .genie import Genie as Genie
from .orders import Hydra as Hydra, TriagedEdf as TriagedEdf, Urgent as Urgent
from .recipe import SmallLeases as SmallLeases
from .threesigma import ThreeSigma as ThreeSigma
from .unisched import UniSched as UniSched
from .explorer import UniSchedExplorer as UniSchedExplorer
from .estimators.learning_curve import LearningCurve as LearningCurve
from .figures import arrival as arrival, lease_board as lease_board
from .figures import planned_leases as planned_leases, plot_arrival as plot_arrival
from .figures import plot_lease_board as plot_lease_board, plot_planned_leases as plot_planned_leases
from .figures import plot_trade_off as plot_trade_off, trade_off as trade_off
from .workload import (
    read_chronus as read_chronus,
    with_deadlines as with_deadlines,
    with_start_delays as with_start_delays,
)
