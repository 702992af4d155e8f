"""Seconds from a slider that moves to four figures that have new numbers, in the kernel.

The Explorer shows a week of 10,000 jobs on 70 nodes of 8; Tiresias' threshold takes values that were not simulated
before, with FIFO pinned. A time covers the control, constraints, simulation, numbers, and messages turned into the
bytes that a browser would be sent; not the browser.
"""

import json
import statistics
import time
from contextlib import contextmanager

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import LabError

BUDGET = 0.15  # seconds, median
MOVES = 25


class Wire:
    """Stands in for the connection to a browser: turns messages into bytes and counts them."""

    def __init__(self):
        self.messages, self.bytes, self.open = 0, 0, True
        self.default = need("jupyter_client.jsonutil", "explorers").json_default

    def send(self, data, buffers):
        """Take one message, and drop it: widgets that are closed after the measurement still send some."""
        if self.open:
            self.messages += 1
            text = json.dumps(data, default=self.default, allow_nan=False)
            self.bytes += len(text) + sum(memoryview(b).nbytes for b in buffers or ())


@contextmanager
def wired():
    """Give all widgets that are made meanwhile a connection that measures; yields the `Wire`."""
    comm = need("comm", "explorers")
    wire, before = Wire(), comm.create_comm

    class Comm(comm.base_comm.BaseComm):
        def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
            wire.send(data, buffers)

    comm.create_comm = Comm
    try:
        yield wire
    finally:
        comm.create_comm, wire.open = before, False


def run(data_dir=None) -> dict:
    """Measure moves of a slider, and for information a move back to what was seen, and a step of the Gantt.

    Parameters
    ----------
    data_dir : optional
        Not used.

    Returns
    -------
    dict
        `rows` as of the bench "engine", with the messages and bytes of a move; `ok`: whether the budget is kept.
    """
    from gpuschedlab.policies import Fifo, Tiresias
    from gpuschedlab.widgets import Explorer

    with wired() as wire:
        explorer = Explorer(policies=[Fifo, Tiresias])
        slider = explorer.knobs["thresholds"].parts[0]
        values = [float(f"{v:.3g}") for v in np.geomspace(1e3, 1e6, MOVES + 1)]
        slider.value = values[0]
        wire.messages = wire.bytes = 0
        moved = timed(lambda v: setattr(slider, "value", v), values[1:])
        sent = {"messages": wire.messages / MOVES, "bytes": round(wire.bytes / MOVES)}
        back = timed(lambda v: setattr(slider, "value", v), values[-2:-8:-1])
        played = timed(lambda v: setattr(explorer.player.begin, "value", v), range(24, 96, 6))
    if explorer.error.outputs:
        raise LabError(f"bench explorer: the explorer showed {explorer.error.outputs[0]['evalue']}")
    rows = [
        row("slider_to_figures", moved, BUDGET) | sent,
        row("slider_back", back, None),
        row("gantt_step", played, None),
    ]
    return {"bench": "explorer", "jobs": explorer.run.jobs.height, "rows": rows, "ok": all(r["ok"] for r in rows)}


def timed(move, values) -> list[tuple[float, float]]:
    """Seconds on the clock, and of the processor, of each of some moves."""
    found = []
    for value in values:
        begin, worked = time.perf_counter(), time.process_time()
        move(value)
        found.append((time.perf_counter() - begin, time.process_time() - worked))
    return found


def row(name: str, pairs: list[tuple[float, float]], budget: float | None) -> dict:
    """Medians of some moves, and whether they keep a budget."""
    seconds, cpu = (list(column) for column in zip(*pairs, strict=True))
    value = statistics.median(seconds)
    ok = budget is None or value <= budget
    found = {"name": name, "value": value, "unit": "s", "budget": budget, "ok": ok}
    return found | {"cpu": statistics.median(cpu), "runs": seconds}
