"""Slurm's own rule without any shortcut: each instant at which a promise begins or ends, each group of ends, each promise."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.papers.clusters.schedulers.slurm_nodes import GPU, GROUP, choose


class Held(NamedTuple):
    """Who has which nodes: `count[0]` jobs that run, and `count[1]` promises of a node each."""

    count: np.ndarray
    order: np.ndarray  # the jobs in order of their ends
    ends: np.ndarray  # s
    first: np.ndarray  # of its cells, and where the last job's end
    node: np.ndarray
    slots: np.ndarray
    room: np.ndarray  # (N,) slots free now
    types: np.ndarray  # (N,) GPU types
    promised: np.ndarray
    begin: np.ndarray  # s, of the promise
    end: np.ndarray
    gres: bool


def start(held, end, out, k, each, slots):
    """Let a job run on the k chosen nodes until an instant; the last of them gives what is left."""
    r = held.count[0]
    at = held.first[held.count[0]]
    left = slots
    for i in range(k):
        held.node[at + i] = out[i]
        held.slots[at + i] = min(left, each if each < slots or k == 1 else held.room[out[i]])
        held.room[out[i]] -= held.slots[at + i]
        left -= held.slots[at + i]
    held.first[r + 1] = at + k
    sort_in(held, end)


def sort_in(held, end):
    """One job more runs until an instant."""
    r = i = held.count[0]
    while i > 0 and held.ends[held.order[i - 1]] > end:
        held.order[i] = held.order[i - 1]
        i -= 1
    held.order[i] = r
    held.ends[r] = end
    held.count[0] = r + 1


def first_start(now, held, usable, near, each, wide, epoch, out):
    """Instant at which so many usable nodes have room, and how many were chosen: now, or the last end of a group of ends on those near."""
    k = choose(held.room, usable, each, wide, held.gres, out)
    if k > 0:
        return now, k
    room = held.room.copy()
    i = 0
    last = 0
    close = -np.inf
    width = GROUP
    while i < held.count[0] and last >= 0:
        last = -1
        more = True
        while i < held.count[0] and more:
            r = held.order[i]
            i += 1
            first = held.first[r]
            stop = held.first[r + 1]
            if near[held.node[first:stop]].any():
                if close == -np.inf:
                    close = (np.floor((held.ends[r] + epoch) / GROUP) + 1) * GROUP - epoch
                for c in range(first, stop):
                    room[held.node[c]] += held.slots[c]
                last = r
                more = i < held.count[0] and held.ends[held.order[i]] <= close + width
        width *= 2
        while i < held.count[0] and close + width < held.ends[held.order[i]] < np.inf:
            width *= 2
        k = choose(room, usable, each, wide, held.gres, out) if last >= 0 else 0
        if k > 0:
            return held.ends[last] if held.ends[last] > now else now + 1.0, k
    return np.inf, 0


def attempt(now, held, ask, each, wide, nodes, reach, rule, epoch, reserves, out):
    """Instant at which a job starts beside all promises, and on how many nodes; if it is later, they are promised."""
    at = now
    unit = max(rule.resolution, 1e-9)
    while at < np.inf:
        free = np.ones(nodes.shape[0], bool)
        later = np.inf
        for i in range(held.count[1]):
            if held.end[i] > at and held.begin[i] <= at + ask.estimate:
                free[held.promised[i]] = False
            later = min(later, held.begin[i] if held.begin[i] > at else held.end[i] if held.end[i] > at else np.inf)
        usable = nodes & free
        begin = np.inf
        k = 0
        if usable.sum() >= wide:
            begin, k = first_start(now, held, usable, reach & free, each, wide, epoch, out)
        begin = max(begin, at)
        if k > 0 and begin <= now:
            return now, k
        if not reserves or now + rule.window < begin <= later:
            return np.inf, 0
        if begin > later or k == 0:
            at = later
            continue
        again = later if begin == at else begin
        at = begin
        free = True  # times round: what overlaps now may do so again
        end = np.floor((begin + ask.estimate + epoch) / unit + 1e-9) * unit - epoch
        begin = np.floor((begin + epoch) / unit + 1e-9) * unit - epoch
        for i in range(held.count[1]):
            for m in range(k):
                free = free and not (held.promised[i] == out[m] and held.end[i] > begin and held.begin[i] < end)
        if free:
            for m in range(k):
                promise(held, out[m], max(begin, now), max(end, begin + unit))
            return at, k
        at = again
    return np.inf, 0


def promise(held, node, begin, end):
    """Promise a node."""
    i = held.count[1]
    held.promised[i] = node
    held.begin[i] = begin
    held.end[i] = end
    held.count[1] = i + 1


def suffice(room, usable, each, wide):
    """Whether so many usable nodes have room."""
    return (usable & (room >= each)).sum() >= max(wide, 1)


def shares(nodes, queue, allowed):
    """(Q, 2) nodes of each waiting job, as asked or the fewest with equal parts of whole GPUs, and slots on each; else 0, all slots."""
    found = np.zeros((queue.shape[0], 2), np.int64)
    for q in range(queue.shape[0]):
        found[q, 1] = queue[q].slots
        unit = GPU if queue[q].slots >= GPU else 1
        for wide in range(max(queue[q].asked, 1), (queue[q].asked or nodes.shape[0]) + 1):
            each = -(-queue[q].slots // (wide * unit)) * unit
            if suffice(nodes["size"], allowed[queue[q].kind], each, wide):
                found[q, 0] = wide
                found[q, 1] = each
                break
    return found


def who_has(now, nodes, runs, cells, windows, queue, part, gres):
    """Who has which nodes, with room for what waits; outages that are announced are promises."""
    n = runs.shape[0] - 1
    k = cells.shape[0]
    w = windows.shape[0]
    r = n + queue.shape[0]
    most = np.where(part[:, 0] > 0, part[:, 0], nodes.shape[0]).sum()
    whole = np.empty((4, r + k + most + w + 1), np.int64)
    times = np.empty((3, r + w + most))
    first = whole[1]
    node = whole[2]
    slots = whole[3]
    room = nodes["free"].astype(np.int64)
    promised = np.empty(w + most, np.int64)
    jobs = (np.zeros(2, np.int64), whole[0], times[0], first, node, slots)
    held = Held(*jobs, room, nodes["type"], promised, times[1], times[2], gres)
    first[: n + 1] = runs["first"]
    node[:k] = cells["node"]
    slots[:k] = cells["slots"]
    for r in range(n):
        sort_in(held, runs[r].end)
    for i in range(w):
        if windows[i].announced <= now < windows[i].end:
            promise(held, windows[i].node, max(windows[i].start, now), windows[i].end)
    return held


def last_that_fits(held, queue, part, allowed):
    """Last waiting job that would start now but for promises, or -1."""
    q = queue.shape[0] - 1
    while q >= 0 and not suffice(held.room, allowed[queue[q].kind], part[q, 1] if part[q, 0] else GPU, part[q, 0]):
        q -= 1
    return q


def within(claims, left):
    """Whether a job is within each quota to which it is held."""
    return all(left[c["quota"]] >= c["amount"] for c in claims if c["quota"] >= 0 and c["held"])


def take(claims, held, left):
    """Count the job that has just started: for what it claims, or on nodes of a type for the slots that it holds there."""
    last = held.count[0] - 1
    for c in claims:
        if c["quota"] >= 0 and c["type"] == -1:
            left[c["quota"]] -= c["amount"]
        elif c["quota"] >= 0:
            for i in range(held.first[last], held.first[last + 1]):
                left[c["quota"]] -= held.slots[i] * (held.types[held.node[i]] == c["type"])


def backfill(now, held, queue, part, allowed, reach, rule, depth, epoch, started, out, claims, left):
    """Start or promise, in order, as long as any job may still start; the first promise (s)."""
    first = np.inf
    last = last_that_fits(held, queue, part, allowed)
    promised = 0
    tested = 0
    q = -1
    while q < last and tested < rule.tested:
        q += 1
        a = queue[q]
        wide = part[q, 0]
        each = part[q, 1]
        if started[q] < 0:
            tested += 1
            if not within(claims[q], left):
                continue
            reserves = promised < depth and now - a.submit >= rule.min_age
            begin, k = attempt(now, held, a, each, wide, allowed[a.kind], reach[a.kind], rule, epoch, reserves, out)
            if k > 0 and begin <= now:
                started[q] = held.count[0]
                start(held, now + a.estimate, out, k, each, a.slots)
                take(claims[q], held, left)
                last = last_that_fits(held, queue, part, allowed)
            elif k > 0:
                first = min(first, begin)
                promised = promised + 1
    return first


def plan(now, nodes, runs, queue, windows, rule, cells, allowed, reach, wake, claims, left, epoch, way, gres):
    """Answer of `gpuschedlab.Ordered.planner`; way: whether later jobs pass never (0), beside promises, or freely (2)."""
    part = shares(nodes, queue, allowed)
    out = np.empty(nodes.shape[0], np.int64)
    held = who_has(now, nodes, runs, cells, windows, queue, part, gres)
    started = np.full(queue.shape[0], -1)
    barred = np.zeros(nodes.shape[0], np.bool_)
    # The main loop: a job that does not fit keeps its nodes from all after it.
    for q in range(queue.shape[0]):
        if not within(claims[q], left):
            continue
        a = queue[q]
        wide = part[q, 0]
        each = part[q, 1]
        usable = allowed[a.kind] & ~barred
        for i in range(held.count[1]):
            usable[held.promised[i]] &= held.begin[i] >= now + a.estimate
        k = choose(held.room, usable, each, wide, held.gres, out)
        if k > 0:
            started[q] = held.count[0]
            start(held, now + a.estimate, out, k, each, a.slots)
            take(claims[q], held, left)
        else:
            barred |= reach[a.kind]
            if barred.all():
                break
    between = rule.every > 0 and np.ceil(now / rule.every - 1e-9) * rule.every > now
    wake[0] = now if between else np.inf
    if way > 0 and not between:
        depth = 0.0 if way == 2 else rule.depth
        wake[0] = backfill(now, held, queue, part, allowed, reach, rule, depth, epoch, started, out, claims, left)
    first = held.first[runs.shape[0] - 1]
    k = 0
    answer = np.empty(held.first[held.count[0]] - first, cells.dtype)
    for q in np.flatnonzero(started >= 0):
        for c in range(held.first[started[q]], held.first[started[q] + 1]):
            answer[k].answer = q
            answer[k].node = held.node[c]
            answer[k].slots = held.slots[c]
            k += 1
    return answer
