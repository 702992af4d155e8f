"""From a slider that moves to figures that have new numbers, in the kernel; `make bench BENCH=browser` adds the browser.

The Explorer shows a week of 10,000 jobs on 70 nodes of 8; Tiresias' threshold takes values that were not simulated
before, with FIFO pinned. A time covers the control, constraints, simulation, numbers, and messages turned into the
bytes that a browser would be sent.
"""

import resource
import time

import numpy as np
import pytest
from wire import wired

from gpuschedlab import Cluster
from gpuschedlab.metrics.like_weeks import MOST
from gpuschedlab.policies import Fifo, Tiresias
from gpuschedlab.widgets import Explorer, Generated

MOVES = 25
VALUES = [float(f"{v:.3g}") for v in np.geomspace(1e3, 1e6, MOVES + 1)]


@pytest.fixture
def wire():
    """A connection that counts what is sent."""
    with wired() as found:
        yield found


@pytest.fixture
def explorer(wire):
    """An Explorer; whatever it reports as an error fails the test."""
    made = Explorer(policies=[Fifo, Tiresias])
    yield made
    assert not made.error.outputs


def test_slider_to_figures(budget, explorer, wire):
    slider, values = explorer.knobs["thresholds"].parts[0], iter(VALUES)
    begun = []

    def move(value):
        begun.append((wire.messages, wire.bytes))
        slider.value = value

    budget(move, 0.15, setup=lambda: (next(values),), rounds=MOVES)
    moves = max(len(begun) - 1, 1)
    for what, before, after in zip(("messages", "bytes"), begun[-moves], (wire.messages, wire.bytes), strict=True):
        budget.also(f"{what} a move", (after - before) / moves)


def test_slider_back_to_what_was_seen(budget, explorer):
    slider = explorer.knobs["thresholds"].parts[0]
    for value in VALUES[-8:]:
        slider.value = value
    values = iter(VALUES[-2:-9:-1])
    budget(lambda value: setattr(slider, "value", value), setup=lambda: (next(values),), rounds=6)


def test_step_of_the_gantt(budget, explorer):
    explorer._asked("more", None)
    nodes = iter(range(1, 66, 4))
    budget(lambda node: setattr(explorer.panel.first_node, "value", node), setup=lambda: (next(nodes),), rounds=12)


def played(explorer, most: int) -> tuple[float, float, int]:
    """Play so many weeks; seconds of the processor in all and of the longest piece, and how many pieces."""
    make, _ = explorer._other_weeks()
    pieces = make(MOST + 1)  # more than that: it does not stop before
    seconds = []
    while True:
        begin = time.process_time()
        try:
            weeks = next(pieces)
        except StopIteration:
            return sum(seconds), max(seconds), len(seconds)
        seconds.append(time.process_time() - begin)
        if weeks is not None and len(weeks.seeds) == most:
            return sum(seconds), max(seconds), len(seconds)


@pytest.mark.parametrize(("preset", "held"), [("venus", True), ("philly", False)])
def test_weeks_like_this_one(budget, preset, held):
    """First with nothing kept, then with traces and EASY kept; the sizes of philly are for information."""
    policies = {"Easy": Fifo(backfill="easy"), "Tiresias": Tiresias()}
    Explorer(Generated(preset), Cluster.homogeneous(70, 8), policies).play_weeks(2)  # all is compiled
    explorer = Explorer(Generated(preset), Cluster.homogeneous(70, 8), policies)
    seconds, longest, count = played(explorer, 12)
    budget.also("12 weeks, nothing kept: CPU s", seconds, 4.0 if held else None)
    budget.also("the longest piece, CPU s", longest, 0.03 if held else None)
    budget.also("pieces", count)
    threshold = explorer.knobs["thresholds"].parts[0]
    for weeks, most, value in ((6, 1.1, 2e4), (12, 2.2, 3e4)):
        threshold.value = value
        seconds, longest, _ = played(explorer, weeks)
        budget.also(f"{weeks} weeks, traces and EASY kept: CPU s", seconds, most if held else None)
        budget.also(f"{weeks} weeks, the longest piece: CPU s", longest, 0.03 if held else None)


def test_memory_of_twenty_weeks(budget):
    explorer = Explorer(
        Generated(), Cluster.homogeneous(70, 8), {"Easy": Fifo(backfill="easy"), "Tiresias": Tiresias()}
    )
    before = resident()
    explorer.play_weeks(20)
    budget.also("MB of 20 weeks", (resident() - before) / 1e6, 150.0)


def resident() -> float:
    """Bytes that this process holds in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
