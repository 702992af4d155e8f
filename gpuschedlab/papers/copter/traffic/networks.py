"""Networks of routers, generated at the scale of Kdl, and demands between routers."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.errors import SolverError

KDL = (754, 895)
"""Routers and links of Kdl, Kentucky Data Link, in the Internet Topology Zoo without parallel links (ours: the thesis gives
neither)."""

RING = 6
"""Links between two routers in the tree beyond which a link between them closes a ring."""

CAPACITY = 1000.0
"""Of a link in each direction, Mb/s, if nothing else is said (ours)."""


class Network(NamedTuple):
    """Routers and E directed links, sorted by where they start."""

    starts: np.ndarray  # (nodes + 1,) links of router u are those from starts[u] up to starts[u + 1]
    heads: np.ndarray  # (E,) where each link ends
    capacity: np.ndarray  # (E,)
    place: np.ndarray  # (nodes, 2) where routers are drawn

    @property
    def nodes(self) -> int:
        """Number of routers."""
        return len(self.starts) - 1

    @property
    def tails(self) -> np.ndarray:
        """Array (E,): the router at which each link starts."""
        return np.repeat(np.arange(self.nodes), np.diff(self.starts))

    @classmethod
    def of(cls, links, capacity=CAPACITY, place=None) -> "Network":
        """Return a `Network` of `links` (m, 2) that carry the same both ways; of several between two routers, the first counts.

        Examples
        --------
        >>> Network.of([[0, 1], [1, 2]]).heads.tolist()
        [1, 0, 2, 1]
        """
        links = np.asarray(links, np.int64).reshape(-1, 2)
        capacity = np.broadcast_to(np.asarray(capacity, float), len(links))
        if not len(links) or (links < 0).any() or (links[:, 0] == links[:, 1]).any():
            raise SolverError(f"network: found {len(links)} links; expected some, each between two routers from 0 up.")
        if not (capacity > 0).all():
            raise SolverError("network: found a capacity that is not above 0; expected numbers above 0.")
        first_links = distinct_rows(np.sort(links, axis=1)).first
        links = links[first_links]
        capacity = capacity[first_links]
        both = np.concatenate([links, links[:, ::-1]])
        link_order = np.lexsort((both[:, 1], both[:, 0]))
        nodes = int(links.max()) + 1
        starts = np.searchsorted(both[link_order, 0], np.arange(nodes + 1))
        turn = 2 * np.pi * np.arange(nodes) / nodes
        place = np.stack([np.cos(turn), np.sin(turn)], axis=1) if place is None else np.asarray(place, float)
        return cls(starts, both[link_order, 1], np.tile(capacity, 2)[link_order], place)


def generated_network(nodes: int = KDL[0], links: int = KDL[1], rng: int | np.random.Generator = 0) -> Network:
    """Return a `Network`: routers at random places, joined by the shortest tree; then rings are closed, all links of `CAPACITY`.

    A ring is closed by the shortest link between routers that are more than `RING` links apart in the tree, those with one
    link first. If more links are asked for, they are the shortest ones that are left.

    Examples
    --------
    >>> network = generated_network(20, 30)
    >>> network.nodes, len(network.heads)
    (20, 60)
    """
    from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

    if nodes < 2 or not nodes - 1 <= links <= nodes * (nodes - 1) // 2:
        raise SolverError(
            f"network: found {links} links for {nodes} routers; expected {nodes - 1} or more, and no pair twice."
        )
    router_place = np.random.default_rng(rng).random((nodes, 2))
    apart = np.sqrt(((router_place[:, None] - router_place) ** 2).sum(axis=2))
    tree = np.argwhere(minimum_spanning_tree(apart).toarray() > 0)
    joined = np.zeros((nodes, nodes), bool)
    joined[tree[:, 0], tree[:, 1]] = joined[tree[:, 1], tree[:, 0]] = True
    far = shortest_path(sp.csr_array(joined), method="D", unweighted=True) > RING
    first_router, second_router = np.triu_indices(nodes, 1)
    ends = (joined.sum(axis=1) == 1)[first_router] | (joined.sum(axis=1) == 1)[second_router]
    chosen = []
    ring_order = np.lexsort((apart[first_router, second_router], ~ends, ~far[first_router, second_router]))
    full = joined.sum(axis=1)
    most_links = max(3, -(-2 * links // nodes) + 1)
    for i in ring_order[~joined[first_router[ring_order], second_router[ring_order]]]:
        if len(chosen) == links - len(tree):
            break
        if (
            max(full[first_router[i]], full[second_router[i]]) < most_links
            or not far[first_router[i], second_router[i]]
        ):
            chosen.append((first_router[i], second_router[i]))
            full[first_router[i]] += 1
            full[second_router[i]] += 1
    further = np.array(chosen, int).reshape(-1, 2)
    return Network.of(np.concatenate([tree, further]), place=router_place)


def bimodal_demands(
    network: Network,
    count: int,
    low: tuple[float, float],
    high: tuple[float, float],
    rng: int | np.random.Generator = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: random pairs (count, 2) and their demands (count,), the largest first.

    Half are in a low band and half in a high one (Mb/s).

    A roughly even split between two bands: COpter thesis, section 5.2.2.
    """
    rng = np.random.default_rng(rng)
    n = network.nodes
    drawn = rng.choice(n * (n - 1), min(count, n * (n - 1)), replace=False)
    pairs = np.stack([drawn // (n - 1), drawn % (n - 1)], axis=1)
    pairs[:, 1] += pairs[:, 1] >= pairs[:, 0]
    demand = np.where(rng.random(len(pairs)) < 0.5, rng.uniform(*low, len(pairs)), rng.uniform(*high, len(pairs)))
    demand_order = np.argsort(-demand, kind="stable")
    return pairs[demand_order], demand[demand_order]


def changed_demands(demand: np.ndarray, rng: np.random.Generator, most: float = 0.1) -> np.ndarray:
    """Return an array of the demands of the next round: each up to so much larger or smaller.

    Examples
    --------
    >>> changed_demands(np.array([100.0]), np.random.default_rng(0)).round(1).tolist()
    [102.7]
    """
    return demand * (1 + rng.uniform(-most, most, len(demand)))
