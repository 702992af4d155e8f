"""A laboratory for GPU-cluster scheduling of deep-learning work: one simulator, one job model, every published scheduler.

The public names stand in `__init__.pyi`. Each is loaded when it is first used, so that the import itself is quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
