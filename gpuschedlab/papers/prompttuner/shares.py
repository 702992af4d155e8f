"""ElasticFlow's minimum satisfactory shares: the least level of GPUs, slot by slot, that meets each deadline (compiled)."""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def satisfactory_shares(gpus, seconds, setup, held, owed, due, free, slot):
    """Plan jobs one after another, each on the least level at which it ends by its deadline.

    At level a, a job has in each slot the largest of its numbers of `gpus` (n, L), ascending, that is at most a and still free;
    `seconds` (n, L) is its time for all that is left on each, inf: impossible. A change of its number costs `setup` (s); `owed` (s) of
    the last start are still to pass, if the GPUs `held` stay; it is `due` in seconds. `free` (S,) are the GPUs free in each slot,
    from which planned GPUs are taken. Returned are the level (n,) of each job (-1: none suffices), its level in the first slot, and
    the seconds after which a planned level first changes (inf: none does before its job ends).
    """
    n, L = gpus.shape
    S = free.shape[0]
    share = np.full(n, -1)
    first = np.full(n, -1)
    turn = np.inf
    plan = np.empty(S, np.int64)
    for i in range(n):
        for top in range(L):
            if not np.isfinite(seconds[i, top]):
                continue
            last = _fill(gpus[i], seconds[i], setup[i], held[i], owed[i], due[i], free, slot, top, plan)
            if last < 0:
                continue
            share[i] = top
            first[i] = plan[0]
            for s in range(last + 1):
                if plan[s] >= 0:
                    free[s] -= gpus[i, plan[s]]
                if s > 0 and plan[s] != plan[s - 1]:
                    turn = min(turn, s * slot)
            break
    return share, first, turn


@njit
def _fill(gpus, seconds, setup, held, owed, due, free, slot, top, plan):
    """Plan one job at a level; its last slot, -1: it does not end by its deadline."""
    done = 0.0
    before = held
    for s in range(free.shape[0]):
        if s * slot >= due:
            return -1
        level = -1
        for k in range(top, -1, -1):
            if np.isfinite(seconds[k]) and gpus[k] <= free[s] + 1e-6:
                level = k
                break
        plan[s] = level
        now = gpus[level] if level >= 0 else 0.0
        if now > 0 and now != before:
            owed = setup
        before = now
        if level < 0:
            continue
        room = min(slot, due - s * slot)
        spent = min(owed, room)
        owed -= spent
        done += (room - spent) / seconds[level]
        if done >= 1 - 1e-9:
            return s
    return -1
