"""Plant small faults over the whole package and see which tests catch them: `make faults SEED=3 COUNT=20`.

Faults are drawn by lines: each line of the package that can hold one is as likely as any other. Each is planted alone, in a private copy
of the tree. First the doctests of its file run and the tests nearest to it (those that import its module or name what it defines, and
those of its room), then all that `make test` runs, then what only `make test ALL=1` runs, until one fails. Faults in compiled code
are judged by the nearest tests without compiling (NUMBA_DISABLE_JIT=1). What was measured is kept: an interrupted command goes on.
`table.csv` beside this file lists the faults of one seed, with the first test that catches each, or why it changes no answer.
"""

import argparse
import ast
import csv
import json
import os
import queue
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
from mutations import Mutation, mutations_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, TESTS = ROOT / "gpuschedlab", ROOT / "tests"
TABLE = Path(__file__).with_name("table.csv")
COLUMNS = ("seed", "file", "line", "kind", "before", "after", "caught", "stage", "note")
LEFT_OUT = (".git", ".venv", "build", "runs", ".hypothesis", ".pytest_cache", "*.pyc")
NEAREST = 8
"""Files of tests that run first."""
CPU = {"near": 400, "test": 1500, "all": 3000}
"""Seconds of the processor after which tests that do not end are stopped."""
NOT_NEAR = ("browser", "faults", "published", "budgets")


def chosen(seed: int, count: int) -> list[Mutation]:
    """So many faults, each of another line, drawn over all lines of the package that can hold one."""
    rng, lines = np.random.default_rng(seed), {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for fault in mutations_of(path, PACKAGE):
            lines.setdefault((fault.path, fault.line), []).append(fault)
    places = [list(lines)[i] for i in rng.permutation(len(lines))[:count]]
    return [lines[place][rng.integers(len(lines[place]))] for place in places]


@cache
def texts() -> dict[Path, str]:
    """Text of every file of tests that may be near to something."""
    files = sorted(TESTS.rglob("test_*.py"))
    return {file: file.read_text() for file in files if file.relative_to(TESTS).parts[0] not in NOT_NEAR}


def nearest(path: str) -> list[Path]:
    """Files of tests by how near they are to a file: its module imported, names of it used, its room or its paper's."""
    file = PACKAGE / path
    module, tree = f"gpuschedlab.{path.removesuffix('.py').replace('/', '.')}", ast.parse(file.read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    words = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(n for n in names if len(n) > 4)) or '(?!)'})\b")
    parts = Path(path).parts
    room = TESTS.joinpath(*parts[: 2 if parts[0] == "papers" else 1])
    scores = {}
    for test, text in texts().items():
        score = 6 * (module.removesuffix(".__init__") in text) + len(set(words.findall(text)))
        scores[test] = score + 2 * (room in test.parents) + (room in test.parents and file.stem in test.stem)
    ranked = sorted((test for test in scores if scores[test] > 1), key=lambda test: (-scores[test], test))
    return ranked[:NEAREST]


def compiled(path: str) -> bool:
    """Whether a file has functions that are compiled."""
    return bool(re.search(r"^\s*@njit|^    def key\(now, job", (PACKAGE / path).read_text(), re.MULTILINE))


def located(fault: Mutation, text: str) -> Mutation:
    """The fault where its place is now, in a file that was edited since it was drawn.

    Raises
    ------
    ValueError
        The place is gone.
    """
    places = [found.start() for found in re.finditer(re.escape(fault.before), text)]
    if not places:
        raise ValueError(f"{fault.name}: {fault.path} has no such place any more.")
    begin = min(places, key=lambda place: abs(place - fault.begin))
    return fault._replace(begin=begin, end=begin + len(fault.before))


class Copy:
    """A private copy of the tree, in which one fault at a time is planted."""

    def __init__(self, folder: Path):
        self.folder = folder
        if not folder.exists():
            shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        self.sound = self.known()

    def known(self) -> set[Path]:
        """Folders of machine code."""
        return set((self.folder / "gpuschedlab/__pycache__").glob("compiled-*"))

    def run(self, stage: str, words: list[str], interpreted: bool) -> str | None:
        """First test that fails, None: all pass; "died": they ended in another way, or not in time."""
        env = os.environ | {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_DISABLE_JIT": str(int(interpreted)),
        }
        env |= {"GPUSCHEDLAB_ALL_TESTS": "1"} if stage == "all" else {}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
        command += ["--reruns=0", "--timeout=0", *words]  # a busy machine catches no fault
        limit = (CPU[stage], CPU[stage] + 5)
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
        )  # fmt: skip
        if done.returncode in (0, 5):
            return None
        failed = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return failed[1] if failed else "died"

    def judged(self, fault: Mutation, skipped: set[str]) -> tuple[str, str]:
        """Which test catches a fault, and at which stage; both empty where none does."""
        near = [f"gpuschedlab/{fault.path}", *(test.relative_to(ROOT).as_posix() for test in nearest(fault.path))]
        for stage, words in (("near", near), ("test", []), ("all", [])):
            interpreted = stage == "near" and compiled(fault.path)
            while caught := self.with_fault(fault, stage, [*words, *(f"--deselect={t}" for t in skipped)], interpreted):
                alone = words if caught == "died" else [caught]
                if self.run(stage, [*alone, *(f"--deselect={t}" for t in skipped)], interpreted) is None:
                    return caught, stage
                if caught == "died":
                    break
                skipped.add(caught)  # it fails without the fault as well: it says nothing
        return "", ""

    def with_fault(self, fault: Mutation, stage: str, words: list[str], interpreted: bool) -> str | None:
        """What `run` finds with the fault in its place, which is taken out again."""
        path = self.folder / "gpuschedlab" / fault.path
        sound, dated = path.read_text(), path.stat().st_mtime_ns
        path.write_text(located(fault, sound).applied(sound))
        try:
            return self.run(stage, words, interpreted)
        finally:
            path.write_text(sound)
            os.utime(path, ns=(dated, dated))  # machine code is kept by it
            for folder in self.known() - self.sound:
                shutil.rmtree(folder, ignore_errors=True)


def rows_of(seed: int, kept: dict) -> list[dict]:
    """Rows of the table: what was found of each fault, and the notes that stand in the table already."""
    with TABLE.open() if TABLE.exists() else open(os.devnull) as file:
        notes = {tuple(row[c] for c in COLUMNS[1:6]): row["note"] for row in csv.DictReader(file)}
    rows = []
    for drawn in kept["drawn"]:
        fault, found = Mutation(*drawn), kept["found"].get(Mutation(*drawn).name, ["?", ""])
        place = (fault.path, str(fault.line), fault.kind, fault.before, fault.after)
        rows.append(dict(zip(COLUMNS, (seed, *place, *found, notes.get(place, "")), strict=True)))
    return rows


def summary(rows: list[dict]) -> str:
    """How many faults that change an answer are caught, by folder."""
    judged = [row for row in rows if row["caught"] != "?" and not (row["note"] and not row["caught"])]
    rooms = {}
    for row in judged:
        parts = Path(row["file"]).parts
        room = "/".join(parts[: 2 if parts[0] == "papers" else 1]) if len(parts) > 1 else "."
        rooms.setdefault(room, []).append(row["stage"])
    lines = [
        f"{room:22} {sum(s in ('near', 'test') for s in of):3} {sum(map(bool, of)):3} of {len(of)}"
        for room, of in sorted(rooms.items())
    ]
    of = [row["stage"] for row in judged]
    total = f"{sum(s in ('near', 'test') for s in of)} of {len(of)} caught by `make test`, {sum(map(bool, of))} by ALL"
    return "\n".join([*lines, f"{total}; {len(rows) - len(judged)} change no answer or were not judged"])


def main() -> int:
    """Plant the faults of a seed that were not judged yet, and list what caught them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="only list the faults")
    parser.add_argument("--again", action="store_true", help="plant those again that nothing caught")
    parser.add_argument("--table", action="store_true", help=f"write what is known to {TABLE.name}")
    given = parser.parse_args()
    results = ROOT / f"build/faults-{given.seed}.json"
    results.parent.mkdir(exist_ok=True)
    kept = json.loads(results.read_text()) if results.exists() else {"drawn": [], "found": {}, "skipped": []}
    if len(kept["drawn"]) < given.count:
        kept["drawn"] = kept["drawn"] + chosen(given.seed, given.count)[len(kept["drawn"]) :]
    faults, skipped = [Mutation(*drawn) for drawn in kept["drawn"]], set(kept["skipped"])
    left = [f for f in faults if f.name not in kept["found"] or (given.again and not kept["found"][f.name][0])]
    if not given.list and not given.table:
        copies, lock = queue.Queue(), threading.Lock()
        for number in range(given.workers):
            copies.put(number)

        def judge(fault: Mutation):
            number, begin = copies.get(), time.monotonic()
            found = Copy(ROOT / f"build/faults-copy-{number}").judged(fault, skipped)
            copies.put(number)
            with lock:
                kept["found"][fault.name], kept["skipped"] = found, sorted(skipped)
                results.write_text(json.dumps(kept, indent=1))
                print(
                    f"{fault.name}\n    {found[0] or 'SURVIVES'} ({found[1]}, {time.monotonic() - begin:.0f} s)",
                    flush=True,
                )

        with ThreadPoolExecutor(given.workers) as pool:
            list(pool.map(judge, left))
    rows = rows_of(given.seed, kept)
    if given.table:
        with TABLE.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    if given.list:
        print(
            "\n".join(
                f"{row['file']}:{row['line']} {row['before']} -> {row['after']}: {row['caught'] or 'SURVIVES'}"
                for row in rows
            )
        )
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
