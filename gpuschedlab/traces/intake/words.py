"""Logs and their options as words: of a command line, of a notebook's parameter."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.options import NAMES


def options_in(settings: Iterable[str]) -> dict[str, Any]:
    """Options of KEY=VALUE, where a key with a dot is an entry of a table.

    Examples
    --------
    >>> options_in(["columns.gpus=a * b", "zone=UTC"])
    {'columns': {'gpus': 'a * b'}, 'zone': 'UTC'}
    """
    options: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        table, dot, entry = key.strip().partition(".")
        if not equals:
            raise TraceError(
                f"--set {text}: found no value; expected KEY=VALUE, such as columns.gpus='a * b' or zone=UTC."
            )
        if dot and not isinstance(options.get(table, {}), dict):
            raise TraceError(f"--set {text}: found {table}={options[table]!r} beside it; expected one of the two.")
        options[table] = options.get(table, {}) | {entry: value} if dot else value
    return options


def source_of(word: str) -> tuple[str, str, dict]:
    """Split FORMAT:PATH, or FORMAT:FILE:COLUMN=NAME,...,OPTION=VALUE, where FILE is the longest part that is a file.

    Examples
    --------
    >>> source_of("csv:jobs.csv:gpus=Cards,units=h")
    ('csv', 'jobs.csv', {'columns': {'gpus': 'Cards'}, 'units': 'h'})
    >>> source_of("helios:venus/cluster_log.csv")
    ('helios', 'venus/cluster_log.csv', {})
    """
    name, _, path = word.partition(":")
    if "=" not in path or Path(path).exists():
        return name, path, {}
    places = [i for i, sign in enumerate(path) if sign == ":" and "=" in path[i:]]
    if not places:
        return name, path, {}
    cut = next((i for i in reversed(places) if Path(path[:i]).exists()), places[0])
    given = dict(part.split("=", 1) for part in path[cut + 1 :].split(",") if "=" in part)
    options = {
        key: given.pop(key) for key in NAMES if key in given and key not in ("columns", "user", "gpu_type", "cluster")
    }
    return name, path[:cut], ({"columns": given} if given else {}) | options
