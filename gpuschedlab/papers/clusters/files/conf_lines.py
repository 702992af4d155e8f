"""Lines of a slurm.conf, with those of the files that it includes."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuschedlab.errors import TraceError

INCLUDE = "Include"
DEEPEST = 16
"""Files that include each other, one within the other, at most."""


class ConfLines:
    """Lines of a slurm.conf and of the files that it includes from `folder`; those that are not there become keys of `unknown`."""

    def __init__(self, folder: Path | None, unknown: dict):
        self.folder = folder
        self.unknown = unknown

    def lines_of(self, text: str, source: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """Yield tuples: the file and number of each line, in words, and its text.

        Those of an included file stand in the place of its line.
        """
        for number, line in numbered_lines(text):
            where = f"slurm {source}, line {number}"
            include = re.match(r"\s*include\s+(.*)", line, re.IGNORECASE)
            if include is None:
                yield where, line
                continue
            included_file = include[1].strip().strip('"')
            content = self._content(included_file)
            if content is None:
                unknown_key = INCLUDE
                if self.folder is not None:
                    unknown_key = f"{INCLUDE} {included_file}"
                self.unknown[unknown_key] = None
                continue
            if depth == DEEPEST:
                raise TraceError(
                    f"{where}: found files that include each other, {DEEPEST} deep; expected an end. Take out {included_file!r}."
                )
            yield from self.lines_of(content, included_file, depth + 1)

    def _content(self, name: str) -> str | None:
        """Text of an included file: at its place below the folder, or else by its last name in the folder; None if it is in neither."""
        if self.folder is None or not name:
            return None
        last = Path(name).name
        for path in (self.folder / name.lstrip("/"), self.folder / last):
            inside = path.resolve().is_relative_to(self.folder.resolve())
            if inside and path.is_file():
                return path.read_text(encoding="utf-8", errors="replace")
        return None


def way_to_included(unmodelled: Sequence[str]) -> str:
    """Sentence that says which included files of a slurm.conf were not there, and the way out; "" if none was missing."""
    missing = [unmodelled_key for unmodelled_key in unmodelled if unmodelled_key.startswith(f"{INCLUDE} ")]
    if not missing:
        return ""
    return (
        f" slurm.conf says {', '.join(missing)}: no such file stands beside it. Copy it there, where its nodes may be."
    )


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield tuples: number and text of each line, those that end in a backslash joined, without comments."""
    joined = ""
    first_line = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(?<!\\)#.*", "", line).rstrip()
        first_line = first_line or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        if (joined + line).strip():
            yield first_line, joined + line
        joined = ""
        first_line = 0
    if joined.strip():
        yield first_line, joined


def printed(text: str) -> str:
    """Return the text of a slurm.conf for the answer of `scontrol show config`; other texts are returned as they were."""
    if not text.lstrip().startswith("Configuration data as of"):
        return text
    conf_lines = []
    for line in text.splitlines():
        match = re.match(r"\s*(\w+)\s*= *(.*?)(?: sec| min)?\s*$", line)
        if match and match[2] not in ("", "(null)"):
            conf_lines.append(f'{match[1]}="{match[2]}"')
    return "\n".join(conf_lines)
