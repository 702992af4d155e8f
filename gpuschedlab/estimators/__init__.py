"""What a policy may know of a job before it has run: `fit` on an earlier trace, `predict` a later one."""

from gpuschedlab.estimators.base import KNOWN, Estimator, known
from gpuschedlab.estimators.bootstrap import Bootstrap
from gpuschedlab.estimators.history import History
from gpuschedlab.estimators.learning_curve import LearningCurve
from gpuschedlab.estimators.noisy import Noisy
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.estimators.runtime import Runtime
from gpuschedlab.estimators.transfers import Transfers

#: Estimators by the name that the command line uses.
_CLASSES = (Oracle, Noisy, History, Runtime, Bootstrap, LearningCurve, Transfers)
ALL: dict[str, type[Estimator]] = {cls.__name__.lower(): cls for cls in _CLASSES}

__all__ = ["ALL", "KNOWN", "Estimator", "known", *(cls.__name__ for cls in _CLASSES)]
