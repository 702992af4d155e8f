"""Answers of `sacctmgr -P show assoc` and `show qos`: accounts, users, QOS and their limits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.files.description import Description, Limit, seconds
from gpuschedlab.papers.clusters.files.slurm_files import number


def rows_of(text: str, source: str, needed: tuple[str, ...], same: Mapping[str, str]) -> Iterator[tuple[str, dict]]:
    """Yield tuples of the rows that `sacctmgr -P` prints: the place, a text, and a dict of values by column in lower case.

    `same`: other names of columns.
    """
    sacctmgr_lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    column_names = []
    if sacctmgr_lines:
        _, header = sacctmgr_lines[0]
        for column in header.lower().split("|"):
            column_name = column.strip().replace(" ", "")
            column_names.append(same.get(column_name, column_name))
    if lacking := [column_name for column_name in needed if column_name not in column_names]:
        raise TraceError(
            f"slurm {source}, line 1: found the columns {', '.join(column_names)[:200]}; expected also {', '.join(lacking)}."
        )
    for line_number, line in sacctmgr_lines[1:]:
        sacctmgr_row = dict(zip(column_names, line.split("|")))
        where = f"slurm {source}, line {line_number}"
        if len(sacctmgr_row) < len(column_names):
            raise TraceError(
                f"{where}: found {len(sacctmgr_row)} fields; expected {len(column_names)}, as in its first line."
            )
        yield where, sacctmgr_row


KINDS = {"tres": "gpus", "jobs": "jobs"}
OF_QOS = {f"max{key}p{owner[0]}": (owner, amount) for owner in ("user", "account") for key, amount in KINDS.items()}
OF_QOS |= {
    "grptres": ("qos", "gpus"),
    "grpjobs": ("qos", "jobs"),
    "maxtres": ("qos", "size"),
    "maxwall": ("qos", "wall"),
}
"""Columns of `show qos`: whose limit, and of which amount."""
OF_ASSOC = {"grptres": ("accounts", "gpus"), "grpjobs": ("accounts", "jobs"), "maxjobs": ("member", "jobs")}
OF_ASSOC |= {"maxtres": ("member", "size"), "maxwall": ("member", "wall")}
"""Columns of `show assoc`: of an account with those below it, or of each user in it; of a job its GPUs and its time."""
OVER = {("accounts", "gpus"): ("qos",), ("accounts", "jobs"): ("qos",), ("member", "jobs"): ("user", "account")}
OVER |= {("member", "size"): ("qos",), ("member", "wall"): ("qos",)}
"""Owners by whose limits a QOS takes the place of an association's (Slurm's page "Resource Limits")."""
LONG = {f"max{key}per{owner}": f"max{key}p{owner[0]}" for owner in ("user", "account") for key in KINDS}
LONG |= {"maxtresperjob": "maxtres", "maxtrespj": "maxtres", "maxwalldurationperjob": "maxwall", "maxwallpj": "maxwall"}
OF_GPUS = ("gpus", "size")
"""Amounts that are of GPUs, of all or of one type."""
IDLE = {"gracetime": "00:00:00", "preemptmode": "cluster", "usagefactor": "1.000000"}
NO_LIMITS = {"account", "user", "share", "parentname", "cluster"}


def limits_in(row: dict[str, str], known: Mapping, where: str, unknown: dict) -> dict[tuple[str, str, str], float]:
    """Return a dict of the amount of each limit of a row by a tuple: its owner, kind and GPU type.

    Other columns that say something are not modelled.
    """
    limits = {}
    sacctmgr_table = "assoc"
    if known is OF_QOS:
        sacctmgr_table = "qos"
    for limit_column, limit_text in row.items():
        limit_amount = limit_text.strip()
        if limit_column not in known:
            if limit_amount and limit_column and limit_amount != IDLE.get(limit_column):
                unknown[f"{sacctmgr_table} {limit_column}"] = None
            continue
        owner, kind = known[limit_column]
        if kind == "wall" and limit_amount:
            limits[owner, kind, ""] = seconds(limit_amount, f"{where} {limit_column}")
            continue
        resource = ""
        tres_entries = [limit_amount]
        if kind in OF_GPUS:
            resource = "gres/gpu"
            tres_entries = limit_amount.split(",")
        for tres_entry in filter(None, tres_entries):
            tres, _, amount = tres_entry.rpartition("=")
            tres_name, _, gpu_type = tres.partition(":")
            if tres_name == resource:
                limits[owner, kind, gpu_type] = number(amount, f"{where} {limit_column}")
            elif tres_entry != IDLE.get(limit_column):
                unknown[" ".join(filter(None, (sacctmgr_table, limit_column, tres)))] = None
    return limits


def read_qos(text: str, source: str, site: Description) -> Description:
    """Return the site's `Description` with the QOS of `sacctmgr -P show qos`: priorities, and GPUs and jobs that they allow."""
    priorities = []
    limits = []
    unknown = {}
    for where, qos_row in rows_of(text, source, ("name",), LONG):
        qos_name = qos_row.pop("name").strip()
        priority = qos_row.pop("priority", "").strip()
        priorities.append((qos_name, number(priority or "0", f"{where} Priority")))
        for (owner, kind, gpu_type), amount in limits_in(qos_row, OF_QOS, where, unknown).items():
            owners = {"qos": (qos_name,)}
            if owner == "qos":
                owners = {"names": (qos_name,)}
            limits.append(Limit(owner, gpu_type=gpu_type, **owners, **{kind: amount}))
    return replace(
        site,
        qos=tuple(priorities),
        limits=(*site.limits, *limits),
        unmodelled=(*site.unmodelled, *unknown),
    )


def read_assoc(text: str, source: str, site: Description) -> Description:
    """Return the site's `Description` with accounts, users and limits of `sacctmgr -P show assoc`.

    Its format=Account,User,ParentName,Share is enough.
    """
    same = {"parname": "parentname", "fairshare": "share"}
    unknown = {}
    association_rows = {}
    limits = {}
    clusters = set()
    above: list[tuple[int, str]] = []  # accounts over a line, by indentation, where the answer is a tree
    for where, association_row in rows_of(text, source, ("account", "user", "share"), same):
        clusters.add(association_row.get("cluster", ""))
        columns = {
            association_column: association_value
            for association_column, association_value in association_row.items()
            if association_column not in NO_LIMITS
        }
        limits_of_row = limits_in(columns, OF_ASSOC, where, unknown)
        account = association_row["account"].strip()
        user = association_row["user"].strip()
        share = association_row["share"].strip()
        parent = association_row.get("parentname", "").strip()
        if not user:
            depth = len(association_row["account"]) - len(association_row["account"].lstrip())
            above = [(indentation, account_name) for indentation, account_name in above if indentation < depth]
            if not parent and above:
                parent = above[-1][1]
            above.append((depth, account))
        if share.lower() == "parent":
            unknown["assoc Share=parent"] = None
            share = "1"
        shares = number(share, f"{where} Share")
        association_rows.setdefault((account, user), (account, user, parent, shares))
        if not association_row.get("partition", "").strip():
            limits.setdefault((account, user), limits_of_row)
    if len(clusters) > 1:
        raise TraceError(
            f"slurm {source}: found the clusters {', '.join(sorted(clusters))}; expected one: show assoc cluster=NAME."
        )
    parents = {account: parent for account, user, parent, _ in association_rows.values() if not user}
    of_accounts = any("accounts" in limit_key for amounts in limits.values() for limit_key in amounts)
    if len(parents) > 1 and not any(parents.values()) and of_accounts:
        unknown["assoc ParentName, without which an account's limits are of its own jobs alone"] = None
    return replace(
        site,
        accounts=tuple(association_rows.values()),
        limits=(*site.limits, *_of_associations(limits, parents, site)),
        unmodelled=(*site.unmodelled, *unknown),
    )


class _Group(NamedTuple):
    """Limits of associations that are one: those of equal amounts of the same kind."""

    owner: str  # kind of their owners
    kind: str  # kind of the amount
    gpu_type: str
    amount: float
    over: tuple[str, ...]  # owners by whose limits a QOS takes their place
    account: str  # of one account with those below it; "": of any


def _of_associations(limits: Mapping, parents: Mapping[str, str], site: Description) -> Iterator[Limit]:
    """Yield each `Limit` of associations, those of equal amounts together.

    Jobs of a QOS that has such a limit count, and are not held to them.
    """
    accounts_above = _accounts_above(parents)
    below = {}
    for account, line in accounts_above.items():
        for account_above in line:
            below.setdefault(account_above, []).append(account)
    groups = {}
    for account, user in limits:
        for (owner, kind, gpu_type), amount in _with_inherited(limits, account, user, accounts_above).items():
            over = OVER[owner, kind]
            if user:
                group = _Group("member", kind, gpu_type, amount, over, "")
                owner_names = [f"{account}/{user}"]
            elif owner != "accounts":  # limits of each user of an account are said of the users
                continue
            elif len(below[account]) == 1:
                group = _Group("account", kind, gpu_type, amount, over, "")
                owner_names = below[account]
            else:
                group = _Group("accounts", kind, gpu_type, amount, over, account)
                owner_names = below[account]
            groups.setdefault(group, []).extend(owner_names)
    for group, owner_names in groups.items():
        exempt = _with_limits_of_their_own(group, site)
        if not exempt or {qos_name for qos_name, _ in site.qos} - {*exempt}:
            amount = {group.kind: group.amount}
            yield Limit(group.owner, tuple(owner_names), gpu_type=group.gpu_type, exempt=exempt, **amount)


def _accounts_above(parents: Mapping[str, str]) -> dict[str, list[str]]:
    """Return a dict: each account with a list of those above it, from itself to the root."""
    accounts_above = {}
    for account in parents:
        account_line = [account]
        while (parent := parents.get(account_line[-1])) and parent not in account_line:
            account_line.append(parent)
        accounts_above[account] = account_line
    return accounts_above


def _with_inherited(limits: Mapping, account: str, user: str, lines: Mapping[str, list[str]]) -> dict:
    """Return a dict of the amounts of an association; those of a user include the amounts that its accounts give to each user."""
    amounts = {}
    if user:
        for account_above in reversed(lines.get(account, ())):
            of_account = limits.get((account_above, ""), {})
            for (owner, kind, gpu_type), amount in of_account.items():
                if owner == "member":
                    amounts[owner, kind, gpu_type] = amount
    return amounts | limits[account, user]


def _with_limits_of_their_own(group: _Group, site: Description) -> tuple[str, ...]:
    """Return a tuple of the names of QOS whose own limits take the place of limits of associations; empty if there are none."""
    exempt = []
    for limit in site.limits:
        if limit.of in group.over and limit.gpu_type == group.gpu_type and group.kind in limit.amounts:
            if limit.of == "qos":
                exempt += limit.names
            else:
                exempt += limit.qos
    return tuple(exempt)
