"""How strong the edges of a causal graph are, in the samples that its model learnt from."""

from itertools import pairwise

import numpy as np

from gpuschedlab.autosched.causal.graph import CausalGraph

CONSTANT = 1e-9
"""Standard deviation below which a variable counts as constant."""


def strengths(graph: CausalGraph, rows: np.ndarray) -> dict[tuple[str, str], tuple[float, int]]:
    """Return a dict by edge of pairs: the standardised total effect of its cause on its effect, and its sign (Wright, 1934).

    The sign is 1, -1 or 0.
    """
    layers = graph.layers
    column_of_variable = dict(zip(graph.layers.names, np.asarray(rows, float).T, strict=True))
    coefficients: dict[tuple[str, str], float] = {}
    for variable in graph.order():
        causes = graph.causes(variable)
        if causes:
            coded = [
                _coded(
                    column_of_variable[direct_cause], column_of_variable[variable], layers.levels.get(direct_cause, 0)
                )
                for direct_cause in causes
            ]
            solution = np.linalg.lstsq(np.column_stack(coded), _standard(column_of_variable[variable]), rcond=None)[0]
            coefficients |= {
                (direct_cause, variable): float(x) for direct_cause, x in zip(causes, solution, strict=True)
            }
    edge_strengths = {}
    for edge_cause, edge_effect in graph.edges:
        paths = [list(pairwise(path)) for path in graph.paths(edge_cause, edge_effect)]
        effect = sum(float(np.prod([coefficients[edge] for edge in path])) for path in paths)
        sign = 0 if layers.levels.get(edge_cause, 0) > 2 else int(np.sign(round(effect, 9)))
        edge_strengths[edge_cause, edge_effect] = (round(effect, 9) + 0.0, sign)
    return edge_strengths


def _standard(variable_values: np.ndarray) -> np.ndarray:
    variable_deviation = variable_values.std()
    if variable_deviation > CONSTANT:
        return (variable_values - variable_values.mean()) / variable_deviation
    return np.zeros_like(variable_values)


def _coded(cause_values: np.ndarray, effect: np.ndarray, levels: int) -> np.ndarray:
    """Return a cause as an array in standard deviations; a category of three or more values by the mean of the effect at each."""
    if levels > 2:
        _, category_codes = np.unique(cause_values, return_inverse=True)
        cause_values = (np.bincount(category_codes, effect) / np.bincount(category_codes))[category_codes]
    return _standard(cause_values)
