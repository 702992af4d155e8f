"""Tables of many cases, which take minutes to hours, keep what they have measured in runs/, and go on from there.

A table is a module with `run(data_dir, **cases) -> dict`, whose `ok` says whether all is within bounds. `data_dir` is the
folder of the reference data, which some do not use; the other parameters choose cases, each as `CASES` says: tuples of
`traces`, `loads`, `policies` and `seeds`, and numbers. `minutes` is the time after which no further case is begun.
"""

import importlib
import inspect
import os
from pathlib import Path

from present import present

from gpuschedlab.cli.parser import Parser, add_json, positive
from gpuschedlab.cli.text import as_json, cell, grid
from gpuschedlab.errors import LabError
from reproduce.published import DATA

TABLES = {
    "traces": "reproduce.published.generated_traces",
    "standing": "reproduce.published.standing",
    "weeks": "reproduce.published.weeks",
}
TABLES |= {"browser": "browser.costs"}
TABLES |= present(
    {
        "clusters": {
            "explains": "reproduce.papers.clusters.explains",
            "hidden": "reproduce.papers.clusters.hidden",
            "verdicts": "reproduce.papers.clusters.configured_sites",
            "when": "reproduce.papers.clusters.asked_starts",
        },
        "copter": {
            "rounds": "reproduce.papers.copter.rounds",
            "trace": "reproduce.papers.copter.trace",
            "problems": "reproduce.papers.copter.methods",
            "arena": "reproduce.papers.copter.arena",
        },
        "deadlines": {"unisched-program": "reproduce.papers.deadlines.program"},
        "prompttuner": {
            "prompts": "reproduce.papers.prompttuner.bank",
            "prompt-traces": "reproduce.papers.prompttuner.calibration",
            "prompttuner": "reproduce.papers.prompttuner.runs",
        },
        "shockwave": {"shockwave": "reproduce.papers.shockwave.artifact_table"},
        "ymir": {"titan": "reproduce.papers.ymir.artifact_runs", "zoo": "reproduce.papers.ymir.zoo"},
        "autosched": {
            "motivation": "reproduce.autosched.motivation",
            "generation": "reproduce.autosched.generation",
            "causal": "reproduce.autosched.causal",
            "ablation": "reproduce.autosched.ablation",
            "logbook": "reproduce.autosched.logbook",
            "causes": "reproduce.autosched.causes",
            "lab": "reproduce.autosched.lab.bench",
            "race": "reproduce.autosched.live.bench_race",
            "sizes": "reproduce.autosched.live.bench_sizes",
            "phases": "reproduce.autosched.live.bench_phases",
            "cause": "reproduce.autosched.cause.bench",
            "lacks": "reproduce.autosched.lacks.bench",
            "worlds": "reproduce.autosched.worlds",
            "budget": "reproduce.autosched.budget",
            "regimes": "reproduce.autosched.regimes",
            "switches": "reproduce.autosched.switches",
            "overhead": "reproduce.autosched.overhead",
            "autosched": "reproduce.autosched.loop",
        },
    }
)
"""Module of each table."""


def load_of(text: str) -> float | None:
    """Read a load: a number above 0, or `own` (None).

    Examples
    --------
    >>> load_of("own"), load_of("1.1")
    (None, 1.1)
    """
    return None if text == "own" else positive(text)


TUPLES = ("traces", "loads", "policies", "seeds", "knobs")
CASES = {
    "traces": (str, "TRACE", "only these"),
    "policies": (str, "POLICY", "only these"),
    "seeds": (int, "SEED", "instead of its own"),
    "loads": (load_of, "X", "loads that traces are stretched to, `own` for as they are"),
    "knobs": (int, "N", "only so many knobs"),
    "days": (positive, "D", "only the first days of each trace"),
    "workers": (int, "N", "processes, -1: one a core; seconds are then upper bounds"),
    "repeat": (int, "N", "openings of each explorer"),
    "forms": (bool, None, "forms of algorithm 3 in single searches, instead of loops"),
    "quick": (bool, None, "only the smaller sizes"),
    "export": (str, "FOLDER", "write the problems, their optima and checksums as well"),
    "csv": (str, "FILE", "write the rows as well"),
}
"""Options that choose cases: type, word and help."""

EXPECTED = {
    "seeds": ("whole numbers from 0", lambda seed: seed >= 0),
    "loads": ("numbers above 0, or own", lambda load: load is None or load > 0),
    "days": ("a number above 0", lambda days: days > 0),
    "workers": ("a whole number from 1, or -1", lambda workers: workers == -1 or workers >= 1),
    "repeat": ("a whole number from 1", lambda repeat: repeat >= 1),
    "forms": ("nothing", lambda forms: True),
    "quick": ("nothing", lambda quick: True),
    "export": ("a folder", bool),
    "csv": ("a file", bool),
}
"""What is chosen that no default names: in words, and whether a value is one."""


def make_parser(name: str) -> Parser:
    """Parser of the options of a table."""
    parser = Parser(prog=f"bench {name}", description=inspect.getdoc(importlib.import_module(TABLES[name])))
    parser.set_defaults(command=measure, name=name)
    data = os.environ.get(DATA)
    parser.add_argument("--data", default=data, metavar="FOLDER", help=f"reference data (default ${DATA})")
    for option, (kind, word, help) in CASES.items():
        many = "+" if option in TUPLES else None
        given = (
            {"action": "store_true", "default": None}
            if kind is bool
            else {"nargs": many, "type": kind, "metavar": word}
        )
        parser.add_argument(f"--{option}", help=help, **given)
    add_json(parser)
    return parser


def measure(args) -> int:
    """Measure; 1 if a budget is missed."""
    given = {key: value for key in CASES if (value := getattr(args, key)) is not None}
    chosen = {key: tuple(value) if key in TUPLES else value for key, value in given.items()}
    found = run(args.name, args.data, **chosen)
    print(as_json(found) if args.json else _text(found))
    return 0 if found["ok"] else 1


def run(name: str, data_dir: str | Path | None = None, **chosen) -> dict:
    """Measure one table.

    Parameters
    ----------
    name : str
        One of `TABLES`.
    data_dir : str or Path, optional
        Folder of the reference data.
    **chosen
        Of `CASES`, for the tables that take them.

    Raises
    ------
    LabError
        It lacks the reference data, or has no such cases.
    """
    call = importlib.import_module(TABLES[name]).run
    takes = inspect.signature(call).parameters
    for key, values in chosen.items():
        found = values if isinstance(values, tuple) else (values,)
        if key not in takes:
            raise LabError(f"bench {name}: found {key}={_words(found)}; expected none, for it takes no {key}.")
        default = takes[key].default
        expected, holds = EXPECTED.get(key) or (f"some of {', '.join(map(str, default))}", default.__contains__)
        if wrong := [value for value in found if not holds(value)]:
            raise LabError(f"bench {name}: found {key}={_words(wrong)}; expected {expected}.")
    return {"bench": name} | call(data_dir, **chosen)


def _words(values) -> str:
    return " ".join("own" if v is None else str(v) for v in values)


def _text(found: dict) -> str:
    """Answer of a table as text: its lists of rows, then its other values."""
    blocks = []
    rest = {}
    for key, value in found.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            blocks.append(_grid(value))
        elif isinstance(value, dict):
            blocks.append(f"{key}\n" + "\n".join(f"  {k}: {cell(v)}" for k, v in value.items()))
        else:
            rest[key] = cell(value)
    return "\n\n".join([*blocks, "\n".join(f"{k}: {v}" for k, v in rest.items())])


def _grid(rows: list[dict]) -> str:
    keys = [k for k in dict.fromkeys(k for row in rows for k in row) if not isinstance(rows[0].get(k), list | dict)]
    return grid([[k, *(cell(row.get(k)) for row in rows)] for k in keys])
