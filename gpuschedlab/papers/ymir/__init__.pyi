"""Public names of `papers.ymir`, by module; loaded at first use."""

from .estimators.transfers import Transfers as Transfers
from .policy import Ymir as Ymir
from .speeds.transfer import Transfer as Transfer, transfer_speeds as transfer_speeds
from .explorer import MergerSteps as MergerSteps, YmirExplorer as YmirExplorer
