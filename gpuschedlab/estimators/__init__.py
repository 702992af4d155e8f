"""What a policy may know of a job before it has run: `fit` on an earlier trace, `predict` a later one."""

from gpuschedlab.estimators.base import KNOWN, Estimator, known
from gpuschedlab.estimators.bootstrap import Bootstrap
from gpuschedlab.estimators.history import History
from gpuschedlab.estimators.noisy import Noisy
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.estimators.runtime import Runtime

#: Estimators by the name that the command line uses.
ALL: dict[str, type[Estimator]] = {cls.__name__.lower(): cls for cls in (Oracle, Noisy, History, Runtime, Bootstrap)}

__all__ = ["ALL", "KNOWN", "Bootstrap", "Estimator", "History", "Noisy", "Oracle", "Runtime", "known"]
