"""What stands in double braces on a page: text taken from the code, so that pages never copy it.

`{{differs Sia}}`, `{{about Sia}}`, `{{references Sia}}`: sections of a docstring; `{{knobs Sia}}`: a table of knobs; `{{system Sia}}`:
all of these; `{{algorithm}}`: algorithm 3 of AutoSched line by line; `{{budget}}`, `{{regimes}}`, `{{switches}}`, `{{cause}}`,
`{{lacks}}`, `{{phases}}`, `{{beforehand}}`, `{{worlds}}`, `{{mechanisms}}`, `{{causes}}`, `{{arena}}`, `{{explains}}`, `{{when}}`,
`{{unisched_program}}`, `{{unisched_margin}}`, `{{unisched_floor}}`: what benches measured, from docs/measured/; `{{published sia
[policy]}}`: published numbers of a source beside ours; `{{everywhere tiresias}}`: claims and numbers of a policy in all sources;
`{{sources}}`: all sources; `{{score}}`: how many claims hold; `{{held}}`: the same by source; `{{board}}`, `{{three_lines}}`: parts of
the front page; `{{noticed}}`: how many wrong numbers are noticed; `{{policies}}`: all policies, each with its paper; `{{others howto}}`:
entries of a toctree for pages that the index does not name; `{{toc course}}`, `{{course}}`: an entry of a toctree, and a line, for a page
that may not be there; `{{citation}}`: how to cite the package; `{{ask}}`: where to ask; `{{binder}}`: a badge, where a repository is
named.
"""

import inspect
import re
from functools import cache

import cause_pages
import front_page
import measured_pages
import published_tables
import referee_pages
import start_pages
from docstrings import _HEAD, section_of
from knob_tables import knob_rows
from public import entries, targets
from settings import ROOT, ask, binder

from gpuschedlab.knobs import knob_word
from reproduce.published.sources import PAGES

_CALL = re.compile(r"\{\{(\w+)((?: [^}\s]+)*)\}\}")


def expand(text: str) -> str:
    """Replace all that stands in double braces.

    Raises
    ------
    KeyError
        There is no such macro, or no such public name.
    """
    return _CALL.sub(lambda found: _MACROS[found[1]](*found[2].split()), text)


@cache
def _things() -> dict:
    return {e.name: e.thing for e in entries()}


def _doc(name: str) -> str:
    thing = _things()[targets()[name]]
    return inspect.cleandoc(thing.__doc__)


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text}\n```"


def about(name: str) -> str:
    """What stands before the first section of a docstring."""
    text = _doc(name)
    first = _HEAD.search(text)
    return _rst(text[: first.start() if first else None].strip())


def section(title: str):
    """Macro that gives a section of a docstring."""

    def given(name: str) -> str:
        return _rst(section_of(_doc(name), title) or "Nothing known.")

    return given


def knobs(name: str) -> str:
    """Table of the knobs of a class."""
    return _table(knob_rows(_things()[targets()[name]]), "16 14 22 10 38")


def _table(rows, widths: str) -> str:
    """Rows of cells, the first the head."""
    cells = "".join("".join(f"   {'*' if not i else ' '} - {c}\n" for i, c in enumerate(row)) for row in rows)
    return _rst(f".. list-table::\n   :header-rows: 1\n   :widths: {widths}\n\n{cells}")


def algorithm() -> str:
    """Algorithm 3 of the AutoSched thesis line by line, with the knobs of `Tuner.thesis()` and of the tuner by default."""
    from algorithm import ALGORITHM

    from gpuschedlab.autosched import Tuner

    printed, ours = Tuner.thesis().knobs, Tuner().knobs
    rows = [("lines", "printed", "how it is read", "``Tuner.thesis()``", "``Tuner()`` instead")]
    for line in ALGORITHM:
        thesis = ", ".join(f"{n} {knob_word(printed[n])}" for n in line.knobs)
        instead = ", ".join(f"{n} {knob_word(ours[n])}" for n in line.knobs if ours[n] != printed[n])
        rows.append((line.lines, line.printed, line.read, thesis or "\\", instead or "\\"))
    return _table(rows, "8 24 32 20 16")


def references(name: str) -> str:
    """What the docstring of a class refers to, without the numbers that it gives it."""
    text = (
        section_of(_doc(name), "References") or inspect.getmodule(_things()[targets()[name]]).__doc__.partition("\n")[0]
    )
    return _rst(re.sub(r"^\.\. \[\d+\] ", "", text, flags=re.MULTILINE).replace("\n   ", "\n"))


def system(name: str) -> str:
    """All that the docstring of a policy says: what it does, its knobs, where it differs, and what it follows."""
    full = targets()[name]
    parts = [
        f"## What is built\n\n{{py:obj}}`lab.{name} <{full}>`\n\n{about(name)}",
        f"## Knobs\n\n{knobs(name)}",
        f"## Where it differs from the paper\n\n{section('Differs from the paper in')(name)}",
        f"## References\n\n{references(name)}",
    ]
    return "\n\n".join(parts)


def citation() -> str:
    """CITATION.cff in the words of a bibliography."""
    import yaml

    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    authors = ", ".join(author["name"] for author in cff["authors"])
    return f"{authors}. {cff['title']}. Version {cff['version']}, {cff['date-released']}. Licence: {cff['license']}."


def sources() -> str:
    """Table of all sources of published numbers."""
    return published_tables.overview(PAGES)


def held() -> str:
    """Table of the verdicts on claims, by source."""
    return published_tables.held(PAGES)


def policies() -> str:
    """All policies, each with the first sentence of its docstring and of its module's."""
    from gpuschedlab.policies import ALL

    text = "| policy | what it does | follows |\n| --- | --- | --- |\n"
    for name, cls in ALL.items():
        first = " ".join(inspect.getdoc(cls).partition("\n\n")[0].split())
        paper = (inspect.getmodule(cls).__doc__ or "").partition("\n")[0]
        cited = ", ".join(re.findall(r"\(([^()]*'\d\d[^()]*|[^()]*thesis[^()]*)\)", paper))
        text += f"| {{py:obj}}`{cls.__name__} <gpuschedlab.{cls.__name__}>` (`{name}`) | {first} | {cited} |\n"
    return text


def toc(name: str) -> str:
    """Entry of a toctree, where there is such a page."""
    return name if (ROOT / "docs" / f"{name}.md").is_file() else ""


def others(folder: str) -> str:
    """Entries of a folder's toctree: the pages that it does not name by itself."""
    named = (ROOT / "docs" / folder / "index.md").read_text().partition("{toctree}")[2].split()
    stems = [path.stem for path in sorted((ROOT / "docs" / folder).glob("*.md")) if path.stem not in (*named, "index")]
    return "\n".join(stems)


def course() -> str:
    """Line that leads to the course, where there is one."""
    return "- **To learn or to teach**: the [course](course.md), on the notebooks." if toc("course") else ""


def badge(path: str = "") -> str:
    """Badge that opens a notebook on Binder; nothing where no repository is named."""
    address = binder(path)
    return f"[![open in Binder](/notebooks/images/binder.svg)]({address})" if address else ""


_MACROS = {
    "about": about,
    "algorithm": algorithm,
    "differs": section("Differs from the paper in"),
    "references": references,
    "system": system,
    "everywhere": published_tables.everywhere,
    "citation": citation,
    "knobs": knobs,
    "published": published_tables.tables,
    "board": front_page.board,
    "three_lines": front_page.three_lines,
    "held": held,
    "score": published_tables.score_of_all,
    "noticed": published_tables.noticed_of_all,
    "sources": sources,
    "settled": referee_pages.settled,
    "slips": referee_pages.slips,
    "rigid": referee_pages.rigid,
    "policies": policies,
    "binder": badge,
    "budget": measured_pages.budget,
    "regimes": measured_pages.regimes,
    "switches": measured_pages.switches,
    "cause": cause_pages.cause,
    "lacks": cause_pages.lacks,
    "phases": cause_pages.phases,
    "beforehand": measured_pages.beforehand,
    "worlds": measured_pages.worlds,
    "mechanisms": measured_pages.mechanisms,
    "causes": measured_pages.causes,
    "arena": measured_pages.arena,
    "explains": measured_pages.explains,
    "when": start_pages.when,
    "standing": measured_pages.standing,
    "unisched_program": measured_pages.unisched_program,
    "unisched_margin": measured_pages.unisched_margin,
    "unisched_floor": measured_pages.unisched_floor,
    "ask": ask,
    "toc": toc,
    "others": others,
    "course": course,
}
