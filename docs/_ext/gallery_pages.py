"""The gallery: one script per figure, run as it stands; a page with its code and what it drew, and a small one in the list."""

import contextlib
import io
import re
import warnings
from pathlib import Path
from typing import NamedTuple

from gpuschedlab.plots import web

THUMB = 170
"""Height (pixels) of a figure in the list."""


class Script(NamedTuple):
    """A script of the gallery: its name, title, what it says, its code, and the group that it belongs to."""

    name: str
    title: str
    text: str
    code: str
    group: str


def read_script(path: Path) -> Script:
    """Parts of a script: `'''Title.` with a text below, a line `# Group: ...`, then the code."""
    doc, _, rest = path.read_text().removeprefix('"""').partition('"""\n')
    title, _, text = doc.partition("\n")
    group = re.match(r"\s*# Group: (.+)\n", rest)
    return Script(path.stem, title.rstrip("."), text.strip(), rest[group.end() :].strip() + "\n", group[1])


def run_script(script: Script):
    """The figure that a script leaves in `figure`."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(script.code, f"{script.name}.py", "exec"), names)
    return names["figure"]


def fragment_of(figure, height: int | None = None) -> str:
    """HTML of a figure, bare and small where a height (pixels) is given."""
    place = figure._place()[0]
    shown = figure
    if height:
        place = place._replace(height=height, width=None)
        shown = type(figure)(figure)
        shown.update_layout(showlegend=False, title=None, annotations=[], margin={"l": 8, "r": 8, "b": 8})
        for bare in (shown.update_xaxes, shown.update_yaxes):
            bare(showticklabels=False, title=None, ticks="")
    return web.fragment({place.name: shown}, (place,))


def raw(html: str) -> str:
    """Block of Markdown that passes HTML on."""
    return f"```{{raw}} html\n{html}\n```\n"


def write_gallery(scripts: Path, out: Path, write, execute: bool):
    """Write a page per script, the list, and the JavaScript that draws figures.

    Parameters
    ----------
    scripts, out : Path
        Where they are, and where pages go.
    write : callable
        `write(path, text)`.
    execute : bool
        Whether to run the scripts; the pages have no figures otherwise.
    """
    found = [read_script(path) for path in sorted(scripts.glob("*.py"))]
    library = raw('<script src="../_static/figures.js" defer></script>')
    groups: dict[str, list[str]] = {}
    for script in found:
        figure = run_script(script) if execute else None
        drawn = raw(fragment_of(figure)) if figure is not None else ""
        page = f"# {script.title}\n\n{script.text}\n\n{drawn}\n```python\n{script.code}```\n\n{library}"
        write(out / f"{script.name}.md", page)
        small = raw(f'<div class="gallery-thumb">{fragment_of(figure, THUMB)}</div>') if figure is not None else ""
        card = f"::::{{grid-item-card}} {script.title}\n:link: {script.name}\n:link-type: doc\n\n{small}::::\n"
        groups.setdefault(script.group, []).append(card)
    write(out / "index.md", _index(groups, [script.name for script in found], library))
    write_library()


def _index(groups: dict[str, list[str]], names: list[str], library: str) -> str:
    text = "# Gallery\n\nEach figure with the code that drew it, which runs as it stands.\n\n"
    for group, cards in groups.items():
        text += f"## {group}\n\n:::::{{grid}} 1 2 3 3\n:gutter: 3\n\n{''.join(cards)}:::::\n\n"
    listed = "\n".join(names)
    return f"{text}```{{toctree}}\n:hidden:\n\n{listed}\n```\n\n{library}"


def write_library():
    """Put what draws figures where the theme serves it: once for all pages of the gallery."""
    folder = Path(__file__).resolve().parents[2] / "build" / "docs-static"
    folder.mkdir(parents=True, exist_ok=True)
    html = web.library(small=False)
    code = ";\n".join(part for part in re.findall(r"<script>(.*?)</script>", html, flags=re.S))
    (folder / "figures.js").write_text(code, encoding="utf-8")
