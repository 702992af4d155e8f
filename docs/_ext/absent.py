"""What pages say of pages that are not there: in a tree without some papers a link to a page of theirs becomes its text.

In the whole tree nothing is changed, and Sphinx warns of a link that leads nowhere.
"""

import posixpath
import re
from collections.abc import Callable, Set

LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^()\s:#]+\.(?:md|ipynb))(?:#[^()\s]*)?\)")
REFERENCE = re.compile(r"\{py:obj\}`(?:([^`<]+?) <([^`>]+)>|~?([\w.]+))`")
CARD = re.compile(r"^:::\{grid-item-card\}.*\n:link: (\S+)\n:link-type: doc\n(?:.*\n)*?:::\n\n?", re.MULTILINE)
TREE = re.compile(r"(?<=^```\{toctree\}\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def without_absent(text: str, page: str, pages: Set[str], names: Set[str]) -> str:
    """A page without links, references, cards and entries of toctrees that lead to what is not there.

    Parameters
    ----------
    text : str
        Markdown, or a notebook.
    page : str
        Its path below the root of the site.
    pages : set of str
        All such paths.
    names : set of str
        Full names that can be referred to.

    Examples
    --------
    >>> without_absent("[Here](b.md), [gone](../c.md#x), {py:obj}`~lab.Gone`", "a/a.md", {"a/b.md"}, set())
    '[Here](b.md), gone, `Gone`'
    """
    stems = {posixpath.splitext(path)[0] for path in pages}

    def there(target: str) -> str:
        inside = target.lstrip("/") if target.startswith("/") else posixpath.join(posixpath.dirname(page), target)
        return posixpath.normpath(inside)

    text = LINK.sub(lambda link: link[0] if there(link[2]) in pages else link[1], text)
    text = REFERENCE.sub(lambda found: _referred(found, names), text)
    text = CARD.sub(lambda card: card[0] if there(card[1]) in stems else "", text)
    return TREE.sub(lambda tree: _kept(tree[0], lambda entry: there(entry) in stems), text)


def _referred(found: re.Match, names: Set[str]) -> str:
    """A reference; code where there is no such name, nor a class that it is part of."""
    full = found[2] or found[3]
    known = full in names or full.rpartition(".")[0] in names
    return found[0] if known else f"`{found[1] or full.rpartition('.')[2]}`"


def _kept(entries: str, there: Callable[[str], bool]) -> str:
    """Lines of a toctree without the pages that are not there."""
    lines = entries.splitlines(keepends=True)
    target = [re.sub(r".*<(.*)>", r"\1", line.strip()) for line in lines]
    return "".join(line for line, to in zip(lines, target, strict=True) if not to or to[0] == ":" or there(to))
