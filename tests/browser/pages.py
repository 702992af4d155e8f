"""What is done on a page, and what is seen there; used by the bench and by the tests."""

import re

BOARD = ".gpuschedlab-explorer .gpuschedlab-board"
DRAWN = f"""(boards) => {{
  const drawn = Array.from(document.querySelectorAll('{BOARD}')).filter((board) => Number(board.dataset.drawn) > 0);
  return drawn.length >= boards;
}}"""
EMPTY = f"""() => Array.from(document.querySelectorAll('{BOARD} .gpuschedlab-figure'), (figure) => {{
  const plot = figure.querySelector('.js-plotly-plot');
  const drawn = plot?.querySelector('.trace path, .hm image');
  return drawn && plot._fullData.length ? null : figure.getAttribute('aria-label') ?? 'a figure never begun';
}}).filter(Boolean)"""
NUMBERS = f"""() => Array.from(document.querySelectorAll('{BOARD} .js-plotly-plot'), (plot) =>
  JSON.stringify(plot._fullData.map((trace) => [trace.x, trace.y, trace.base, trace.name].map((v) =>
    v && typeof v === 'object' ? Array.from(v) : v))))"""
"""Numbers of each figure as plotly has them, as one text a figure."""


def open_in(page, place: str, address: str, name: str, theme: str = ""):
    """Open a notebook; in JupyterLab, run all of it."""
    if place == "voila":
        page.goto(f"{address}/voila/render/{name}.ipynb" + (f"?theme={theme}" if theme else ""))
        return
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    page.get_by_text(re.compile(r"\| Idle$")).wait_for()  # cells that are run before the kernel answers are passed over
    run_all(page)


def run_all(page):
    """Run all cells of the notebook in JupyterLab."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()


def await_drawn(page, boards: int = 1) -> list[str]:
    """Wait until so many explorers have drawn their figures; returns the names of those that are empty nevertheless."""
    page.wait_for_function(DRAWN, arg=boards)
    return page.evaluate(EMPTY)


def control(page, label: str):
    """Box of the control with a label."""
    named = page.locator(".gpuschedlab-explorer .widget-label", has_text=re.compile(rf"^{re.escape(label)}"))
    return named.first.locator("xpath=..")


def choose(page, label: str, start: str):
    """Choose in a drop-down what begins with some letters; on a busy machine a typed word would fall into parts."""
    select = control(page, label).locator("select")
    options = [text.replace("\xa0", " ") for text in select.locator("option").all_inner_texts()]
    select.select_option(index=next(i for i, option in enumerate(options) if option.startswith(start)))


def press(page, label: str, key: str, times: int = 1):
    """Press a key on a slider."""
    control(page, label).locator(".noUi-handle").focus()
    for _ in range(times):
        page.keyboard.press(key)


def await_text(element, words: str, seconds: float = 30.0):
    """Wait until an element says some words: what follows a change follows it part by part, texts after figures or before them."""
    from playwright.sync_api import expect

    expect(element).to_contain_text(words, timeout=1000 * seconds)
