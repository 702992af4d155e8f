"""A log's record as arrays: jobs, their starts and nodes, and the rule and windows of their site."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators.requested import Requested
from gpuschedlab.papers.clusters.explains.sweep import EASY, ENDS, GREEDY, LOOSE, QUEUES, STARTS, STRICT, Jobs, Rules
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
        """Return an array (n,): the number of each job's values in columns; -1 if it lacks one."""
        return codes(self.trace, *names)


class Cells(NamedTuple):
    """Nodes on which jobs ran."""

    node: np.ndarray  # (C,) node of each cell, job by job
    count: np.ndarray  # (n,) cells of each job


class Nodes(NamedTuple):
    """Nodes of a log's cluster."""

    size: np.ndarray  # (N,) slots
    masks: np.ndarray  # (P, N) whether jobs of a part may have a node
    part: np.ndarray  # (n,) part of each job


def codes(trace: pl.DataFrame, *names: str) -> np.ndarray:
    """Return an array (n,): the number of each job's values in columns; -1 if it lacks one."""
    if not set(names) <= set(trace.columns):
        return np.full(trace.height, -1)
    ranks = pl.struct(names).rank("dense").cast(pl.Int64)
    complete = pl.all_horizontal(pl.col(names).is_not_null())
    numbers = pl.when(complete).then(ranks - 1).otherwise(-1)
    return trace.select(numbers).to_series().to_numpy()


def codes_of_limits(trace: pl.DataFrame, count: int) -> np.ndarray:
    """Return an array (K, n): the number of the owner for which each job counts by each of so many limits; -1 if it counts for none."""
    owner = np.full((count, trace.height), -1)
    for k in range(count):
        owner[k] = codes(trace, f"limit{k}")
    return owner


def in_slots(gpus: np.ndarray) -> tuple[int, np.ndarray]:
    """Return a tuple: the slots of a GPU, and an array (n,) of the slots of jobs that ask for so many GPUs.

    A GPU has 1 slot if all jobs ask for whole GPUs.
    """
    unit = SLOTS
    if (gpus % 1 == 0).all():
        unit = 1
    slots = (gpus * unit).round()
    return unit, np.maximum(1, slots).astype(np.int64)


def fewest(slots: np.ndarray, size: np.ndarray | int) -> np.ndarray:
    """Return an array: the least number of parts of such sizes that hold so many slots."""
    return -(-slots // size)


def spread(slots: np.ndarray, each: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return an array (C,): the slots of jobs on so many cells each (n,).

    A cell has as many as `each` says (n,), and the last one those that are left.
    """
    first_cell = np.cumsum(count) - count
    most = np.repeat(each, count)
    before = np.arange(len(most)) - np.repeat(first_cell, count)
    return np.clip(np.repeat(slots, count) - before * most, 0, most)


def record(scenario: Scenario, own: Policy, names: Sequence[str], limits: Sequence[Limit], day: float) -> Record:
    """Return the `Record` of a log with recorded starts.

    It has arrays of the log's jobs, its rule, nodes of such names, and its site's limits.
    """
    cluster = scenario.cluster
    trace = _started(scenario.trace)
    unit, slots = in_slots(trace["gpus"].to_numpy())
    cells = cells_of(trace, names, cluster)
    nodes = _nodes(scenario, trace, unit)
    sure = _surely_fits(slots, nodes.size)
    listed = cells is not None
    if not listed:
        nodes = Nodes(nodes.size.sum(keepdims=True), np.ones((1, 1), bool), np.zeros(len(slots), np.int64))
        cells = Cells(np.zeros(len(slots), np.int64), np.ones(len(slots), np.int64))
    jobs = _jobs(trace, slots, nodes, cells)
    if listed and "nodes" in trace.columns:
        wide = np.maximum(jobs.wide, trace["nodes"].fill_null(1).to_numpy())
        jobs = jobs._replace(wide=wide, each=fewest(slots, wide))
    rule = LOOSE
    if isinstance(own, Fifo):
        rule = RULES[own.backfill]
    rules = rules_of(limits, codes_of_limits(trace, len(limits)), jobs.qos, unit, day)._replace(
        rule=rule,
        lag=lag_of(jobs.eligible, jobs.start, jobs.end),
        size=nodes.size,
        masks=nodes.masks,
        windows=whole_windows(cluster),
    )
    # Machine code is kept by layout.
    return Record(trace, Jobs(*(np.array(job_column, order="C") for job_column in jobs)), rules, listed, unit, sure)


def _started(trace: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of the jobs that started, in order of the queue.

    Added are their row, the instant at which they were eligible, and their array.
    """
    if "started" not in trace.columns or not trace["started"].count():
        raise TraceError("explain: found no recorded starts; expected a log with the column started.")
    instants = [instant_column for instant_column in ("submit", "eligible") if instant_column in trace.columns]
    trace = trace.with_columns(eligible=pl.max_horizontal(instants)).with_row_index("row")
    trace = trace.drop_nulls("started").sort("eligible", "submit", "row")
    return trace.with_columns(array=ARRAY)


def _nodes(scenario: Scenario, trace: pl.DataFrame, unit: int) -> Nodes:
    """Return the `Nodes` of a cluster, and those that the jobs of a log may have."""
    cluster = scenario.cluster
    group = np.repeat(np.arange(len(cluster.groups)), [g.nodes for g in cluster.groups])
    size = np.array([g.gpus_per_node for g in cluster.groups])[group] * unit
    kinds = eligibility_of(scenario.trace, cluster, scenario.types)
    if kinds is None:
        return Nodes(size, np.ones((1, len(size)), bool), np.zeros(trace.height, np.int64))
    type_masks, mask_of_job, *_ = distinct_rows(kinds[trace["row"].to_numpy()] > 0)
    kind_of_group = np.array([cluster.gpu_types.index(g.kind) for g in cluster.groups])
    masks = np.array(type_masks[:, kind_of_group[group]], order="C")
    return Nodes(size, masks, mask_of_job)


def _surely_fits(slots: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return an array (n,): idle slots with which jobs fit on their fewest nodes, wherever the slots are."""
    largest = size.max()
    wide = fewest(slots, largest)
    # Just too few: all slots of one node less than it needs are idle, and on each other one slot less than it needs there.
    lacking = fewest(slots, wide) - 1
    return (wide - 1) * largest + (len(size) - wide + 1) * lacking + 1


def _jobs(trace: pl.DataFrame, slots: np.ndarray, nodes: Nodes, cells: Cells) -> Jobs:
    """Return the `Jobs` of a log on the fewest nodes that hold them."""
    submit = trace["submit"].to_numpy()
    eligible = trace["eligible"].to_numpy()
    start = trace["started"].to_numpy()
    end = start + trace["duration"].to_numpy()
    largest = np.array([nodes.size[mask].max() for mask in nodes.masks])
    wide = fewest(slots, largest[nodes.part])
    time, kind, job = events(eligible, start, end)
    return Jobs(
        submit=submit,
        eligible=eligible,
        start=start,
        end=end,
        asked=Requested().predict(trace),
        slots=slots,
        part=nodes.part,
        wide=wide,
        each=fewest(slots, wide),
        first=np.concatenate([[0], np.cumsum(cells.count)]),
        node=cells.node,
        held=spread(slots, fewest(slots, cells.count), cells.count),
        qos=np.maximum(codes(trace, "qos"), 0),
        time=time,
        kind=kind,
        job=job,
    )


def rules_of(limits: Sequence[Limit], owner: np.ndarray, qos: np.ndarray, unit: int, day: float) -> Rules:
    """Return limits, hours and tiers as `Rules`.

    `owner` (K, n) is the owner for which a job counts by each limit, -1: none; `qos` is (n,).
    """
    jobs = len(qos)
    tier = np.zeros(jobs)
    closed = np.zeros((qos.max(initial=0) + 1, 48), bool)
    limit_rows = []
    counts_jobs = []
    most = []
    for k, limit in enumerate(limits):
        counted = owner[k] >= 0
        tier[counted] = np.maximum(tier[counted], limit.tier)
        if limit.hours:
            closed[np.ix_(np.unique(qos[counted]), limit.closed)] = True
        for of_jobs, amount in ((False, limit.gpus * unit), (True, limit.jobs)):
            if amount < INF:
                limit_rows.append(k)
                counts_jobs.append(of_jobs)
                most.append(amount)
    tier_place = np.empty(jobs)
    tier_place[np.argsort(-tier, kind="stable")] = np.arange(jobs)
    amounts = np.array(most, float).astype(np.int64)
    no_windows = np.zeros((0, 2))
    return Rules(
        rule=EASY,
        lag=0.0,
        size=np.zeros(0, np.int64),
        masks=no_windows > 0,
        windows=no_windows,
        place=tier_place,
        owner=owner[np.array(limit_rows, np.int64)],
        counts=np.array(counts_jobs, bool),
        most=np.repeat(amounts[:, None], owner.max(initial=0) + 1, axis=1),
        holds=np.ones(len(limit_rows), bool),
        closed=closed,
        zero=day,
        held=np.zeros(jobs, bool),
    )


def events(eligible, start, end) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of arrays: times, kinds and jobs.

    At one instant jobs end, queue, start; one that starts when eligible never waits.
    """
    time = np.concatenate([end, eligible, start])
    kind = np.repeat([ENDS, QUEUES, STARTS], len(start)).astype(np.int8)
    job = np.tile(np.arange(len(start)), 3)
    happens = (kind != QUEUES) | (eligible < start)[job]
    event_order = np.lexsort((job, kind, time))
    event_order = event_order[happens[event_order]]
    return time[event_order], kind[event_order], job[event_order]


def lag_of(eligible, start, end) -> float:
    """Return the seconds within which 99 of 100 starts follow an end or a job that becomes eligible."""
    released = np.sort(np.concatenate([end, eligible]))
    releases_before = np.searchsorted(released, start, side="right")
    after = start - released[np.maximum(releases_before - 1, 0)]
    return float(np.clip(np.ceil(np.quantile(after, 0.99)) + 1, *LAGS))


def whole_windows(cluster: Cluster) -> np.ndarray:
    """Return an array (W, 3) of the windows of a cluster that all its nodes have: start, end, and when they are known (s)."""
    windows = [(event.start, event.end, getattr(event, "announced", event.start)) for event in cluster.events]
    spans, _, nodes, _ = distinct_rows(windows or np.zeros((0, 3)))
    return spans[nodes == cluster.total_nodes]


def cells_of(trace: pl.DataFrame, names: Sequence[str], cluster: Cluster) -> Cells | None:
    """Return the nodes of each job as `Cells`, by these names.

    Return None if some jobs have no list, or the names are not the cluster's.
    """
    if "nodelist" not in trace.columns or trace["nodelist"].null_count():
        return None
    lists = trace.select("nodelist").unique(maintain_order=True)
    hosts_of_lists = pl.Series([hosts(nodelist) for nodelist in lists["nodelist"]], dtype=pl.List(pl.String))
    listed = hosts_of_lists.explode().unique().sort()
    if not set(listed) <= set(names):  # the site's nodes have other names: any will do where they are alike
        names = listed.to_list()
        if len(cluster.groups) > 1 or len(names) > cluster.total_nodes:
            return None
    number = pl.element().replace_strict(names, range(len(names)), default=None)
    numbers = lists.with_columns(node=hosts_of_lists).with_columns(pl.col("node").list.eval(number))
    cells = trace.select("nodelist").join(numbers, on="nodelist", how="left", maintain_order="left")["node"]
    node = cells.explode().to_numpy()
    cells_of_job = cells.list.len().to_numpy()
    return Cells(node.astype(np.int64), cells_of_job.astype(np.int64))
