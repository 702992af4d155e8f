"""What an answer of the solver arena is worth, from the arrays of its program alone."""

import numpy as np

from gpuschedlab.optim import Program

FEW = 1e-6
"""Distance from a bound, relative to 1 or the bound, from which on a variable counts as between its bounds, and a row as not tight."""


def checked(program: Program, x: np.ndarray) -> dict:
    """Value of a point, and how far it breaks its program.

    Returns
    -------
    dict
        `objective`; `maximize`, and `cost`, the largest cost of a variable; `rows`: the largest amount by which a row is broken,
        relative to its capacity (`capacities`); `bounds`: by which a bound of a variable is, relative to it or 1; `unwhole`: the
        largest distance of whole variables from whole numbers; `between`: variables strictly between their bounds; `vertex`:
        whether these are at most as many as rows that are tight, as at any vertex.

    Examples
    --------
    >>> program = Program([3.0, 2.0], [[1.0, 1.0]], row_upper=4.0, upper=3.0, maximize=True)
    >>> checked(program, [3.0, 2.0])["rows"], checked(program, [3.0, 1.0])["vertex"], checked(program, [2.0, 2.0])["vertex"]
    (0.25, True, False)
    """
    x = np.asarray(x, float)
    if x.shape != program.c.shape or not np.isfinite(x).all():
        return {
            "objective": None,
            "rows": np.inf,
            "bounds": np.inf,
            "unwhole": np.inf,
            "between": None,
            "vertex": False,
        }
    used = program.A @ x
    low, high = (capacities(program, side) for side in (program.row_lower, program.row_upper))
    rows = np.maximum((program.row_lower - used) / low, (used - program.row_upper) / high)
    least, most = (np.maximum(np.abs(np.where(np.isinf(b), 0, b)), 1) for b in (program.lower, program.upper))
    below = (program.lower - x) / least
    above = (x - program.upper) / most
    tight = (np.abs(rows) <= FEW) | (rows > 0)
    between = int(((below < -FEW) & (above < -FEW)).sum())
    return {
        "objective": program.value(x),
        "maximize": program.maximize,
        "cost": float(np.abs(program.c).max(initial=0.0)),
        "rows": max(float(rows.max(initial=0.0)), 0.0),
        "bounds": max(float(np.maximum(below, above).max(initial=0.0)), 0.0),
        "unwhole": float(np.abs(x - np.round(x))[program.integrality].max(initial=0.0)),
        "between": between,
        "vertex": bool(between <= tight.sum()),
    }


def capacities(program: Program, side: np.ndarray) -> np.ndarray:
    """What a break of each row's bound is measured by (m,): the bound itself, or the row's largest coefficient where it is 0 or none.

    Examples
    --------
    >>> program = Program([1.0, 1.0], [[1.0, -5.0], [2.0, 2.0]], row_upper=[0.0, 8.0])
    >>> capacities(program, program.row_upper).tolist()
    [5.0, 8.0]
    """
    size = np.abs(side)
    A = program.A
    largest = np.zeros(len(size))
    np.maximum.at(largest, A.indices, np.abs(A.data))
    return np.where((size > 0) & np.isfinite(size), size, np.maximum(largest, 1e-12))


def faults(found: dict, promised: float | None, said: float | None) -> str:
    """What is wrong with an answer that promises to break nothing by more than so much; "" if nothing is.

    Parameters
    ----------
    found : dict
        Of `checked`.
    promised : float or None
        Largest amount by which rows and bounds may be broken; None where the method promises nothing of rows.
    said : float or None
        Objective that the solver names.

    Examples
    --------
    >>> faults({"objective": 2.0, "rows": 0.1, "bounds": 0.0, "unwhole": 0.0}, 1e-6, 2.0)
    'a row is broken by 0.1'
    """
    if found["objective"] is None:
        return "no numbers, or too few"
    said = found["objective"] if said is None else said
    differ = abs(said - found["objective"]) > 1e-9 * max(abs(said), abs(found["objective"]), 1e-300)
    words = [f"the objective is {found['objective']:.9g}, not {said:.9g}"] if differ else []
    if promised is not None and found["rows"] > promised:
        words.append(f"a row is broken by {found['rows']:.2g}")
    if found["bounds"] > (promised or FEW):
        words.append(f"a bound is broken by {found['bounds']:.2g}")
    if found["unwhole"] > FEW:
        words.append(f"a whole variable is off by {found['unwhole']:.2g}")
    return "; ".join(words)
