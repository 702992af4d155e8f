"""The causal lab in JupyterLab: rows arrive by themselves, clicks and keys change the sentence, nothing is cut or overlaps."""

import json

import pytest
from browser import serving
from browser.pages import CUT, FIRST, OUTSIDE, PALE, await_drawn, choose, open_in, press, settled, unreadable
from browser.test_one_screen import wear

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python, of the extra test, is not installed")
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]

CELL = "from gpuschedlab.widgets import CausalLab\n\nexplorer = CausalLab({})\nexplorer"
STATUS = ".gpuschedlab-status"
POINTS = 7
EDGES, BOXES = 0, 1
PLACE = """async (plot, [trace, point]) => {
  const place = () => {
    const { x, y } = plot._fullData[trace], { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.l2p(x[point]), box.top + yaxis._offset + yaxis.l2p(y[point])];
  };
  for (let frames = 0, last = ''; frames < 20; frames = String(place()) === last ? frames + 1 : 0) {
    last = String(place());
    await new Promise(requestAnimationFrame);
  }
  return place();
}"""
"""Where a point of a trace is seen on the page, once the figure stands still: it takes the room that the sentences leave."""
HOVERED = """([trace, point]) => {
  const [seen] = document.querySelector('.gpuschedlab-explorer .js-plotly-plot')._hoverdata ?? [];
  return seen?.curveNumber === trace && seen?.pointNumber === point;
}"""
DASHED = """() => [...document.querySelectorAll('.gpuschedlab-figure .js-plotly-plot')]
  .flatMap((plot) => plot.layout?.shapes ?? []).filter((shape) => shape.layer === 'below' && shape.line.dash).length"""
"""Edges that are drawn as cut."""
WHISKERS = "() => document.querySelectorAll('.gpuschedlab-figure .errorbar').length"


def click(page, trace: int, point: int):
    """Click on a point of the graph with the mouse."""
    page.locator(".gpuschedlab-explorer").evaluate("(explorer) => explorer.scrollIntoView()")
    graph = page.locator(".gpuschedlab-explorer .js-plotly-plot").first
    x, y = graph.evaluate(PLACE, [trace, point])
    page.mouse.move(x, y, steps=3)
    page.wait_for_function(
        HOVERED, arg=[trace, point]
    )  # plotly clicks on what it hovers on, some hundredths of a second later
    page.mouse.click(x, y)


def sentence(page) -> str:
    return page.locator(f"{STATUS} .gpuschedlab-sentence").inner_text()


def await_sentence(page, earlier: str) -> str:
    """Wait until the sentence is another one, and return it."""
    said = f"document.querySelector({json.dumps(f'{STATUS} .gpuschedlab-sentence')})?.innerText"
    page.wait_for_function(f"(earlier) => {said} && {said} !== earlier", arg=earlier)
    return sentence(page)


def opened(page, address: str, notebooks, options: str = ""):
    """Open a notebook with a lab in a small window of JupyterLab."""
    serving.write_notebooks(notebooks, {"causal": [CELL.format(options)]})
    page.set_viewport_size({"width": 1280, "height": 800})
    open_in(page, "jupyterlab", address, "causal")
    assert await_drawn(page) == []


def await_all(page):
    """Wait until the last interval is simulated."""
    page.locator(STATUS, has_text="in 20 simulated intervals").wait_for()


def test_clicks_and_keys_change_who_is_right_and_a_slider_ends_what_was_arriving(
    page, jupyterlab, notebooks, artifacts
):
    opened(page, jupyterlab, notebooks, "seed=1, rows=200, intervals=20")
    await_all(page)
    whole = sentence(page)
    assert "agrees" in whole
    page.get_by_role("button", name="load's edges").click()
    cut = await_sentence(page, whole)
    assert "wrong sign" in cut
    page.wait_for_function(f"() => ({DASHED})() === 4")
    page.screenshot(path=artifacts / "causal-lab-load-cut.png")
    page.get_by_role("button", name="load's edges").press("Enter")
    assert await_sentence(page, cut) == whole

    click(page, EDGES, 5 * POINTS + 1)  # knob -> waiting, before it crosses another
    page.locator(STATUS, has_text="lacks knob → waiting").wait_for()
    misses = await_sentence(page, whole)
    assert "misses" in misses
    page.wait_for_function(f"() => ({DASHED})() === 1")
    page.screenshot(path=artifacts / "causal-lab-waiting-cut.png")
    page.get_by_role("button", name="restore").press("Enter")
    assert await_sentence(page, misses) == whole

    click(page, BOXES, 2)  # preempted, then waiting: an edge between them
    page.get_by_text("click what preempted causes").wait_for()
    click(page, BOXES, 3)
    page.locator(STATUS, has_text="has also preempted").wait_for()
    click(page, BOXES, 3)
    page.get_by_text("click what waiting causes").wait_for()
    click(page, BOXES, 1)  # no edge leads back to the load
    page.locator(".gpuschedlab-error", has_text="waiting -> load").wait_for()
    page.screenshot(path=artifacts / "causal-lab-forbidden.png")
    page.get_by_role("button", name="as given").press("Enter")
    page.wait_for_function(
        f"(whole) => document.querySelector('{STATUS} .gpuschedlab-sentence').innerText === whole", arg=whole
    )
    assert not page.locator(".gpuschedlab-error").is_visible()

    choose(page, "edge", "load → knob")
    page.get_by_role("button", name="cut", exact=True).press("Enter")
    page.locator(STATUS, has_text="load is still held fixed, since").wait_for()
    press(page, "do", "ArrowLeft", 3)
    await_sentence(page, whole)
    assert page.evaluate(WHISKERS) > 0

    for _ in range(2):  # the second time while rows arrive since the first
        press(page, "restart takes", "ArrowLeft")
        page.locator(".gpuschedlab-title", has_text="of 200 intervals of the log").wait_for()
    await_all(page)
    page.locator(".gpuschedlab-title", has_text="200 intervals of the log, 20 of the truth").wait_for()


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_the_screen_is_seen_whole_while_rows_arrive(theme, page, jupyterlab, notebooks, artifacts, request):
    request.addfinalizer(lambda: wear(notebooks, "light"))
    wear(notebooks, theme)
    opened(page, jupyterlab, notebooks, "rows=200, intervals=20, guess=True")
    explorer = page.locator(".gpuschedlab-explorer")
    page.locator(STATUS, has_text="Guess:").wait_for()
    assert "In truth" not in page.locator(STATUS).inner_text()
    page.screenshot(path=artifacts / f"causal-lab-guess-{theme}.png")
    page.get_by_role("button", name="sooner").click()
    page.locator(STATUS, has_text="In truth").wait_for()
    await_all(page)
    page.locator(STATUS, has_text="You guessed sooner").wait_for()
    wrong = {}
    for (width, height), checks in {(1280, 800): (OUTSIDE, CUT, FIRST, PALE), (800, 1100): (CUT, PALE)}.items():
        page.set_viewport_size({"width": width, "height": height})
        wrong |= {(width, check): found for check in checks if (found := settled(explorer, check))}
        page.screenshot(path=artifacts / f"causal-lab-{theme}-{width}.png")
    assert wrong == {}
    assert unreadable(page) == []
