"""Options of a caller about a log, whatever its format: as arguments, and as words of a command line or a notebook."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.instants import SHORT, UNITS
from gpuschedlab.traces.logs.states import MEANINGS, NAMED


@dataclass(frozen=True)
class Options:
    """Options of `gpuschedlab.intake`, by the keys of a TOML spec.

    Parameters
    ----------
    columns : mapping
        Column of a trace -> expression over the file's columns (`intake.expressions`).
    units : str or mapping
        Unit (us, ms, s, min, h, d) of bare numbers of times: one for all, or by column.
    states : mapping
        Further words -> completed, failed, killed, running, waiting or records (no job).
    dates : str
        Form of dates that do not begin with the year, as in `strptime`.
    spans : {"MM:SS", "HH:MM"}
        Meaning of a span of two fields.
    decimal : {".", ","}
        Sign before decimals.
    separator : str
        Sign between values of a table.
    zone : str
        Time zone of dates without one, and of `clock`.
    snapshot, since : float or str
        Latest instant of the log, and the instant (or span after the first job) that becomes zero.
    running : {"keep", "drop"}
        Whether jobs that still ran stay, censored.
    attempts : {"merge", "each"}
        Whether attempts of a job are one row.
    accept : list of str
        Reasons whose loss of GPU-hours is accepted: bad, shards, no_duration, durations.
    gres : {"node", "total"}
        Slurm's GRES: counts of each node, or of the job.
    shards : float
        Slurm's shards of a GPU.
    tres : mapping
        Slurm's numbers of TRES that are GPUs -> type (Supercloud).
    user : str
        Kubernetes: "label:NAME", the label of the user.
    count : {"instances"}
        Google 2019: the unit that stands for a GPU.
    speeds : mapping or path
        Gavel: steps a second by model, or a table with model, gpu_type, gpus, steps.
    gpu_type : str
        Gavel: type whose speeds give durations.
    speed : float
        Batsim: flop/s of a GPU, for profiles that compute.
    processors : float
        SWF: processors that stand for one GPU.
    durations : float or mapping
        Workloads of artifacts: seconds on the requested GPUs, for all or by application.
    workload : str
        Chronus: which of the workloads of a file.
    instances : bool
        PAI: whether the table of instances is read too.
    cluster : mapping
        A site's cluster: nodes = "70x8:v100".
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    units: str | Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    dates: str | None = None
    spans: str | None = None
    decimal: str = "."
    separator: str | None = None
    zone: str | None = None
    snapshot: float | str | None = None
    since: float | str | None = None
    running: str = "keep"
    attempts: str = "merge"
    accept: tuple[str, ...] = ()
    gres: str = "node"
    shards: float | None = None
    tres: Mapping[str, str] | None = None
    user: str | None = None
    count: str | None = None
    speeds: Mapping[str, float] | str | Path | None = None
    gpu_type: str = "v100"
    speed: float | None = None
    processors: float = 1.0
    durations: float | str | Mapping[str, float] | None = None
    workload: str | None = None
    instances: bool = False
    cluster: Mapping[str, str] | None = None

    def unit(self, column: str, default: float = 1.0) -> float:
        """Seconds of a bare number in a column."""
        unit_name = self.units if isinstance(self.units, str) else self.units.get(column)
        return default if unit_name is None else UNITS[unit_name]


#: Columns of a trace that are made of a log's column of another name.
ALIASES = {"started": "start", "status": "state"}
#: Names of all options, and those that are numbers.
NAMES = tuple(f.name for f in fields(Options))
NUMBERS = ("shards", "speed", "processors")
#: Words in which options are annotated: what a value must be, and in the words of messages.
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "float": ((float, int, str), "a number"),
    "bool": ((bool, str), "true or false"),
    "Path": ((Path,), "a path"),
    "tuple[str, ...]": ((str, list, tuple), "a list of texts"),
    "Mapping[str, str]": ((Mapping,), "a table of names and texts"),
    "Mapping[str, float]": ((Mapping,), "a table of names and numbers"),
    "None": ((NoneType,), "nothing"),
}
#: Options with few values.
CHOICES = {
    "spans": (None, *SHORT),
    "decimal": (".", ","),
    "running": ("keep", "drop"),
    "attempts": ("merge", "each"),
    "gres": ("node", "total"),
    "count": (None, "instances"),
}
#: Columns of times, which may have units.
TIMES = NAMED["options"]["times"].split()


def options_of(given: Mapping[str, Any], source: str) -> Options:
    """Check options, and return them as `Options`; name the nearest if there is no such one."""
    for option_name, value in given.items():
        if option_name not in NAMES:
            raise TraceError(
                f"{source}: found the option {option_name!r}; expected one of {', '.join(NAMES)}.{nearest(option_name, NAMES)}"
            )
        if option_name in CHOICES and value not in CHOICES[option_name]:
            choice_words = ", ".join(str(c) for c in CHOICES[option_name] if c is not None)
            raise TraceError(f"{source}: found {option_name}={value!r}; expected one of {choice_words}.")
        kinds = Options.__annotations__[option_name].split(" | ")
        if value is not None and not any(_is(value, kind) for kind in kinds):
            choice_words = " or ".join(KINDS[kind][1] for kind in kinds if kind != "None")
            raise TraceError(f"{source}: found {option_name}={str(value)[:80]!r}; expected {choice_words}.")
    instances = str(given.get("instances", False)).lower()
    if instances not in ("true", "false"):
        raise TraceError(f"{source}: found instances={given['instances']!r}; expected true or false.")
    given = dict(given) | {"instances": instances == "true"}
    if "accept" in given:
        reasons = given["accept"]
        given["accept"] = tuple(reasons.replace(",", " ").split() if isinstance(reasons, str) else reasons)
    for option_name in [n for n in NUMBERS if given.get(n) is not None]:
        with contextlib.suppress(ValueError):  # a command line gives words
            given[option_name] = float(given[option_name])
        if isinstance(given[option_name], str) or not 0 < given[option_name] < float("inf"):
            raise TraceError(
                f"{source}: found {option_name}={str(given[option_name])[:80]}; expected a finite number above 0."
            )
    units = {} if given.get("units") is None else given["units"]
    by_column = dict.fromkeys(["submit"], units) if isinstance(units, str) else units
    for column, unit in by_column.items():
        if unit not in UNITS or column not in TIMES:
            raise TraceError(
                f"{source}: found the unit {column}={unit}; expected one of {', '.join(UNITS)}, for all, or for some of "
                f"{', '.join(TIMES)}."
            )
    for state_word, meaning in (given.get("states") or {}).items():
        if meaning not in MEANINGS:
            raise TraceError(
                f"{source}: found the status {meaning!r} in states, for {state_word!r}; expected one of {', '.join(MEANINGS)}."
            )
    named_columns = given.get("columns") or {}
    given["columns"] = {ALIASES.get(ours, ours): column_text for ours, column_text in named_columns.items()}
    return Options(**{option_name: value for option_name, value in given.items() if value is not None})


def _is(value: Any, kind: str) -> bool:
    """Whether a value is of the type in an annotation; true and false are no numbers."""
    entry_values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    wants_numbers = kind.endswith("float]")
    fits = all(isinstance(entry_value, (float, int) if wants_numbers else str) for entry_value in entry_values)
    return isinstance(value, KINDS[kind][0]) and fits and not (kind == "float" and isinstance(value, bool))


def nearest(name: str, names) -> str:
    """Return a question after the nearest of some names, a text, or ""."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f" Did you mean {near[0]}?" if near else ""


def options_in(settings: Iterable[str]) -> dict[str, Any]:
    """Return a dict of options of KEY=VALUE, in which a key with a dot is an entry of a table."""
    options: dict[str, Any] = {}
    for setting in settings:
        option_key, equals, value = setting.partition("=")
        option_name, dot, option_entry = option_key.strip().partition(".")
        if not equals:
            raise TraceError(
                f"--set {setting}: found no value; expected KEY=VALUE, such as columns.gpus='a * b' or zone=UTC."
            )
        if dot and not isinstance(options.get(option_name, {}), dict):
            raise TraceError(
                f"--set {setting}: found {option_name}={options[option_name]!r} beside it; expected one of the two."
            )
        options[option_name] = options.get(option_name, {}) | {option_entry: value} if dot else value
    return options


def source_of(word: str) -> tuple[str, str, dict]:
    """Split FORMAT:PATH, or FORMAT:FILE:COLUMN=NAME,...,OPTION=VALUE, into a tuple: format, path, and a dict of options.

    FILE is the longest part that is a file.
    """
    format_name, _, path = word.partition(":")
    if "=" not in path or Path(path).exists():
        return format_name, path, {}
    places = [i for i, sign in enumerate(path) if sign == ":" and "=" in path[i:]]
    if not places:
        return format_name, path, {}
    cut = places[0]
    for i in places:
        if Path(path[:i]).exists():
            cut = i
    settings = path[cut + 1 :].split(",")
    given_settings = dict(setting.split("=", 1) for setting in settings if "=" in setting)
    options = {
        option_name: given_settings.pop(option_name)
        for option_name in NAMES
        if option_name in given_settings and option_name not in ("columns", "user", "gpu_type", "cluster")
    }
    return format_name, path[:cut], ({"columns": given_settings} if given_settings else {}) | options
