"""What a log recorded, as arrays: jobs, their starts and nodes, and the rule and windows of their site."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators.requested import Requested
from gpuschedlab.papers.clusters.explains.sweep import EASY, GREEDY, LOOSE, STRICT, Jobs, Rules
from gpuschedlab.papers.clusters.schedulers.limits import ARRAY, INF, Limit
from gpuschedlab.policies.simple import Fifo
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.setup.eligibility import eligibility_of
from gpuschedlab.traces.logs.hosts import hosts

RULES = {"none": STRICT, "easy": EASY, "plan": LOOSE, "greedy": GREEDY}
LAGS = (2.0, 60.0)
"""Seconds that a start takes at least and at most after the release that allows it."""


class Record(NamedTuple):
    """Jobs of a log that started, and the rules of their site; not `listed`: some have no list of nodes, and all nodes are one."""

    trace: pl.DataFrame
    jobs: Jobs
    rules: Rules
    listed: bool
    unit: int  # slots of a GPU
    sure: np.ndarray  # (n,) idle slots with which each job fits, wherever they are

    def codes(self, *names: str) -> np.ndarray:
        """Number of each job's values in columns; -1 where it lacks one."""
        return codes(self.trace, *names)


def codes(trace: pl.DataFrame, *names: str) -> np.ndarray:
    """Number of each job's values in columns; -1 where it lacks one."""
    if not set(names) <= set(trace.columns):
        return np.full(trace.height, -1)
    ranks = pl.struct(names).rank("dense").cast(pl.Int64) - 1
    there = pl.all_horizontal(pl.col(names).is_not_null())
    return trace.select(pl.when(there).then(ranks).otherwise(-1)).to_series().to_numpy()


def record(scenario: Scenario, own: Policy, names: Sequence[str], limits: Sequence[Limit], day: float) -> Record:
    """Arrays of a log that has recorded starts, of the rule that started its jobs, of nodes of such names, and of its site's limits."""
    trace = scenario.trace
    cluster = scenario.cluster
    if "started" not in trace.columns or not trace["started"].count():
        raise TraceError("explain: found no recorded starts; expected a log with the column started.")
    kinds = eligibility_of(trace, cluster, scenario.types)
    known = [name for name in ("submit", "eligible") if name in trace.columns]
    trace = trace.with_columns(eligible=pl.max_horizontal(known)).with_row_index("row")
    trace = trace.drop_nulls("started").sort("eligible", "submit", "row")
    trace = trace.with_columns(array=ARRAY)
    of = np.repeat(np.arange(len(cluster.groups)), [g.nodes for g in cluster.groups])
    unit = 1 if (trace["gpus"] % 1 == 0).all() else SLOTS
    slots = np.maximum(1, (trace["gpus"].to_numpy() * unit).round()).astype(np.int64)
    size = np.array([g.gpus_per_node for g in cluster.groups])[of] * unit
    masks = np.ones((1, len(size)), bool)
    part = np.zeros(len(slots), np.int64)
    wide = -(-slots // size.max())
    most = size.max()
    sure = (wide - 1) * most + (len(size) - wide + 1) * (-(-slots // wide) - 1) + 1
    cells = cells_of(trace, names, cluster)
    if cells is None:
        size = size.sum(keepdims=True)
        masks = masks[:, :1]
    elif kinds is not None:
        rows, part, *_ = distinct_rows(kinds[trace["row"].to_numpy()] > 0)
        masks = np.array(rows[:, [cluster.gpu_types.index(g.kind) for g in cluster.groups]][:, of], order="C")
    node, count = cells or (np.zeros(len(slots), np.int64), np.ones(len(slots), np.int64))
    wide = -(-slots // np.array([size[mask].max() for mask in masks])[part])
    if cells and "nodes" in trace.columns:
        wide = np.maximum(wide, trace["nodes"].fill_null(1).to_numpy())
    first = np.concatenate([[0], np.cumsum(count)])
    each = np.repeat(-(-slots // count), count)
    before = np.arange(len(node)) - np.repeat(first[:-1], count)
    held = np.clip(np.repeat(slots, count) - before * each, 0, each)
    submit, eligible, start = (trace[name].to_numpy() for name in ("submit", "eligible", "started"))
    times = submit, eligible, start, start + trace["duration"].to_numpy(), Requested().predict(trace)
    qos = np.maximum(codes(trace, "qos"), 0)
    n = len(slots)
    arrays = *times, slots, part, wide, -(-slots // wide), first, node, held, qos, *events(*times[1:4])
    jobs = Jobs(*(np.array(values, order="C") for values in arrays))  # machine code is kept by layout
    lag = lag_of(eligible, start, times[3])
    rule = RULES[own.backfill] if isinstance(own, Fifo) else LOOSE
    owner = np.array([codes(trace, f"limit{k}") for k in range(len(limits))], np.int64).reshape(-1, n)
    own_rules = {"rule": rule, "lag": lag, "size": size, "masks": masks, "windows": whole_windows(cluster)}
    return Record(trace, jobs, rules_of(limits, owner, qos, unit, day)._replace(**own_rules), bool(cells), unit, sure)


def rules_of(limits: Sequence[Limit], owner: np.ndarray, qos: np.ndarray, unit: int, day: float) -> Rules:
    """Limits, hours and tiers as rules, by the owner (K, n) for which a job counts by each limit, -1: none, and the QOS (n,)."""
    n = len(qos)
    tier = np.zeros(len(qos))
    closed = np.zeros((qos.max(initial=0) + 1, 48), bool)
    for limit, of in zip(limits, owner, strict=True):
        tier[of >= 0] = np.maximum(tier[of >= 0], limit.tier)
        if limit.hours:
            closed[np.ix_(np.unique(qos[of >= 0]), limit.closed)] = True
    rows = [(k, jobs, v) for k, x in enumerate(limits) for jobs, v in ((0, x.gpus * unit), (1, x.jobs)) if v < INF]
    k, counts, values = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    most = np.repeat(values[:, None], owner.max(initial=0) + 1, axis=1)
    place = np.empty(n)
    none = np.zeros((0, 2))
    place[np.argsort(-tier, kind="stable")] = np.arange(n)
    parts = place, owner[k], counts > 0, most, np.ones(len(k), bool), closed, day, np.zeros(n, bool)
    return Rules(EASY, 0.0, np.zeros(0, np.int64), none > 0, none, *parts)


def events(eligible, start, end) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, kinds and jobs: at one instant jobs end, queue, start; one that starts when eligible never waits."""
    time = np.concatenate([end, eligible, start])
    kind = np.repeat([0, 1, 2], len(start)).astype(np.int8)
    job = np.tile(np.arange(len(start)), 3)
    there = (kind != 1) | (eligible < start)[job]
    order = np.lexsort((job, kind, time))
    order = order[there[order]]
    return time[order], kind[order], job[order]


def lag_of(eligible, start, end) -> float:
    """Seconds within which 99 of 100 starts follow an end or a job that becomes eligible."""
    released = np.sort(np.concatenate([end, eligible]))
    after = start - released[np.maximum(np.searchsorted(released, start, side="right") - 1, 0)]
    return float(np.clip(np.ceil(np.quantile(after, 0.99)) + 1, *LAGS))


def whole_windows(cluster: Cluster) -> np.ndarray:
    """Windows (W, 3) of a cluster that all its nodes have: start, end, and when they are known (s)."""
    all_ = [(w.start, w.end, getattr(w, "announced", w.start)) for w in cluster.events] or np.zeros((0, 3))
    spans, _, nodes, _ = distinct_rows(all_)
    return spans[nodes == cluster.total_nodes]


def cells_of(trace: pl.DataFrame, has: Sequence[str], cluster: Cluster) -> tuple[np.ndarray, np.ndarray] | None:
    """Nodes of each job in turn, and how many it has; None where some jobs have no list, or the names are not the cluster's."""
    if "nodelist" not in trace.columns or trace["nodelist"].null_count():
        return None
    lists = trace.select("nodelist").unique(maintain_order=True)
    names = lists.with_columns(name=pl.Series([hosts(text) for text in lists["nodelist"]], dtype=pl.List(pl.String)))
    seen = names["name"].explode().unique().sort().to_list()
    if not set(seen) <= set(has):  # the site's nodes have other names: any will do where they are alike
        has = seen
        if len(cluster.groups) > 1 or len(seen) > cluster.total_nodes:
            return None
    at = names.with_columns(pl.col("name").list.eval(pl.element().replace_strict(has, range(len(has)), default=None)))
    cells = trace.select("nodelist").join(at, on="nodelist", how="left", maintain_order="left")["name"]
    return cells.explode().to_numpy().astype(np.int64), cells.list.len().to_numpy().astype(np.int64)
