"""Metrics of a run: numbers from its frames, each with its equation and source.

Per-job functions return arrays, one entry a measured job; the rest return one number.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
