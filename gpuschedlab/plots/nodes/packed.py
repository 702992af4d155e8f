"""Which of a node's lanes (GPUs, or parts of them) each stretch of an allocation is drawn on; compiled."""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def _window(owner, busy, lanes, want):
    """Return a tuple: first (an index) of `want` neighbouring lanes, fewest busy, then fewest owners; and how many are busy."""
    best = 1_000_000
    first_lane = 0
    for low in range(lanes - want + 1):
        busy_lanes = 0
        changes = 0
        for i in range(low, low + want):
            busy_lanes += busy[i]
            if i > low and owner[i] != owner[i - 1]:
                changes += 1
        score = busy_lanes * 1000 + changes if busy_lanes else 0
        if score < best:
            best = score
            first_lane = low
    return first_lane, best // 1000


@njit
def pack_lanes(row, start, end, width, lanes):
    """Put stretches (k,), by (row, start), on free lanes (R,) or over others; return arrays (p,): stretch, low, high, over."""
    most_lanes = lanes.max() if len(lanes) else 0
    total = 0
    for i in range(len(row)):
        total += min(width[i], lanes[row[i]])
    stretch = np.empty(total, np.int64)
    low = np.empty(total, np.int64)
    high = np.empty(total, np.int64)
    over = np.zeros(total, np.bool_)
    until = np.full(most_lanes, -np.inf)
    owner = np.full(most_lanes, -1)
    busy = np.zeros(most_lanes, np.int64)
    pieces = 0
    here = -1
    for i in range(len(row)):
        if row[i] != here:
            here = row[i]
            until[:] = -np.inf
            owner[:] = -1
        lane_count = lanes[here]
        want = min(width[i], lanes[here])
        free = 0
        for lane in range(lane_count):
            busy[lane] = until[lane] > start[i] + 1e-9
            free += 1 - busy[lane]
        window_lane, busy_lanes = _window(owner, busy, lane_count, want)
        scattered = busy_lanes > 0 and free >= want
        lanes_to_draw = want
        lane = 0 if scattered else window_lane
        opened = False
        while lanes_to_draw > 0:
            if scattered and busy[lane]:
                opened = False
            else:
                if not opened:
                    stretch[pieces] = i
                    low[pieces] = lane
                    over[pieces] = not scattered and busy_lanes > 0
                    pieces += 1
                    opened = True
                high[pieces - 1] = lane + 1
                until[lane] = max(until[lane], end[i])
                owner[lane] = i
                lanes_to_draw -= 1
            lane += 1
    return stretch[:pieces], low[:pieces], high[:pieces], over[:pieces]
