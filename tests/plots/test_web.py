"""Figures as HTML: one plotly for a page, nothing that can break it, numbers as they are."""

import base64
import gzip
import hashlib
import io
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plotly", reason="plotly, of the extra plots, is not installed")

from gpuschedlab import plots
from gpuschedlab.plots import web
from gpuschedlab.plots.web import cell
from gpuschedlab.plots.web.cell import Execution
from gpuschedlab.plots.web.encode import encoded, nested, plain

ROOT = Path(__file__).parents[2]
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


def test_whiskers_of_a_trace_reach_the_page():
    whiskers = {"type": "data", "array": np.array([0.5])}
    bars = plots.Bars("Bars", "x", "y", None, {"all": {"x": ["a"], "y": [1.0], "error_y": whiskers}})
    (trace,) = plain(plots.draw(bars))["data"]
    assert trace["error_y"]["array"].tolist() == [0.5]


def test_a_drawing_and_its_plotly_figure_are_the_same_on_the_page():
    drawing = plots.draw(MINE)
    own, plotlys = (encoded(plain(thing)) for thing in (drawing, plots.figure(drawing)))
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


# --- pictures, for where no script runs


def picture(html: str) -> np.ndarray:
    """Colours of the only picture in some HTML."""
    image = pytest.importorskip("PIL.Image", reason="matplotlib, of the extra lab, is not installed")
    (found,) = re.findall(r'src="data:image/\w+;base64,([^"]+)"', html)
    return np.asarray(image.open(io.BytesIO(base64.b64decode(found))))


def shown(figure) -> str:
    return figure._repr_mimebundle_()["text/html"]


def lines(*y) -> plots.Lines:
    return plots.Lines(EVIL, "x", "y", np.arange(len(y)), {"one": np.array(y)})


def test_each_output_holds_a_picture_with_the_title_as_its_text():
    one = plots.figure(MINE)
    for output, count in ((one, 1), (plots.Figures([one, one], columns=2, note="<p>seen</p>"), 2)):
        html = shown(output)
        assert html.count("<img src=") == count
        assert html.count('alt="&lt;/script&gt;') == 0, "markup is no part of a title"
        assert html.count('alt="&amp;&quot;"') == count
        assert "not drawn yet" not in html
    assert "<p>seen</p>" in html


def test_a_picture_is_the_same_for_the_same_numbers_and_another_for_others():
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    from gpuschedlab.plots.web.picture import png

    one, again, other = (png(plots.draw(lines(*y)), 620, 300)[0] for y in ((1, 2, 4), (1, 2, 4), (1, 3, 4)))
    assert one == again
    assert one != other
    assert b"matplotlib" not in one.lower()


@pytest.mark.parametrize("make", [plots.draw, plots.figure], ids=["drawing", "plotly figure"])
def test_a_picture_shows_lines_where_their_numbers_are(make):
    from gpuschedlab.plots.web.picture import png

    figure = make(lines(0.0, 1.0))
    content, _ = png(figure, 620, 300)
    (blue,) = np.nonzero(
        np.all(picture(f'src="data:image/png;base64,{base64.b64encode(content).decode()}"') == (0, 0x67, 0xA5), 2).any(
            0
        )
    )
    assert blue[0] < 90
    assert blue[-1] > 560


@pytest.mark.parametrize("fill", ["tozeroy", "toself"])
def test_a_picture_shows_areas_in_their_colour(fill):
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    from gpuschedlab.plots.kinds.style import Drawing
    from gpuschedlab.plots.web.picture import png

    area = {"x": [0, 0, 1, 1], "y": [0, 1, 1, 0], "fill": fill, "fillcolor": "rgba(255, 0, 0, 0.5)", "mode": "lines"}
    content, _ = png(Drawing([area], [{"type": "scatter"}], {}, {}), 620, 300)
    seen = picture(f'src="data:image/png;base64,{base64.b64encode(content).decode()}"')
    red = np.all(abs(seen.astype(int) - (255, 127, 127)) < 3, axis=2)
    assert red.mean() > 0.6


@pytest.mark.parametrize(
    ("fill", "x", "y", "share"),
    [
        ("toself", [0, 1, 2, 1], [1, 0, 1, 2], 0.5),
        ("toself", [0, 2, 0], [0, 0, 2], 0.5),
        ("tozeroy", [0, 2], [1, 1], 1),
    ],
    ids=["diamond", "triangle", "below a line"],
)
def test_an_area_has_the_shape_of_its_points(fill, x, y, share):
    """Of the rectangle about it, a closed line fills what it goes about, and an area below a line all that is below."""
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    from gpuschedlab.plots.kinds.style import Drawing
    from gpuschedlab.plots.web.picture import png

    area = {"x": x, "y": y, "fill": fill, "fillcolor": "rgba(255, 0, 0, 0.5)", "mode": "none"}
    content, _ = png(Drawing([area], [{"type": "scatter"}], {}, {}), 620, 300)
    seen = picture(f'src="data:image/png;base64,{base64.b64encode(content).decode()}"')
    red = (seen[..., 0] > 200) & (seen[..., 1] < 200) & (seen[..., 2] < 200)
    heights = red.sum(axis=0)
    widths = red.sum(axis=1)
    assert min(heights.max(), widths.max()) > 100
    assert red.sum() / (np.count_nonzero(heights) * np.count_nonzero(widths)) == pytest.approx(share, abs=0.03)


def test_readers_own_settings_of_matplotlib_change_no_picture_and_stay():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    from gpuschedlab.plots.web.picture import png

    usual = png(plots.draw(MINE), 620, 300)
    with matplotlib.rc_context({"figure.facecolor": "black", "lines.linewidth": 9}):
        assert png(plots.draw(MINE), 620, 300) == usual
        assert matplotlib.rcParams["lines.linewidth"] == 9
    assert "matplotlib.pyplot" not in sys.modules or matplotlib.pyplot.get_fignums() == []


def test_traces_that_pictures_do_not_know_are_named_in_them():
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    import plotly.graph_objects as go

    from gpuschedlab.plots.web.figure import Figure
    from gpuschedlab.plots.web.picture import png

    traces = [go.Histogram(x=[1, 1, 2]), go.Scatter3d(x=[1], y=[2], z=[3]), go.Pie(values=[1, 2]), go.Scatter(y=[1, 2])]
    _, words = png(Figure(traces), 620, 300)
    assert words == "(Not as on a page with scripts: histogram, scatter3d, pie.)"
    red = go.Scatter(y=[1, 2], line={"color": "#FF0000", "width": 4}, showlegend=False)
    drawn = [picture(shown(Figure(traces)))[..., :3] for traces in ([red], [red, go.Pie(values=[1, 2])])]
    lowest = [np.flatnonzero((image == (255, 0, 0)).all(axis=2).any(axis=1)).max() for image in drawn]
    assert 10 < lowest[0] - lowest[1] < 20  # room for the words below
    assert shown(Figure(traces)).count("<img") == 1
    strange = Figure(
        go.Scatter(x=["a", "b"], y=[1, 2], marker_color="hsl(9, 9%, 9%)"), layout={"xaxis_range": ["a", "b"]}
    )
    assert shown(strange).count("<img") + shown(strange).count("its picture failed") == 1


def test_dates_second_axes_and_panels_of_plotlys_own_figures_are_drawn():
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    from plotly.subplots import make_subplots

    from gpuschedlab.plots.web.figure import Figure
    from gpuschedlab.plots.web.picture import png

    made = make_subplots(
        2, 2, subplot_titles=list("abcd"), specs=[[{"secondary_y": True}, {}], [{}, {}]], figure=Figure()
    )
    days = np.array(["2020-01-01", "2020-01-02"], "M8[s]")
    made.add_scatter(x=days, y=[1, 2], row=1, col=1).add_scatter(x=days, y=[9, 8], row=1, col=1, secondary_y=True)
    made.add_bar(x=["p", "q"], y=[1, -2], row=1, col=2).add_heatmap(z=[[1, 2], [3, 4]], row=2, col=1)
    made.add_scatter(x=[1, 2], y=[1, 2], fill="tozeroy", row=2, col=2).add_vline(1.5).add_hrect(y0=0, y1=1)
    made.add_bar(x=days, y=[3, 4], row=2, col=2).add_annotation(x=1, y=1, text="note", row=1, col=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that has no room says so by a warning
        content, words = png(made, 620, 400)
    assert words == ""
    assert len(content) > 5000


def test_without_matplotlib_a_sentence_stands_in_place_of_a_picture(monkeypatch):
    monkeypatch.setattr(web, "has", lambda module: False)
    html = shown(plots.figure(MINE))
    assert "<img" not in html
    assert "pip install matplotlib" in html


@pytest.mark.slow
def test_each_figure_of_the_gallery_has_a_picture_that_lacks_nothing(monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    from gpuschedlab.plots.web.picture import png

    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    from gallery_pages import read_script, run_script

    scripts = sorted((ROOT / "docs" / "gallery").glob("*.py"))
    assert len(scripts) > 15
    for path in scripts:
        content, words = png(run_script(read_script(path)), 620, 324)
        assert "Not as on a page" not in words, path.stem
        assert 5_000 < len(content) < 120_000, path.stem


def test_words_without_markup_and_looks_of_policies():
    from gpuschedlab.plots.kinds.style import looks
    from gpuschedlab.plots.web.sides import words

    assert words({"text": "<b>a</b><br>b &amp; c"}).splitlines() == ["a", "b & c"]
    assert looks(["Srtf (on 6x8)", "Fifo"]) == [0, 8]
    assert looks(["Fifo", "mine", "Srtf"]) == [8, 1, 0]
