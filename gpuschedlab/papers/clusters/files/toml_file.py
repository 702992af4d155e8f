"""A site from a TOML file, and the files of Slurm and Kueue that it names."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.papers.clusters.files.description import Description, Limit, Partition, Scheduler, Window, seconds
from gpuschedlab.papers.clusters.files.kueue_files import read_queues
from gpuschedlab.papers.clusters.files.slurm_files import read_assoc, read_conf, read_qos
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.schedulers.limits import with_partitions
from gpuschedlab.papers.clusters.schedulers.priority import Weights
from gpuschedlab.traces.logs.hosts import hosts
from gpuschedlab.traces.logs.instants import instants
from gpuschedlab.traces.logs.options import nearest

OWN = ("log", "cluster", "slurm", "kueue", "partitions", "accounts")
TABLES = (*OWN, "qos", "queues", "scheduler", "windows", "limits", "delays")
KEYS = {"cluster": ("nodes",), "slurm": ("conf", "assoc", "qos"), "kueue": ("queues",), "delays": ("launch", "restart")}
KINDS = {str: (str, "a text"), bool: (bool, "true or false")}


def read_site(path: str | Path, lines: str = "") -> Description:
    """Read a site's TOML file, with more lines, and the files that it names beside it; what the TOML says goes before the files.

    Tables: `[log]` (path, format and options of `gpuschedlab.intake`), `[cluster]` (nodes = "16x8:a100"), `[slurm]` (conf, assoc, qos),
    `[kueue]` (queues), `[partitions.NAME]`, `[accounts.NAME]` (shares, parent, users = {NAME = shares}), `[qos]` (NAME = priority),
    `[queues.NAME]`, `[scheduler]` with `[scheduler.weights]`, `[[windows]]`, `[[limits]]`, `[delays]`.
    """
    path = Path(path)
    try:
        given = tomllib.loads(f"{_text(path) if path.suffix == '.toml' else ''}\n{lines}")
    except tomllib.TOMLDecodeError as error:
        raise TraceError(
            f"site {path.name}: found no TOML ({error}); expected tables such as [log], [cluster]."
        ) from error
    _known(given, TABLES, path.name)
    for table in given:
        rows = given[table] if table in ("windows", "limits") and isinstance(given[table], list) else [given[table]]
        for row in rows:
            _known(_dict(row, f"{path.name} [{table}]"), KEYS.get(table, row), f"{path.name} [{table}]")
    slurm = given.get("slurm", {})
    site = Description()
    named = (slurm.get("conf"), slurm.get("qos"), slurm.get("assoc"), given.get("kueue", {}).get("queues"))
    for word, read in zip(named, (read_conf, read_qos, read_assoc, read_queues), strict=True):
        if word is None:
            continue
        file = path.parent / str(word)
        if read is read_conf:
            site = read_conf(_text(file), str(word), site, file.parent)
        else:
            site = read(_text(file), str(word), site)
    site = _with_tables(site, given, path.name)
    of_partitions = {partition.name: partition.qos for partition in site.partitions if partition.qos}
    return replace(site, limits=with_partitions(site.limits, of_partitions)) if of_partitions else site


def _with_tables(site: Description, given: dict, name: str) -> Description:
    """The site, with what the tables of its TOML say."""
    changes: dict = {"log": given.get("log", site.log)}
    changes["delays"] = {k: _float(v, f"{name} [delays] {k}") for k, v in given.get("delays", {}).items()}
    if "cluster" in given:
        groups = Cluster.parse(str(given["cluster"].get("nodes", ""))).groups
        alike = [(g.gpu_type, g.gpus_per_node) for g in groups for _ in range(g.nodes)]
        changes["nodes"] = tuple((f"n{i}", *kind) for i, kind in enumerate(alike))
    for table, cls in (("partitions", Partition), ("queues", Queue)):
        if table in given:
            rows = ((f"{name} [{table}.{k}]", k, v) for k, v in given[table].items())
            changes[table] = tuple(_made(cls, {"name": k} | _dict(v, where), where) for where, k, v in rows)
    if "accounts" in given:
        changes["accounts"] = tuple(_accounts(given["accounts"], name))
    if "qos" in given:
        changes["qos"] = tuple((k, _float(v, f"{name} [qos] {k}")) for k, v in given["qos"].items())
    for table, cls in (("windows", Window), ("limits", Limit)):
        if table in given:
            rows = (_made(cls, row, f"{name} [[{table}]]") for row in given[table])
            changes[table] = (*(site.limits if table == "limits" else ()), *rows)  # limits add up
    if "scheduler" in given:
        rest = dict(given["scheduler"])
        where = f"{name} [scheduler.weights]"
        weights = _made(Weights, _dict(rest.pop("weights", {}), where), where, site.scheduler.weights)
        changes["scheduler"] = replace(_made(Scheduler, rest, f"{name} [scheduler]", site.scheduler), weights=weights)
    return replace(site, **changes)


def _accounts(given: dict, name: str) -> Iterator[tuple[str, str, str, float]]:
    for account, row in given.items():
        where = f"{name} [accounts.{account}]"
        row = row if isinstance(row, dict) else {"shares": row}
        _known(row, ("shares", "parent", "users"), where)
        yield account, "", str(row.get("parent", "")), _float(row.get("shares", 1), where)
        for user, shares in _dict(row.get("users", {}), f"{where} users").items():
            yield account, user, "", _float(shares, f"{where} {user}")


def _made(cls, given: dict, source: str, base=None):
    """Dataclass of a table's keys; lists of nodes may have ranges, numbers be spans, and tables become pairs."""
    kinds = {f.name: f.type for f in fields(cls)}
    values = {}
    _known(given, kinds, source)
    for key, value in given.items():
        where = f"{source} {key}"
        kind = kinds[key]
        if kind in KINDS:
            if not isinstance(value, KINDS[kind][0]):
                raise TraceError(f"site {where}: found {value!r}; expected {KINDS[kind][1]}.")
            values[key] = value
        elif kind in (float, float | None):
            values[key] = _float(value, where)
        elif isinstance(value, dict):
            values[key] = tuple((k, _float(v, f"{where}.{k}")) for k, v in value.items())
        else:
            words = value if isinstance(value, list) else [value]
            values[key] = tuple(name for word in words for name in hosts(str(word), where))
    try:
        return cls(**values) if base is None else replace(base, **values)
    except (LabError, TypeError) as error:
        raise TraceError(f"site {source}: {error}") from error


def _float(value: object, where: str) -> float:
    """Read a number, a span of seconds, or a date: seconds since 1970 by the log's clock."""
    if isinstance(value, date) or (isinstance(value, str) and value[4:5] == "-"):
        (found,) = instants(pl.Series([str(value)[:19]]))["early"]
        if found is None:
            raise TraceError(f"site {where}: found {value!r}; expected a date such as 2025-03-10 08:00.")
        return found
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TraceError(f"site {where}: found {value!r}; expected a number, or a span such as 2h.")
    return seconds(value, f"site {where}", unit=1.0) if isinstance(value, str) else float(value)


def _dict(value: object, where: str) -> dict:
    if not isinstance(value, dict):
        raise TraceError(f"site {where}: found {value!r}; expected a table.")
    return value


def _known(given: Mapping, expected, source: str) -> None:
    """Raise TraceError for a key that is not known."""
    if unknown := next((key for key in given if key not in expected), None):
        raise TraceError(
            f"site {source}: found the key {unknown!r}; expected one of {', '.join(expected)}.{nearest(unknown, expected)}"
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise TraceError(
            f"site {path.name}: found no such file; expected a TOML, or a file that one names beside it."
        ) from error
