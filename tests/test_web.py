"""Figures as HTML: one plotly for a page, nothing that can break it, numbers as they are."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plotly", reason="plotly, of the extra plots, is not installed")

from gpuschedlab import plots
from gpuschedlab.plots import web
from gpuschedlab.plots.web import cell
from gpuschedlab.plots.web.cell import Execution
from gpuschedlab.plots.web.encode import encoded, nested, plain

ROOT = Path(__file__).parents[1]
EVIL = '</script><b>&"'
MINE = plots.Lines(EVIL, "x (h)", "y", np.arange(3.0), {EVIL: np.array([1.0, np.nan, 3.0])})


def content(html: str) -> dict:
    """What a fragment packs."""
    given = json.loads(re.search(r"\.push\((\{.*?\})\)</script>", html)[1])
    return json.loads(gzip.decompress(base64.b64decode(given["pack"])))


def test_plotly_is_the_one_that_the_readme_names():
    script = gzip.decompress(web.plotly())
    assert hashlib.sha256(script).hexdigest() == (web.HERE / "SHA256").read_text().strip()
    assert len(web.plotly()) < 520_000
    assert b"MIT license" in script[:300]
    assert "Permission is hereby granted" in (ROOT / "LICENSE-plotly").read_text()


def test_a_fragment_holds_the_numbers_and_nothing_that_breaks_the_page():
    html = web.fragment({"mine": plots.draw(MINE)}, (web.Place("mine"),), note="<p>seen</p>")
    assert EVIL not in html
    assert len(html) < 10_000, "plotly is not in it"
    found = content(html)
    trace = found["figures"]["mine"]["data"][0]
    assert trace["name"] == EVIL
    y = np.frombuffer(base64.b64decode(trace["y"]["bdata"]), "<f4")
    assert np.array_equal(y, MINE.values[EVIL].astype("f4"), equal_nan=True)
    assert found["figures"]["mine"]["layout"]["title"]["text"] == EVIL
    assert found["note"] == "<p>seen</p>"


def test_a_drawing_and_its_plotly_figure_are_the_same_on_the_page():
    drawing = plots.draw(MINE)
    own, plotlys = (encoded(plain(thing)) for thing in (drawing, plots.render(drawing)))
    for mine, theirs in zip(own["data"], plotlys["data"], strict=True):
        assert {k: v for k, v in mine.items() if k not in "xy"} == {k: v for k, v in theirs.items() if k not in "xy"}
    assert own["layout"] == plotlys["layout"]


def test_names_with_underscores_are_written_out():
    assert nested({"xaxis": {"type": "log"}, "xaxis_title_text": "t"}) == {
        "xaxis": {"type": "log", "title": {"text": "t"}}
    }
    assert encoded({"a": np.array([[1, 2], [3, 4]])}, list)["a"]["shape"] == [2, 2]
    assert encoded([np.float64("inf"), np.int64(3), None]) == [None, 3, None]


def test_the_library_goes_with_the_first_output_and_again_when_that_is_replaced(monkeypatch):
    monkeypatch.setattr(cell, "_carrier", None)
    now = []
    monkeypatch.setattr(cell, "execution", lambda: now[-1])
    carried = []
    runs = [("a", "1"), ("a", "1"), ("b", "2"), ("b", "3"), ("a", "4"), ("a", "4"), ("b", "5")]
    for where in runs:
        now.append(Execution(*where))
        html = plots.figure(MINE)._repr_mimebundle_()["text/html"]
        carried.append("gpuschedlabFigures.give(" in html)
    assert carried == [True, False, False, False, True, False, False]
    now.append(None)  # outside a kernel: each output stands alone
    assert [cell.carries_library() for _ in range(2)] == [True, True]


def test_a_saved_figure_is_a_page_below_a_megabyte(tmp_path):
    one = plots.write_page(plots.figure(MINE), tmp_path / "one.html")
    two = plots.write_page(plots.Figures([plots.figure(MINE)] * 2, columns=2), tmp_path / "two.html")
    assert max(one.stat().st_size, two.stat().st_size) < 1_000_000
    assert two.read_text().count("gpuschedlabFigures.give(") == 1
    assert [place["name"] for place in content(two.read_text())["places"]] == ["figure-1", "figure-2"]
