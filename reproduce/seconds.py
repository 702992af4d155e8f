"""Seconds of each test, by which those are chosen that only `make test ALL=1` runs.

`python -m pytest -p reproduce.seconds` writes the processor's seconds of each test to `build/seconds/`, a file a process; then
`python -m reproduce.seconds` writes `tests/left_to_all.txt`: functions whose tests take over `LONG` s on average and are first to catch
none of the faults that were planted (`reproduce/faults/table.csv`). Where fewer were measured, the list keeps the others.
"""

import csv
import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "seconds"
LIST = ROOT / "tests" / "left_to_all.txt"
FAULTS = ROOT / "reproduce" / "faults" / "table.csv"

LONG = 0.5
"""Seconds of the processor that a test of plain `make test` takes at most on average over its cases, unless it is first to a fault."""


def processor_seconds() -> float:
    """Seconds that this process and its children have had of the processor."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Write the seconds of a test as soon as it has ended."""
    begin = processor_seconds()
    answer = yield
    FOLDER.mkdir(parents=True, exist_ok=True)
    line = json.dumps([item.nodeid.partition("@")[0], round(processor_seconds() - begin, 3)])
    with (FOLDER / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return answer


def function_of(name: str) -> str:
    """Name of a test without its case."""
    return name.partition("[")[0]


def measured(folder: Path = FOLDER) -> dict[str, float]:
    """Mean seconds of the tests of each function; empty without measurements."""
    seconds: dict[str, list[float]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, spent = json.loads(line)
            seconds.setdefault(function_of(name), []).append(spent)
    return {name: sum(spent) / len(spent) for name, spent in seconds.items()}


def first_to_a_fault() -> set[str]:
    """Functions of tests that are first to catch a planted fault."""
    with FAULTS.open(encoding="utf-8", newline="") as file:
        return {function_of(row["caught"]) for row in csv.DictReader(file) if row["caught"]}


def chosen(means: dict[str, float], before: set[str], needed: set[str]) -> list[str]:
    """Functions that are left to `ALL=1`.

    Examples
    --------
    >>> chosen({"a": 2.0, "b": 0.1, "c": 3.0}, before={"b", "d"}, needed={"c"})
    ['a', 'd']
    """
    long = {name for name, mean in means.items() if mean > LONG}
    return sorted((long | (before - means.keys())) - needed)


def main():
    """Write the list."""
    means = measured()
    before = set(LIST.read_text(encoding="utf-8").split()) if LIST.exists() else set()
    left = chosen(means, before, first_to_a_fault())
    LIST.write_text("".join(f"{name}\n" for name in left), encoding="utf-8")
    print(
        f"{len(left)} functions of tests are left to make test ALL=1; {sum(means.values()):.0f} s a case of each of {len(means)}."
    )


if __name__ == "__main__":
    main()
