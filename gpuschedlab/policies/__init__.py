"""Scheduling policies: a file each, or a folder for a paper with its policies, program, estimators and speeds.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

from gpuschedlab._faces import Classes, attach

__getattr__, __dir__, __all__ = attach(__name__)

ALL = Classes(__getattr__, (name for name in __all__ if name != "Pop"))
"""Policies by the name that the command line uses."""

__all__ += ["ALL"]
