"""How many lines each room of the package may have: more in one takes as many from another, and the whole never grows.

`python tests/house/test_size.py` lowers the numbers to what is there, and writes them into CONTRIBUTING.md.
Nothing raises a number but a hand, which lowers another one: `TOTAL` stands.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gpuschedlab"
PAGE = ROOT / "CONTRIBUTING.md"

ROOMS: dict[str, int] = {
    "autosched": 7_769,
    "check": 1_511,
    "cli": 1_404,
    "cluster": 796,
    "estimators": 887,
    "files beside the rooms": 1_542,
    "gym": 428,
    "metrics": 1_696,
    "optim": 2_219,
    "papers": 9,
    "papers/clusters": 4_391,
    "papers/copter": 1_852,
    "papers/deadlines": 2_117,
    "papers/gavel": 447,
    "papers/optimus": 144,
    "papers/pollux": 425,
    "papers/pop": 163,
    "papers/prompttuner": 1_878,
    "papers/shockwave": 229,
    "papers/sia": 1_126,
    "papers/ymir": 1_849,
    "plots": 2_469,
    "policies": 714,
    "report": 502,
    "scenarios": 601,
    "sim": 8_078,
    "speeds": 1_487,
    "suite": 444,
    "sweep": 1_158,
    "traces": 6_566,
    "widgets": 2_099,
}
"""Lines of Python at most, by folder; each paper is a room."""

TOTAL = 57_000
"""Sum of these numbers at most."""

GOALS = {"laboratory": 34_640, "autosched": 8_000, "papers": 14_874, "all": 57_000}
"""Lines to which limits are lowered, no further: of all but `papers/` and `autosched/`, of these two, and of what is installed."""

LIMITS = {"laboratory": 34_640, "autosched": 8_000, "papers": 14_874, "all": 57_000}
"""Lines of Python of these parts at most."""

PAPER = 2_700
LARGE = {"papers/clusters": 4_397}
"""Lines at most of a paper, and of those that are several: `clusters` has a model of a site, inferred from its log, for which
the laboratory gave up as many lines."""

BESIDE = "files beside the rooms"


def room_of(path: Path) -> str:
    """Folder that a file of the package counts for: that of its paper, or the top one."""
    parts = path.relative_to(PACKAGE).parts
    return "/".join(parts[: 2 if parts[0] == "papers" and len(parts) > 2 else 1]) if len(parts) > 1 else BESIDE


def sizes() -> dict[str, int]:
    """Lines of Python in each room."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found[room_of(path)] = found.get(room_of(path), 0) + path.read_bytes().count(b"\n")
    return found


def sums(rooms: dict[str, int]) -> dict[str, int]:
    """Lines of the parts that have limits."""
    papers = sum(lines for room, lines in rooms.items() if room.partition("/")[0] == "papers")
    wing = papers + rooms.get("autosched", 0)
    whole = sum(rooms.values())
    return {"laboratory": whole - wing, "autosched": wing - papers, "papers": papers, "all": whole}


def too_large(found: dict[str, int], rooms: dict[str, int]) -> list[str]:
    """What is over its number, in words, with the rooms that have lines to give."""
    spare = {room: most - found.get(room, 0) for room, most in rooms.items()}
    givers = ", ".join(room for room in sorted(spare, key=lambda room: -spare[room])[:3] if spare[room] > 0)
    way = f"that of another room, such as {givers}" if givers else "that of a room in which you take as many lines away"
    return [
        f"{room}: {lines:,} lines of {rooms.get(room, 0):,}. Take {lines - rooms.get(room, 0)} away there; or write "
        f"{lines:,} for it in ROOMS, and lower {way}, by as much."
        for room, lines in found.items()
        if lines > rooms.get(room, 0)
    ]


def table(rooms: dict[str, int]) -> str:
    """Rooms and their numbers as CONTRIBUTING.md shows them."""
    names = {room: f"`{room}/`" if room != BESIDE else room for room in rooms}
    rows = [f"| {names[room]} | {rooms[room]:,} |" for room in rooms]
    words = {"laboratory": "laboratory: all but `papers/` and `autosched/`", "all": "all that is installed"}
    rows += [f"| **{words[part]}** | {LIMITS[part]:,} |" for part in words]
    return "\n".join(["| room | lines at most |", "| --- | --- |", *rows])


def test_no_room_is_larger_than_its_number():
    assert not too_large(sizes(), ROOMS), "\n".join(too_large(sizes(), ROOMS))


def test_a_number_is_raised_by_what_another_is_lowered():
    assert sum(ROOMS.values()) <= TOTAL, "lower the number of another room by as much"
    from wing import whole

    here = {room for room in ROOMS if (PACKAGE / room).is_dir() or room == BESIDE} if not whole() else {*ROOMS}
    assert here == set(sizes()), "a room is new or gone: give it a number, or take it out"


def test_the_whole_keeps_its_limits():
    found = sums(sizes())
    assert {part: lines for part, lines in found.items() if lines > LIMITS[part]} == {}
    papers = {room: lines for room, lines in sizes().items() if room.startswith("papers/")}
    assert {room: lines for room, lines in papers.items() if lines > LARGE.get(room, PAPER)} == {}


def test_a_line_more_is_noticed():
    rooms = sizes()
    more = rooms | {"sim": rooms["sim"] + 1}
    (found,) = too_large(more, rooms)
    assert re.match(
        rf"sim: {more['sim']:,} lines of {rooms['sim']:,}. Take 1 away there; or write [\d,]+ for it", found
    )


def test_the_page_for_contributors_has_the_table():
    assert table(ROOMS) in PAGE.read_text(encoding="utf-8"), "run python tests/house/test_size.py"


@pytest.mark.parametrize(("path", "room"), [("sim/engine/due.py", "sim"), ("papers/sia/policy.py", "papers/sia")])
def test_rooms(path, room):
    assert room_of(PACKAGE / path) == room
    assert room_of(PACKAGE / "papers" / "__init__.py") == "papers"
    assert room_of(PACKAGE / "knobs.py") == BESIDE


def lowered() -> dict[str, int]:
    """The numbers, those of smaller rooms lowered, without rooms that are gone."""
    return {room: min(ROOMS.get(room, lines), lines) for room, lines in sorted(sizes().items())}


def main() -> int:
    """Write what `lowered` says here and into the page."""
    rooms = lowered()
    total = min(TOTAL or sum(rooms.values()), sum(rooms.values()))
    text = "".join(f'    "{room}": {lines:_},\n' for room, lines in rooms.items())
    here = Path(__file__).read_text(encoding="utf-8")
    here = re.sub(
        r"^ROOMS: dict\[str, int\] = \{.*?\}",
        lambda _: f"ROOMS: dict[str, int] = {{\n{text}}}",
        here,
        count=1,
        flags=re.M | re.S,
    )
    for part, lines in sums(sizes()).items():
        LIMITS[part] = max(GOALS[part], min(LIMITS[part], lines))
    limits = ", ".join(f'"{part}": {most:_}' for part, most in LIMITS.items())
    here = re.sub(r"^LIMITS = \{.*?\}", f"LIMITS = {{{limits}}}", here, count=1, flags=re.M)
    here = re.sub(r"^TOTAL = [\d_]+", f"TOTAL = {total:_}", here, count=1, flags=re.M)
    Path(__file__).write_text(here, encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub(
        r"^\| room \| lines at most \|\n(?:\|.*\n)+", lambda _: table(rooms) + "\n", page, count=1, flags=re.M
    )
    PAGE.write_text(page, encoding="utf-8")
    print(table(rooms), *too_large(sizes(), rooms), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
