"""A lesson's guess in a real browser: the answer waits for it, and it is scored against what was computed."""

import pytest
from present import needs

from browser.conftest import ROOT
from browser.pages import open_in
from browser.serving import write_notebooks

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

CELLS = [
    "import polars as pl\nfrom IPython.display import display\nfrom scenes import guessing",
    'rows = {"line": ["fixed", "autosched", "autosched"], "beside": ["default", "default", "fixed"]}\n'
    'table = pl.DataFrame(rows | {"times as good": [1.3, 1.2, 0.9], "95 % from": [1.1, 0.5, 0.8], "95 % to": [1.6, 2.7, 1.1]})\n'
    'display(guessing.times_as_good(table, "autosched"))\ndisplay(table)\nprint("the answer")',
]


@needs("autosched")
def test_a_lesson_asks_before_it_answers(page, place, notebooks, artifacts):
    write_notebooks(notebooks, {"asks": CELLS})
    open_in(page, *place, "asks")
    page.locator(".scene-guess").wait_for()
    answer = page.get_by_text("the answer", exact=True)
    answer.wait_for(state="attached")
    assert not answer.is_visible()
    page.locator(".scene-guess input").fill("1")  # 2 times
    page.locator(".scene-guess button", has_text="autosched").click()
    page.screenshot(path=artifacts / f"asks-{place[0]}.png")
    page.locator(".scene-guess button", has_text="See").click()
    answer.wait_for()
    said = "Your guess: 2.00 times, computed 1.20 (0.50 to 2.70): 67 % too high, but within the interval; best: fixed, you said"
    page.get_by_text(f"{said} autosched: no. Surely better than default: fixed.").wait_for()


def test_without_a_page_nothing_is_asked(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "notebooks")
    pl = pytest.importorskip("polars")
    guessing = pytest.importorskip("scenes.guessing")
    row = {"line": ["a"], "beside": ["default"], "times as good": [0.9], "95 % from": [0.8], "95 % to": [1.0]}
    asked = guessing.times_as_good(pl.DataFrame(row), "a")
    assert asked.asked["best"] == "default", "no line is better"
    data = asked._repr_mimebundle_()
    assert (data[0] if isinstance(data, tuple) else data)["text/plain"] == " "
