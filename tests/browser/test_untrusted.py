"""What a batch run saved, where no script runs: a notebook that nobody has trusted, and a page with scripts switched off."""

import base64
import gzip
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from browser import serving
from browser.notebooks import NOTEBOOKS
from browser.pages import BOTH

papermill = pytest.importorskip("papermill", reason="papermill, of the extra lab, is not installed")
nbconvert = pytest.importorskip("nbconvert", reason="nbconvert, of the extra lab, is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")
pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "notebooks" / "small").iterdir()}
OWN = [*NOTEBOOKS["explorer"], 'explorer.figure("jct")', "explorer.figure()"]
"""Cells that show an explorer, one figure, and several."""
OURS = ("00_quickstart", "05_sia", "09_autosched", "12_ymir")
OURS = [name for name in OURS if (ROOT / "notebooks" / f"{name}.ipynb").exists()]
named = pytest.mark.parametrize("name", ["own", *(pytest.param(name, marks=pytest.mark.long) for name in OURS)])
PICTURES = """() => Array.from(document.querySelectorAll('img[alt]'), (e) => e)
  .filter((e) => e.naturalWidth > 100 && e.naturalHeight > 100 && e.checkVisibility({ visibilityProperty: true })
    && e.getBoundingClientRect().width > 200 && e.src.startsWith('data:image/webp'))
  .map((e) => e.alt)"""
"""Titles of the pictures that are seen."""


@pytest.fixture(scope="module")
def folder(notebooks) -> Path:
    """Where notebooks are kept as papermill saved them: JupyterLab has them, and no hand has trusted them there."""
    return serving.write_notebooks(notebooks / "saved", {})


@pytest.fixture
def saved(folder, monkeypatch, request) -> Path:
    """The notebook of the test, as papermill saved it: ours with small parameters."""
    name = request.node.callspec.params.get("name", "own") if hasattr(request.node, "callspec") else "own"
    out = folder / f"{name}.ipynb"
    if not out.exists():
        path = [str(ROOT), str(ROOT / "notebooks"), os.environ.get("PYTHONPATH")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        monkeypatch.setenv("TQDM_DISABLE", "1")
        source = ROOT / "notebooks" / out.name
        if name == "own":
            source = serving.write_notebooks(folder / "source", {"own": OWN}) / out.name
        options = {"progress_bar": False, "cwd": folder, "kernel_name": "python3", "log_output": False}
        papermill.execute_notebook(source, out, SMALL.get(name), **options)
    return out


def figures_of(path: Path) -> int:
    """How many figures a notebook holds."""
    html = [
        "".join(output.data["text/html"])
        for cell in nbformat.read(path, 4).cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    packs = [json.loads(found)["pack"] for found in re.findall(r"\.push\((\{.*?\})\)</script>", "".join(html))]
    played = map(json.loads, re.findall(r"PlayerQueue \?\?= \[\]\)\.push\((\{.*\})\);</script>", "".join(html)))
    places = [place for pack in packs for place in json.loads(gzip.decompress(base64.b64decode(pack)))["places"]]
    count = sum(not place["words"] for place in places)
    return count + sum(len(given["stages"][given["stage"]]["places"]) for given in played)


@named
def test_an_untrusted_notebook_shows_a_picture_of_every_figure(name, saved, jupyterlab, page):
    count = figures_of(saved)
    assert count > 3
    assert saved.stat().st_size < 3_000_000
    page.set_viewport_size({"width": 1280, "height": 9000})  # JupyterLab leaves out cells that are out of sight
    page.goto(f"{jupyterlab}/lab/tree/saved/{name}.ipynb?reset")
    page.wait_for_function(f"(count) => ({PICTURES})().length >= count", arg=count, timeout=60_000)
    assert len(page.evaluate(PICTURES)) == count
    assert page.locator(".js-plotly-plot").count() == 0, "a script ran: this was to be a notebook that nobody trusts"
    assert not page.get_by_text("not drawn yet").filter(visible=True).count()


@named
def test_a_page_without_scripts_shows_a_picture_of_every_figure(name, saved, launch, artifacts):
    written = exported(saved)
    chromium = launch()
    page = chromium.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900}).new_page()
    page.goto(written.as_uri())
    page.screenshot(path=artifacts / f"{name}-no-script.png", full_page=True)
    shown = page.locator("img[alt]").filter(visible=True)
    sizes = [box for box in (each.bounding_box() for each in shown.all()) if box and box["width"] > 200]
    chromium.close()
    assert len(sizes) == figures_of(saved)


def exported(saved: Path) -> Path:
    """Page that nbconvert makes of a notebook."""
    html, _ = nbconvert.HTMLExporter().from_filename(saved)
    written = saved.with_suffix(".html")
    written.write_text(html, encoding="utf-8")
    return written


LIVE = """(count) => {
  const drawn = [...document.querySelectorAll('.js-plotly-plot')].filter((e) => e.checkVisibility({ visibilityProperty: true }));
  return drawn.length === count && !document.querySelector('.gpuschedlab-pictures:not([data-pictures])');
}"""


def test_live_figures_take_the_place_of_pictures_on_a_page_with_scripts(saved, page):
    page.add_init_script(f"document.addEventListener('DOMContentLoaded', {BOTH})")
    page.goto(exported(saved).as_uri())
    page.wait_for_function(LIVE, arg=figures_of(saved), timeout=60_000)
    seen = page.evaluate("window.seen")
    assert seen["pictures"] > 0, "pictures are seen until the figures are drawn"
    assert (seen["both"], seen["boards"]) == (0, 0)
