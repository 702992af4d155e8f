"""What the check of an exercise returns: right, wrong or not answered, and a sentence that helps."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and why.

    Parameters
    ----------
    right : bool or None
        None: there is no answer yet.
    why : str
        A sentence for the person who answered.

    Examples
    --------
    >>> print(Verdict(False, "A share is at most 1."))
    Not yet right. A share is at most 1.
    """

    right: bool | None
    why: str

    @property
    def head(self) -> str:
        """The verdict in two or three words."""
        return {True: "Right.", False: "Not yet right.", None: "Not answered yet."}[self.right]

    def __bool__(self) -> bool:
        return bool(self.right)

    def __str__(self) -> str:
        return f"{self.head} {self.why}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        mark = {True: "&#x2714;", False: "&#x2718;", None: "&#x2026;"}[self.right]
        return f"<p>{mark} <b>{self.head}</b> {escape(self.why)}</p>"


class Mistake(Exception):
    """Ends a check: the answer is wrong, or (`right` None) missing."""

    def __init__(self, why: str, right: bool | None = False):
        super().__init__(why)
        self.right = right


def checked(check: Callable[..., str]) -> Callable[..., Verdict]:
    """Make a check that returns a `Verdict` of one that raises `Mistake`, or returns what to say of a right answer.

    Examples
    --------
    >>> @checked
    ... def even(answer):
    ...     require(answer % 2 == 0, "An even number leaves no rest.")
    ...     return "Two divides it."
    >>> even(3), even(4), even(None)
    (Not yet right. An even number leaves no rest., Right. Two divides it., Not answered yet. Answer, and run the cell again.)
    """

    @functools.wraps(check)
    def verdict(answer, *given, **options) -> Verdict:
        try:
            if answer is None:
                raise Mistake("Answer, and run the cell again.", None)
            return Verdict(True, check(answer, *given, **options))
        except Mistake as found:
            return Verdict(found.right, str(found))

    return verdict


def require(fact: bool, why: str) -> None:
    """Raise `Mistake` with `why` unless the fact holds."""
    if not fact:
        raise Mistake(why)


def call(function: Callable, *args):
    """What the function of an answer returns; errors in it are mistakes, None is no answer."""
    require(callable(function), f"Found {function!r}; expected a function.")
    try:
        found = function(*args)
    except Exception as raised:  # anybody's code: what it raises is part of the verdict
        raise Mistake(f"Your function raised {type(raised).__name__}: {raised}") from raised
    if found is None:
        raise Mistake("Your function returns nothing; write its body, and run the cell again.", None)
    return found


def number(value) -> float:
    """A finite number out of an answer."""
    try:
        found = float(value)
    except (TypeError, ValueError) as raised:
        raise Mistake(f"Found {value!r}; expected a number.") from raised
    require(math.isfinite(found), f"Found {found}; expected a finite number.")
    return found


def near(a: float, b: float, tolerance: float = 1e-3) -> bool:
    """Whether two numbers are the same but for rounding: relative to the larger, or absolute below 1."""
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def compare(found: float, right: float, mistakes: dict[str, float], say: str, tolerance: float = 1e-3) -> None:
    """Raise `Mistake` unless a number is right: with the explanation of the mistake that gives it, or with `say`.

    Parameters
    ----------
    found, right : float
        What was answered, and what is right.
    mistakes : dict of str to float
        What common mistakes give, by the sentence that explains each.
    say : str
        For any other number.
    """
    if near(found, right, tolerance):
        return
    for why, value in mistakes.items():
        require(not near(found, value, tolerance), why)
    raise Mistake(say)
