"""Public names of `estimators`, by module; loaded at first use. Their order is that of `ALL`."""

from collections.abc import Mapping

from .base import KNOWN as KNOWN, Estimator as Estimator, known as known
from .oracle import Oracle as Oracle
from .noisy import Noisy as Noisy
from .history import History as History
from .runtime import Runtime as Runtime
from .requested import Recent as Recent, Requested as Requested

ALL: Mapping[str, type[Estimator]]
