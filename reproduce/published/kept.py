"""Cases of a long bench: measured on several cores, with a bar, and kept as they come."""

from __future__ import annotations

import ast
import contextlib
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import LabError
from reproduce.published.answers import Answers

ROOT = Path(__file__).resolve().parents[2]
HOMES = (ROOT, ROOT / "tests")
"""Folders that modules are found in: of the package and the workshop, and what the tests share."""

TRACES = ("traces",)
"""Folders of the reference data that the answers of most benches depend on."""


def measure_all(
    name: str,
    measure: Callable,
    data_dir,
    cases: Iterable[tuple],
    workers: int = -1,
    command: str = "bench",
    files: tuple[str, ...] = TRACES,
    seconds: float = np.inf,
) -> list:
    """Answers of `measure(data_dir, *case)` in the order of the cases.

    They are kept in `runs/<command>_<name>.jsonl`; what the same code has measured on the same files is not measured again, so
    that a bench that was interrupted goes on. Of the code beside the package that counts which the module of `measure` imports.

    Parameters
    ----------
    name : str
        Of the bench.
    measure : callable
        Its answers are what JSON holds.
    data_dir : str or Path
        Folder of the reference data.
    cases : iterable of tuple
        Arguments, of numbers, words and None.
    workers : int
        Processes, -1: as many as there are cores. Answers do not depend on it; seconds in them do.
    command : str
        What measures, the first word of the file's name.
    files : tuple of str
        Folders of the reference data that answers depend on.
    seconds : float
        After so many no further case is waited for: None is the answer of those that are left.

    Raises
    ------
    LabError
        There is no reference data.
    """
    if data_dir is None and files:
        raise LabError(
            f"{command} {name}: found no reference data; expected a folder with {files[0]}/. Pass --data FOLDER."
        )
    cases = list(cases)
    source = source_of(measure, data_dir, files)
    answers = Answers(Path("runs") / f"{command}_{name}.jsonl")
    left = [case for case in cases if (source, case) not in answers.known]
    joblib = need("joblib", f"{command} {name}")
    parallel = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1)
    bar = need("tqdm.auto", "progress bars").tqdm(total=len(cases), initial=len(cases) - len(left), disable=None)
    begin = time.monotonic()
    with bar, contextlib.closing(parallel(joblib.delayed(_paired)(measure, data_dir, case) for case in left)) as found:
        for case, answer in found:
            answers.keep(source, case, answer)
            bar.update()
            if time.monotonic() - begin > seconds:
                break
    return [answers.known.get((source, case)) for case in cases]


def source_of(measure: Callable, data_dir, folders=TRACES) -> str:
    """What answers come from: a hash of the code, the package's and that of the workshop, and of names, sizes and times of the data.

    Of the code its meaning counts: not its comments, docstrings and lines, so that words are mended without measuring anew.
    """
    from gpuschedlab.sweep.identity import PARTS, code_of_package, digest

    files = [
        (p.name, p.stat().st_size, p.stat().st_mtime_ns)
        for f in folders
        for p in sorted((Path(data_dir) / f).glob("*"))
    ]
    own, package = reached(measure.__module__)
    parts = (*PARTS, *sorted(package - {"", *PARTS}))
    return digest([code_of_package(parts, None, meaning), {name: meaning(file_of(name)) for name in own}, files])


def reached(module: str) -> tuple[list[str], set[str]]:
    """Modules of the workshop and of the tests that a module's code needs, itself among them; and parts of the package that these import.

    Examples
    --------
    >>> own, package = reached("reproduce.published.standing")
    >>> "reproduce.published.standing" in own, "reproduce.published.page" in own, "policies" in package
    (True, False, True)
    """
    own = set()
    package = set()
    left = [module]
    while left:
        name = left.pop()
        top, _, rest = name.partition(".")
        if top == "gpuschedlab":
            package.add(rest.partition(".")[0])
            continue
        path = file_of(name)
        if name in own or name == __name__ or path is None or path.name == "__init__.py":
            continue
        own.add(name)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                left += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return sorted(own), package


def file_of(module: str) -> Path | None:
    """File of a module of the package, the workshop or the tests; None of any other."""
    parts = module.replace(".", "/")
    for home in HOMES:
        for path in (home / f"{parts}.py", home / parts / "__init__.py"):
            if path.is_file():
                return path
    return None


def meaning(path: Path) -> bytes:
    """Code of a file without its comments, docstrings and layout."""
    return _meaning_of(path.read_text())


@cache
def _meaning_of(text: str) -> bytes:
    """The same of a text: benches ask for all modules again for each of their measures."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [
                line for line in body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            ]
    return ast.dump(tree).encode()


def _paired(measure: Callable, data_dir, case: tuple) -> tuple:
    return case, measure(data_dir, *case)
