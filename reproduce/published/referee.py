"""What a re-run of the public artifacts shows: each slip, its place, the switch here and its effect; `make published SLIP=NAME`."""

import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gpuschedlab._files import whole
from gpuschedlab.cli import obey
from gpuschedlab.cli.parser import Parser
from gpuschedlab.errors import LabError
from reproduce.published.inputs import FOLDERS
from reproduce.published.judging.sizes import interval_of_mean, mean_of
from reproduce.published.kept import measure_all

WORKSHOP = Path(__file__).resolve().parents[1]
FILE = WORKSHOP.parent / "docs" / "measured" / "referee.json"
"""What was measured of each."""


class Slip(NamedTuple):
    """One thing that an artifact does and its paper does not say, or does otherwise.

    Parameters
    ----------
    artifact, place : str
        Repository, and file with the function in it.
    what : str
        What it does.
    switch : str
        Where it can be turned on and off here.
    effect : str
        What the ratio is of, with the slip over without it.
    measure : callable
        Of the data and a case, both as JSON holds them: (with, without).
    cases : tuple of tuple
        Workloads.
    """

    artifact: str
    place: str
    what: str
    switch: str
    effect: str
    measure: Callable
    cases: tuple


@cache
def slips() -> dict[str, Slip]:
    """Slips of all papers by name: `SLIPS` of the `referee.py` beside a paper's tests."""
    found = {}
    for path in sorted(WORKSHOP.glob("papers/*/referee.py")):
        found |= importlib.import_module(f"reproduce.papers.{path.parent.name}.referee").SLIPS
    return found


def slip_of(name: str) -> Slip:
    """A slip by its name.

    Raises
    ------
    LabError
        There is none.
    """
    if name not in slips():
        raise LabError(f"published: found the slip {name!r}; expected one of {', '.join(slips())}.")
    return slips()[name]


def shown(name: str, data_dir) -> dict:
    """Effect of a slip, case by case, with its mean and 95 % interval over the cases, and CPU seconds."""
    slip = slip_of(name)
    begin = time.process_time()
    answers = measure_all(f"slip_{name}", slip.measure, data_dir, slip.cases, 1, "reproduce", FOLDERS)
    pairs = dict(zip(slip.cases, answers, strict=True))
    each = {", ".join(map(str, case)): a / b for case, (a, b) in pairs.items()}
    low, high = interval_of_mean(list(each.values()))
    return {
        "effect": mean_of(list(each.values())),
        "low": low,
        "high": high,
        "each": each,
        "seconds": time.process_time() - begin,
    }


def known(path: Path = FILE) -> dict[str, dict]:
    """What was measured of all slips."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def keep(found: dict[str, dict], path: Path = FILE) -> None:
    """Write what was measured, beside what is there of other slips, in the order of `slips`."""
    every = known(path) | found
    with whole(path) as part:
        part.write_text(
            json.dumps({name: every[name] for name in slips() if name in every}, indent=1) + "\n", encoding="utf-8"
        )


def _show(args) -> int:
    for name in slips() if args.slips == ["all"] else args.slips:
        slip = slip_of(name)
        found = shown(name, args.data and Path(args.data))
        print(f"{name}: {slip.artifact}, {slip.place}\n  {slip.what}\n  switch: {slip.switch}")
        for case, ratio in found["each"].items():
            print(f"  {ratio:8.4f}  {case}")
        print(f"  {effect_text(found)} times: {slip.effect} ({found['seconds']:.0f} CPU s)\n", flush=True)
        if args.keep:
            keep({name: found})
    return 0


def effect_text(found: dict) -> str:
    """An effect with its interval.

    Examples
    --------
    >>> effect_text({"effect": 1.4, "low": 1.31, "high": 1.5})
    '1.400 (1.310 to 1.500)'
    """
    interval = f" ({found['low']:.3f} to {found['high']:.3f})" if found["low"] is not None else ""
    return f"{found['effect']:.3f}{interval}"


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    import os

    from reproduce.published import DATA

    parser = Parser(prog="published", description="Show what a slip of an artifact is worth, in a minute.")
    parser.set_defaults(command=_show)
    parser.add_argument("slips", nargs="+", metavar="SLIP", help=f"some of {', '.join(slips())}; or all")
    parser.add_argument("--data", default=os.environ.get(DATA), metavar="FOLDER", help="reference data")
    parser.add_argument("--keep", action="store_true", help="put what is found on the page")
    return obey(parser, argv)


if __name__ == "__main__":
    sys.exit(main())
