"""How fast jobs go: speed tables, learning curves, delays, and their builders from published profiles.

The public names stand in `__init__.pyi`, those of papers in the stubs of their folders. Each is loaded when it is first used.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
