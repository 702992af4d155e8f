"""Put the sources of the site together in build/docs-source: pages, notebooks with small parameters, reference, gallery.

A file is written only where its text changed, so that Sphinx reads again what changed and no more. Where papers are not here,
links to their pages become text (`absent`).
"""

import json
import re
import shutil
import sys
from pathlib import Path

import nbformat
import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parents[1] / "tests")]

import macros  # noqa: E402
import public  # noqa: E402
from absent import without_absent  # noqa: E402
from api_pages import write_api  # noqa: E402
from gallery_pages import write_gallery  # noqa: E402
from present import whole  # noqa: E402
from settings import EXECUTE, ROOT  # noqa: E402

DOCS = ROOT / "docs"
OUT = ROOT / "build" / "docs-source"
SMALL = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "notebooks" / "small").iterdir()}
"""Parameters of each notebook for tests and pages, by its name."""

CELLS = "```{code-cell} python"
HEAD = """---
file_format: mystnb
kernelspec:
  name: python3
  display_name: Python 3
  language: python
---
"""
KEPT = {".md", ".png", ".svg"}
LINKED = {".md", ".ipynb"}
TITLE = re.compile(r"\A# .+\n\n")


class Writer:
    """Keeps the files of the site, then writes them below `out`: what is left over from an earlier build is removed."""

    def __init__(self, out: Path):
        self.out, self.files = out, {}

    def __call__(self, path: Path, content: str | bytes):
        """Keep the content of a file."""
        self.files[path] = content

    def drop_absent(self):
        """Change links to what is not there to text."""
        pages = {path.relative_to(self.out).as_posix() for path in self.files}
        names = {*public.targets().values()}
        for path, content in self.files.items():
            if path.suffix in LINKED:
                self.files[path] = without_absent(content, path.relative_to(self.out).as_posix(), pages, names)

    def finish(self):
        """Write the files whose content changed, and remove all others."""
        for path, content in self.files.items():
            content = content.encode() if isinstance(content, str) else content
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        for path in [p for p in self.out.rglob("*") if p.is_file() and p not in self.files]:
            path.unlink()


def assemble(out: Path = OUT, execute: bool = EXECUTE) -> Path:
    """Write all sources.

    Parameters
    ----------
    out : Path
        The folder; what else is in it is removed.
    execute : bool
        Whether the scripts of the gallery are run.
    """
    write = Writer(out)
    for path in sorted(DOCS.rglob("*")):
        inside = path.relative_to(DOCS)
        if path.suffix in KEPT and not inside.parts[0].startswith("_"):
            write(out / inside, page(path) if path.suffix == ".md" else path.read_bytes())
    for name in ("CHANGELOG", "CONTRIBUTING"):
        write(
            out / f"{name.lower()}.md", (ROOT / f"{name}.md").read_text().replace("](docs/", "](")
        )  # its links are those of the repository
    for path in sorted((ROOT / "notebooks" / "images").iterdir()):
        write(out / "notebooks" / "images" / path.name, path.read_bytes())
    notebooks = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.stem in SMALL]
    for path in notebooks:
        write(out / "notebooks" / path.name, small_notebook(path, SMALL[path.stem]))
    write(out / "notebooks" / "index.md", notebook_list(notebooks))
    write_api(out / "api", write)
    write_gallery(DOCS / "gallery", out / "gallery", write, execute)
    if not whole():
        write.drop_absent()
    write.finish()
    return out


def page(path: Path) -> str:
    """Text of a page: macros expanded; the code of a how-to page is cells, which are executed."""
    text = macros.expand(path.read_text())
    return as_cells(text) if path.parent.name == "howto" else text


def as_cells(text: str) -> str:
    """A page with its blocks of Python as cells; one that has cells already stays as it is."""
    if CELLS in text or "```python\n" not in text:
        return text
    return HEAD + text.replace("```python\n", f"{CELLS}\n")


def small_notebook(path: Path, parameters: dict) -> str:
    """A notebook with small parameters in a cell after its own, as papermill puts them; its links lead to the pages of the site.

    Below its title stands the badge that opens it on Binder, where a repository is named.
    """
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("](../docs/", "](../")
    if badge := macros.badge(f"notebooks/{path.name}"):
        notebook.cells[0].source = TITLE.sub(lambda title: f"{title[0]}{badge} ", notebook.cells[0].source)
    at = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    lines = "\n".join(f"{name} = {value}" for name, value in parameters.items())
    cell = nbformat.v4.new_code_cell(f"# Small, so that this page is built in seconds.\n{lines}", id=f"small-{at}")
    notebook.cells.insert(at + 1, cell)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def notebook_list(notebooks: list[Path]) -> str:
    """Page with the title and the question of each notebook."""
    text = "# Notebooks\n\nEach was executed with small parameters for these pages: a day or two, a few nodes. `make lab` opens them\n"
    text += "with sliders and the sizes that their text speaks of.\n\n| notebook | question |\n| --- | --- |\n"
    for path in notebooks:
        first = nbformat.read(path, 4).cells[0].source
        title = first.partition("\n")[0].removeprefix("# ")
        asked = re.search(r"\*\*The question\.\*\*.*?(\*[^*]+\*)", first, flags=re.S)
        question = " ".join(asked[1].split()).strip("*") if asked else ""
        text += f"| [{title}]({path.name}) | {question} |\n"
    listed = "\n".join(path.stem for path in notebooks)
    return f"{text}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"


if __name__ == "__main__":
    if "--clean" in sys.argv:
        shutil.rmtree(OUT, ignore_errors=True)
    print(assemble())
