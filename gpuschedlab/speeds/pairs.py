"""Effect of two jobs on each other: (M, M) factors on the speed of a model because of another."""

from collections.abc import Mapping

import numpy as np

from gpuschedlab.errors import SpeedError

PAIRS = ("sharing", "merged", "transfer")
"""Fields of `Speeds` that hold a factor per pair of models; nan if a pair is unknown."""


def pair_matrix(models: tuple[str, ...], pairs: Mapping[tuple[str, str], float] | None) -> np.ndarray | None:
    """Return factors by pair of names as an array (M, M), nan if there is none; None without pairs."""
    if not pairs:
        return None
    index_of_model = {model_name: model_number for model_number, model_name in enumerate(models)}
    pair_factors = np.full((len(models), len(models)), np.nan)
    for (first_model, second_model), factor in pairs.items():
        if first_model in index_of_model and second_model in index_of_model:
            pair_factors[index_of_model[first_model], index_of_model[second_model]] = factor
    return pair_factors


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
