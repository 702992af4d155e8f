"""How many examples a test draws where seeds are no cases of their own: all with `make test ALL=1`, few otherwise."""

import os

ALL = bool(os.environ.get("GPUSCHEDLAB_ALL_TESTS"))
"""Whether all tests run (`make test ALL=1`)."""


def few(quick: int, most: int) -> int:
    """Number of examples."""
    return most if ALL else quick
