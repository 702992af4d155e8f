"""What a policy may know of a job before it has run: `fit` on an earlier trace, `predict` a later one.

The public names stand in `__init__.pyi`, those of papers in the stubs of their folders. Each is loaded when it is first used.
"""

from gpuschedlab._faces import Classes, attach

__getattr__, __dir__, __all__ = attach(__name__)

#: Estimators by the name that the command line uses.
ALL = Classes(__getattr__, (name for name in __all__ if name not in ("KNOWN", "Estimator", "known")))

__all__ += ["ALL"]
