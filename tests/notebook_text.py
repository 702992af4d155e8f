"""Sentences of notebooks that hold a number, and what each is: checked against the run, or no measurement, and why."""

import ast
import json
import re
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
NUMBERS = tomllib.loads((HERE / "notebook_numbers.toml").read_text(encoding="utf-8"))
"""Of each notebook, by a part of the sentence as it stands: `check` or `why`."""

NOT_TEXT = re.compile(
    r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|`[^`]*`|\]\([^)]*\)|</?[a-z][^>\n]*>|^\s*(?:\d+\.\s|#+ [^\n]*$)|^\|[-: |]+\|$",
    re.DOTALL | re.MULTILINE,
)
"""Code, formulas, addresses, marks, numbers of lists, headings."""
REFERENCE = re.compile(
    r"\b(?:19|20)\d\d\b|'\d\d\b|\b(?:chapters?|sections?|figures?|algorithm|part)\s+[\d.]+(?:\s+(?:to|and)\s+[\d.]+)?"
    r"|\b\d\d_\w+|\b[A-Za-z]+-?\d+\b|\b\d+\s?x\d+\b"
)
"""Years, chapters, other notebooks, and names with a digit in them, such as V100 or ResNet-50."""

TOLD = re.compile(
    r"^(?:- )?(?:In the (?:first )?explorer, )?"
    r"(?:[Mm]ove|[Ss]et|Take|Put|Lower|Compare|Write|Check|Then|Choose)\b|\?\W*$"
)
"""What a reader is told to do, or asked."""


def sentences(notebook) -> list[str]:
    """Statements of a notebook's text that hold a digit which is none of a reference's, on one line each.

    Examples
    --------
    >>> from nbformat.v4 import new_markdown_cell, new_notebook
    >>> text = "# Part 2\\n\\nIt takes 3 s. Sia (SOSP 2023) is `faster(2)`.\\n\\n1. Why?"
    >>> sentences(new_notebook(cells=[new_markdown_cell(text)]))
    ['It takes 3 s.']
    """
    found = []
    for source in texts(notebook):
        text = NOT_TEXT.sub(lambda match: "`" if match[0].startswith("`") else " ", source)
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*|] )", text):
            for sentence in re.split(r"(?<=[.!?;])\s+|(?<=[.!?]\*\*)\s+", " ".join(paragraph.split())):
                if re.search(r"\d", REFERENCE.sub("", sentence)) and not TOLD.search(sentence):
                    found.append(sentence)
    return found


def texts(notebook) -> list[str]:
    """Return the Markdown of a notebook: its cells of text, and the texts that are shown after a guess."""
    markdown = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            markdown.append(cell.source)
        elif "Guess(" in cell.source:
            calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
            guesses = [call for call in calls if getattr(call.func, "id", "") == "Guess"]
            arguments = [argument for call in guesses for argument in call.args]
            markdown += [one.value for one in arguments if isinstance(one, ast.Constant)]
    return markdown


def unknown(name: str, notebook) -> list[str]:
    """Sentences with a number of which the table says nothing."""
    return [s for s in sentences(notebook) if not any(part in s for part in NUMBERS.get(name, {}))]


def checking(name: str) -> str:
    """Code of a last cell, which prints what each check of a notebook finds: true, false, or what went wrong."""
    checks = {part: entry["check"] for part, entry in NUMBERS.get(name, {}).items() if "check" in entry}
    return f"""import json as _json
_found = {{}}
for _part, _check in {checks!r}.items():
    try:
        _found[_part] = bool(eval(_check))
    except Exception as error:
        _found[_part] = repr(error)
print("checked", _json.dumps(_found))"""


def wrong(notebook) -> dict:
    """Checks of an executed notebook that do not hold, by the part of the sentence."""
    printed = "".join(output.get("text", "") for output in notebook.cells[-1].outputs)
    return {part: found for part, found in json.loads(printed.removeprefix("checked ")).items() if found is not True}
