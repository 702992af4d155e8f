"""CausalNex beyond its declared bounds: all its mends in one place, and the three steps taken with it.

CausalNex 0.12 requires Python < 3.11, numpy < 1.24, pandas < 2 and torch. With the mends below it runs on
Python 3.11 to 3.13 with numpy 2 and pandas 2, without torch: the parts used here (StructureModel, the NOTEARS
of scipy, BayesianNetwork, InferenceEngine) does not need it.
"""

import math
import re
import sys
import types
import warnings
from copy import copy
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._extras import has, need
from gpuschedlab.errors import EstimatorError


class CausalNex(NamedTuple):
    """The mended parts of CausalNex, under their own names."""

    StructureModel: type
    BayesianNetwork: type
    InferenceEngine: type
    from_pandas: types.FunctionType
    from_pandas_lasso: types.FunctionType


@cache
def load() -> CausalNex:
    """Import CausalNex with its mends (once a process; about 2 s), and return its parts as `CausalNex`."""
    purpose = "causal networks"
    for package in ("pandas", "threadpoolctl"):
        need(package, purpose)
    if not has("torch"):
        _stand_in_for_torch()
    # pgmpy 0.1.19 still calls the name that numpy 2 took away.
    if not hasattr(np, "product"):
        setattr(np, "product", np.prod)  # noqa: B010
    with warnings.catch_warnings():
        # pkg_resources announces its end, old escapes their error: nothing that a user can act on.
        warnings.simplefilter("ignore")
        structure = need("causalnex.structure", purpose)
        network = need("causalnex.network", purpose)
        inference = need("causalnex.inference", purpose)
        notears = need("causalnex.structure.notears", purpose)
    inference.InferenceEngine._create_node_function = lambda *given: _NodeFunction(*given)
    graphs = (structure.StructureModel, network.BayesianNetwork, inference.InferenceEngine)
    return CausalNex(*graphs, notears.from_pandas, notears.from_pandas_lasso)


def _stand_in_for_torch() -> None:
    """Put two classes that refuse in the place of CausalNex' own torch half; a module named torch others would take for the real one."""
    for module_name in ("causalnex.structure.pytorch", "causalnex.structure.pytorch.sklearn"):
        module = types.ModuleType(module_name, "Stands in where torch is not installed.")
        module.__path__ = []
        module.DAGClassifier = _NeedsTorch
        module.DAGRegressor = _NeedsTorch
        sys.modules.setdefault(module_name, module)


class _NeedsTorch:
    def __init__(self, *args, **kwargs):
        need("torch", "CausalNex's DAG estimators")


class _NodeFunction:
    """A node's conditional probability as the join tree needs it: called with states, arguments inspected.

    CausalNex assembles a code object by position, and Python 3.11 changed the positions. Here the code object
    only carries the names (`do_intervention` reads them) and is never run.
    """

    def __init__(self, engine, name: str, args: tuple[str, ...]):
        self.engine = engine
        self.argspec = list(args)
        self.__name__ = name
        self.__code__ = (lambda: None).__code__.replace(
            co_argcount=len(args), co_nlocals=len(args), co_varnames=tuple(args), co_name=name
        )

    def __deepcopy__(self, memo):
        return self  # as a function is; a copy would take the whole engine along

    def __call__(self, *states) -> float:
        return self.engine._cpds[self.argspec[0]][states[0]][tuple(zip(self.argspec[1:], states[1:], strict=True))]


def learn_structure(frame: pl.DataFrame, *, threshold: float = 0.0, lasso: float | None = None, **tabu):
    """Return a weighted acyclic graph of linear effects, a `StructureModel`, by NOTEARS (Zheng et al., NeurIPS 2018, equation 9).

    Minimises `|X - XW|^2 / 2n`, and `lasso` times the L1 norm of `W`, over weight matrices `W` subject to `tr(exp(W * W)) = d`, which
    holds just for acyclic `W`. Columns are best scaled alike: edges with an absolute weight below the threshold, in units of effect
    per cause, are left out. Every column is a node, also without edges.
    """
    causalnex = load()
    pandas = need("pandas")
    for sample_column in frame:
        if (
            not sample_column.dtype.is_numeric()
            or not sample_column.cast(pl.Float64).is_finite().fill_null(False).all()
        ):
            raise EstimatorError(
                f"learn_structure: column {sample_column.name!r} is {sample_column.dtype} or holds values that are not finite; "
                "expected finite numbers. Encode categories as numbers and drop missing rows first."
            )
    sample_frame = pandas.DataFrame(
        {sample_column.name: sample_column.cast(pl.Float64).to_numpy() for sample_column in frame}
    )
    # Thousands of tiny matrix products: threads gain nothing, and on a busy machine wait for each other.
    with need("threadpoolctl").threadpool_limits(1):
        if lasso is None:
            return causalnex.from_pandas(sample_frame, w_threshold=threshold, **tabu)
        return causalnex.from_pandas_lasso(sample_frame, lasso, w_threshold=threshold, **tabu)


def fit_network(edges, frame: pl.DataFrame, *, prior: str | None = "K2"):
    """Return a discrete `BayesianNetwork`, whose graph is acyclic and connected, with conditional probabilities fitted to data.

    Prior "K2" adds one imaginary row to each state under each combination of its causes, so that a combination never seen is
    uniform; None takes the shares as they are.
    """
    causalnex = load()
    pandas = need("pandas")
    edge_pairs = [(str(cause), str(effect)) for cause, effect in getattr(edges, "edges", edges)]
    variables = sorted({variable for cause_and_effect in edge_pairs for variable in cause_and_effect})
    wrong_variables = [
        column_name
        for column_name in variables
        if column_name not in frame.columns or not re.fullmatch("[0-9a-zA-Z_]+", column_name)
    ]
    if wrong_variables or not edge_pairs:
        edge_problem = "no edges"
        if wrong_variables:
            edge_problem = f"variables {wrong_variables}"
        raise EstimatorError(
            f"fit_network: found {edge_problem}; expected edges between columns of the frame "
            f"({', '.join(frame.columns)}) with names of letters, digits and underscores."
        )
    try:
        network = causalnex.BayesianNetwork(causalnex.StructureModel(edge_pairs))
    except ValueError as error:
        raise EstimatorError(
            f"fit_network: {error} Expected one connected graph without cycles; fit each piece by itself."
        ) from error
    state_frame = pandas.DataFrame({variable: frame[variable].to_list() for variable in variables})
    method = "BayesianEstimator"
    if prior is None:
        method = "MaximumLikelihoodEstimator"
    return network.fit_node_states(state_frame).fit_cpds(state_frame, method=method, bayes_prior=prior)


def do_query(network, interventions: dict, observed: dict | None = None) -> dict[str, dict]:
    """Return a dict by variable of its marginal probabilities after interventions: `P(v | do(interventions), observed)`.

    The equation is that of Pearl: Causality, 3.2.3.

    The intervened variables (state, or dict of state to probability) are cut off from their causes; each piece that the graph falls
    into is queried by itself. `InferenceEngine.do_intervention` alone refuses leaves, strings and variables that an earlier
    intervention detached.
    """
    marginals = Intervened([network], interventions).query(observed)
    return {
        variable: {_plain(state): probability for state, probability in marginals[variable].items()}
        for variable in network.nodes
    }


def _plain(state):
    """Return a state, any object, as a value of Python."""
    if isinstance(state, np.generic):
        return state.item()
    return state


class Intervened:
    """Networks of which some variables are set from outside: the part that many questions share, made once.

    `alone` are variables without any edge, which no network of CausalNex holds, and the probability of each of their states.
    """

    def __init__(self, networks, interventions: dict, alone: dict | None = None):
        engines = [load().InferenceEngine(network) for network in networks]
        self.cpds = {variable: {s: {(): p} for s, p in shares.items()} for variable, shares in (alone or {}).items()}
        self.cpds |= {variable: cpd for engine in engines for variable, cpd in engine._cpds.items()}
        forced = {variable: _shares(self.cpds, variable, state) for variable, state in interventions.items()}
        # A variable that no longer listens to its causes, in CausalNex's nested form.
        self.cpds |= {n: {s: {(): float(p.get(s, 0.0))} for s in self.cpds[n]} for n, p in forced.items()}
        self.pieces = []
        for piece in _pieces(self.cpds):
            whole_engines = [engine for engine in engines if piece <= {*engine._cpds_original}]
            engine = types.SimpleNamespace()
            if whole_engines:
                engine = copy(whole_engines[0])
            engine._cpds = {variable: self.cpds[variable] for variable in piece}
            engine._domains = {variable: list(self.cpds[variable]) for variable in piece}
            if len(piece) > 1:
                engine._generate_bbn()
            self.pieces.append(engine)

    def query(self, observed: dict | None = None) -> dict[str, dict]:
        """Return a dict by variable of its marginal probabilities, a dict by state, given states of some variables."""
        observed = {
            seen_variable: _shares(self.cpds, seen_variable, state) and state
            for seen_variable, state in (observed or {}).items()
        }
        marginals = {}
        for engine in self.pieces:
            of_piece = {variable: state for variable, state in observed.items() if variable in engine._cpds}
            if len(engine._cpds) > 1:
                marginals |= engine.query(of_piece)
                continue
            ((variable, states),) = engine._cpds.items()
            if of_piece:
                marginals[variable] = {state: state == of_piece[variable] for state in states}
            else:
                marginals[variable] = {state: p[()] for state, p in states.items()}
        return {
            variable: {s: float(p) for s, p in state_shares.items()} for variable, state_shares in marginals.items()
        }

    def likely(self, observed: dict, given: dict) -> tuple[float, dict[str, dict]]:
        """Return the probability of states that are `given`, once others are observed, and the marginals given both, as a tuple.

        The marginals are those of `query`, a dict by variable.

        Of several, each is asked for after those before it: the chain rule, since CausalNex returns marginals alone.
        """
        likelihood = 1.0
        marginals = self.query(observed)
        for variable, state in given.items():
            likelihood *= marginals[variable][state]
            if not likelihood:
                break
            observed = observed | {variable: state}
            marginals = self.query(observed)
        return likelihood, marginals


def pieces(edges) -> list[list[tuple[str, str]]]:
    """Return a list with the edges of each connected piece of a graph, a list per piece, as `fit_network` takes them."""
    networkx = need("networkx")
    graph = networkx.DiGraph(list(edges))
    return [[*graph.subgraph(piece_variables).edges] for piece_variables in networkx.weakly_connected_components(graph)]


def _shares(cpds: dict, variable: str, state) -> dict:
    """Return a dict of the probability of each state of a variable, given as a state or dict; EstimatorError if that is wrong."""
    state_shares = state
    if not isinstance(state, dict):
        state_shares = {state: 1.0}
    expected_state = ""
    if not set(state_shares) <= set(cpds.get(variable, ())):
        expected_state = f"one of {list(cpds.get(variable, cpds))}"
    elif not math.isclose(sum(state_shares.values()), 1.0) or min(state_shares.values()) < 0:
        expected_state = "probabilities that add up to 1"
    if expected_state:
        raise EstimatorError(f"do_query: found {variable} = {state!r}; expected {expected_state}.")
    return state_shares


def _pieces(cpds: dict) -> list[set[str]]:
    """Return a list of the connected pieces of the graph that conditional probabilities span, each a set of names."""
    graph = need("networkx").Graph()
    for variable, states in cpds.items():
        graph.add_node(variable)
        conditions = next(iter(next(iter(states.values()))))
        graph.add_edges_from((cause, variable) for cause, _ in conditions)
    return list(need("networkx").connected_components(graph))
