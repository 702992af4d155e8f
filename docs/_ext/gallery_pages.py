"""The gallery: one script per figure, run as it stands; a page with its code and what it drew, and a picture in the list."""

import contextlib
import io
import re
import warnings
from html import escape
from pathlib import Path
from typing import NamedTuple

from gpuschedlab.plots import web
from gpuschedlab.plots.web.picture import png

THUMB = (480, 300)
"""Width and height (pixels) of a picture in the list."""
STATIC = Path(__file__).resolve().parents[2] / "build" / "docs-static"
"""What the theme serves besides docs/_static: pictures of the list, and what draws figures."""


class Script(NamedTuple):
    """A script of the gallery: its name, title, what it says, its code, the group that it belongs to, a notebook with such figures."""

    name: str
    title: str
    text: str
    code: str
    group: str
    notebook: str


def read_script(path: Path) -> Script:
    """Parts of a script: `'''Title.` with a text below, lines `# Group: ...` and `# Notebook: ...`, then the code."""
    doc, _, rest = path.read_text().removeprefix('"""').partition('"""\n')
    title, _, text = doc.partition("\n")
    head = re.match(r"\s*# Group: (.+)\n# Notebook: (.+)\n", rest)
    return Script(path.stem, title.rstrip("."), text.strip(), rest[head.end() :].strip() + "\n", head[1], head[2])


def run_script(script: Script):
    """The figure that a script leaves in `figure`."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(script.code, f"{script.name}.py", "exec"), names)
    return names["figure"]


def fragment_of(figure) -> str:
    """HTML of a figure."""
    place = figure._place()[0]
    return web.fragment({place.name: figure}, (place,))


def thumbs_of(figure) -> dict[str, bytes]:
    """Pictures of a figure for light and dark pages, without the title, which stands below it in the list."""
    shown = type(figure)(figure).update_layout(title=None)
    return {theme: png(shown, *THUMB, dark=theme == "dark")[0] for theme in ("light", "dark")}


def raw(html: str) -> str:
    """Block of Markdown that passes HTML on."""
    return f"```{{raw}} html\n{html}\n```\n"


def write_gallery(scripts: Path, out: Path, write, execute: bool, static: Path = STATIC):
    """Write a page per script, the list with a picture of each, and the JavaScript that draws figures.

    Parameters
    ----------
    scripts, out : Path
        Where they are, and where pages go.
    write : callable
        `write(path, text)`.
    execute : bool
        Whether to run the scripts; the pages have no figures otherwise, and the list no pictures.
    static : Path
        Where pictures and JavaScript go.
    """
    found = [read_script(path) for path in sorted(scripts.glob("*.py"))]
    library = raw('<script src="../_static/figures.js" defer></script>')
    groups: dict[str, list[str]] = {}
    for script in found:
        figure = run_script(script) if execute else None
        if figure is not None:
            _write_thumbs(script, figure, static / "gallery")
        drawn = raw(fragment_of(figure)) if figure is not None else ""
        page = f"# {script.title}\n\n{script.text}\n\n{drawn}\n```python\n{script.code}```\n\n{_notebook(script)}\n\n{library}"
        write(out / f"{script.name}.md", page)
        groups.setdefault(script.group, []).append(_card(script, pictured=figure is not None))
    write(out / "index.md", _index(groups, [script.name for script in found]))
    write_library(static)


def _write_thumbs(script: Script, figure, folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    for theme, content in thumbs_of(figure).items():
        (folder / f"{script.name}-{theme}.png").write_bytes(content)


def _notebook(script: Script) -> str:
    return f"[Notebook: {script.notebook.partition('_')[2].replace('_', ' ')}](../notebooks/{script.notebook}.ipynb)"


def _card(script: Script, pictured: bool) -> str:
    """A card of the list: the picture, which leads to the figure and its code, the title, and the notebook."""
    pictures = ""
    if pictured:
        size = f'width="{THUMB[0]}" height="{THUMB[1]}" loading="lazy" alt="{escape(script.title)}"'
        each = [
            f'<img class="only-{t}" src="../_static/gallery/{script.name}-{t}.png" {size}>' for t in ("light", "dark")
        ]
        pictures = raw(f'<a class="gallery-thumb" href="{script.name}.html">{"".join(each)}</a>')
    links = f"[Figure and code]({script.name}.md) \N{MIDDLE DOT} {_notebook(script)}"
    return f"::::{{grid-item-card}}\n\n{pictures}\n**{script.title}**\n\n{links}\n::::\n"


def _index(groups: dict[str, list[str]], names: list[str]) -> str:
    text = "# Gallery\n\nEach figure with the code that drew it, which runs as it stands, and a notebook that has such figures.\n\n"
    for group, cards in groups.items():
        text += f"## {group}\n\n:::::{{grid}} 1 2 3 3\n:gutter: 3\n\n{''.join(cards)}:::::\n\n"
    listed = "\n".join(names)
    return f"{text}```{{toctree}}\n:hidden:\n\n{listed}\n```\n"


def write_library(static: Path = STATIC):
    """Put what draws figures where the theme serves it: once for all pages."""
    static.mkdir(parents=True, exist_ok=True)
    html = web.library(small=False)
    code = ";\n".join(part for part in re.findall(r"<script>(.*?)</script>", html, flags=re.S))
    (static / "figures.js").write_text(code, encoding="utf-8")
