"""The Explorer in a real browser: a knob is moved by keyboard and the figures follow; errors are seen."""

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

EXPLORER = ".gpuschedlab-explorer"
CURVE = f"""() => Array.from(document.querySelector('{EXPLORER} .js-plotly-plot').data[0].x).join()"""
MOVED = CURVE.replace("() =>", "before => before !==")
OVERFLOW = """() => {
  const wide = document.querySelector('.gpuschedlab-explorer').getBoundingClientRect(), cut = [];
  for (const svg of document.querySelectorAll('.gpuschedlab-explorer .js-plotly-plot')) {
    const frame = svg.getBoundingClientRect(), drawn = svg.querySelector('.main-svg').getBoundingClientRect().width;
    if (Math.abs(drawn - frame.width) > 2) cut.push(`figure drawn for ${drawn} pixels, not ${frame.width}`);
    if (frame.right > window.innerWidth || frame.width < 0.4 * wide.width) cut.push(`figure of ${frame.width} pixels`);
    const texts = '.xtitle, .ytitle, .x2title, .y2title, .xtick, .ytick, .legendtext, .gtitle';
    for (const text of svg.querySelectorAll(texts)) {
      const box = text.getBoundingClientRect();
      if (box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1))
        cut.push(text.textContent);
    }
  }
  return cut;
}"""
SETTLED = f"""() => new Promise(done => {{
  // Figures are drawn once more when they learn their width; what is cut off then, stays so.
  const end = Date.now() + 20000, look = () => {{
    const cut = ({OVERFLOW})();
    if (cut.length && Date.now() < end) setTimeout(look, 100); else done(cut);
  }};
  look();
}})"""
TITLES = """() => Array.from(document.querySelectorAll('.gpuschedlab-explorer .js-plotly-plot'), figure =>
  Array.from(figure.querySelectorAll('.xtitle, .ytitle, .x2title, .y2title'), text => text.textContent))"""


def open_notebook(page, address: str, name: str = "00_quickstart"):
    """Open a notebook in JupyterLab and run all of it."""
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    page.get_by_text(re.compile(r"\| Idle$")).wait_for()  # cells that are run before the kernel answers are passed over
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    see_explorer(page)


def see_explorer(page):
    """Wait until all four figures are drawn, and go there."""
    page.wait_for_function(f"document.querySelectorAll('{EXPLORER} .js-plotly-plot .xtitle').length >= 4")
    page.locator(f"{EXPLORER} select").first.scroll_into_view_if_needed()


def control(page, label: str):
    """Box of the control with a label."""
    named = page.locator(f"{EXPLORER} .widget-label", has_text=re.compile(rf"^{re.escape(label)}"))
    return named.first.locator("xpath=..")


def choose(page, label: str, start: str):
    """Choose in a drop-down by typing."""
    control(page, label).locator("select").focus()
    page.keyboard.type(start)
    page.keyboard.press("Enter")


def move(page, label: str, key: str, times: int = 1):
    """Press a key on a slider."""
    control(page, label).locator(".noUi-handle").focus()
    for _ in range(times):
        page.keyboard.press(key)


def check_moves_and_errors(page):
    """Move a knob and see other numbers; make the cluster too small and see why, then mend it."""
    table = page.locator(f"{EXPLORER} .gpuschedlab-table")
    choose(page, "policy", "Tiresias")
    page.wait_for_function(f"document.querySelector('{EXPLORER}').textContent.includes('now: Tiresias')")
    before, numbers = page.evaluate(CURVE), table.inner_text()
    move(page, "thresholds 1", "ArrowLeft", 25)
    page.wait_for_function(MOVED, arg=before)
    page.wait_for_function("before => document.querySelector('.gpuschedlab-table').innerText !== before", arg=numbers)
    error = page.locator(f"{EXPLORER} .gpuschedlab-error")
    assert not error.is_visible()
    move(page, "nodes", "Home")
    error.get_by_text("ClusterError").wait_for()
    assert "Use a larger cluster" in error.inner_text()


def check_looks(page):
    """Axes have titles, times and GPUs their units, and nothing is cut off."""
    assert page.evaluate(SETTLED) == []
    titles = page.evaluate(TITLES)
    assert len(titles) == 4
    assert all(titles), "a figure without axis titles"
    told = " ".join(text for figure in titles for text in figure)
    for words in ("job completion time", "(h)", "share of jobs", "GPUs requested", "jobs waiting", "GPUs in use"):
        assert words in told


def shoot(page, path, height: int = 900):
    """Keep a picture of the page, and one of its whole length."""
    page.screenshot(path=path)
    page.set_viewport_size({"width": 1280, "height": height})
    page.wait_for_function(f"document.querySelectorAll('{EXPLORER} .js-plotly-plot .xtitle').length >= 4")
    page.screenshot(path=str(path).replace(".png", "-long.png"))
    page.set_viewport_size({"width": 1280, "height": 900})


def test_quickstart_in_jupyterlab(page, jupyterlab, artifacts):
    open_notebook(page, jupyterlab)
    check_looks(page)
    shoot(page, artifacts / "jupyterlab.png", 4200)
    check_moves_and_errors(page)
    page.screenshot(path=artifacts / "jupyterlab-error.png")


def test_keys_in_the_explorer_are_not_the_notebooks(page, jupyterlab):
    open_notebook(page, jupyterlab)
    told = page.get_by_text(re.compile(r"^Cell \d+/\d+$"))
    cells = told.inner_text().split("/")[1]
    for place in (control(page, "policy").locator("select"), control(page, "nodes").locator(".noUi-handle")):
        place.focus()
        page.keyboard.press("a")  # the notebook's key for a new cell
    page.wait_for_timeout(500)
    assert told.inner_text().split("/")[1] == cells
    page.locator(f"{EXPLORER} button").first.focus()
    page.keyboard.press("a")  # elsewhere it is
    told.filter(has_text=f"/{int(cells) + 1}").wait_for()


STATUS = f"""hours => parseFloat(document.querySelector('{EXPLORER} .gpuschedlab-status').textContent) >= hours"""
POINTS = f"""() => Array.from(document.querySelectorAll('{EXPLORER} .js-plotly-plot')[0].data, trace => JSON.stringify(trace.y)).join()"""
WATCH = """() => { window.longest = 0; let last = performance.now();
  const beat = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last); last = now;
    setTimeout(beat, 20); }; beat(); }"""


def test_autosched_plays_pauses_answers_and_stops(page, jupyterlab, artifacts):
    """Six hours are played with figures that follow, it pauses, a what-if is answered and measured, it stops."""
    open_notebook(page, jupyterlab, "09_autosched")
    assert page.evaluate(SETTLED) == []
    before = page.evaluate(POINTS)
    page.evaluate(WATCH)
    choose(page, "speed", "1 s")
    play = page.locator(f"{EXPLORER} button", has_text="Play")
    play.click()
    page.wait_for_function(STATUS, arg=6)
    play.click()  # pause: the hour under way is played to its end
    page.wait_for_function("() => !document.querySelector('.gpuschedlab-explorer .mod-active')")
    assert page.evaluate("window.longest") < 1000, "a step blocked the page for over a second"
    assert page.evaluate(POINTS) != before
    nodes = f"document.querySelectorAll('{EXPLORER} .js-plotly-plot')[1].querySelectorAll('.point').length"
    assert page.evaluate(nodes) >= 10, "the graph's nodes are drawn"
    hours = page.locator(f"{EXPLORER} .gpuschedlab-status").inner_text()
    assert float(hours.split()[0]) < 20, "it paused long before the trace's end"
    choose(page, "what if", "pack")
    move(page, "value", "ArrowRight", 8)
    answer = page.locator(f"{EXPLORER} .gpuschedlab-answer")
    answer.get_by_text("pack_limit").wait_for()
    page.locator(f"{EXPLORER} button", has_text="Measure it").click()
    answer.get_by_text("measured").wait_for()
    shoot(page, artifacts / "autosched.png", 3400)
    page.locator(f"{EXPLORER} button", has_text="One hour").click()
    page.locator(f"{EXPLORER} button", has_text="Stop").click()
    page.wait_for_timeout(1500)
    stopped = page.locator(f"{EXPLORER} .gpuschedlab-status").inner_text()
    page.wait_for_timeout(3000)
    assert page.locator(f"{EXPLORER} .gpuschedlab-status").inner_text() == stopped
    assert not page.locator(f"{EXPLORER} .gpuschedlab-error").is_visible()
    assert "h played" in hours


def test_explorer_as_a_page(page, voila, artifacts):
    page.goto(voila)
    see_explorer(page)
    assert "import gpuschedlab" not in page.inner_text("body"), "the page shows the Explorer, not its code"
    check_looks(page)
    shoot(page, artifacts / "voila.png", 2200)
    check_moves_and_errors(page)
    page.screenshot(path=artifacts / "voila-error.png")
