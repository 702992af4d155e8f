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
from gpuschedlab.papers.clusters.files.sacctmgr_files import read_assoc, read_qos
from gpuschedlab.papers.clusters.files.slurm_files import read_conf
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
    """Return the `Description` in a site's TOML file, with more lines, and in the files that it names beside it.

    The TOML goes before the files.

    Tables: `[log]` (path, format and options of `gpuschedlab.intake`), `[cluster]` (nodes = "16x8:a100"), `[slurm]` (conf, assoc, qos),
    `[kueue]` (queues), `[partitions.NAME]`, `[accounts.NAME]` (shares, parent, users = {NAME = shares}), `[qos]` (NAME = priority),
    `[queues.NAME]`, `[scheduler]` with `[scheduler.weights]`, `[[windows]]`, `[[limits]]`, `[delays]`.
    """
    path = Path(path)
    toml_text = ""
    if path.suffix == ".toml":
        toml_text = _text(path)
    try:
        tables = tomllib.loads(f"{toml_text}\n{lines}")
    except tomllib.TOMLDecodeError as error:
        raise TraceError(
            f"site {path.name}: found no TOML ({error}); expected tables such as [log], [cluster]."
        ) from error
    _known(tables, TABLES, path.name)
    for toml_table, content in tables.items():
        toml_rows = [content]
        if toml_table in ("windows", "limits") and isinstance(content, list):
            toml_rows = content
        for toml_row in toml_rows:
            _known(
                _dict(toml_row, f"{path.name} [{toml_table}]"),
                KEYS.get(toml_table, toml_row),
                f"{path.name} [{toml_table}]",
            )
    slurm = tables.get("slurm", {})
    site = Description()
    files = (slurm.get("conf"), slurm.get("qos"), slurm.get("assoc"), tables.get("kueue", {}).get("queues"))
    for file_key, read in zip(files, (read_conf, read_qos, read_assoc, read_queues), strict=True):
        if file_key is None:
            continue
        file = path.parent / str(file_key)
        if read is read_conf:
            site = read_conf(_text(file), str(file_key), site, file.parent)
        else:
            site = read(_text(file), str(file_key), site)
    site = _with_tables(site, tables, path.name)
    of_partitions = {partition.name: partition.qos for partition in site.partitions if partition.qos}
    if not of_partitions:
        return site
    return replace(site, limits=with_partitions(site.limits, of_partitions))


def _with_tables(site: Description, tables: dict, name: str) -> Description:
    """Return the site's `Description` with the values of the tables of its TOML, a file of this name."""
    changes: dict = {"log": tables.get("log", site.log)}
    changes["delays"] = {
        delay_name: _float(toml_value, f"{name} [delays] {delay_name}")
        for delay_name, toml_value in tables.get("delays", {}).items()
    }
    if "cluster" in tables:
        groups = Cluster.parse(str(tables["cluster"].get("nodes", ""))).groups
        kinds = [(group.gpu_type, group.gpus_per_node) for group in groups for _ in range(group.nodes)]
        changes["nodes"] = tuple((f"n{i}", *kind) for i, kind in enumerate(kinds))
    for toml_table, cls in (("partitions", Partition), ("queues", Queue)):
        if toml_table in tables:
            changes[toml_table] = tuple(_named(cls, tables[toml_table], f"{name} [{toml_table}"))
    if "accounts" in tables:
        changes["accounts"] = tuple(_accounts(tables["accounts"], name))
    if "qos" in tables:
        changes["qos"] = tuple(
            (qos, _float(toml_value, f"{name} [qos] {qos}")) for qos, toml_value in tables["qos"].items()
        )
    for toml_table, cls in (("windows", Window), ("limits", Limit)):
        if toml_table in tables:
            changes[toml_table] = tuple(
                _made(cls, toml_row, f"{name} [[{toml_table}]]") for toml_row in tables[toml_table]
            )
    if "limits" in changes:  # limits add up
        changes["limits"] = (*site.limits, *changes["limits"])
    if "scheduler" in tables:
        scheduler_values = dict(tables["scheduler"])
        where = f"{name} [scheduler.weights]"
        weights = _made(Weights, _dict(scheduler_values.pop("weights", {}), where), where, site.scheduler.weights)
        scheduler = _made(Scheduler, scheduler_values, f"{name} [scheduler]", site.scheduler)
        changes["scheduler"] = replace(scheduler, weights=weights)
    return replace(site, **changes)


def _named(cls, tables: dict, source: str) -> Iterator:
    """Yield the dataclass of each of some tables, by their names."""
    for entry_name, named_table in tables.items():
        where = f"{source}.{entry_name}]"
        yield _made(cls, {"name": entry_name} | _dict(named_table, where), where)


def _accounts(accounts: dict, name: str) -> Iterator[tuple[str, str, str, float]]:
    """Yield the rows of a `ShareTree` of the table of accounts of a file of this name."""
    for account, account_row in accounts.items():
        where = f"{name} [accounts.{account}]"
        if not isinstance(account_row, dict):
            account_row = {"shares": account_row}
        _known(account_row, ("shares", "parent", "users"), where)
        yield account, "", str(account_row.get("parent", "")), _float(account_row.get("shares", 1), where)
        for user, shares in _dict(account_row.get("users", {}), f"{where} users").items():
            yield account, user, "", _float(shares, f"{where} {user}")


def _made(cls, given: dict, source: str, base=None):
    """Return a `cls`, a dataclass, of a table's keys; lists of nodes may have ranges, numbers be spans; tables become pairs."""
    kinds = {f.name: f.type for f in fields(cls)}
    site_values = {}
    _known(given, kinds, source)
    for toml_key, toml_value in given.items():
        where = f"{source} {toml_key}"
        kind = kinds[toml_key]
        if kind in KINDS:
            if not isinstance(toml_value, KINDS[kind][0]):
                raise TraceError(f"site {where}: found {toml_value!r}; expected {KINDS[kind][1]}.")
            site_values[toml_key] = toml_value
        elif kind in (float, float | None):
            site_values[toml_key] = _float(toml_value, where)
        elif isinstance(toml_value, dict):
            site_values[toml_key] = tuple((k, _float(v, f"{where}.{k}")) for k, v in toml_value.items())
        else:
            ranges = toml_value
            if not isinstance(toml_value, list):
                ranges = [toml_value]
            site_values[toml_key] = tuple(
                node_name for node_ranges in ranges for node_name in hosts(str(node_ranges), where)
            )
    try:
        if base is None:
            return cls(**site_values)
        return replace(base, **site_values)
    except (LabError, TypeError) as error:
        raise TraceError(f"site {source}: {error}") from error


def _float(value: object, where: str) -> float:
    """Read a number, a span of seconds, or a date: seconds since 1970 by the log's clock."""
    if isinstance(value, date) or (isinstance(value, str) and value[4:5] == "-"):
        (instant,) = instants(pl.Series([str(value)[:19]]))["early"]
        if instant is None:
            raise TraceError(f"site {where}: found {value!r}; expected a date such as 2025-03-10 08:00.")
        return instant
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TraceError(f"site {where}: found {value!r}; expected a number, or a span such as 2h.")
    if isinstance(value, str):
        return seconds(value, f"site {where}", unit=1.0)
    return float(value)


def _dict(value: object, where: str) -> dict:
    if not isinstance(value, dict):
        raise TraceError(f"site {where}: found {value!r}; expected a table.")
    return value


def _known(given: Mapping, expected, source: str) -> None:
    """Raise TraceError for a key that is not known."""
    if unknown := next((unknown_key for unknown_key in given if unknown_key not in expected), None):
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
