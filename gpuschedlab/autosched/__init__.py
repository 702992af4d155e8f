"""AutoSched (thesis, chapter 6): forecast the near future, learn what the knobs cause, tune the running scheduler.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
