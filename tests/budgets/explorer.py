"""From a slider that moves to figures that have new numbers, in the kernel; `make bench BENCH=browser` adds the browser.

The Explorer shows a week of 10,000 jobs on 70 nodes of 8; Tiresias' threshold takes values that were not simulated
before, with FIFO pinned. A time covers the control, constraints, simulation, numbers, and messages turned into the
bytes that a browser would be sent.
"""

import numpy as np
import pytest
from wire import wired

from gpuschedlab.policies import Fifo, Tiresias
from gpuschedlab.widgets import Explorer

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
