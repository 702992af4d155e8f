"""Values that no field means, and what comes of them: taken, or refused by the field's name and what was expected."""

import math
from collections.abc import Callable

from gpuschedlab.errors import LabError

WRONG = (
    "x", "", math.nan, math.inf, -1, 0.5, None, True, b"x", object(), [], (), {}, [1, "a"], ("a", 1), int, 2**70,
)  # fmt: skip


def refused(make: Callable, name: str, value: object) -> bool:
    """Whether `make(name=value)` is refused; any error but the package's own goes on."""
    try:
        make(**{name: value})
    except LabError as error:
        words = str(error)
    else:
        return False
    assert name in words, words
    assert "expected" in words, words
    return True


def taken(make: Callable, name: str) -> list[str]:
    """Representations of the wrong values that are taken; objects without one are "object"."""
    return [repr(value) if type(value) is not object else "object" for value in WRONG if not refused(make, name, value)]
