"""Figures agree with the table, or a bar says that they do not: on reopening, after failures, two at once."""

import pytest

from browser.pages import NUMBERS, await_drawn, open_in, pick, run_all

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

FAILING = """() => {
  const real = AbortSignal.timeout.bind(AbortSignal);
  AbortSignal.timeout = (ms) => {
    if (!window.failing || ms !== 2000) return real(ms);
    const soon = new AbortController();
    queueMicrotask(() => soon.abort());
    return soon.signal;
  };
}"""
"""anywidget gives up a widget after 2 s: while `failing`, it does so at once."""
BAR = ".gpuschedlab-explorer .gpuschedlab-stale"


AGREED = """(policy) => [...document.querySelectorAll('.gpuschedlab-explorer .js-plotly-plot')]
  .some((plot) => plot._fullData?.some((line) => line.name === policy))"""
"""Whether a figure has the line of a policy; that of the reference, FIFO, is there always."""


def await_agreement(page, policy: str, timeout: float = 10_000):
    """Wait until the figures show a policy, or the bar is there."""
    bar = "document.querySelector('.gpuschedlab-explorer .gpuschedlab-stale')?.offsetHeight > 0"
    page.wait_for_function(f"(policy) => {bar} || ({AGREED})(policy)", arg=policy, timeout=timeout)


@pytest.mark.long
def test_figures_that_hear_nothing_are_called_old_and_sent_again(page, jupyterlab):
    """A widget that took 2 s to begin is drawn, and deaf from then on: without a bar, old figures would stand beside the table."""
    page.set_default_timeout(60_000)
    page.add_init_script(f"({FAILING})()")
    open_in(page, "jupyterlab", jupyterlab, "explorer")
    assert await_drawn(page) == []
    page.evaluate("window.failing = true")
    run_all(page)
    assert await_drawn(page) == []
    page.wait_for_timeout(3000)
    for policy in ("Srtf", "Tiresias", "Srtf"):
        pick(page, policy)
        await_agreement(page, policy)
        page.wait_for_function(AGREED, arg=policy)
    page.locator(BAR).wait_for(state="hidden")
    page.evaluate("window.failing = false")
    page.wait_for_timeout(14_000)  # three pings: the kernel sees that its answers are not heard
    before = page.evaluate(NUMBERS)
    pick(page, "Tiresias")
    page.wait_for_function(AGREED, arg="Tiresias", timeout=2000)
    assert page.evaluate(NUMBERS) != before


STATE = """() => Array.from(document.querySelectorAll('.gpuschedlab-explorer'), (explorer) => [
  ...Array.from(explorer.querySelectorAll('select, input, .widget-readout'), (e) => e.value ?? e.textContent),
  explorer.querySelector('.gpuschedlab-table').innerText])"""
"""What the controls and the table of each explorer say."""


@pytest.mark.long
def test_what_moves_one_of_two_explorers_leaves_the_other_alone(page, voila):
    open_in(page, "voila", voila, "two")
    assert await_drawn(page, boards=2) == []
    state = page.evaluate(STATE)
    numbers = page.evaluate(NUMBERS)
    half = len(numbers) // 2
    pick(page, "Srtf")  # of the first
    page.wait_for_function(f"(policy) => ({AGREED})(policy)", arg="Srtf")
    page.wait_for_function(f"(before) => ({NUMBERS})()[0] !== before", arg=numbers[0])
    page.wait_for_timeout(1000)
    assert page.evaluate(NUMBERS)[half:] == numbers[half:]
    assert page.evaluate(STATE)[1] == state[1]
    assert page.evaluate(STATE)[0] != state[0]


SAVED = """() => document.querySelector('.jp-Document.jp-mod-current, .jp-NotebookPanel')
  && !document.querySelector('.lm-TabBar-tab.lm-mod-current.jp-mod-dirty')"""


@pytest.mark.long
def test_two_tabs_show_the_same_whichever_is_moved(page, jupyterlab):
    """JupyterLab sends what the kernel says to every tab; a tab that misses it would show old figures beside a new table."""
    open_in(page, "jupyterlab", jupyterlab, "explorer")
    assert await_drawn(page) == []
    page.keyboard.press("Control+s")
    page.wait_for_function(SAVED)
    other = page.context.browser.new_page(viewport={"width": 1280, "height": 900})
    other.set_default_timeout(150_000)
    other.goto(f"{jupyterlab}/lab/tree/explorer.ipynb?reset")
    assert await_drawn(other) == []
    for moved, seen, policy in ((page, other, "Srtf"), (other, page, "Tiresias")):
        pick(moved, policy)
        for tab in (moved, seen):
            tab.bring_to_front()
            tab.wait_for_function(AGREED, arg=policy, timeout=30_000)
            tab.locator(".gpuschedlab-explorer .gpuschedlab-stale").wait_for(state="hidden")
        tables = [tab.locator(".gpuschedlab-explorer .gpuschedlab-table").inner_text() for tab in (page, other)]
        assert tables[0] == tables[1]
        assert page.evaluate(NUMBERS) == other.evaluate(NUMBERS)
