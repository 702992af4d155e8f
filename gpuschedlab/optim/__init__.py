"""Linear and integer programs as arrays, and the solvers that take them.

The public names stand in `__init__.pyi`. Each is loaded when it is first used: the compiled part imports numba.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# At once, since the module of the same name would otherwise hide the function.
from gpuschedlab.optim.solve import solve  # noqa: E402
