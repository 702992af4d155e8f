"""A policy's knowledge of a job before it has run: `fit` on an earlier trace, `predict` a later one.

The public names stand in `__init__.pyi`, those of papers in the stubs of their folders. Each is loaded when it is first used.
"""

from gpuschedlab._faces import Classes, attach

__getattr__, __dir__ = attach(__name__, "ALL")

ALL = Classes(
    __getattr__, lambda: (name for name in __getattr__("__all__") if name not in ("ALL", "KNOWN", "Estimator", "known"))
)
"""Estimators by the name that the command line uses."""
