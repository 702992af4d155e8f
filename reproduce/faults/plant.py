"""Plant small faults over the whole package and see which tests catch them: `make faults SEED=3 COUNT=20`.

Faults are drawn by lines: each line of the package that can hold one is as likely as any other. They are judged in a private copy of
the tree, in three stages:

near
    Each fault alone, by the doctests of its file and the tests nearest to it (those that name what stands about its place). Faults
    in compiled files are judged without compiling (NUMBA_DISABLE_JIT=1).
test
    Those that are left, planted all together, by all that `make test` runs. The tests that fail are run without a fault and say
    which functions they call; then each fault is planted alone and judged by those that call its function; then again what is left.
all
    The same with what only `make test ALL=1` runs (`OPTIONS=--all`).

What was measured is kept in `build/`: an interrupted command goes on. `--verify` plants each fault that was caught again, alone, and
forgets what its test does not fail on. `table.csv` beside this file lists the faults of some seeds, with the first test that catches
each, or why it changes no answer, or the last stage that it passes so far; `--known` sums it up. `python reproduce/faults/plant.py --first
tests/optim` lists the faults that tests of that name (or part of it) are first to catch: tests that are first to none may be cut, or
left to `make test ALL=1`.

Tests were written for what was left of seed 2027: that all of its 184 faults that change an answer are caught says what the tests
were brought to, not what they would catch of other faults. Nothing was chosen on seed 4051 when it was drawn: of 56 of its 60 faults
that change an answer the tests of that time catch 40 (71 %, 95 % interval 59 to 82 %). They were judged by the nearest tests, and some
of those that these missed by more tests of their folder, but none by the whole suite, and no test that only ALL=1 runs: it is a lower
bound. Tests were then written for the other 16, so that its rows, too, say what the tests were brought to. Of 20 faults of seed 77,
drawn after those tests, the nearest tests alone catch 13 (65 %, 43 to 82 %); the other stages were not run. 20 catches of
seed 4051 by the nearest tests were planted again: two were none, since the time was up while a sound test ran. Such tests now run alone
before they count; catches of seed 2027 were not planted again.

Then golden answers were written (`tests/golden_answers.py`), room by room, when the places of seed 77 were known: of the 6 that the
nearest tests had missed and that are still there they catch 5. Of 40 faults of seed 9091, drawn after them, 34 change an answer;
the nearest tests catch 28 of these (82 %, 66 to 92 %), all of `make test` 29 (85 %, 70 to 94 %). What only ALL=1 runs was not
tried. One worker took 20 minutes for the nearest and 39 for the others, on a machine that ten processes shared. Tests were then
written for the other 5, one of which is gone since.

Of 20 faults of seed 60613, drawn after all these tests, the nearest tests catch 9. Two of the others change no answer, and six pass all
of `make test`; three are in compiled code and were tried by the nearest tests alone. So of both fresh seeds 38 of 49 that were judged
to the end are caught (78 %, 64 to 87 %): fewer than seed 9091 alone would say. Twenty take 16 minutes on two idle cores.

Then more golden answers were written, of explorers, of policies' parts on random instants, of laws beside changed runs. Of 40 faults of
seed 880143, drawn after them, 28 of 33 that change an answer were caught (85 %, 69 to 93 %): 27 by the nearest tests, one by the list
of defaults; one changes no answer, and six, five of them in compiled code, were given up without a verdict. Here the rest was judged
by the nearest tests and by some more of those that run the fault's line, not by the whole suite, by another program that plants a fault
as its file is loaded; that each test which failed is sound was seen for some of them only. If the six count as missed, it is 28 of 39
(72 %). With both seeds before, 66 of 81 (81 %): another of seed 60613 changes no answer.
Tests were then written for two of the five.
"""

import argparse
import csv
import json
import os
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from copies import Copy, apart, compiled, there  # noqa: E402
from mutations import Mutation, mutations_of  # noqa: E402
from near import PACKAGE, function_at, nearest  # noqa: E402

TABLE = Path(__file__).with_name("table.csv")
COLUMNS = ("seed", "file", "line", "kind", "before", "after", "caught", "stage", "note")
PLACE = COLUMNS[1:6]

PARTS = [f"tests/{f.name}" for f in sorted((ROOT / "tests").iterdir()) if list(f.glob("**/test_*.py"))]
PARTS += ["gpuschedlab", "notebooks", "reproduce/tests"]
"""Folders of tests, one after the other."""


def chosen(seed: int, count: int) -> list[Mutation]:
    """So many faults, each of another line, drawn over all lines of the package that can hold one."""
    rng = np.random.default_rng(seed)
    lines = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for fault in mutations_of(path, PACKAGE):
            lines.setdefault((fault.path, fault.line), []).append(fault)
    places = [list(lines)[i] for i in rng.permutation(len(lines))[:count]]
    return [lines[place][rng.integers(len(lines[place]))] for place in places]


class Study:
    """Faults of a seed, and what was found of them."""

    def __init__(self, seed: int, count: int, workers: int):
        self.file = ROOT / f"build/faults-{seed}.json"
        self.workers = workers
        self.lock = threading.Lock()
        self.file.parent.mkdir(exist_ok=True)
        empty = {"drawn": [], "found": {}, "past": {}, "failing": {}, "skipped": [], "seconds": {}}
        self.kept = json.loads(self.file.read_text()) if self.file.exists() else empty
        drawn = self.kept["drawn"]
        if len(drawn) < count:
            drawn += chosen(seed, count)[len(drawn) :]
        self.faults = [Mutation(*fault) for fault in drawn[:count]]
        self.copies = queue.Queue()

    def save(self):
        """Keep what is known."""
        self.file.write_text(json.dumps(self.kept, indent=1))

    def left(self, stage: str) -> list[Mutation]:
        """Faults that may change an answer, are neither caught nor known to pass a stage, and whose place is still there."""
        found = self.kept["found"]
        past = self.kept["past"]
        same = unchanging()
        left = [f for f in self.faults if f.name not in found and stage not in past.get(f.name, ())]
        return [fault for fault in left if there(fault) and place_of(fault) not in same]

    def learn(self, passed: dict[str, float], mode: str):
        """Tests that pass are sound; how long a function of tests takes."""
        known = self.kept["seconds"].setdefault(mode, {})
        sums = {}
        for test, seconds in passed.items():
            sums[test.partition("[")[0]] = sums.get(test.partition("[")[0], 0) + seconds
        known |= sums

    def judge_near(self, fault: Mutation):
        """Judge a fault alone, by the tests nearest to it."""
        copy = self.copies.get()
        begin = time.monotonic()
        interpreted = compiled(fault.path)
        mode = "interpreted" if interpreted else "compiled"
        seconds = self.kept["seconds"].get(mode, {})
        has_examples = ">>>" in (PACKAGE / fault.path).read_text()
        words = [f"gpuschedlab/{fault.path}"] * has_examples + nearest(there(fault), seconds)
        skipped = [test for test in self.kept["skipped"] if test.startswith(mode)]
        caught = ""
        skip = [test.partition(" ")[2] for test in skipped]
        while words and not caught:
            found = copy.run([fault], words, interpreted=interpreted, first=True, skip=skip)
            test = found.failed[0] if found.failed else found.running
            with self.lock:
                self.learn(found.passed, mode)
            if not test:
                break
            trusted = test.partition("[")[0] in seconds and test in found.failed
            alone = None if trusted or "::" not in test else copy.run([], [test], interpreted=interpreted, seconds=12)
            uncollected = test in found.failed and "::" not in test
            sound = alone and test in alone.passed
            if sound and test not in found.failed and test in copy.run([fault], [test], interpreted=interpreted).passed:
                skip += [*found.passed, test]  # the tests before it took all the time
            elif trusted or uncollected or sound:
                caught = test
            elif "::" in test:
                with self.lock:  # it fails, or takes too long, without the fault as well: it says nothing
                    self.kept["skipped"].append(f"{mode} {test}")
                    seconds = self.kept["seconds"].setdefault(mode, {})
                    seconds[test.partition("[")[0]] = 60.0
                skip.append(test)
                if test == found.running:
                    break
            else:
                print(f"{fault.name}: the tests did not run: {test}", flush=True)
                break
        self.copies.put(copy)
        with self.lock:
            self.conclude(fault, caught, "near")
            self.save()
        print(f"{fault.name}\n    {caught or 'not caught'} ({time.monotonic() - begin:.0f} s)", flush=True)

    def conclude(self, fault: Mutation, caught: str, stage: str):
        """Note what was found of a fault."""
        if caught:
            self.kept["found"][fault.name] = [caught, stage]
        else:
            self.kept["past"].setdefault(fault.name, []).append(stage)

    def near(self):
        """The first stage."""
        for number in range(self.workers):
            self.copies.put(Copy(ROOT / f"build/faults-copy-{number}"))
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(self.judge_near, self.left("near")))

    def again(self):
        """Plant each fault that was caught again, alone, and run the test that caught it: what passes is forgotten."""
        copy = Copy(ROOT / "build/faults-copy-0")
        for fault in self.faults:
            test, stage = self.kept["found"].get(fault.name, ("", ""))
            if test and there(fault):
                found = copy.run([fault], [test], stage, interpreted=compiled(fault.path), seconds=120)
                right = test in found.failed or found.running
                if not right:
                    del self.kept["found"][fault.name]
                    self.kept["past"].pop(fault.name, None)
                    self.save()
                print(f"{fault.name}\n    {test}{'' if right else ': PASSES'}", flush=True)

    def together(self, stage: str):
        """A stage of all that is left: one run of the tests, then those that failed say what they caught."""
        # Kernels apart: what is wrong in them may fail all tests, and hide the rest.
        copy = Copy(ROOT / "build/faults-copy-0")
        for of_kernels in (False, True):
            while group := apart([fault for fault in self.left(stage) if compiled(fault.path) == of_kernels]):
                self.assign(copy, group, self.failing(copy, group, stage), stage)

    def failing(self, copy: Copy, group: list[Mutation], stage: str) -> list[str]:
        """All tests of a stage that fail with a group of faults, folder by folder, those of the faults' rooms first."""
        names = [fault.name for fault in group]
        known = self.kept["failing"]
        if known.get(stage, {}).get("group") != names:
            known[stage] = {"group": names, "parts": {}}
        parts = known[stage]["parts"]
        ran = self.kept.setdefault("ran", {})
        own = {f"tests/{Path(fault.path).parts[0]}" for fault in group}
        for part in sorted((part for part in PARTS if part not in parts), key=lambda part: part not in own):
            begin = time.monotonic()
            skip = ran.get(part, []) if stage == "all" else []
            found = copy.run(group, [part], stage, workers=self.workers, skip=skip)
            self.learn(found.passed, "compiled")
            parts[part] = found.failed
            if stage == "test":
                ran[part] = sorted({*found.passed, *found.failed})
            self.save()
            took = (
                f"{len(found.failed)} fail, {len(found.passed)} pass ({time.monotonic() - begin:.0f} s) {found.running}"
            )
            print(f"{len(group)} faults together, {part}: {took}", flush=True)
        return [test for part in PARTS for test in parts[part]]

    def assign(self, copy: Copy, group: list[Mutation], tests: list[str], stage: str):
        """Which fault of a group each failing test catches, and which faults none catches."""
        interpreted = compiled(group[0].path)
        known = self.kept["seconds"].get("interpreted" if interpreted else "compiled", {})
        tests = sorted(few(tests), key=lambda test: known.get(test.partition("[")[0], 1.0))
        at = {f: (str(copy.package / f.path), function_at(there(f))) for f in group}
        sound = (
            copy.run([], tests, stage, interpreted=interpreted, places=list(set(at.values())), seconds=900)
            if tests
            else None
        )
        for fault in group if tests else ():
            outside = at[fault][1] is None
            called = {t for t, calls in sound.calls.items() if outside or list(at[fault]) in calls}
            files = {file_of(test) for test in called}
            tried = [test for test, seconds in sound.passed.items() if file_of(test) in files and seconds < 60]
            tried.sort(key=lambda test: (test not in called, sound.passed[test]))
            caught = self.first(copy, fault, tried, stage, interpreted)
            if caught:
                self.conclude(fault, caught, stage)
                self.save()
            print(f"{fault.name}\n    {caught or 'not caught'} ({stage}; {len(tried)} tests)", flush=True)
        rest = [fault for fault in group if fault.name not in self.kept["found"]]
        if interpreted and rest and tests:
            sound = copy.run([], tests, stage, seconds=900)
        self.halves(copy, rest, list(sound.passed) if tests else [], stage)
        for fault in rest:
            if fault.name not in self.kept["found"]:
                self.conclude(fault, "", stage)
        self.save()

    def first(self, copy: Copy, fault: Mutation, tests: list[str], stage: str, interpreted: bool) -> str:
        """First of some sound tests that fails with a fault."""
        if not tests:
            return ""
        found = copy.run([fault], tests, stage, interpreted=interpreted, first=True, seconds=240)
        return (found.failed or [found.running])[0]

    def halves(self, copy: Copy, group: list[Mutation], tests: list[str], stage: str):
        """Look for what the rest of a group is caught by in halves; machine code is made anew for each."""
        if not group or not tests:
            return
        found = copy.run(group, tests, stage)
        failed = found.failed or [found.running] * bool(found.running)
        print(f"{len(group)} faults together, {len(tests)} tests: {len(failed)} fail", flush=True)
        if failed and len(group) == 1:
            self.conclude(group[0], failed[0], stage)
            self.save()
        elif failed:
            middle = len(group) // 2
            self.halves(copy, group[:middle], failed, stage)
            self.halves(copy, group[middle:], failed, stage)


def file_of(test: str) -> str:
    """File of a test."""
    return test.partition("::")[0]


def few(tests: list[str], most: int = 4) -> list[str]:
    """Of tests that are one function with other parameters the first few."""
    found = {}
    for test in tests:
        if "::" in test:
            found.setdefault(test.partition("[")[0], []).append(test)
    return [test for same in found.values() for test in same[:most]]


def rows_of(seed: int, study: Study) -> list[dict]:
    """Rows of the table: what was found of each fault, and the notes that stand in the table already."""
    notes = {tuple(row[c] for c in PLACE): row["note"] for row in table()}
    rows = []
    for fault in study.faults:
        passed = study.kept["past"].get(fault.name)
        found = study.kept["found"].get(fault.name)
        found = found or (["", f"passes {passed[-1]}"] if passed and there(fault) else ["?", ""])
        place = place_of(fault)
        rows.append(dict(zip(COLUMNS, (seed, *place, *found, notes.get(place, "")), strict=True)))
    return rows


def place_of(fault: Mutation) -> tuple:
    """What names a fault in the table."""
    return fault.path, str(fault.line), fault.kind, fault.before, fault.after


def unchanging() -> set[tuple]:
    """Places of faults of which a note in the table says why they change no answer."""
    return {tuple(row[c] for c in PLACE) for row in table() if row["note"] and not row["caught"]}


def table() -> list[dict]:
    """Rows of the table as it is."""
    if not TABLE.exists():
        return []
    with TABLE.open() as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict]) -> str:
    """How many faults that change an answer are caught, by folder."""
    judged = [row for row in rows if row["caught"] != "?" and not (row["note"] and not row["caught"])]
    rooms = {}
    for row in judged:
        parts = Path(row["file"]).parts
        room = "/".join(parts[: 2 if parts[0] == "papers" else 1]) if len(parts) > 1 else "."
        rooms.setdefault(room, []).append(row["stage"] if row["caught"] else "")
    lines = [
        f"{room:22} {sum(s in ('near', 'test') for s in of):3} {sum(map(bool, of)):3} of {len(of)}"
        for room, of in sorted(rooms.items())
    ]
    of = [row["stage"] if row["caught"] else "" for row in judged]
    quick = sum(s in ("near", "test") for s in of)
    every = sum(map(bool, of))
    total = f"{share(quick, len(of))} are caught by `make test`, {share(every, len(of))} by ALL"
    same = sum(bool(row["note"] and not row["caught"]) for row in rows)
    rest = f"{same} change no answer, {len(rows) - len(judged) - same} were not judged"
    return "\n".join([*lines, f"{len(rows)} faults: {total}; {rest}"])


def share(some: int, of: int) -> str:
    """A share, with Wilson's interval."""
    low, high = binomtest(some, of).proportion_ci(method="wilson") if of else (0.0, 1.0)
    return f"{some} of {of} ({some / max(of, 1):.1%}, 95 % interval {low:.0%} to {high:.0%})"


def listed(rows: list[dict]) -> str:
    """A line a fault."""
    words = (
        (f"{row['file']}:{row['line']} {row['before']} -> {row['after']}", row["caught"] or row["note"]) for row in rows
    )
    return "\n".join(f"{place}: {what or 'SURVIVES'}" for place, what in words)


def main() -> int:
    """Plant the faults of a seed that were not judged yet, and list what caught them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--near", action="store_true", help="only the first stage")
    parser.add_argument("--all", action="store_true", help="the tests that only ALL=1 runs as well")
    parser.add_argument("--list", action="store_true", help="only list the faults")
    parser.add_argument("--again", action="store_true", help="plant those again that nothing caught")
    parser.add_argument("--verify", action="store_true", help="plant those again that a test caught, which must fail")
    parser.add_argument("--table", action="store_true", help=f"write what is known to {TABLE.name}")
    parser.add_argument("--first", help="faults of the table that tests whose names have this are first to catch")
    parser.add_argument("--known", action="store_true", help=f"only sum up {TABLE.name}, seed by seed")
    given = parser.parse_args()
    if given.known:
        for seed, rows in groupby(table(), key=itemgetter("seed")):
            print(f"seed {seed}", summary(list(rows)), sep="\n", end="\n\n")
        return 0
    if given.first:
        print(listed([row for row in table() if given.first in row["caught"]]) or "none")
        return 0
    study = Study(given.seed, given.count, given.workers)
    if given.again:
        study.kept |= {"past": {}, "failing": {}}
    if given.verify:
        study.again()
    elif not given.list and not given.table:
        study.near()
        for stage in [] if given.near else ["test", "all"] if given.all else ["test"]:
            study.together(stage)
    rows = rows_of(given.seed, study)
    if given.table:
        others = [row for row in table() if row["seed"] != str(given.seed)]
        with TABLE.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted([*others, *rows], key=lambda row: int(row["seed"])))
    if given.list:
        print(listed(rows))
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
