"""Explorers: controls made from knobs, and figures that follow them. Their common parts are in `core`.

The public names stand in `__init__.pyi`. Each is loaded when it is first used, since it needs the packages of the extra `lab`.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
