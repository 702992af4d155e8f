"""Public names of `papers.ymir`, by module; loaded at first use."""

from .estimators.transfers import Transfers as Transfers
from .policy import Ymir as Ymir
from .speeds.transfer import Transfer as Transfer, transfer_speeds as transfer_speeds
from .explorer import YmirExplorer as YmirExplorer
from .figures import believed as believed, pair_map as pair_map
from .figures import plot_believed as plot_believed, plot_pair_map as plot_pair_map
from .metrics import merged_shares as merged_shares
