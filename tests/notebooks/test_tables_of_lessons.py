"""Tables of notebooks are the house's: no frame is shown as polars prints it, and no plot is narrower than a reader can use."""

import ast
import json
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuschedlab as lab
from gpuschedlab.table_display import number

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FRAMES = re.compile(r"\.(group_by|select|filter|head|top_k|sort|with_columns|describe|pivot)\(")
"""Methods of frames: an expression that ends in one shows a frame."""


def shown(source: str) -> list[ast.expr]:
    """Expressions whose values a cell shows: its last one, and what is displayed or waits for a guess."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    values = [last.value] if isinstance(last, ast.Expr) else []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name in ("display", "Guess", "later"):
            values += call.args
    return values


def returning_frames() -> set[str]:
    """Names of the scenes' functions that return a frame."""
    names = set()
    for path in (ROOT / "notebooks" / "scenes").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and ast.unparse(node.returns or node.args) == "pl.DataFrame":
                names.add(node.name)
    return names


def frames_of(cells: list[str]) -> list[str]:
    """Expressions of some cells that show a frame as it is."""
    frames = returning_frames()
    raw = []
    for source in cells:
        for value in shown(source):
            text = ast.unparse(value)
            name = getattr(getattr(value, "func", None), "attr", "")
            if isinstance(value, ast.Call) and (name in frames or FRAMES.search(f".{name}(")):
                raw.append(text)
    return raw


def code(path: Path) -> list[str]:
    """Cells of code."""
    cells = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_shows_a_frame_as_it_is(path):
    assert frames_of(code(path)) == [], "show lab.Table(frame)"


def test_a_frame_is_found():
    assert frames_of(["display(waited.top_k(5))", "log.group_by('a').agg(b).sort('a')", "Table(log.sort('a'))"]) == [
        "waited.top_k(5)",
        "log.group_by('a').agg(b).sort('a')",
    ]


@given(st.floats(-1e300, 1e300))
def test_a_number_has_three_figures_and_is_the_number(value):
    text = number(value)
    mantissa = text.partition("e")[0].replace(",", "").strip("-").replace(".", "").lstrip("0").rstrip("0")
    assert len(mantissa) <= 3
    assert float(text.replace(",", "")) == pytest.approx(value, rel=6e-3, abs=1e-300)


def test_a_table_says_units_in_words_and_marks_what_is_not_there():
    frame = pl.DataFrame({"way": ["a", "<b>"], "mean_wait": [98.0, None], "late": [0.1234, 0.0], "sure": [True, False]})
    table = lab.Table(
        frame.with_columns(size=pl.Series([1_234, 5])), units={"mean_wait": "s", "late": "%", "size": "GPUs"}
    )
    assert repr(table).splitlines() == [
        "way  mean wait    late  sure  size (GPUs)",
        "a     1.63 min  12.3 %   yes        1,234",
        "<b>          –     0 %    no            5",
    ]
    html = table._repr_html_()
    assert "&lt;b&gt;" in html
    assert not re.search(r"null|dtype|f64|str\b|&quot;", re.sub("<style>.*?</style>", "", html))


def test_a_long_table_is_cut_and_a_sentence_has_room():
    table = lab.Table(pl.DataFrame({"hour": range(72), "why": ["It is long, as sentences are: " * 2] * 72}), rows=6)
    assert [row.split()[0] for row in repr(table).splitlines()] == ["hour", "0", "1", "2", "…", "69", "70", "71"]
    assert 'class="gpuschedlab-long"' in table._repr_html_()
