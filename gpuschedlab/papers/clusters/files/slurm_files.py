"""Slurm's own files: lines of slurm.conf, and the answers of `sacctmgr -P show assoc` and `show qos`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.papers.clusters.files.conf_lines import ConfLines, printed
from gpuschedlab.papers.clusters.files.description import Description, Limit, Partition, Scheduler, seconds
from gpuschedlab.papers.clusters.schedulers.priority import Weights
from gpuschedlab.traces.logs.hosts import hosts


def number(text: str, where: str) -> float:
    """Read a number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise TraceError(f"{where}: found {text[:60]!r}; expected a number, 0 or more.")
    return value


def yes(text: str, where: str) -> bool:
    """Read YES or NO."""
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
    """Values of a line by key, in lower case."""
    found = {}
    at = 0
    while line[at:].strip():
        match = PAIR.match(line, at)
        if not match:
            raise TraceError(f"{where}: found {line[at:].strip()[:60]!r}; expected KEY=VALUE.")
        found[match[1].lower()] = match[2].strip('"')
        at = match.end()
    return found


def read_conf(text: str, source: str, site: Description, folder: Path | None = None) -> Description:
    """The site with the nodes, partitions, priorities and scheduler of a slurm.conf, or of what `scontrol show config` prints.

    Files that it includes are read if they are in `folder`; the others are listed as not modelled.
    """
    nodes: dict[str, tuple[str, str, int]] = {}
    defaults: dict[str, dict] = {"nodename": {}, "partitionname": {}}
    partitions = []
    rest = {}
    unknown = {}
    conf = ConfLines(folder, unknown)
    for where, line in conf.lines_of(printed(text), source):
        pairs = pairs_of(line, where)
        kind = next(iter(pairs))
        if kind not in defaults:
            rest |= {key: (value, where) for key, value in pairs.items()}
            continue
        name = pairs.pop(kind)
        if name.upper() == "DEFAULT":
            defaults[kind] |= pairs
        elif kind == "nodename":
            nodes |= _nodes(name, defaults[kind] | pairs, where, unknown)
        else:
            partitions.append(_partition(name, defaults[kind] | pairs, where, unknown, nodes))
    scheduler = _scheduler(rest, unknown)
    found = {"partitions": tuple(partitions), "scheduler": scheduler, "unmodelled": (*site.unmodelled, *unknown)}
    return replace(site, nodes=tuple(n for n in nodes.values() if n[2]), **found)


def _nodes(names: str, pairs: dict[str, str], where: str, unknown: dict) -> dict[str, tuple[str, str, int]]:
    """Nodes of a line, with the type and number of their GPUs."""
    unknown |= {f"NodeName.{key}": None for key in pairs if key != "gres"}
    kind = "gpu"
    gpus = 0
    for gres in re.sub(r"\([^)]*\)", "", pairs.get("gres", "")).split(","):
        name, *words = gres.strip().split(":")
        if name.lower() != "gpu":
            unknown |= {f"Gres {name}": None} if name else {}
            continue
        words = [word for word in words if word.lower() != "no_consume"]
        count = words.pop() if words and re.fullmatch(r"[0-9]{1,6}", words[-1]) else "1"
        if gpus and words and words[0] != kind:
            unknown["Gres of two types on a node"] = None
        kind = words[0] if words else kind
        gpus = gpus + int(count)
    if gpus > 64:
        raise TraceError(f"{where}: found {gpus} GPUs on a node; expected at most 64.")
    return {node: (node, kind, gpus) for node in hosts(names, where)}


def _partition(name: str, pairs: dict[str, str], where: str, unknown: dict, nodes: dict) -> Partition:
    unknown |= {f"PartitionName.{key}": None for key in pairs if key not in {*PARTITION, "nodes"}}
    named = pairs.get("nodes", "")
    values: dict = {"nodes": tuple(nodes) if named.upper() == "ALL" else hosts(named, where)}
    for key in PARTITION.keys() & pairs.keys():
        values[PARTITION[key]] = pairs[key] if key == "qos" else _amount(key, pairs[key], f"{where} {key}")
    return Partition(name, **values)


def _amount(key: str, text: str, where: str) -> float:
    """Read the span of a time, or a number."""
    return seconds(text, where) if key.endswith("time") else number(text, where)


def _scheduler(rest: dict[str, tuple[str, str]], unknown: dict) -> Scheduler:
    """Scheduler of the lines that name no node and no partition."""
    weights = {}
    found = {}
    for key, (value, where) in rest.items():
        if key in WEIGHTS:
            name, read = WEIGHTS[key]
            weights[name] = read(value, f"{where} {key}")
        elif key in SCHEDULER:
            name, read = SCHEDULER[key]
            found[name] = read(value, f"{where} {key}")
        elif key == "schedulertype" and value.lower() in TYPES:
            found["backfill"] = TYPES[value.lower()]
        elif key == "priorityflags":
            flags = {flag for flag in value.upper().split(",") if flag}
            weights["relative"] = "SMALL_RELATIVE_TO_TIME" in flags
            found["fairshare"] = "classic" if "NO_FAIR_TREE" in flags else "tree"
            unknown |= {f"PriorityFlags.{flag}": None for flag in sorted(flags - FLAGS)}
        elif key == "grestypes":
            found["gres"] = "gpu" in value.lower().split(",")
        elif key == "schedulerparameters":
            found |= _plan(value, f"{where} {key}", unknown)
        elif key != "prioritytype" or value.lower() not in PRIORITIES:
            unknown[key] = None
    if rest.get("prioritytype", ("",))[0].lower() == "priority/basic":  # first come, first served, whatever is weighed
        weights = {}
    found["half_life"] = found.get("half_life", DEFAULTS.half_life) or float("inf")  # 0: usage does not decay
    try:
        return replace(DEFAULTS, weights=Weights(**weights), **found)
    except LabError as error:
        raise TraceError(f"slurm.conf: {error}") from error


def _plan(text: str, where: str, unknown: dict) -> dict[str, float]:
    found = {}
    for word in filter(None, text.split(",")):
        key, _, value = word.strip().partition("=")
        if key.lower() in PLAN:
            field, unit = PLAN[key.lower()]
            found[field] = number(value, f"{where}.{key}") * unit
        else:
            unknown[f"SchedulerParameters.{key}"] = None
    if found.get("depth") == 0:  # no limit to reservations
        found["depth"] = float("inf")
    return found


def rows_of(text: str, source: str, needed: tuple[str, ...], same: Mapping[str, str]) -> Iterator[tuple[str, dict]]:
    """Place and values, by column in lower case, of the rows that `sacctmgr -P` prints; `same`: other names of columns."""
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [name.strip().lower().replace(" ", "") for name in lines[0][1].split("|")] if lines else []
    names = [same.get(name, name) for name in names]
    if lacking := [name for name in needed if name not in names]:
        raise TraceError(
            f"slurm {source}, line 1: found the columns {', '.join(names)[:200]}; expected also {', '.join(lacking)}."
        )
    for line_number, line in lines[1:]:
        row = dict(zip(names, line.split("|")))
        where = f"slurm {source}, line {line_number}"
        if len(row) < len(names):
            raise TraceError(f"{where}: found {len(row)} fields; expected {len(names)}, as in its first line.")
        yield where, row


KINDS = {"tres": "gpus", "jobs": "jobs"}
OF_QOS = {f"max{word}p{of[0]}": (of, what) for of in ("user", "account") for word, what in KINDS.items()}
OF_QOS |= {
    "grptres": ("qos", "gpus"),
    "grpjobs": ("qos", "jobs"),
    "maxtres": ("qos", "size"),
    "maxwall": ("qos", "wall"),
}
"""Columns of `show qos`: whose limit, and of what."""
OF_ASSOC = {"grptres": ("accounts", "gpus"), "grpjobs": ("accounts", "jobs"), "maxjobs": ("member", "jobs")}
OF_ASSOC |= {"maxtres": ("member", "size"), "maxwall": ("member", "wall")}
"""Columns of `show assoc`: of an account with those below it, or of each user in it; of a job its GPUs and its time."""
OVER = {("accounts", "gpus"): ("qos",), ("accounts", "jobs"): ("qos",), ("member", "jobs"): ("user", "account")}
OVER |= {("member", "size"): ("qos",), ("member", "wall"): ("qos",)}
"""Owners by whose limits a QOS takes the place of an association's (Slurm's page "Resource Limits")."""
LONG = {f"max{word}per{of}": f"max{word}p{of[0]}" for of in ("user", "account") for word in KINDS}
LONG |= {"maxtresperjob": "maxtres", "maxtrespj": "maxtres", "maxwalldurationperjob": "maxwall", "maxwallpj": "maxwall"}
OF_GPUS = ("gpus", "size")
"""Amounts that are of GPUs, of all or of one type."""
IDLE = {"gracetime": "00:00:00", "preemptmode": "cluster", "usagefactor": "1.000000"}
NO_LIMITS = {"account", "user", "share", "parentname", "cluster"}


def limits_in(row: dict[str, str], known: Mapping, where: str, unknown: dict) -> dict[tuple[str, str, str], float]:
    """Amount of each limit of a row by its owner, kind and GPU type; of other columns those that say something are not modelled."""
    found = {}
    word = "qos" if known is OF_QOS else "assoc"
    for key, value in row.items():
        of, what = known.get(key, ("", ""))
        text = value.strip()
        if what == "wall" and text:
            found[of, what, ""] = seconds(text, f"{where} {key}")
            continue
        for entry in text.split(",") if what in OF_GPUS else [text]:
            tres, _, amount = entry.rpartition("=") if what else ("", "", "")
            of_gpus, _, gpu_type = tres.partition(":")
            if entry and what and of_gpus == ("gres/gpu" if what in OF_GPUS else ""):
                found[of, what, gpu_type] = number(amount, f"{where} {key}")
            elif entry and key and entry != IDLE.get(key):
                unknown[" ".join(filter(None, (word, key, tres)))] = None
    return found


def read_qos(text: str, source: str, site: Description) -> Description:
    """The site with the priorities of QOS, and the GPUs and jobs that they allow, of `sacctmgr -P show qos`."""
    priorities = []
    limits = []
    unknown = {}
    for where, row in rows_of(text, source, ("name",), LONG):
        name = row.pop("name").strip()
        priorities.append((name, number(row.pop("priority", "").strip() or "0", f"{where} Priority")))
        for (of, what, gpu_type), amount in limits_in(row, OF_QOS, where, unknown).items():
            whose = {"names" if of == "qos" else "qos": (name,)}
            limits.append(Limit(of, gpu_type=gpu_type, **whose, **{what: amount}))
    found = {"qos": tuple(priorities), "limits": (*site.limits, *limits)}
    return replace(site, **found, unmodelled=(*site.unmodelled, *unknown))


def read_assoc(text: str, source: str, site: Description) -> Description:
    """The site with accounts, users and limits of `sacctmgr -P show assoc`; format=Account,User,ParentName,Share is enough."""
    same = {"parname": "parentname", "fairshare": "share"}
    unknown = {}
    rows = {}
    held = {}
    clusters = set()
    above: list[tuple[int, str]] = []  # accounts over a line, by indentation, where the answer is a tree
    for where, row in rows_of(text, source, ("account", "user", "share"), same):
        clusters.add(row.get("cluster", ""))
        own = limits_in({k: v for k, v in row.items() if k not in NO_LIMITS}, OF_ASSOC, where, unknown)
        account = row["account"].strip()
        user = row["user"].strip()
        share = row["share"].strip()
        parent = row.get("parentname", "").strip()
        if not user:
            depth = len(row["account"]) - len(row["account"].lstrip())
            above = [(d, a) for d, a in above if d < depth]
            parent = parent or (above[-1][1] if above else "")
            above.append((depth, account))
        if share.lower() == "parent":
            unknown["assoc Share=parent"] = None
            share = "1"
        shares = number(share, f"{where} Share")
        rows.setdefault((account, user), (account, user, parent, shares))
        if not row.get("partition", "").strip():
            held.setdefault((account, user), own)
    if len(clusters) > 1:
        raise TraceError(
            f"slurm {source}: found the clusters {', '.join(sorted(clusters))}; expected one: show assoc cluster=NAME."
        )
    up = {account: parent for account, user, parent, _ in rows.values() if not user}
    if len(up) > 1 and not any(up.values()) and any("accounts" in of for own in held.values() for of in own):
        unknown["assoc ParentName, without which an account's limits are of its own jobs alone"] = None
    found = {"accounts": tuple(rows.values()), "limits": (*site.limits, *_of_associations(held, up, site))}
    return replace(site, **found, unmodelled=(*site.unmodelled, *unknown))


def _of_associations(held: Mapping, up: Mapping[str, str], site: Description) -> Iterator[Limit]:
    """Limits of associations, those of equal amounts together; jobs of a QOS that has such a limit count, and are not held to them."""
    below = {}
    above = {}
    groups = {}
    for account in up:
        above[account] = [account]
        while (parent := up.get(above[account][-1])) and parent not in above[account]:
            above[account].append(parent)
        for each in above[account]:
            below.setdefault(each, []).append(account)
    for (account, user), own in held.items():
        given = [held.get((each, ""), {}) for each in reversed(above.get(account, ()))] * bool(user)
        jobs = {key: amount for each in given for key, amount in each.items() if key[0] == "member"}
        for (of, what, gpu_type), amount in (jobs | own).items():
            if user:
                whose = "member"
                names = [f"{account}/{user}"]
            elif of == "accounts":
                whose = "account" if len(below[account]) == 1 else of
                names = below[account]
            else:  # what each user of an account may have is said of the users
                continue
            one = account * (whose == "accounts")
            groups.setdefault((whose, what, gpu_type, amount, OVER[of, what], one), []).extend(names)
    for (whose, what, gpu_type, amount, over, _), names in groups.items():
        exempt = []
        for limit in site.limits:
            if limit.of in over and limit.gpu_type == gpu_type and what in limit.amounts:
                exempt += limit.names if limit.of == "qos" else limit.qos
        if not exempt or {name for name, _ in site.qos} - {*exempt}:
            yield Limit(whose, tuple(names), gpu_type=gpu_type, exempt=tuple(exempt), **{what: amount})
