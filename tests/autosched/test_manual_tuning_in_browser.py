"""The knobs of a recorded scheduler moved by keyboard in JupyterLab: used, seen in the table, and taken back."""

from pathlib import Path

import pytest
from browser import serving
from browser.pages import CUT, FIRST, NUMBERS, OUTSIDE, await_drawn, choose, open_in, press, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]
SCENES = Path(__file__).resolve().parents[2] / "notebooks"
CELL = f"""import sys

sys.path.append({str(SCENES)!r})
from gpuschedlab.widgets import Recording
from scenes.manual_tuning import ManualTuningExplorer

ManualTuningExplorer(Recording.read())"""
MARKED = """(hour) => [...document.querySelectorAll('.gpuschedlab-explorer .js-plotly-plot')].some((plot) =>
  (plot.layout.shapes || []).some((shape) => Math.abs(shape.x0 - hour) < .01 && shape.line?.dash === 'dot'))"""


def test_a_switch_is_used_and_taken_back_by_keyboard(page, jupyterlab, notebooks, artifacts):
    serving.write_notebooks(notebooks, {"manual": [CELL]})
    page.set_viewport_size({"width": 1280, "height": 800})
    open_in(page, "jupyterlab", jupyterlab, "manual")
    assert await_drawn(page) == []
    explorer = page.locator(".gpuschedlab-explorer")
    assert {check: found for check in (OUTSIDE, CUT, FIRST) if (found := settled(explorer, check))} == {}
    status = page.locator(".gpuschedlab-status")
    mine = page.locator(".gpuschedlab-table tr").last
    before = mine.inner_text(), page.evaluate(NUMBERS)
    assert "Switches of me: none" in status.inner_text()
    press(page, "hour", "ArrowRight", 3)
    page.wait_for_function(MARKED, arg=3)  # a button's click is not held back while a slider's last step is
    choose(page, "metric", "gittins")
    page.get_by_role("button", name="Use this now").press("Enter")
    # Thresholds that nobody touched are no part of it: their sliders stay where the defaults are.
    status.get_by_text("Switches of me: 3 h: metric gittins", exact=False).wait_for()
    assert "thresholds" not in status.inner_text()
    assert mine.inner_text() != before[0]
    page.screenshot(path=artifacts / "manual-tuning.png")
    page.get_by_role("button", name="Undo").press("Enter")
    status.get_by_text("Switches of me: none", exact=False).wait_for()
    page.get_by_role("button", name="Reset").press("Enter")  # curves show the sliders, which an undo leaves
    press(page, "hour", "ArrowLeft", 3)
    page.wait_for_function(f"(before) => JSON.stringify(({NUMBERS})()) === JSON.stringify(before)", arg=before[1])
    assert mine.inner_text() == before[0]
    assert not page.locator(".gpuschedlab-error").is_visible()
    page.set_viewport_size({"width": 800, "height": 1100})
    assert settled(explorer, CUT) == []
    page.screenshot(path=artifacts / "manual-tuning-800.png")
