"""Explorers: controls made from knobs, and figures that follow them. What they share is in `core`.

The public names stand in `__init__.pyi`. Each is loaded when it is first used, since it needs the packages of the extra `lab`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
