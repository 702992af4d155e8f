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
    """Return a dict of the matrices of the `Speeds` that holds the models of both; a matrix is None if neither has any.

    Pairs across the two are unknown.
    """
    models_of_a = len(a.models)
    models_of_b = len(b.models)
    joined: dict[str, np.ndarray | None] = dict.fromkeys(PAIRS)
    for pair_name in PAIRS:
        pair_matrices = (
            (getattr(a, pair_name), slice(0, models_of_a)),
            (getattr(b, pair_name), slice(models_of_a, models_of_a + models_of_b)),
        )
        if any(matrix is not None for matrix, _ in pair_matrices):
            joined[pair_name] = joined_matrix = np.full((models_of_a + models_of_b, models_of_a + models_of_b), np.nan)
            for matrix, model_span in pair_matrices:
                joined_matrix[model_span, model_span] = np.nan if matrix is None else matrix
    return joined


def check_pairs(speeds) -> None:
    """Raise SpeedError unless each matrix is (M, M), and each factor a finite number that its field allows."""
    models = speeds.models
    for pair_name in PAIRS:
        matrix = getattr(speeds, pair_name)
        if matrix is None:
            continue
        if matrix.shape != (len(models), len(models)):
            raise SpeedError(
                f"Speeds: found {pair_name} of shape {matrix.shape}; expected {(len(models), len(models))}."
            )
        # Packed jobs always progress; a merged or transferred one may never reach its target.
        wrong_factors = np.isinf(matrix) | (matrix <= 0 if pair_name == "sharing" else matrix < 0)
        if wrong_factors.any():
            first_model, second_model = np.argwhere(wrong_factors)[0]
            least_factor = "> 0" if pair_name == "sharing" else ">= 0 (0: it never reaches its target)"
            raise SpeedError(
                f"Speeds: found {pair_name}[{models[first_model]!r}, {models[second_model]!r}] = "
                f"{matrix[first_model, second_model]}; expected a finite "
                f"number {least_factor}, "
                "or nan where the pair is unknown."
            )
