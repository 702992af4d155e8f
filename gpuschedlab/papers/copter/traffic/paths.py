"""Compiled search for paths without common links."""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def disjoint_paths(starts, heads, pairs, most):
    """Paths of pairs (n, 2) of routers, each the shortest by links that shares none with those before, at most `most` for a pair.

    `starts` (nodes + 1,) and `heads` (E,) are the links by where they start. Returned are the pair (P,) of each path, where its links
    begin (P + 1,) among all, and these (L,).
    """
    nodes = len(starts) - 1
    links = len(heads)
    pair = [np.int64(0) for _ in range(0)]
    begin = [np.int64(0)]
    link = [np.int64(0) for _ in range(0)]
    barred = np.full(links, -1)
    back = np.empty(nodes, np.int64)
    tails = np.empty(links, np.int64)
    for u in range(nodes):
        tails[starts[u] : starts[u + 1]] = u
    queue = np.empty(nodes, np.int64)
    for k in range(len(pairs)):
        source = pairs[k, 0]
        target = pairs[k, 1]
        for _ in range(most):
            _search(starts, heads, source, target, barred, k, back, queue)
            if back[target] < 0:
                break
            at = target
            first = len(link)
            while at != source:
                link.append(back[at])
                barred[back[at]] = k
                at = tails[back[at]]
            link[first:] = link[first:][::-1]
            pair.append(k)
            begin.append(len(link))
    return np.array(pair), np.array(begin), np.array(link)


@njit
def _search(starts, heads, source, target, barred, k, back, queue):
    """Breadth first from the source: the link into each router in `back`, -1 if none was reached before the target."""
    back[:] = -1
    queue[0] = source
    head = 0
    tail = 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(starts[u], starts[u + 1]):
            v = heads[e]
            if barred[e] != k and back[v] < 0 and v != source:
                back[v] = e
                if v == target:
                    return
                queue[tail] = v
                tail += 1
