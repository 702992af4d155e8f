"""Explorers opened without a kernel: a page of its own from recorded states, light and dark, on a laptop and on half of one."""

import re

import pytest

import gpuschedlab as lab
from browser.notebooks import NOTEBOOKS
from browser.pages import FAULTS
from gpuschedlab.widgets import Explorer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

WORDS = FAULTS.replace(".gpuschedlab-player", ".gpuschedlab-frame")
LOW = """() => [...document.querySelectorAll('.gpuschedlab-frame .js-plotly-plot')]
  .filter((plot) => plot.checkVisibility() && plot.clientHeight < 200).length"""
THIN = """() => [...document.querySelectorAll('.gpuschedlab-frame .js-plotly-plot')].flatMap((plot) =>
  plot._fullData.some((trace) => trace.orientation === 'h') ? [...plot.querySelectorAll('.barlayer path')] : [])
  .filter((bar) => { const { height } = bar.getBoundingClientRect(); return height && height < 10; }).length"""
"""Lanes of less than 10 pixels."""
BANDS = "() => [...document.querySelectorAll('.gpuschedlab-frame .js-plotly-plot')].at(-1)._fullLayout.xaxis.ticktext"
DARK = (
    ":root { --jp-layout-color0: #14181c; --jp-ui-font-color1: #e3e8ee; } body { background: #14181c; color: #e3e8ee; }"
)
DRAWN = "(least) => Number(document.querySelector('.gpuschedlab-board')?.dataset.drawn) > least"


CASES = [
    pytest.param(name, marks=() if name == "cluster" else pytest.mark.long) for name in NOTEBOOKS if name != "explorer"
]


def made(name: str):
    """The explorer that a notebook shows."""
    names: dict = {}
    exec("\n".join(NOTEBOOKS[name]), names)
    return names["explorer"]


@pytest.mark.parametrize("name", CASES)
def test_a_page_without_a_kernel_shows_each_state_that_is_chosen(name, page, artifacts, tmp_path):
    explorer = made(name)
    wrong = []
    states = explorer.states()
    (tmp_path / "page.html").write_text(explorer.html(), encoding="utf-8")
    page.on("pageerror", lambda error: wrong.append(str(error)))
    for theme in ("light", "dark"):
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(f"file://{tmp_path}/page.html")
        if theme == "dark":
            page.add_style_tag(content=DARK)
        page.wait_for_function(DRAWN, arg=0)
        for width in (1280, 800):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(500)
            wrong += [
                f"{theme}, {width}: {each}" for each in page.evaluate(WORDS) if each != "no words"
            ]  # a map has none
            wrong += ["a low plot"] * page.evaluate(LOW) + ["a thin lane"] * page.evaluate(THIN)
            page.screenshot(path=artifacts / f"states-{name}-{theme}-{width}.png", full_page=True)
    if not states:  # what is expensive to play shows the state that it is in
        assert wrong == []
        return
    note = page.locator(".gpuschedlab-note").first
    first = states["first"]
    assert page.locator("[data-states]").get_attribute("data-state") == str(first)
    control = page.locator(".gpuschedlab-states :is(select, input)").last
    drawn = int(page.locator(".gpuschedlab-board").get_attribute("data-drawn"))
    texts = states["controls"][-1]["texts"]
    to = (first % len(texts) + 1) % len(texts)
    if control.evaluate("(e) => e.tagName") == "SELECT":
        control.select_option(index=to)
    else:
        control.evaluate("(e, to) => { e.value = to; e.dispatchEvent(new Event('input')); }", to)
    other = first - first % len(texts) + to
    assert page.locator("[data-states]").get_attribute("data-state") == str(other)
    words = re.sub(r"\s+", " ", re.sub("<[^>]*>", "", states["states"][other][0]))
    assert re.sub(r"\s+", "", note.inner_text()) == re.sub(r"&\w+;|\s+", "", words)
    if states["states"][other][1] != states["states"][first][1]:
        page.wait_for_function(DRAWN, arg=drawn)
    assert wrong == []


def test_dots_by_gpus_have_no_bands_that_no_job_asks_for(page, tmp_path):
    trace = lab.generate("venus", days=1, jobs=300, load=0.9, cluster_gpus=16, rng=0)
    for most, bands in ((4, ["1 GPU", "2", "3 to 4"]), (16, ["1 GPU", "2", "3 to 4", "5 to 8", "9 to 16"])):
        mine = trace.filter(trace["gpus"] <= most)
        assert mine["gpus"].max() == most
        explorer = Explorer(mine, lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Srtf])
        (tmp_path / "page.html").write_text(explorer.html(), encoding="utf-8")
        page.goto(f"file://{tmp_path}/page.html")
        page.wait_for_function(DRAWN, arg=0)
        page.locator(".gpuschedlab-choice button", has_text="GPUs it needs").click()
        page.wait_for_function(f"(bands) => String(({BANDS})()) === String(bands)", arg=bands, timeout=20_000)
