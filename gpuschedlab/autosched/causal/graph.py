"""Causal graphs of a scheduler: knobs, intermediate metrics, objectives, and the causes of each (6.4.3.1)."""

import contextlib
import io
from dataclasses import dataclass, field, replace
from html import escape
from itertools import permutations, product

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.causalnex import learn_structure
from gpuschedlab.errors import EstimatorError


@dataclass(frozen=True)
class Layers:
    """The three layers of variables.

    Parameters
    ----------
    knobs, metrics, objectives : tuple of str
        Columns of the samples.
    levels : dict of str to int
        Knobs that are categories, and how many values each has.
    direct : tuple of (str, str)
        Edges from a knob to an objective that the operator declares; there are no others.
    context : tuple of str
        Values that are given at the instant and that no knob changes, such as the load: a cause of every metric and objective.
    between : bool
        Whether metrics may cause one another; the thesis' graphs (figures 6.6, 6.16, 6.20) have three plain layers.
    """

    knobs: tuple[str, ...]
    metrics: tuple[str, ...]
    objectives: tuple[str, ...]
    levels: dict[str, int] = field(default_factory=dict)
    direct: tuple[tuple[str, str], ...] = ()
    context: tuple[str, ...] = ()
    between: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """Tuple of the names of a prediction's inputs: knobs, then context."""
        return (*self.knobs, *self.context)

    @property
    def names(self) -> tuple[str, ...]:
        """Tuple of the names of all variables, causes first."""
        return (*self.given, *self.metrics, *self.objectives)

    def tier(self, name: str) -> int:
        """Return the layer of a variable as an integer: 0 for a knob or context, 1 for a metric, 2 for an objective."""
        if name in self.given:
            return 0
        if name in self.metrics:
            return 1
        return 2

    def allows(self, cause: str, effect: str) -> bool:
        """Whether an edge may be: never against the layers, between knobs, or past the metrics unless declared.

        Context may cause knobs, too: an operator's rule that follows the load. `do` on such a knob cuts that edge.
        """
        cause_tier = self.tier(cause)
        effect_tier = self.tier(effect)
        if cause in self.context:
            return effect not in self.context
        if (cause_tier, effect_tier) == (0, 2):
            return (cause, effect) in self.direct
        if cause_tier == effect_tier == 1:
            return self.between
        return cause_tier < effect_tier


@dataclass(frozen=True)
class CausalGraph:
    """A directed acyclic graph over the layers.

    Examples
    --------
    >>> graph = CausalGraph(Layers(("k",), ("m",), ("r",)), (("k", "m"), ("m", "r")))
    >>> graph.causes("r"), graph.effects("k"), graph.paths("k", "r")
    (('m',), ('m',), [('k', 'm', 'r')])
    """

    layers: Layers
    edges: tuple[tuple[str, str], ...]

    def causes(self, name: str) -> tuple[str, ...]:
        """Return a tuple of the names of a variable's direct causes."""
        return tuple(cause for cause, effect in self.edges if effect == name)

    def effects(self, name: str) -> tuple[str, ...]:
        """Return a tuple of the names of a variable's direct effects."""
        return tuple(effect for cause, effect in self.edges if cause == name)

    def paths(self, cause: str, effect: str) -> list[tuple[str, ...]]:
        """Return a list of all directed paths from one variable to another, each a tuple of names."""
        if cause == effect:
            return [(effect,)]
        paths = []
        for next_cause in self.effects(cause):
            paths += [(cause, *path) for path in self.paths(next_cause, effect)]
        return paths

    def order(self) -> list[str]:
        """Return a list of the variables' names, each after its causes."""
        ordered = []
        waiting = list(self.layers.names)
        while waiting:
            ready = [variable for variable in waiting if set(self.causes(variable)) <= {*ordered}]
            if not ready:
                raise EstimatorError(f"CausalGraph: found a circle among {waiting}; expected edges without one.")
            ordered = ordered + ready
            waiting = [variable for variable in waiting if variable not in ready]
        return ordered

    def _repr_html_(self):
        edge_rows = "".join(
            f"<tr><td>{escape(cause)}</td><td>&rarr; {escape(effect)}</td></tr>" for cause, effect in self.edges
        )
        return f"<table><tr><th>cause</th><th>effect</th></tr>{edge_rows}</table>"


def check_samples(samples: pl.DataFrame, layers: Layers, least: int, who: str, mend: str = "") -> None:
    """Raise an EstimatorError, which may say how to `mend` it, if there are fewer than `least` samples, or columns are missing."""
    missing_variables = [variable for variable in layers.names if variable not in samples.columns]
    if missing_variables or samples.height < least:
        lacks = ""
        if missing_variables:
            lacks = f" without columns {', '.join(missing_variables)}"
        raise EstimatorError(
            f"{who}: found {samples.height} samples{lacks}; expected {least} or more, with all of "
            f"{', '.join(layers.names)}.{mend and ' '}{mend}"
        )


def full_graph(layers: Layers) -> CausalGraph:
    """Return the skeleton as a `CausalGraph`: whatever may cause a metric or an objective does; metrics cause no metric."""
    effects = (*layers.metrics, *layers.objectives)
    causes = (*layers.metrics, *layers.given)
    possible_edges = [(cause, effect) for effect, cause in product(effects, causes)]
    edges = [
        (cause, effect)
        for cause, effect in possible_edges
        if layers.tier(cause) < layers.tier(effect) and layers.allows(cause, effect)
    ]
    return CausalGraph(layers, tuple(edges))


def direct_graph(layers: Layers) -> CausalGraph:
    """Return a `CausalGraph` without a skeleton: every knob and context causes the objective itself, past the metrics."""
    edges = tuple((given_variable, layers.objectives[0]) for given_variable in layers.given)
    of_knobs = edges[: len(layers.knobs)]
    return CausalGraph(replace(layers, direct=of_knobs), edges)


def confidence(
    samples: pl.DataFrame, layers: Layers, graph: CausalGraph, *, times: int = 20, rng=0, **options
) -> dict[tuple[str, str], float]:
    """Return a dict by edge of the share of graphs in which it is found again, when whole segments are drawn anew (bootstrap).

    Parameters
    ----------
    samples : polars.DataFrame
        As for `learn_graph`; rows of a `segment` were measured on the same jobs, and are drawn together. Without such a
        column every row is drawn by itself.
    layers : Layers
    graph : CausalGraph
        Whose edges are asked about.
    times : int
        Graphs that are learnt.
    rng : int or numpy.random.Generator
    **options
        As for `learn_graph`.

    References
    ----------
    Friedman, Goldszmidt, Wyner: Data analysis with Bayesian networks: a bootstrap approach, UAI 1999.
    """
    rng = np.random.default_rng(rng)
    edge_shares = dict.fromkeys(graph.edges, 0.0)
    segments = np.arange(samples.height)
    if "segment" in samples.columns:
        segments = samples["segment"].to_numpy()
    segment_rows = [np.flatnonzero(segments == segment) for segment in np.unique(segments)]
    for _ in range(times):
        drawn_segments = rng.integers(len(segment_rows), size=len(segment_rows))
        drawn_rows = np.concatenate([segment_rows[i] for i in drawn_segments])
        edges_again = learn_graph(samples[drawn_rows], layers, **options).edges
        edge_shares = {edge: edge_share + (edge in edges_again) / times for edge, edge_share in edge_shares.items()}
    return edge_shares


def learn_graph(
    samples: pl.DataFrame, layers: Layers, *, by: str = "fci", alpha: float = 0.05, depth: int = 3, rule: bool = False,
    threshold: float = 0.1,
) -> CausalGraph:  # fmt: skip
    """Learn a `CausalGraph` by Fast Causal Inference, or CausalNex' NOTEARS, with the layers as background knowledge.

    Independence is tested by partial correlation of normal scores (ranks), so that monotone effects count as linear ones do; a
    second search, with each knob replaced by the objective's mean around its value, finds effects that rise and fall. A category
    enters by the mean score of the objective at each of its values. An edge that FCI leaves goes from the earlier layer to the
    later; between metrics as its marks say, otherwise from the one declared first. An edge that would close a circle is turned.

    Parameters
    ----------
    samples : polars.DataFrame
        (n, variables); columns of `layers.names`, numbers.
    layers : Layers
    by : {"fci", "notears"}
        NOTEARS fits all linear effects at once, on the same normal scores, so that weights are in standard deviations; edges
        that the layers forbid are its tabu edges. It sees no effect that rises and falls.
    alpha, depth : float, int
        FCI: level of the independence tests; most variables that a test conditions on.
    rule : bool
        Whether context may be found to cause knobs, as in an operator's log. Not by default: a search draws its knobs whatever
        the load is, so that such an edge would be chance.
    threshold : float
        NOTEARS: least weight of an edge.

    Raises
    ------
    EstimatorError
        Columns are missing, there are fewer than 20 rows, or no such way to learn.

    Differs from the paper in
    -------------------------
    If metrics do not cause one another, each is searched with its knobs alone, and the objective with the metrics:
    the skeleton is fully connected between neighbouring layers, not all at once. The second search is ours.

    References
    ----------
    Spirtes, Glymour, Scheines: Causation, Prediction, and Search (2000), chapter 6; Zheng, Aragam, Ravikumar, Xing: DAGs with NO
    TEARS, NeurIPS 2018; AutoSched thesis, 6.4.3.1.
    """
    if by not in ("fci", "notears"):
        raise EstimatorError(f"learn_graph: found by={by!r}; expected fci or notears.")
    check_samples(samples, layers, 20, "learn_graph")
    scores = _normal_scores(samples, layers)
    varying_variables = [variable for variable in layers.names if scores[variable].std() > 1e-9]
    forced_edges = set()
    if not rule:
        forced_edges.update(product(layers.context, layers.knobs))

    def forbidden(group):
        return [(a, b) for a, b in permutations(group, 2) if not layers.allows(a, b) or (a, b) in forced_edges]

    edges: list[tuple[str, str]] = []
    if by == "notears":
        frame = pl.DataFrame({variable: scores[variable] for variable in varying_variables})
        edges += learn_structure(frame, threshold=threshold, tabu_edges=forbidden(varying_variables)).edges
    else:
        for group in _groups(layers, varying_variables):
            marks = _fci(_table(scores, group), group, forbidden(group), alpha, depth)
            edges += _directed(marks, group, layers, edges)
        target = scores[layers.objectives[0]]
        scores |= {knob: _shaped(scores[knob], target) for knob in layers.knobs if knob in varying_variables}
        for group in _groups(layers, varying_variables):
            marks = _fci(_table(scores, group), group, forbidden(group), alpha, depth)
            shaped = _directed(marks, group, layers, edges)
            edges += [(cause, effect) for cause, effect in shaped if cause in layers.knobs]
    edges += product(layers.context, (*layers.metrics, *layers.objectives))
    return CausalGraph(layers, tuple(dict.fromkeys(edges)))


def _table(variable_columns: dict[str, np.ndarray], variables: list[str]) -> np.ndarray:
    """Some columns (n,) as an array (n, names)."""
    return np.column_stack([variable_columns[variable] for variable in variables])


def _groups(layers: Layers, variables: list[str]) -> list[list[str]]:
    """Return a list of lists of variables that are searched together.

    All are, or, if metrics do not cause one another, each metric with its knobs.

    Metrics are nearly functions of one another (the waiting jobs are the backlog); conditioned on each other they seem
    independent of the knobs that cause them both.
    """
    groups = [variables]
    if not layers.between:
        given_variables = [variable for variable in variables if variable in layers.given]
        direct = [knob for knob, _ in layers.direct if knob in variables]
        effect_variables = [variable for variable in variables if variable not in given_variables]
        groups = [[*given_variables, metric] for metric in effect_variables if metric in layers.metrics]
        groups.append([*direct, *effect_variables])
    return [group for group in groups if len(group) > 1]


def _directed(marks: np.ndarray, variables: list[str], layers: Layers, earlier_edges) -> list[tuple[str, str]]:
    """Return a list of directed edges from marks (v, v) of a partial ancestral graph, with no circle among them and earlier ones."""
    edges: list[tuple[str, str]] = []
    for i, j in np.argwhere(np.triu(marks)):
        cause = variables[i]
        effect = variables[j]
        # An arrow at a and none at b: b causes a. Marks: -1 tail, 1 arrow, 2 circle, at the row's end.
        if layers.tier(cause) == layers.tier(effect) and (marks[i, j] == 1 != marks[j, i] or effect in layers.context):
            cause, effect = effect, cause
        circle = CausalGraph(layers, tuple({*earlier_edges, *edges})).paths(effect, cause)
        if circle:
            cause, effect = effect, cause
        edges.append((cause, effect))
    return edges


def _shaped(knob: np.ndarray, target: np.ndarray, bins: int = 8) -> np.ndarray:
    """Array of the mean of the target (n,) around each value of a knob (n,).

    It is of the other half of the rows, so that chance cancels.
    """
    borders = np.unique(np.quantile(knob, np.arange(1, bins) / bins))
    cell = np.searchsorted(borders, knob, side="right")
    cell += bins * (np.arange(len(knob)) % 2)
    rows_in_bin = np.bincount(cell, minlength=2 * bins)
    mean = np.bincount(cell, target, 2 * bins) / np.maximum(rows_in_bin, 1)
    return mean[(cell + bins) % (2 * bins)]


def _normal_scores(samples: pl.DataFrame, layers: Layers) -> dict[str, np.ndarray]:
    """Return a dict of each variable's normal score of its rank (n,); categories by the mean of the objective at each value."""
    from scipy.stats import norm, rankdata

    target = rankdata(samples[layers.objectives[0]].to_numpy())
    scores = {}
    for variable in layers.names:
        variable_values = samples[variable].to_numpy().astype(float)
        if layers.levels.get(variable, 0) > 2:
            _, category_codes = np.unique(variable_values, return_inverse=True)
            means = np.bincount(category_codes, target) / np.bincount(category_codes)
            variable_values = means[category_codes]
        rank_shares = (rankdata(variable_values) - 0.5) / len(variable_values)
        scores[variable] = norm.ppf(rank_shares)
    return scores


def _fci(normal_scores: np.ndarray, variables: list[str], forbidden, alpha: float, depth: int) -> np.ndarray:
    """Array (v, v) of the adjacency of the partial ancestral graph, in causal-learn's marks."""
    search = need("causallearn.search.ConstraintBased.FCI", "causal graphs")
    knowledge = need("causallearn.utils.PCUtils.BackgroundKnowledge", "causal graphs").BackgroundKnowledge()
    nodes = {
        variable: need("causallearn.graph.GraphNode", "causal graphs").GraphNode(variable) for variable in variables
    }
    for cause, effect in forbidden:
        knowledge.add_forbidden_by_node(nodes[cause], nodes[effect])
    noise = np.random.default_rng(0).standard_normal(normal_scores.shape)
    normal_scores = normal_scores + 1e-6 * noise  # exact copies make the tests singular
    fci_options = {"depth": depth, "background_knowledge": knowledge, "show_progress": False, "node_names": variables}
    with contextlib.redirect_stdout(io.StringIO()):
        return search.fci(normal_scores, "fisherz", alpha, **fci_options)[0].graph
