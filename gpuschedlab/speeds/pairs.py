"""Effect of two jobs on each other: (M, M) factors on the speed of a model because of another."""

from collections.abc import Mapping
from numbers import Real

import numpy as np

from gpuschedlab._knob import check_kind
from gpuschedlab.errors import SpeedError

PAIRS = ("sharing", "merged", "transfer")
"""Fields of `Speeds` that hold a factor per pair of models; nan if a pair is unknown."""


def pair_matrix(
    models: tuple[str, ...], field: str, pairs: Mapping[tuple[str, str], float] | None
) -> np.ndarray | None:
    """Factors of a field of `Speeds` by pair of names as a matrix, nan if there is none; None without pairs."""
    if pairs is None:
        return None
    who = f"Speeds.{field}"
    expected = "factors by the names of two models, such as {('bert', 'cnn'): 0.9}"
    check_kind(pairs, Mapping, SpeedError, who, expected)
    if not pairs:
        return None
    for pair, factor in pairs.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(factor, Real):
            raise SpeedError(f"{who}: found {pair!r}: {factor!r}; expected {expected}.")
    index = {name: i for i, name in enumerate(models)}
    out = np.full((len(models), len(models)), np.nan)
    for (a, b), factor in pairs.items():
        if a in index and b in index:
            out[index[a], index[b]] = factor
    return out


def join_pairs(a, b) -> dict[str, np.ndarray | None]:
    """Matrices of the `Speeds` that holds the models of both; pairs across the two are unknown; None if neither has any."""
    m = len(a.models)
    n = len(b.models)
    joined: dict[str, np.ndarray | None] = dict.fromkeys(PAIRS)
    for name in PAIRS:
        parts = ((getattr(a, name), slice(0, m)), (getattr(b, name), slice(m, m + n)))
        if any(matrix is not None for matrix, _ in parts):
            joined[name] = out = np.full((m + n, m + n), np.nan)
            for matrix, at in parts:
                out[at, at] = np.nan if matrix is None else matrix
    return joined


def check_pairs(speeds) -> None:
    """Raise SpeedError unless each matrix is (M, M), and each factor a finite number that its field allows."""
    models = speeds.models
    for name in PAIRS:
        matrix = getattr(speeds, name)
        if matrix is None:
            continue
        if matrix.shape != (len(models), len(models)):
            raise SpeedError(f"Speeds: found {name} of shape {matrix.shape}; expected {(len(models), len(models))}.")
        # Packed jobs always progress; a merged or transferred one may never reach its target.
        wrong = np.isinf(matrix) | (matrix <= 0 if name == "sharing" else matrix < 0)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            least = "> 0" if name == "sharing" else ">= 0 (0: it never reaches its target)"
            raise SpeedError(
                f"Speeds: found {name}[{models[i]!r}, {models[j]!r}] = {matrix[i, j]}; expected a finite number {least}, "
                "or nan where the pair is unknown."
            )
