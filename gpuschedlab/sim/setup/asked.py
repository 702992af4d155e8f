"""Which nodes jobs may have: of the partitions and the GPU types that they ask for."""

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import bare
from gpuschedlab.errors import ClusterError, TraceError

NAMED = 10
"""Kinds of requests that an error names."""


def with_lists(trace: pl.DataFrame, cluster: Cluster, types: str | None) -> pl.DataFrame:
    """The trace with what jobs are bound to as lists, in columns `gpu_types` and `partitions`; null: anything will do.

    Parameters
    ----------
    trace : polars.DataFrame
    cluster : Cluster
        Partitions bind where it has any.
    types : {None, "requested"}
        Whether GPU types bind.

    Raises
    ------
    TraceError
        `types` is neither.
    """
    if types not in (None, "requested"):
        raise TraceError(f"types: found {types!r}; expected None (jobs run on any), or 'requested'.")
    bound = {"gpu_types": "gpu_type"} if types else {}
    bound |= {"partitions": "vc"} if partitions_of(cluster) else {}
    for name, single in bound.items():
        lists = [pl.col(name)] if name in trace.columns else []
        lists += [pl.concat_list(single)] if single in trace.columns else []
        if lists:
            some = pl.coalesce(pl.when(found.list.drop_nulls().list.len() > 0).then(found) for found in lists)
            trace = trace.with_columns(some.alias(name))
    return trace


def partitions_of(cluster: Cluster) -> set[str]:
    """Partitions of a cluster."""
    return {name for group in cluster.groups for name in group.partitions}


def turns_of(trace: pl.DataFrame, cluster: Cluster, types: str | None) -> np.ndarray | None:
    """Place (n, T) of each type of nodes among those that a job asks for, from 1; 0: it may not have them. None: all are alike.

    Parameters
    ----------
    trace : polars.DataFrame
        `with_lists`.
    cluster, types
        As there.

    Raises
    ------
    ClusterError
        Jobs ask for what the cluster lacks; the message counts them.

    Examples
    --------
    >>> trace = pl.DataFrame({"gpu_types": [["T4", "v100"], None], "partitions": [["main"], ["debug"]]})
    >>> cluster = Cluster.parse("2x8:v100@main,1x8:v100@debug,1x4:t4@debug+main")
    >>> turns_of(trace, cluster, "requested").tolist()
    [[2, 0, 1], [0, 1, 1]]
    """
    names = [
        n for n, binds in (("gpu_types", types), ("partitions", partitions_of(cluster))) if binds and n in trace.columns
    ]
    if not names:
        return None
    asked = trace.select(pl.col(names).list.join("\0").fill_null(""))
    kinds = asked.unique(maintain_order=True)
    turns = np.array([_turns(cluster, dict(zip(names, row, strict=True))) for row in kinds.iter_rows()], np.int8)
    rows = asked.join(kinds.with_row_index("kind"), on=names, how="left", maintain_order="left")["kind"].to_numpy()
    found = turns.reshape(-1, len(cluster.gpu_types))[rows]
    if not (found > 0).any(axis=1).all():
        raise _lacking(asked.filter(~(found > 0).any(axis=1)), trace.height, cluster)
    return None if (found == 1).all() else found


def _turns(cluster: Cluster, asked: dict[str, str]) -> list[int]:
    """Place of each type of nodes for one request."""
    wanted = asked.get("gpu_types", "").lower().split("\0")
    of = {g.kind: set(g.partitions) for g in cluster.groups}
    parts = set(asked.get("partitions", "").split("\0"))
    here = [parts == {""} or bool(parts & of[kind]) for kind in cluster.gpu_types]
    types = [bare(kind).lower() for kind in cluster.gpu_types]
    return [
        ok * (1 if wanted == [""] else wanted.index(t) + 1 if t in wanted else 0)
        for ok, t in zip(here, types, strict=True)
    ]


def _lacking(asked: pl.DataFrame, jobs: int, cluster: Cluster) -> ClusterError:
    """Error that counts the requests that no node meets, the commonest first."""
    counts = (
        asked.group_by(asked.columns, maintain_order=True)
        .len()
        .sort("len", *asked.columns, descending=[True, *[False] * asked.width])
    )
    named = [
        f"{' in '.join(w.replace(chr(0), ' or ') or 'any' for w in row[:-1])} ({row[-1]})" for row in counts.iter_rows()
    ]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ClusterError(
        f"{asked.height} of {jobs} jobs ask for {' in '.join(c.replace('_', ' ') for c in asked.columns)} that no node has: "
        f"{', '.join(named[:NAMED])}{more}; expected {', '.join(cluster.gpu_types)}. Give the cluster such nodes, set what they ask "
        "for to null, or leave the jobs out."
    )
