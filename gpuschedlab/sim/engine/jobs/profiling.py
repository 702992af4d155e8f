"""The stage of profiling: new jobs run on nodes set aside, for a limited time, before they queue with the others.

A profiler is a pool of nodes that serves stage 1. The work of a job there counts only if it ends there.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS, count_node, count_sizes
from gpuschedlab.sim.engine.jobs.accounting import renew_key, wake
from gpuschedlab.sim.engine.jobs.queues import drop_waiting, push_waiting
from gpuschedlab.sim.engine.jobs.rank import total
from gpuschedlab.sim.engine.jobs.records import WAITING


@njit(inline="never")
def profiler_fits(S, j):
    """Whether job j could be profiled on an empty profiler, with nodes of it that are down."""
    for p in range(S.pools.shape[0]):
        q = S.pools[p]
        if q.stage == 1 and S.known[S.body[j].knows, q.type] > 0 and S.body[j].slots <= q.total:
            return True
    return False


@njit
def stay_end(S, j, since):
    """Return when (s) a stay of job j that began at an instant ends by itself; inf: it does not."""
    return since + S.rule[0].profile if S.job[j].stage == 1 else np.inf


@njit
def skip_profiling(S, j):
    """Job j is not profiled, or no longer: it queues with the others from now on."""
    S.job[j].stage = 0
    S.body[j].base = S.cls[S.body[j].base].next


@njit
def _take_empty_nodes(S, p):
    """Move empty nodes of its type into pool p while it lacks any; return how many."""
    nodes_taken = 0
    n = 0
    lacking = S.lacking[p]
    nodes_lacking = total(lacking)
    while nodes_taken < nodes_lacking and n < S.nodes.shape[0]:
        nd = S.nodes[n]
        empty = nd.down == 0 and nd.free == nd.size and S.pools[nd.pool].stage == 0
        if empty and nd.type == S.pools[p].type and lacking[nd.size // SLOTS] > 0:
            old_pool = S.pools[nd.pool]
            profiler_pool = S.pools[p]
            old_pool.free -= nd.size
            old_pool.size -= nd.size
            old_pool.total -= nd.size
            profiler_pool.free += nd.size
            profiler_pool.size += nd.size
            profiler_pool.total += nd.size
            lacking[nd.size // SLOTS] -= 1
            count_node(S.nodes, S.count, S.member, n, -1)
            nd.pool = p
            count_node(S.nodes, S.count, S.member, n, 1)
            nodes_taken += 1
        n += 1
    return nodes_taken


@njit(inline="never")
def enlarge_profilers(S):
    """Give profilers that lack nodes those that are empty, and new jobs that wait and fit now."""
    nodes_taken = 0
    for p in range(S.pools.shape[0]):
        nodes_taken += _take_empty_nodes(S, p)
    if nodes_taken == 0:
        return
    count_sizes(S.nodes, S.sizes, False)
    S.scalar[0].exhausted = 0
    for j in range(S.scalar[0].arrived):
        job = S.job[j]
        if job.state == WAITING and job.starts == 0 and job.stage == 0 and profiler_fits(S, j):
            _enroll(S, j)


@njit(inline="never")
def _enroll(S, j):
    """Waiting job j is to be profiled after all."""
    for c in range(S.cls.shape[0]):
        if S.cls[c].stage == 1 and S.cls[c].next == S.body[j].base:
            drop_waiting(S, j)
            S.job[j].stage = 1
            S.body[j].base = S.body[j].cls = c
            renew_key(S, j)
            push_waiting(S, j)
            wake(S, j)
            return
