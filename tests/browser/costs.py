"""What explorers cost in a browser: bytes, messages, widgets and seconds until drawn of one, and openings of all."""

import itertools
import random
import statistics
import tempfile
import time
from pathlib import Path

from browser.notebooks import WEEK, WEEKS
from browser.openings import openings
from browser.pages import await_drawn, choose, control, open_in, run_all
from browser.serving import chromium, serve, write_notebooks

MOVES = 20
RUNS = 5
BUDGET = {
    "weight": 2e6,
    "pin_bytes": 0.3e6,
    "pin_seconds": 0.5,
    "messages": 10,
    "press_seconds": 0.2,
    "refined_seconds": 0.15,
    "first_seconds": 0.2,
    "open_seconds": 4.0,
    "gap_seconds": 0.1,
}
PRESSES = 200
MOMENTS = (0.3, 1.8)
"""Keys that are pressed while other weeks are played, and how many seconds after the drawing before: at a random moment between."""
STEPS = 40
EVERY = 50
"""Moves of the mouse while it drags, and ms between them."""

WATCH = """() => {
  const board = document.querySelector('.gpuschedlab-explorer .gpuschedlab-board');
  window.begin = (event) => { window.begun = event.timeStamp; };
  for (const kind of ['keydown', 'mousedown', 'change']) document.addEventListener(kind, window.begin, true);
  new MutationObserver(() => { window.took = performance.now() - window.begun; })
    .observe(board, { attributes: true, attributeFilter: ['data-drawn'] });
}"""
REDRAW = """() => new Promise((done) => {
  const board = document.querySelector('.gpuschedlab-explorer .gpuschedlab-board'), begin = performance.now();
  const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now() - begin); });
  watch.observe(board, { attributes: true, attributeFilter: ['data-drawn'] });
  board.gpuschedlab.redraw();
})"""


class Wire:
    """Counts what a page receives over its websockets."""

    def __init__(self, page):
        self.messages = 0
        self.bytes = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self._take))

    def _take(self, frame):
        self.messages += 1
        self.bytes += len(frame)

    def since(self, act) -> tuple[int, int]:
        """Messages and bytes that come while something is done."""
        before = self.messages, self.bytes
        act()
        return self.messages - before[0], self.bytes - before[1]


def run(data_dir=None, repeat: int = 1) -> dict:
    """Open each explorer some times beside two busy loops, then measure one on an idle machine.

    Parameters
    ----------
    data_dir : optional
        Not used.
    repeat : int
        Openings of each explorer in JupyterLab and in Voila; those that are known already are not repeated.

    Returns
    -------
    dict
        `openings`, `costs` and `ok`: whether no figure stayed empty and every budget is kept.
    """
    opened = openings(repeat)
    measured = costs()
    return {"openings": opened, "costs": measured, "ok": all(row["ok"] for row in (*opened, *measured))}


def costs() -> list[dict]:
    """Measure one Explorer; one row a figure, with its budget.

    Returns
    -------
    list of dict
        `name`, `value`, `unit`, `budget`, `ok`.
    """
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-", ignore_cleanup_errors=True) as room:
        notebooks = write_notebooks(Path(room), {"week": WEEK, "weeks": WEEKS})
        with serve(notebooks, "jupyterlab") as address, chromium() as launch:
            page = launch().new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(120_000)
            wire = Wire(page)
            open_in(page, "jupyterlab", address, "week")
            begin = time.perf_counter()
            await_drawn(page)
            opened = row(
                "from Run All on a fresh kernel until drawn", time.perf_counter() - begin, "s", BUDGET["open_seconds"]
            )
            page.wait_for_timeout(1000)
            found = [opened, row("first weight", wire.bytes, "bytes", BUDGET["weight"])]
            page.evaluate(WATCH)
            found += _pins(page, wire) + _moves(page, wire) + _drag(page) + _again(page)
            page.close()
            return found + _refined(launch, address)


def _timed(page, act) -> float:
    """Seconds from a key or button until all figures that it changes are drawn."""
    page.evaluate("() => { window.took = 0; }")
    act()
    page.wait_for_function("() => window.took > 0")
    page.wait_for_timeout(250)  # a second drawing would be part of it
    return page.evaluate("() => window.took") / 1000


def _pins(page, wire) -> list[dict]:
    rows = []
    for name in ("as it is now", "Fifo"):
        took, act = [], lambda name=name: choose(page, "against", name)
        _, size = wire.since(lambda took=took, act=act: took.append(_timed(page, act)))
        rows += [row(f"against {name}: weight", size, "bytes", BUDGET["pin_bytes"])]
        rows += [row(f"against {name}: until drawn", took[0], "s", BUDGET["pin_seconds"])]
    return rows


def _moves(page, wire) -> list[dict]:
    control(page, "next queue after").locator(".noUi-handle").focus()
    took = []
    counts = []
    sizes = []
    empty = []
    for i in range(MOVES):
        key = "ArrowLeft" if i < MOVES // 2 else "ArrowDown"
        messages, size = wire.since(lambda key=key: took.append(_timed(page, lambda: page.keyboard.press(key))))
        counts.append(messages)
        sizes.append(size)
        empty.append(page.evaluate(REDRAW) / 1000)
    return [
        row("messages a move", statistics.median(counts), "messages", BUDGET["messages"]),
        row("weight of a move", statistics.median(sizes), "bytes", None),
        row("key press until all figures are drawn", statistics.median(took), "s", BUDGET["press_seconds"]),
        row("empty redraw of the same figures", statistics.median(empty), "s", None),
    ]


def _refined(launch, address: str) -> list[dict]:
    """Seconds of key presses while weeks of other seeds are played, at moments that a seed draws."""
    page = launch().new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)
    open_in(page, "jupyterlab", address, "weeks")
    await_drawn(page)
    page.evaluate(WATCH)
    control(page, "next queue after").locator(".noUi-handle").focus()
    moments = random.Random(0)
    took = []
    playing = 0
    for i in range(PRESSES):
        page.wait_for_timeout(1000 * moments.uniform(*MOMENTS))
        playing += page.locator(".gpuschedlab-weeks .gpuschedlab-playing").count()
        key = "ArrowLeft" if i % 40 < 20 else "ArrowRight"
        took.append(_timed(page, lambda key=key: page.keyboard.press(key)))
    page.wait_for_function("() => /such weeks/.test(document.querySelector('.gpuschedlab-weeks').innerText)")
    took.sort()
    return [
        row("key press while weeks are played: 95 of 100", took[int(0.95 * PRESSES)], "s", BUDGET["refined_seconds"]),
        row("key press while weeks are played: median", statistics.median(took), "s", None),
        row("presses before six weeks were played", playing, "presses", None),
    ]


FRAMES = """() => {
  const board = document.querySelector('.gpuschedlab-explorer .gpuschedlab-board');
  window.frames_ = [];
  window.dragged = new MutationObserver(() => window.frames_.push(performance.now()));
  window.dragged.observe(board, { attributes: true, attributeFilter: ['data-drawn'] });
  document.addEventListener('mousemove', (event) => { window.first_ ??= event.timeStamp; window.last_ = event.timeStamp; }, true);
}"""


def _drag(page) -> list[dict]:
    """Drag the slider's handle: until the first drawing, and from one drawing to the next while the hand moves."""
    handle = control(page, "next queue after").locator(".noUi-handle")
    box = handle.bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(FRAMES)
    width = control(page, "next queue after").locator(".noUi-base").bounding_box()["width"]
    for i in range(STEPS):
        page.mouse.move(x + (1 if i % 2 else -1) * width / 4 * (i + 1) / STEPS, y)
        page.wait_for_timeout(EVERY)
    page.mouse.up()
    page.wait_for_function("() => window.frames_.length > 0")
    page.wait_for_timeout(500)
    frames, begun, ended = page.evaluate("() => [window.frames_, window.first_, window.last_]")
    seen = [at for at in frames if at <= ended + EVERY] or frames
    gaps = [b - a for a, b in itertools.pairwise(seen)] or [float("inf")]
    return [
        row("dragging: first drawing", (frames[0] - begun) / 1000, "s", BUDGET["first_seconds"]),
        row("dragging: from drawing to drawing", statistics.median(gaps) / 1000, "s", BUDGET["gap_seconds"]),
        row("dragging: drawings a second", 1000 * len(seen) / (ended - begun), "drawings", None),
    ]


def _again(page) -> list[dict]:
    """Widgets in the kernel after the first run, and after running all cells some more times."""
    counted = page.locator(".jp-OutputArea-output", has_text=" widgets")
    first = counted.last.inner_text().split()[0]
    for i in range(RUNS):
        run_all(page)
        page.locator(".jp-InputPrompt", has_text=f"[{3 * (i + 2)}]:").wait_for()
    page.wait_for_timeout(500)
    last = counted.last.inner_text().split()[0]
    return [row(f"widgets in the kernel, run {RUNS} times more", int(last), "widgets", int(first))]


def row(name: str, value: float, unit: str, budget: float | None) -> dict:
    """One figure and whether it keeps its budget."""
    return {"name": name, "value": value, "unit": unit, "budget": budget, "ok": budget is None or value <= budget}
