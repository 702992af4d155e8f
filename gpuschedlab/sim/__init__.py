"""Time: scenarios, the engine, its two drivers, what policies see, and what a run leaves behind.

The public names stand in `__init__.pyi`. Each is loaded when it is first used: a policy's class does not need the engine.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
