"""The programs themselves, as arrays: the objectives and limits of each round, merge or lease, and problems without GPU jobs.

The names of papers' programs stand in the stubs of their folders. Each is loaded when it is first used.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
