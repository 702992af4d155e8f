"""The way back: commands of sacctmgr for changed limits."""

from collections.abc import Iterator, Sequence

from gpuschedlab.papers.clusters.files.description import INF, Description, Limit
from gpuschedlab.papers.clusters.files.sacctmgr_files import OF_ASSOC, OF_QOS
from gpuschedlab.papers.clusters.files.slurm_lines import dhms

OF_KINDS = {pair: column for column, pair in (*OF_QOS.items(), *OF_ASSOC.items())}
COLUMNS = {"grptres": "GrpTRES", "grpjobs": "GrpJobs", "maxjobs": "MaxJobs", "maxtres": "MaxTRES", "maxwall": "MaxWall"}
OF_EACH = {
    ("user", "gpus"): "MaxTRESPU",
    ("user", "jobs"): "MaxJobsPU",
    ("account", "gpus"): "MaxTRESPA",
    ("account", "jobs"): "MaxJobsPA",
}
"""Limits of each user or account in a QOS."""


def commands(site: Description, wanted: Sequence[Limit]) -> tuple[list[str], list[str]]:
    """Return a tuple of two lists of str: commands of sacctmgr, and in words limits that it cannot say.

    The commands turn a site's limits into others.
    """
    before = _amounts(site.limits, site)
    after = _amounts(wanted, site)
    sacctmgr_commands = []
    unsaid = []
    for amount_key in dict.fromkeys([*before, *after]):
        if before.get(amount_key) == after.get(amount_key):
            continue
        whose, column, gpu_type = amount_key
        wanted_amount = after.get(amount_key)
        if not column:
            unsaid.append(whose)
            continue
        sacctmgr_commands.append(f"sacctmgr -i modify {whose} set {column}={_value(column, gpu_type, wanted_amount)}")
    return sacctmgr_commands, unsaid


def _value(column: str, gpu_type: str, value: float | None) -> str:
    """Return the value of a column as the text that sacctmgr takes; -1 takes a limit away."""
    if value is None:
        amount_text = "-1"
    elif column.endswith("Wall"):
        amount_text = dhms(value)
    else:
        amount_text = f"{round(value)}"
    if "TRES" not in column:
        return amount_text
    if gpu_type:
        return f"gres/gpu:{gpu_type}={amount_text}"
    return f"gres/gpu={amount_text}"


def _amounts(limits: Sequence[Limit], site: Description) -> dict[tuple[str, str, str], float]:
    """Return a dict of amounts by a tuple: the words of sacctmgr for their owner, column and GPU type.

    Amounts without a column have a sentence in the place of the owner.
    """
    amounts = {}
    for limit in limits:
        for kind, amount in limit.amounts.items():
            for whose, column in _places(limit, kind, site):
                amount_key = (whose, column, limit.gpu_type)
                amounts[amount_key] = min(amount, amounts.get(amount_key, INF))
        if limit.timed:
            amounts[f"hours or tiers of {limit.of} {', '.join(limit.names)}", "", ""] = 0.0
    return amounts


def _places(limit: Limit, kind: str, site: Description) -> Iterator[tuple[str, str]]:
    """Yield the words of sacctmgr for each owner of a limit, and its column there; ("...", "") if it has none."""
    if limit.of == "qos" and limit.names:
        column = COLUMNS[OF_KINDS["qos", kind]]
        for owner_name in limit.names:
            yield f"qos {owner_name}", column
        return
    qos = limit.qos
    if not qos and not limit.names and len(site.qos) == 1:
        qos = tuple(qos_name for qos_name, _ in site.qos)  # the only one: each job has it
    if (limit.of, kind) in OF_EACH and qos and not limit.names:
        for qos_name in qos:
            yield f"qos {qos_name}", OF_EACH[limit.of, kind]
    elif limit.of in ("account", "accounts") and limit.names and not qos and kind in ("gpus", "jobs"):
        owner_names = limit.names
        if limit.of == "accounts":
            owner_names = limit.names[:1]  # with those below it
        column = COLUMNS[OF_KINDS["accounts", kind]]
        for owner_name in owner_names:
            yield f"account {owner_name}", column
    elif limit.of == "member" and limit.names and not qos:
        column = "grptres"
        if kind != "gpus":
            column = OF_KINDS["member", kind]
        for owner_name in limit.names:
            account, _, user = owner_name.partition("/")
            yield f"user where name={user} account={account}", COLUMNS[column]
    else:
        owners = " ".join([limit.of, *limit.names, *(f"of qos {qos_name}" for qos_name in limit.qos)])
        if not limit.names:
            owners = f"each {owners}"
        yield f"{kind} of {owners}", ""
