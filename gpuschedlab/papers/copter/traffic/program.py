"""Traffic engineering on wide-area networks (COpter thesis, section 5.1.2): the largest flow on fixed paths."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program
from gpuschedlab.papers.copter.traffic.networks import Network


class Routes(NamedTuple):
    """P fixed paths of pairs of routers over the E links of a network."""

    pair: np.ndarray  # (P,) of each path; never falling, the shortest path of a pair first
    uses: sp.csc_array  # (E, P) 1 where a path uses a link

    def first(self) -> np.ndarray:
        """Return an array (n,): the first path of each pair that has one."""
        return np.flatnonzero(np.diff(self.pair, prepend=-1))


def flow_program(routes: Routes, capacity: np.ndarray, demand: np.ndarray) -> Program:
    r"""Return the `Program` of the largest sum of flows within demands and link capacities.

    .. math:: \max \sum_{jp} X_j^p

    subject to :math:`\sum_p X_j^p \le d_j`; :math:`\sum_{jp: e \in p} X_j^p \le c_e`; :math:`X \ge 0`.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, section 5.1.2.

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> routes = Routes(np.array([0, 0, 1]), sp.csc_array([[1, 0, 0], [0, 1, 1]]))
    >>> solve(flow_program(routes, [2, 3], [4, 2])).objective
    5.0
    """
    demand = np.asarray(demand, float)
    capacity = np.asarray(capacity, float)
    paths = len(routes.pair)
    if routes.uses.shape != (len(capacity), paths) or routes.pair.max(initial=-1) >= len(demand):
        raise SolverError(
            f"traffic: found {len(capacity)} links, {len(demand)} demands and {paths} paths of pairs up to "
            f"{routes.pair.max(initial=-1)} over {routes.uses.shape[0]} links; expected them to fit together."
        )
    if not ((demand >= 0).all() and (capacity >= 0).all()):
        raise SolverError("traffic: found a demand or capacity that is below 0 or nan; expected 0 or more.")
    demand_rows = sp.csr_array((np.ones(paths), (routes.pair, np.arange(paths))), shape=(len(demand), paths))
    A = sp.vstack([demand_rows, routes.uses.astype(float)], format="csc")
    return Program(np.ones(paths), A, row_upper=np.concatenate([demand, capacity]), maximize=True, name="max flow")


def fitted_flow(routes: Routes, capacity: np.ndarray, demand: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """Return an array (P,): a flow that breaks bounds by a solver's tolerance, made feasible.

    It is divided by the excess of its pair, then by the largest of its links.
    """
    flow = np.maximum(flow, 0.0)
    pair_flow = np.bincount(routes.pair, flow, len(demand))
    flow = flow / np.maximum(_over(pair_flow, demand), 1.0)[routes.pair]
    excess = np.maximum(_over(routes.uses @ flow, np.asarray(capacity, float)), 1.0)
    if len(routes.pair):  # the largest of the links of each path
        flow = flow / np.maximum.reduceat(excess[routes.uses.indices], routes.uses.indptr[:-1])
    return np.where(np.isfinite(flow), flow, 0.0)


def filled_flow(routes: Routes, capacity: np.ndarray, demand: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """Return an array: a feasible flow, and on top of it the flow that still fits on the first path of each pair.

    The pair of the largest demand comes first.
    """
    flow = np.array(flow, float)
    first_paths = routes.first()
    unmet_demand = np.asarray(demand, float) - np.bincount(routes.pair, flow, len(demand))
    room = np.asarray(capacity, float) - routes.uses @ flow
    begin = routes.uses.indptr
    link = routes.uses.indices
    for p in first_paths[np.argsort(-np.asarray(demand)[routes.pair[first_paths]], kind="stable")]:
        links = link[begin[p] : begin[p + 1]]
        more = max(min(unmet_demand[routes.pair[p]], room[links].min()), 0.0)
        if more > 0:
            flow[p] += more
            room[links] -= more
    return flow


def top_routes(routes: Routes, demand: np.ndarray, share: float = 0.1) -> np.ndarray:
    """Return an array (p,) of paths, rising, of the largest demands (n,): of a share of these, by number."""
    demand = np.asarray(demand)
    largest_first = np.argsort(-demand, kind="stable")
    top_count = int(np.ceil(share * len(demand)))
    chosen = np.zeros(len(demand), bool)
    chosen[largest_first[:top_count]] = True
    return np.flatnonzero(chosen[routes.pair])


def some_routes(routes: Routes, paths: np.ndarray) -> tuple[Routes, np.ndarray]:
    """Return a tuple: some paths (p,), rising, as `Routes` of their own, and an array of the pairs that they are of.

    The pairs have their old numbers.
    """
    pairs, new_pair = np.unique(routes.pair[paths], return_inverse=True)
    return Routes(new_pair, routes.uses[:, paths]), pairs


def excess(routes: Routes, capacity: np.ndarray, demand: np.ndarray, flow: np.ndarray) -> float:
    """Return the largest amount, a float, by which a flow breaks a demand, a capacity, or 0, over the largest capacity; 0 if none."""
    return float(flow_program(routes, capacity, demand).violation(flow) / np.max(capacity))


def network_routes(network: Network, pairs: np.ndarray, paths: int = 4) -> Routes:
    """Return the `Routes` of pairs (n, 2) of routers: fixed paths, each the shortest that shares no link with those before.

    A pair has `paths` of them at most.

    The rows of `uses` are the directed links of the network. The evaluation of Narayanan et al., SOSP'21 (POP), which the thesis
    uses, has 4 paths without common links per pair.

    Examples
    --------
    >>> square = Network.of([[0, 1], [1, 2], [2, 3], [3, 0]], capacity=1.0)
    >>> network_routes(square, np.array([[0, 2]])).uses.sum(axis=0).tolist()  # two ways of two links
    [2.0, 2.0]
    """
    from gpuschedlab.papers.copter.traffic.paths import disjoint_paths

    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    if ((pairs < 0) | (pairs >= network.nodes)).any() or (pairs[:, 0] == pairs[:, 1]).any():
        raise SolverError(
            f"traffic: found pairs of routers that are not two of 0 to {network.nodes - 1}; expected two each."
        )
    pair, begin, link = disjoint_paths(network.starts, network.heads, pairs, paths)
    uses = sp.csc_array((np.ones(len(link)), link, begin), shape=(len(network.heads), len(pair)))
    uses.sort_indices()
    return Routes(pair, uses)


def _over(used: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return an array: used / most, and 1 if nothing is used."""
    with np.errstate(divide="ignore"):
        return np.divide(used, most, out=np.ones_like(used), where=used > 0)
