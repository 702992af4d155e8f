"""Time: scenarios, the engine, its two drivers, the views of policies, and the results of a run.

The public names stand in `__init__.pyi`. Each is loaded when it is first used: a policy's class does not need the engine.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
