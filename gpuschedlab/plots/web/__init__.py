"""HTML with figures in it, for wherever no kernel answers: saved notebooks, reports, files."""

import gzip
import json
import re
from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple
from uuid import uuid4

from gpuschedlab._extras import has
from gpuschedlab.plots.kinds.style import DARK, template
from gpuschedlab.plots.web.cell import carries_library
from gpuschedlab.plots.web.encode import encoded, plain

HERE = files("gpuschedlab.plots.web")
WIDTHS = (620, 900, 1240)
CAPTION = 24
"""Pixels of a picture: widths in a grid of two, alone, and across such a grid; what its title adds to a figure's height."""
NOT_DRAWN = "<i>A figure, not drawn yet: the first figure of the page carries what draws it. Is it missing? Run its cell again.</i>"
NO_PICTURE = (
    "<i>Figures, which only scripts draw here: a picture of each needs matplotlib (pip install matplotlib).</i>"
)


class Place(NamedTuple):
    """Where a figure stands in a grid: its name, its height (pixels), whether it is as wide as the grid, its greatest width.

    On a board it may be as low as `least`; with `words`, a story or table stands there; with `more`, it is seen when *more* is asked for.
    """

    name: str
    height: int = 300
    wide: bool = False
    width: int | None = None
    least: int = 200
    words: bool = False
    more: bool = False


@cache
def plotly() -> bytes:
    """Return the bytes of plotly.js (cartesian), gzipped."""
    return (HERE / "plotly-cartesian.min.js.gz").read_bytes()


@cache
def script() -> str:
    """Return the text of the JavaScript that draws figures, with the house style in it."""
    house_style = json.dumps({"template": template(), "dark": DARK})
    code = _text("draw.js").replace("/*LOOK*/ {}", house_style)
    code = code.replace("  /*LEGEND*/\n", _text("legend.js"))
    code = code.replace("  /*SCREEN*/\n", _text("screen.js"))
    return re.sub(r"(?m)^ *(//.*\n)?", "", code)  # comments and indents are for who reads the files


@cache
def css() -> str:
    """Return the style sheet of figures in a grid as CSS text."""
    return _text("board.css")


def _text(file_name: str) -> str:
    """Text of a file beside this one."""
    return (HERE / file_name).read_text(encoding="utf-8")


@cache
def library(small: bool = True) -> str:
    """HTML that brings to a page all that its figures need; once is enough. Not `small`: unpacked, at once and not soon."""
    if not small:
        code = gzip.decompress(plotly()).decode().replace("</script", "<\\/script")
        return f"<script>{script()}</script><script>{code}</script><script>gpuschedlabFigures.use(Plotly)</script>"
    give = f'gpuschedlabFigures.give("{b64encode(plotly()).decode()}")'
    return f"<script>{script()}</script><script>{give}</script>"


def packed(thing) -> str:
    """JSON, gzipped, as base64: nothing in it can break the page."""
    return b64encode(gzip.compress(json.dumps(thing, allow_nan=False).encode(), 6, mtime=0)).decode()


def fragment(
    figures: dict, places: tuple[Place, ...], columns: int = 1, note="", board="", pictures="", states=None
) -> str:
    """HTML of figures in a grid, drawn once `library()` is there: a `note`, `pictures` until then, both hidden beside a `board`.

    With `states`, the page has their controls, and shows the note and figures of the combination that they say.
    """
    identity = f"gpuschedlab-{uuid4().hex}"
    encoded_figures = {}
    attributes = ""
    state_script = ""
    if board:
        attributes = f' data-board="{escape(board)}" hidden'
    if states:
        attributes += " data-states"
        state_script = f"<script>{_text('states.js')}</script>"
    else:
        encoded_figures = {place.name: encoded(plain(figures[place.name])) for place in places if place.name in figures}
    grid = "gpuschedlab-figures"
    if columns == 2:
        grid += " gpuschedlab-two"
    placeholder = ""
    if not pictures and not board:
        placeholder = NOT_DRAWN
    listed = [figure_place._asdict() for figure_place in places]
    pack = packed({"places": listed, "figures": encoded_figures, "note": note, "states": states or None})
    queued = json.dumps({"id": identity, "board": board, "pack": pack})
    return (
        f'<div id="{identity}"{attributes}><style>{css()}</style><div class="gpuschedlab-frame">{pictures}'
        f'<div class="{grid}">{placeholder}</div></div>'
        f"{state_script}<script>(window.gpuschedlabQueue ??= []).push({queued})</script></div>"
    )


def pictures_of(figures: dict, places: tuple[Place, ...], columns: int = 1, note: str = "", board: str = "") -> str:
    """HTML of pictures of figures for where no script runs, as in `fragment`; without matplotlib a sentence stands in their place."""
    pictures = NO_PICTURE
    if has("matplotlib"):
        pictures = "".join(
            _picture(figures[figure_place.name], figure_place, columns)
            for figure_place in places
            if figure_place.name in figures
        )
    identity = f"gpuschedlab-{uuid4().hex}"
    attribute = ""
    hiding = ""
    if board:
        attribute = f' data-pictures="{escape(board)}"'
        # A page that runs scripts has the board itself; browsers before 2024 know it by the script alone.
        hiding = (
            f"<style>@media (scripting: enabled) {{ #{identity} {{ display: none }} }}</style>"
            f'<script>document.getElementById("{identity}").hidden = true</script>'
        )
    return f'<div id="{identity}" class="gpuschedlab-pictures"{attribute}>{hiding}{note}{pictures}</div>'


def _picture(figure, place: Place, columns: int) -> str:
    """One picture, twice as wide if it is as wide as a grid of two; a sentence if it cannot be drawn."""
    from gpuschedlab.plots.web.picture import png

    in_grid, alone, across = WIDTHS
    room = in_grid
    if columns == 1:
        room = alone
    elif place.wide:
        room = across
    width = min(place.width or across, room)
    try:
        content, title = png(figure, width, place.height + CAPTION, kind="WEBP")  # half of a PNG
    except Exception as error:  # what only plotly understands is drawn where there are scripts
        return f"<i>A figure, which only scripts draw here: its picture failed ({escape(repr(error))}).</i>"
    source = f"data:image/webp;base64,{b64encode(content).decode()}"
    return f'<img src="{source}" width="{width}" alt="{escape(title)}" style="max-width: 100%; height: auto">'


def output(figures: dict, places: tuple[Place, ...], columns: int = 1, note="", board="", states=None) -> str:
    """HTML of figures for a cell's output, as `fragment`; the first in a kernel carries the library; a `board` has no pictures."""
    pictures = ""
    if not board:
        pictures = pictures_of(figures, places, columns, note)
    html = fragment(figures, places, columns, note, board, pictures, states)
    if carries_library():
        return html + library()
    return html


def document(body: str, title: str, small: bool = True) -> str:
    """Write a whole page around some fragments as HTML text; `small` as in `library`."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><meta name="viewport" content="width=device-width">'
    return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{body}{library(small)}</body></html>'
