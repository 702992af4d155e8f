"""The workload: the schema of a trace, one reader a published format, the generator, calibration, fetching.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
