"""How densely each room of the package is written: a room may only get plainer. How many lines it has is free.

`python tests/house/test_density.py` prints the figures and lowers the limits in `density.csv` to what is there.
A new room is judged by the aims.
"""

import ast
import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from density import Density, counts_of, counts_of_file, measure, plainer, rooms, words_of_docstrings
from package_files import PACKAGE, ROOT, files_of

TABLE = Path(__file__).with_name("density.csv")
AIMS = Density(operations=2.0, unchained=2.0, packed=0.02, conditionals=50, generic=0.05, letters=0.15, wide=0)
"""Limits of a new room."""
ROOMS_BESIDE = ("tests", "reproduce")


def beside_the_package() -> list[Path]:
    """Modules of the tests and of the workshop."""
    return sorted(path for room in ROOMS_BESIDE for path in files_of(ROOT / room, ".py"))


MOST_PACKED = {"package": 0.03, "room": 0.05, "tests": 0.04}
"""Shares of packed assignments at most: of the whole package, of each room, and of the tests."""
SLACK = 1.02
WORDS = 90_000
"""Words of docstrings at least: lines are not made plain by saying less about them."""
READERS = ("traces", "traces/formats", "traces/intake", "traces/logs")
"""Rooms that read tables by chains of polars calls, each of which counts as one operation."""


def counted(paths: Iterable[Path]) -> list[Counter]:
    """Counts of some modules."""
    return [counts_of_file(path) for path in paths]


def measure_text(source: str) -> Density:
    """Figures of some code."""
    return measure([counts_of(ast.parse(source))])


def limits() -> dict[str, Density]:
    """Figures that rooms had when they were last lowered."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = {figure.name: figure.type for figure in fields(Density)}
    return {row.pop("room"): Density(**{name: kinds[name](row[name]) for name in kinds}) for row in rows}


def too_dense(room: str, density: Density, limit: Density) -> list[str]:
    """Figures of a room over its limit, in words."""
    skipped = "operations" if room in READERS else "unchained"
    return [
        f"{room}: {name} is {value:.3f}, and was {asdict(limit)[name]:.3f}. Write the new lines more plainly (CONTRIBUTING, "
        f'"A line says one thing"), or make as many others of this room plainer.'
        for name, value in asdict(density).items()
        if name != skipped and value > asdict(limit)[name] * SLACK
    ]


@pytest.mark.parametrize("room", sorted(rooms(PACKAGE)))
def test_a_room_only_gets_plainer(room):
    density = measure(counted(rooms(PACKAGE)[room]))
    assert not too_dense(room, density, limits().get(room, AIMS))
    assert density.packed <= MOST_PACKED["room"]


def test_assignments_are_not_packed():
    package = measure(counted(files_of(PACKAGE, ".py")))
    assert package.packed <= MOST_PACKED["package"]
    tests = measure(counted(beside_the_package()))
    assert tests.packed <= MOST_PACKED["tests"]


def test_docstrings_are_not_cut_short():
    if not (PACKAGE / "papers" / "sia").is_dir():
        pytest.skip("a tree without papers has fewer docstrings")
    assert words_of_docstrings(counted(files_of(PACKAGE, ".py"))) >= WORDS


def test_figures_do_not_depend_on_where_lines_break(tmp_path):
    sources = [path for paths in rooms(PACKAGE).values() for path in paths[:2]]
    copies = [tmp_path / f"{i}.py" for i in range(len(sources))]
    for source, copy in zip(sources, copies):
        copy.write_bytes(source.read_bytes())
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--isolated", "--line-length", "60", str(tmp_path)]
    subprocess.run(command, check=True)
    assert any(source.read_bytes() != copy.read_bytes() for source, copy in zip(sources, copies))
    assert measure(counted(sources)) == measure(counted(copies))
    assert words_of_docstrings(counted(sources)) == words_of_docstrings(counted(copies))


@pytest.mark.parametrize(
    ("packed", "source"),
    [
        (True, "a, b = x, y"),
        (True, "a, b = (f(i) for i in x)"),
        (True, "a, b = [f(i) for i in x]"),
        (True, "a, b = map(f, x)"),
        (True, "a, b = x if c else y"),
        (True, "a, (b, c) = x, f(y)"),
        (False, "a, b = f(x)"),
        (False, "a, b = b, a"),
        (False, "a[i], a[j] = a[j], a[i]"),
        (False, "first, *rest = x"),
        (False, "a = x, y"),
    ],
)
def test_what_is_packed(packed, source):
    assert measure_text(source).packed == packed


@pytest.mark.parametrize(
    ("conditional", "source"),
    [
        (True, "x = a if c else b"),
        (True, "x = c and a or b"),
        (True, "x = (a, b)[c]"),
        (True, "x = {True: a, False: b}[c]"),
        (True, "x = a * (n != 1)"),
        (True, "x = (not n) * 's'"),
        (False, "x = a or b"),
        (False, "x = (n > 1 and m > 1) or k > 1"),
        (False, "x = sizes[c]"),
        (False, "x = (a, b)[0]"),
        (False, "x = a * n"),
    ],
)
def test_what_is_a_conditional(conditional, source):
    assert measure_text(source).conditionals == 1000 * conditional


@pytest.mark.parametrize(
    ("wide", "source"),
    [
        (0, "def f(self, a, b, c, d, e, f, g): pass"),
        (1, "def f(a, b, c, d, e, f, g, h): pass"),
        (1, "def f(a, b, c, d, *, e, f, g, h): pass"),
        (1, "def f(a, b, c, d, e, f, *rest, **more): pass"),
        (0, "class C(NamedTuple):\n" + "".join(f"    f{i}: int\n" for i in range(15))),
        (1, "class C(NamedTuple):\n" + "".join(f"    f{i}: int\n" for i in range(16))),
    ],
)
def test_what_is_wide(wide, source):
    assert measure_text(source).wide == wide


def test_names_and_operations():
    density = measure_text("found_ = f(x[0])\n_left2 = frame.lazy().filter(a).collect()\nn = 1\njobs = n + 1")
    assert density.generic == 0.5
    assert density.letters == 0.25
    assert density.operations == (2 + 3 + 0 + 1) / 4
    assert density.unchained == (2 + 1 + 0 + 1) / 4


def test_a_denser_line_is_noticed():
    before = measure_text("jobs = n + 1\ntimes = m + 1")
    after = measure_text("jobs, times = n + 1, m + 1")
    (message,) = (words for words in too_dense("sim", after, before) if "packed" in words)
    assert message.startswith("sim: packed is 1.000, and was 0.000.")


def main() -> int:
    """Print the figures of each room, and lower the limits to them."""
    old = limits() if TABLE.exists() else {}
    now = {room: measure(counted(paths)) for room, paths in rooms(PACKAGE).items()}
    names = [figure.name for figure in fields(Density)]
    print(f"{'room':28}", *(f"{name:>12}" for name in names))
    package = {"package": measure(counted(files_of(PACKAGE, ".py")))}
    tests = {"tests": measure(counted(beside_the_package()))}
    for room, density in (now | package | tests).items():
        print(f"{room:28}", *(f"{value:12.3f}" for value in asdict(density).values()))
    print(f"words of docstrings: {words_of_docstrings(counted(PACKAGE.rglob('*.py'))):,}")
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["room", *names])
        for room, density in now.items():
            figures = asdict(plainer(old.get(room, density), density)).values()
            writer.writerow([room, *(value if isinstance(value, int) else f"{value:.4f}" for value in figures)])
    print(*(words for room in old.keys() & now.keys() for words in too_dense(room, now[room], old[room])), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
