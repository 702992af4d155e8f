"""Notebooks reopened again and again on a busy machine: figures agree with the table within 10 s, or a bar says that they do not."""

import os
import re

import pytest
from present import needs

from browser.pages import await_drawn, open_in, pick, run_all, skip_guess
from browser.serving import busy
from browser.test_figures_are_current import await_agreement

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.xdist_group("browser")]

TIMES = int(os.environ.get("TIMES", "20"))
PLAYED = r"""() => {
  const words = document.querySelector('.gpuschedlab-explorer .gpuschedlab-status').textContent;
  const hours = Number(/After (\d+) h/.exec(words)?.[1] ?? 0), race = document.querySelector('.gpuschedlab-explorer .js-plotly-plot');
  const bar = document.querySelector('.gpuschedlab-explorer .gpuschedlab-stale')?.offsetHeight > 0;
  return [hours, Math.max(...Array.from(race._fullData[0].x)), bar];
}"""
"""Hours that the line above the figures says were played, hours in the figure, and whether the bar is there."""


def reopenings(page, address: str, name: str):
    """Open a notebook beside two busy loops, and again and again on the kernel that lives on, running all cells; yields each time."""
    with busy(2):
        open_in(page, "jupyterlab", address, name)
        await_drawn(page)
        for _ in range(TIMES):
            page.reload()
            page.get_by_text(re.compile(r"\| Idle$")).wait_for()
            run_all(page)
            page.get_by_text(re.compile(r"\| Idle$")).wait_for()
            await_drawn(page)
            yield


def test_policies_chosen_after_reopening_are_shown(page, jupyterlab):
    for _ in reopenings(page, jupyterlab, "00_quickstart"):
        skip_guess(page)
        for policy in ("Srtf", "Sjf", "Tiresias"):
            pick(page, policy)
            await_agreement(page, policy)


@needs("autosched")
def test_hours_played_after_reopening_are_shown(page, jupyterlab):
    agreed = f"(hour) => {{ const [, drawn, bar] = ({PLAYED})(); return bar || drawn === hour; }}"
    for _ in reopenings(page, jupyterlab, "tuner_lab"):
        for hour in (9, 10, 11):
            page.locator(".gpuschedlab-explorer button", has_text="One hour").click()
            page.wait_for_function(f"(hour) => ({PLAYED})()[0] === hour", arg=hour)
            page.wait_for_function(agreed, arg=hour, timeout=10_000)
