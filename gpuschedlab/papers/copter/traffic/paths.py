"""Compiled search for paths without common links."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit


class _Links(NamedTuple):
    """Links of a network, by the routers at which they start."""

    starts: np.ndarray  # (nodes + 1,) first link of each router, and the end
    heads: np.ndarray  # (E,) router at which each link ends


class _Search(NamedTuple):
    """Arrays that searches write to."""

    barred: np.ndarray  # (E,) last pair that has each link on one of its paths, -1 if there is none
    back: np.ndarray  # (nodes,) link by which each router was reached, -1 if it was not
    queue: np.ndarray  # (nodes,) routers in the order in which they were reached


@njit
def disjoint_paths(starts, heads, pairs, most):
    """Return three arrays: paths of pairs (n, 2) of routers, each the shortest that shares no link with others; `most` a pair.

    `starts` (nodes + 1,) and `heads` (E,) are the links by the routers at which they start. Returned are the pair (P,) of each path,
    the place (P + 1,) at which its links begin among all, and these (L,).
    """
    nodes = len(starts) - 1
    links = len(heads)
    pair = [np.int64(0) for _ in range(0)]
    begin = [np.int64(0)]
    link = [np.int64(0) for _ in range(0)]
    barred = np.full(links, -1)
    back = np.empty(nodes, np.int64)
    search = _Search(barred, back, np.empty(nodes, np.int64))
    tails = np.empty(links, np.int64)
    for u in range(nodes):
        tails[starts[u] : starts[u + 1]] = u
    for k in range(len(pairs)):
        source = pairs[k, 0]
        target = pairs[k, 1]
        for _ in range(most):
            _reach(_Links(starts, heads), source, target, k, search)
            if back[target] < 0:
                break
            router = target
            first_link = len(link)
            while router != source:
                last_link = back[router]
                link.append(last_link)
                barred[last_link] = k
                router = tails[last_link]
            link[first_link:] = link[first_link:][::-1]
            pair.append(k)
            begin.append(len(link))
    return np.array(pair), np.array(begin), np.array(link)


@njit
def _reach(links, source, target, k, search):
    """Breadth first from the source to the target of pair k, on links that none of its paths has: fills `search.back`."""
    back = search.back
    queue = search.queue
    back[:] = -1
    queue[0] = source
    head = 0
    tail = 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(links.starts[u], links.starts[u + 1]):
            v = links.heads[e]
            if search.barred[e] != k and back[v] < 0 and v != source:
                back[v] = e
                if v == target:
                    return
                queue[tail] = v
                tail += 1
