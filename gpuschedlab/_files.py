"""Files that are written whole or not at all, and files of JSON lines that a killed process may have cut off."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path to write a file to, which takes the place of `path` when that is done; what fails leaves no trace.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "found.txt"
    >>> with whole(path) as part:
    ...     _ = part.write_text("42")
    >>> path.read_text()
    '42'
    """
    # In the same folder, since a rename is atomic only within one file system.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def json_lines(path: Path) -> Iterator[dict]:
    """Records of a file with one in a line of JSON, but for lines that are none; nothing where there is no file."""
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):  # a killed process leaves half a line
            yield json.loads(line)
