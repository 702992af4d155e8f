"""Words of a verdict, and what the judge finds of one row."""

from dataclasses import dataclass

AS_PUBLISHED = "as published"
MORE = "more"
LESS = "less"
OTHER_WAY = "other way"
ROWS_DIFFER = "rows differ"
NOT_CLEAR = "not clear"
NOT_MEASURED = "not measured"

VERDICTS = (AS_PUBLISHED, MORE, LESS, OTHER_WAY, ROWS_DIFFER, NOT_CLEAR, NOT_MEASURED)
"""Words of a verdict, in the order in which pages count them."""

SIDES = (AS_PUBLISHED, OTHER_WAY, ROWS_DIFFER, NOT_CLEAR, "")
"""Words of the column *side*; empty if a claim is not about a side."""

SIZES = (AS_PUBLISHED, MORE, LESS, ROWS_DIFFER, NOT_CLEAR, "")
"""Words of the column *size*; empty if no size is published."""


@dataclass(frozen=True)
class RowWord:
    """The word of one row.

    Parameters
    ----------
    word : str
        Of `VERDICTS`, but *rows differ* and *not measured*.
    middle : str
        The word that the row would have if its interval were a point.
    side : str
        *As published*, *other way* or *not clear*; empty if the row has no effect whose side is published.
    size : str
        *As published*, *more*, *less* or *not clear*; empty if the row has no published size.
    """

    word: str
    middle: str
    side: str = ""
    size: str = ""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim.

    Parameters
    ----------
    word : str
        Of `VERDICTS`.
    side : str
        Of `SIDES`.
    size : str
        Of `SIZES`.
    effect : bool
        Whether *more* and *less* are said of an effect. They may also be said of a level, an error or a bound.
    fewest_runs : int
        Runs of the row that has fewest.
    rows : tuple of RowWord
        Words of the rows.
    """

    word: str
    side: str = ""
    size: str = ""
    effect: bool = False
    fewest_runs: int = 0
    rows: tuple[RowWord, ...] = ()
