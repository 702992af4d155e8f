"""Every explorer on a laptop's screen and on half of one: all in view together, nothing cut, words for a screen reader, light and dark."""

import json

import pytest

from browser.notebooks import LESSONS
from browser.pages import CUT, FIRST, OUTSIDE, PALE, await_drawn, open_in, settled, unreadable

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python, of the extra test, is not installed")
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

CHECKS = {(1280, 800): (OUTSIDE, CUT, FIRST, PALE), (800, 1100): (CUT,)}
"""Sizes of the window, and what must hold there; in JupyterLab its side bar is open, and takes a quarter or a half."""
SHORT = (("explorer", "jupyterlab", "light"), ("cluster", "voila", "dark"))
CASES = [
    pytest.param(*case, marks=() if case in SHORT else pytest.mark.long)
    for case in (
        (name, place, theme) for name in LESSONS for place in ("jupyterlab", "voila") for theme in ("light", "dark")
    )
]


def wear(notebooks, theme: str):
    """Let JupyterLab begin in a theme."""
    folder = notebooks / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "themes.jupyterlab-settings").write_text(json.dumps({"theme": f"JupyterLab {theme.title()}"}))


@pytest.mark.parametrize(("notebook", "place", "theme"), CASES)
def test_an_explorer_is_seen_whole_and_can_be_read(notebook, place, theme, page, notebooks, artifacts, request):
    request.addfinalizer(lambda: wear(notebooks, "light"))
    wear(notebooks, theme)
    page.set_viewport_size({"width": 1280, "height": 800})
    open_in(page, place, request.getfixturevalue(place), notebook, theme)
    assert await_drawn(page, boards=LESSONS[notebook]) == []
    wrong = {}
    for (width, height), checks in CHECKS.items():
        page.set_viewport_size({"width": width, "height": height})
        for i, explorer in enumerate(page.locator(".gpuschedlab-explorer").all()):
            for check in checks:
                if found := settled(explorer, check):
                    wrong.setdefault(f"{width} pixels, explorer {i + 1}", []).extend(found)
            page.screenshot(path=artifacts / f"screen-{notebook}-{i + 1}-{place}-{theme}-{width}.png")
    dark = page.evaluate("getComputedStyle(document.querySelector('.gpuschedlab-figure')).backgroundColor")
    assert (sum(map(int, dark.removeprefix("rgb(").rstrip(")").split(", "))) < 300) == (theme == "dark")
    if found := unreadable(page):
        wrong["screen reader"] = found
    assert wrong == {}
