"""Pages of the API reference: one per public name, one per subject, and the list of all subjects."""

import importlib
import inspect
from pathlib import Path

from knob_tables import knob_rows
from public import SUBJECTS, TOP, Entry, described, entries, summary


def write_api(folder: Path, write) -> list[str]:
    """Write all pages.

    Parameters
    ----------
    folder : Path
        Where they go.
    write : callable
        `write(path, text)`.

    Returns
    -------
    list of str
        Names of the pages, without endings.
    """
    for subject, title in SUBJECTS.items():
        write(folder / f"{subject}.rst", subject_page(subject, title))
    for entry in entries():
        write(folder / f"{entry.page}.rst", name_page(entry))
    write(folder / "index.rst", index_page())
    return [*SUBJECTS, *(e.page for e in entries()), "index"]


def heading(text: str, mark: str = "=") -> str:
    """Heading of a page or section, underlined."""
    return f"{text}\n{mark * len(text)}\n"


def _table(rows: list[tuple[str, str]], widths: str = "30 70") -> str:
    cells = "".join(f"   * - {a}\n     - {b}\n" for a, b in rows)
    return f".. list-table::\n   :widths: {widths}\n   :class: api-names\n\n{cells}\n"


def _linked(entry: Entry) -> tuple[str, str]:
    reference = f":py:obj:`{entry.short.removeprefix('gpuschedlab.')} <{entry.name}>`"
    return reference, summary(entry) or entry.kind


def index_page() -> str:
    """The list of subjects, and the names that `import gpuschedlab as lab` brings."""
    top = [_linked(e) for e in entries() if e.name.count(".") == 1]
    rows = [(f":doc:`{title} <{subject}>`", _first(subject)) for subject, title in SUBJECTS.items()]
    listed = "".join(f"   {subject}\n" for subject in SUBJECTS)
    return "\n".join(
        [
            heading("API reference"),
            "By subject, each with a page per name:\n",
            _table(rows),
            heading("import gpuschedlab as lab", "-"),
            "The names that most work needs. All others are imported from their subject: "
            "``from gpuschedlab import metrics, plots``.\n",
            _table(top),
            f".. toctree::\n   :hidden:\n\n{listed}",
        ]
    )


def _module(subject: str):
    return importlib.import_module(f"{TOP}.{subject}")


def _first(subject: str) -> str:
    return " ".join((inspect.getdoc(_module(subject)) or "").partition("\n\n")[0].split())


def subject_page(subject: str, title: str) -> str:
    """Names of one module, each with its first sentence."""
    mine = [e for e in entries() if e.subject == subject]
    pages = "".join(f"   {e.short.rpartition('.')[2]} <{e.page}>\n" for e in mine)
    groups = {"class": "Classes", "function": "Functions", "data": "Constants", "exception": "Exceptions"}
    parts = [heading(title), f".. py:module:: {TOP}.{subject}\n", _first(subject) + "\n"]
    for kind, name in groups.items():
        rows = [_linked(e) for e in mine if e.kind == kind]
        parts += [heading(name, "-"), _table(rows)] if rows else []
    return "\n".join([*parts, f".. toctree::\n   :hidden:\n\n{pages}"])


def name_page(entry: Entry) -> str:
    """Page of one name."""
    module, _, name = entry.name.rpartition(".")
    parts = [heading(name), f"``from {module} import {name}``\n" if module != TOP else f"``lab.{name}``\n"]
    if entry.kind == "data":
        text = described(entry) or "A constant."
        indented = "".join(f"   {line}\n" if line else "\n" for line in text.splitlines())
        return "\n".join([*parts, f".. py:data:: {entry.name}\n\n{indented}"])
    options = "   :members:\n   :member-order: bysource\n" if _has_members(entry) else ""
    parts.append(f".. auto{entry.kind}:: {entry.name}\n{options}")
    if rows := knob_rows(entry.thing):
        cells = "".join("".join(f"   {'*' if not i else ' '} - {c}\n" for i, c in enumerate(row)) for row in rows)
        table = ".. list-table::\n   :header-rows: 1\n   :widths: 16 14 22 10 38\n\n"
        parts += [heading("Knobs", "-"), table + cells]
    return "\n".join(parts)


def _has_members(entry: Entry) -> bool:
    """Whether a class has methods worth listing: those of a NamedTuple are its fields again."""
    return entry.kind == "class" and not (issubclass(entry.thing, tuple) and hasattr(entry.thing, "_fields"))
