"""Docstrings as pages show them: the section "Differs from the paper in", and links where a name in backticks is public."""

import re

from docutils import nodes
from public import targets
from sphinx.addnodes import pending_xref

SECTION = "Differs from the paper in"
_HEAD = re.compile(r"^(\S.*)\n-{3,}$", re.MULTILINE)


def section_of(text: str, name: str = SECTION) -> str:
    """Text of one section of a numpydoc docstring; empty where it has none.

    Examples
    --------
    >>> section_of("One line.\\n\\nNotes\\n-----\\nThis.\\n\\nExamples\\n--------\\nThat.", "Notes")
    'This.'
    """
    heads = list(_HEAD.finditer(text))
    for here, following in zip(heads, [*heads[1:], None]):
        if here[1] == name:
            return text[here.end() : following.start() if following else None].strip()
    return ""


def without_section(text: str, name: str = SECTION) -> str:
    """A docstring without one of its sections."""
    found = section_of(text, name)
    return re.sub(rf"^{re.escape(name)}\n-+\n\s*{re.escape(found)}\s*", "", text, flags=re.MULTILINE) if found else text


_kept: dict[str, list[str]] = {}


def take_section(app, what, name, obj, options, lines):
    """Keep the section aside: numpydoc knows its own alone, and drops all others."""
    text = "\n".join(lines)
    if found := section_of(text):
        _kept[name] = found.splitlines()
        lines[:] = without_section(text).splitlines()


def give_section(app, what, name, obj, options, lines):
    """Put the section back, after what numpydoc made of the rest and before its references."""
    found = _kept.pop(name, None)
    if found is None:
        return
    at = next(
        (i for i, line in enumerate(lines) if line.startswith((".. rubric:: References", ".. rubric:: Examples"))), None
    )
    added = ["", f".. rubric:: {SECTION}", "", *found, ""]
    at = len(lines) if at is None else at
    lines[at:at] = added


def name_role(role, rawtext, text, lineno, inliner, options=None, content=()):
    """Default role: a public name becomes a link, anything else is code."""
    target = targets().get(text.removesuffix("()"))
    shown = nodes.literal(rawtext, text, classes=["code"])
    if target is None:
        return [shown], []
    reference = pending_xref(
        rawtext, shown, refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=True
    )
    reference["refdoc"] = inliner.document.settings.env.docname
    return [reference], []


def setup(app):
    """Register the hooks around numpydoc's (priority 500), and the role."""
    app.connect("autodoc-process-docstring", take_section, priority=400)
    app.connect("autodoc-process-docstring", give_section, priority=600)
    app.add_role("name", name_role)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
