"""The line of other weeks in a real browser: its words come and go, and the figures below stay as they are drawn."""

import pytest

from browser.pages import await_drawn, control, open_in
from browser.serving import write_notebooks

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

CELLS = [
    "import gpuschedlab as lab\nfrom gpuschedlab.widgets import Explorer, Generated\n"
    'week = Generated("venus", {"days": 7, "jobs": 300, "load": 0.9, "cluster_gpus": 32})\n'
    'policies = {"Easy": lab.Fifo(backfill="easy"), "Tiresias": lab.Tiresias}\n'
    "explorer = Explorer(week, lab.Cluster.homogeneous(4, 8), policies)\nexplorer"
]
WHOLE = "() => /such weeks/.test(document.querySelector('.gpuschedlab-weeks').innerText)"
GONE = "() => !/such weeks/.test(document.querySelector('.gpuschedlab-weeks').innerText)"
DRAWN = "() => Number(document.querySelector('.gpuschedlab-explorer .gpuschedlab-board').dataset.drawn)"
SETTLED = 700
"""Milliseconds in which figures whose height has changed would have been drawn again."""


def test_a_key_press_draws_once_though_the_words_of_other_weeks_go_and_come(page, jupyterlab, notebooks):
    write_notebooks(notebooks, {"weeks": CELLS})
    page.set_viewport_size({"width": 960, "height": 900})
    open_in(page, "jupyterlab", jupyterlab, "weeks")
    await_drawn(page)
    for width in (960, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(WHOLE)
        page.wait_for_timeout(SETTLED)
        control(page, "next queue after").locator(".noUi-handle").focus()
        for _ in range(2):
            before = page.evaluate(DRAWN)
            page.keyboard.press("ArrowRight")
            page.wait_for_function(GONE)
            page.wait_for_function(WHOLE)
            page.wait_for_timeout(SETTLED)
            assert page.evaluate(DRAWN) == before + 1
