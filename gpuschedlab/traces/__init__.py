"""What arrives: the schema of a trace, one reader a published format, the generator, calibration, fetching.

The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
