"""Scheduling policies: orders of jobs, a file each. Those of papers lie in `papers/`, and are public here as well.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

from gpuschedlab._faces import Classes, attach

__getattr__, __dir__ = attach(__name__, "ALL")

WRAPPERS = ("Pop", "LenientRounds")
"""Policies around another one, which must be given."""

ALL = Classes(__getattr__, lambda: (name for name in __getattr__("__all__") if name not in ("ALL", *WRAPPERS)))
"""Policies by the name that the command line uses."""
