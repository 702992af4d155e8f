"""AutoSched (thesis, chapter 6): forecast the near future, learn what the knobs cause, tune the running scheduler.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

from gpuschedlab._faces import attach as _attach

__getattr__, __dir__ = _attach(__name__)
