"""Slurm's own file: the nodes, partitions, priorities and scheduler of a slurm.conf."""

import re
from dataclasses import replace
from pathlib import Path

from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.papers.clusters.files.conf_lines import ConfLines, printed
from gpuschedlab.papers.clusters.files.description import Description, Partition, Scheduler, seconds
from gpuschedlab.papers.clusters.schedulers.priority import Weights
from gpuschedlab.traces.logs.hosts import hosts


def number(text: str, where: str) -> float:
    """Return the number in a text as a float, 0 or more."""
    try:
        conf_number = float(text)
    except ValueError:
        conf_number = -1.0
    if not 0 <= conf_number < float("inf"):
        raise TraceError(f"{where}: found {text[:60]!r}; expected a number, 0 or more.")
    return conf_number


def yes(text: str, where: str) -> bool:
    """Return whether a text is YES, TRUE or 1; any other text counts as NO."""
    return text.upper() in ("YES", "TRUE", "1")


PAIR = re.compile(r'\s*([A-Za-z][\w.-]*)\s*[+-]?=\s*("[^"]*"|\S*)')
WEIGHTS = {f"priorityweight{key}": (key, number) for key in ("age", "fairshare", "partition", "qos")}
WEIGHTS |= {"priorityweightjobsize": ("size", number)}
WEIGHTS |= {"prioritymaxage": ("max_age", seconds), "priorityfavorsmall": ("small", yes)}
SCHEDULER = {"prioritydecayhalflife": ("half_life", seconds), "prioritycalcperiod": ("recalculated", seconds)}
SCHEDULER |= {"overtimelimit": ("over", seconds), "fairsharedampeningfactor": ("damping", number)}
TYPES = {"sched/backfill": "plan", "sched/builtin": "none"}
PRIORITIES = ("priority/multifactor", "priority/basic")
FLAGS = {"SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE", "FAIR_TREE"}
PLAN = {  # keys of SchedulerParameters: our field, seconds of their unit
    "bf_interval": ("every", 1.0),
    "bf_window": ("window", 60.0),
    "bf_max_job_test": ("tested", 1.0),
    "bf_resolution": ("resolution", 1.0),
    "bf_min_age_reserve": ("min_age", 1.0),
    "bf_job_part_count_reserve": ("depth", 1.0),
}
DEFAULTS = Scheduler("plan", tested=500, window=86_400.0, every=30.0, resolution=60.0)
"""Of slurm.conf(5), 2026: bf_max_job_test is still 100 on the scheduling guide's page."""

PARTITION = {"maxtime": "max_time", "defaulttime": "default_time"}
PARTITION |= {"prioritytier": "tier", "priorityjobfactor": "factor", "qos": "qos"}


def pairs_of(line: str, where: str) -> dict[str, str]:
    """Return a dict of the values of a line by key, in lower case."""
    pairs = {}
    line_place = 0
    while line[line_place:].strip():
        match = PAIR.match(line, line_place)
        if not match:
            unread = line[line_place:].strip()
            raise TraceError(f"{where}: found {unread[:60]!r}; expected KEY=VALUE.")
        pairs[match[1].lower()] = match[2].strip('"')
        line_place = match.end()
    return pairs


def read_conf(text: str, source: str, site: Description, folder: Path | None = None) -> Description:
    """Return the site's `Description` with the nodes, partitions, priorities and scheduler of a slurm.conf.

    The text may be the answer of `scontrol show config`.

    Files that it includes are read if they are in `folder`; the others are listed as not modelled.
    """
    nodes: dict[str, tuple[str, str, int]] = {}
    defaults: dict[str, dict] = {"nodename": {}, "partitionname": {}}
    partitions = []
    settings = {}
    unknown = {}
    conf = ConfLines(folder, unknown)
    for where, line in conf.lines_of(printed(text), source):
        pairs = pairs_of(line, where)
        kind = next(iter(pairs))
        if kind not in defaults:
            settings |= {conf_key: (conf_value, where) for conf_key, conf_value in pairs.items()}
            continue
        section_name = pairs.pop(kind)
        if section_name.upper() == "DEFAULT":
            defaults[kind] |= pairs
        elif kind == "nodename":
            nodes |= _nodes(section_name, defaults[kind] | pairs, where, unknown)
        else:
            partitions.append(_partition(section_name, defaults[kind] | pairs, where, unknown, nodes))
    scheduler = _scheduler(settings, unknown)
    with_gpus = tuple((node, kind, gpus) for node, kind, gpus in nodes.values() if gpus)
    return replace(
        site,
        nodes=with_gpus,
        partitions=tuple(partitions),
        scheduler=scheduler,
        unmodelled=(*site.unmodelled, *unknown),
    )


def _nodes(names: str, pairs: dict[str, str], where: str, unknown: dict) -> dict[str, tuple[str, str, int]]:
    """Return a dict of the nodes of a line by name, each a tuple: its name, and the type and number of its GPUs."""
    unknown |= {f"NodeName.{conf_key}": None for conf_key in pairs if conf_key != "gres"}
    kind = "gpu"
    gpus = 0
    without_places = re.sub(r"\([^)]*\)", "", pairs.get("gres", ""))
    for gres in without_places.split(","):
        gres_name, *gres_parts = gres.strip().split(":")
        if gres_name.lower() != "gpu":
            if gres_name:
                unknown[f"Gres {gres_name}"] = None
            continue
        gres_parts = [gres_part for gres_part in gres_parts if gres_part.lower() != "no_consume"]
        gres_count = 1
        if gres_parts and re.fullmatch(r"[0-9]{1,6}", gres_parts[-1]):
            gres_count = int(gres_parts.pop())
        if gpus and gres_parts and gres_parts[0] != kind:
            unknown["Gres of two types on a node"] = None
        if gres_parts:
            kind = gres_parts[0]
        gpus = gpus + gres_count
    if gpus > 64:
        raise TraceError(f"{where}: found {gpus} GPUs on a node; expected at most 64.")
    return {node: (node, kind, gpus) for node in hosts(names, where)}


def _partition(name: str, pairs: dict[str, str], where: str, unknown: dict, nodes: dict) -> Partition:
    """Return the `Partition` of a line, of which the file has such nodes."""
    unknown |= {f"PartitionName.{conf_key}": None for conf_key in pairs if conf_key not in {*PARTITION, "nodes"}}
    named = pairs.get("nodes", "")
    partition_values: dict = {}
    if named.upper() == "ALL":
        partition_values["nodes"] = tuple(nodes)
    else:
        partition_values["nodes"] = hosts(named, where)
    for conf_key in PARTITION.keys() & pairs.keys():
        conf_text = pairs[conf_key]
        if conf_key == "qos":
            partition_values["qos"] = conf_text
        else:
            partition_values[PARTITION[conf_key]] = _amount(conf_key, conf_text, f"{where} {conf_key}")
    return Partition(name, **partition_values)


def _amount(key: str, text: str, where: str) -> float:
    """Read the span of a time, or a number."""
    if key.endswith("time"):
        return seconds(text, where)
    return number(text, where)


def _scheduler(settings: dict[str, tuple[str, str]], unknown: dict) -> Scheduler:
    """Return the `Scheduler` of the keys that are of no node and no partition: their values, and their places in words."""
    weights = {}
    scheduler_values = {}
    for conf_key, (conf_value, where) in settings.items():
        if conf_key in WEIGHTS:
            weight_name, read = WEIGHTS[conf_key]
            weights[weight_name] = read(conf_value, f"{where} {conf_key}")
        elif conf_key in SCHEDULER:
            scheduler_field, read = SCHEDULER[conf_key]
            scheduler_values[scheduler_field] = read(conf_value, f"{where} {conf_key}")
        elif conf_key == "schedulertype" and conf_value.lower() in TYPES:
            scheduler_values["backfill"] = TYPES[conf_value.lower()]
        elif conf_key == "priorityflags":
            flags = {flag for flag in conf_value.upper().split(",") if flag}
            weights["relative"] = "SMALL_RELATIVE_TO_TIME" in flags
            scheduler_values["fairshare"] = "tree"
            if "NO_FAIR_TREE" in flags:
                scheduler_values["fairshare"] = "classic"
            unknown |= {f"PriorityFlags.{flag}": None for flag in sorted(flags - FLAGS)}
        elif conf_key == "grestypes":
            scheduler_values["gres"] = "gpu" in conf_value.lower().split(",")
        elif conf_key == "schedulerparameters":
            scheduler_values |= _plan(conf_value, f"{where} {conf_key}", unknown)
        elif conf_key != "prioritytype" or conf_value.lower() not in PRIORITIES:
            unknown[conf_key] = None
    priority_type, _ = settings.get("prioritytype", ("", ""))
    if priority_type.lower() == "priority/basic":  # first come, first served, whatever is weighed
        weights = {}
    half_life = scheduler_values.get("half_life", DEFAULTS.half_life)
    scheduler_values["half_life"] = half_life or float("inf")  # 0: usage does not decay
    try:
        return replace(DEFAULTS, weights=Weights(**weights), **scheduler_values)
    except LabError as error:
        raise TraceError(f"slurm.conf: {error}") from error


def _plan(text: str, where: str, unknown: dict) -> dict[str, float]:
    """Return a dict of the values of a plan, by the fields of a `Scheduler`, from SchedulerParameters."""
    plan_values = {}
    for parameter in filter(None, text.split(",")):
        conf_key, _, parameter_value = parameter.strip().partition("=")
        if conf_key.lower() in PLAN:
            field, unit = PLAN[conf_key.lower()]
            plan_values[field] = number(parameter_value, f"{where}.{conf_key}") * unit
        else:
            unknown[f"SchedulerParameters.{conf_key}"] = None
    if plan_values.get("depth") == 0:  # no limit to reservations
        plan_values["depth"] = float("inf")
    return plan_values
