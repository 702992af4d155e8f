"""POP (Narayanan et al., SOSP'21): split a large problem into parts of jobs and GPUs, and solve each separately."""

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.knobs import Knob
from gpuschedlab.policies.kept_placement import repacked
from gpuschedlab.sim.policy import Round, Wrapped
from gpuschedlab.sim.rounds.allocation import GPUS, NODE, POSITION, Allocation
from gpuschedlab.sim.rounds.view import View

ROOM_ALONE = {"buddy": "pack"}
"""Rules that do not keep a job to the nodes of its part, with one that asks for nothing but GPUs: so much a part has for each job."""


@dataclass(frozen=True)
class Pop(Wrapped):
    """Deal jobs and nodes out to parts, and let a round policy decide for each part as if it were the whole.

    There are `parts` parts, or fewer if some job would find no place in one that is empty. Nodes go to the part that has the fewest
    GPUs of their type, job i of the trace to part i mod k. A job that runs is in the part of its nodes, and these stay in
    their part while it runs. Jobs are placed on nodes of their part, by the rule of the policy.

    Differs from the paper in
    -------------------------
    Clients are dealt out in turn, not at random, so that a part's jobs stay together from round to round. Clients with
    very large demands are not split (4.2): jobs are not divisible. If the number of parts changes, the policy starts
    anew in each. Under the rule "buddy" jobs are placed on any node; parts then follow them.

    References
    ----------
    Narayanan et al., POP, SOSP'21, sections 3 and 4.

    Examples
    --------
    >>> from gpuschedlab.policies import Optimus
    >>> Pop(Optimus(), parts=4).name
    'Pop(Optimus)'
    """

    policy: Round
    parts: Annotated[int, Knob(1, 64, help="into which jobs and GPUs are split")] = 8

    def begin(self) -> "_Parts":
        """Return the parts, and the state of the policy for each, as `_Parts`."""
        return _Parts()

    def allocate(self, view: View) -> Allocation:
        """Decide part by part, and return the `Allocation` of all."""
        pop_parts = view.memory
        if pop_parts.deal(view, self.parts, self.placement):
            pop_parts.carried = [self.policy.begin() for _ in range(pop_parts.count)]
        mine = pop_parts.of_jobs(view)
        answers = []
        for k in range(pop_parts.count):
            part_jobs = np.flatnonzero(mine == k)
            part_view = view.take(part_jobs, nodes=pop_parts.node == k, memory=pop_parts.carried[k])
            answer = self.policy.allocate(part_view)
            answers.append(
                (part_jobs, answer if self.placement == "buddy" else on_nodes(part_view, answer, self.placement))
            )
        return Allocation.combined(len(view), answers)


@dataclass
class _Parts:
    """How many parts there are, the part of each node (N,) and of each job, by row of the trace, and the state of each."""

    count: int = 0
    node: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    job: dict[int, int] = field(default_factory=dict)
    carried: list = field(default_factory=list)

    def deal(self, view, most: int, rule: str) -> bool:
        """Deal the nodes out, unless they are in as many parts as can be; whether there are more or fewer parts than before."""
        demands = Demands.of(view, ROOM_ALONE.get(rule, rule))
        before = self.count
        for part_count in range(most, 0, -1):
            if part_count > 1 and not demands.could_fit(part_count):
                continue
            same = part_count == before and demands.fit(self.node, part_count)
            dealt = self.node if same else self._dealt(view, part_count)
            if part_count == 1 or same or demands.fit(dealt, part_count):
                break
        self.count = part_count
        self.node = dealt
        if part_count != before:
            self.job = {}
        return part_count != before

    def _dealt(self, view, count: int) -> np.ndarray:
        """Return an array (N,): part of each node.

        Nodes that share a job are together, as they were if there are as many parts as before.
        """
        cluster = view.cluster
        size_of_parts = np.zeros((count, len(view.capacity)))
        part_of_node = np.full(cluster.total_nodes, -1)
        group = _groups(view)
        gpus_of_group = np.bincount(group, cluster.node_gpus, len(group))[group]
        busy = np.isin(np.arange(len(group)), view.nodes[:, NODE])
        # Nodes that hold jobs come first, and nodes that are down last.
        for n in np.lexsort((group, -gpus_of_group, ~view.up, ~busy)).tolist():
            if part_of_node[n] < 0:
                together = np.flatnonzero(group == group[n])
                kind = cluster.node_type[n]
                stays = busy[n] and count == self.count
                part_of_node[together] = self.node[n] if stays else size_of_parts[:, kind].argmin()
                size_of_parts[part_of_node[n], kind] += cluster.node_gpus[together].sum()
        return part_of_node

    def of_jobs(self, view) -> np.ndarray:
        """Return an array (n,): part of each job, that of its nodes, otherwise the one it was in, otherwise the next in turn."""
        part_of_job = np.array(
            [self.job.get(job_row, job_row % self.count) for job_row in view.index.tolist()], np.int64
        )
        node_of_cell = view.nodes.astype(np.int64)
        part_of_job[node_of_cell[:, POSITION]] = self.node[node_of_cell[:, NODE]]
        guests = np.setdiff1d(np.flatnonzero(view.running), node_of_cell[:, POSITION])
        part_of_job[guests] = part_of_job[view.partner[guests]]
        self.job = dict(zip(view.index.tolist(), part_of_job.tolist(), strict=True))
        return part_of_job


def _groups(view) -> np.ndarray:
    """Return an array (N,): group of each node. Nodes that running jobs share, directly or by others, have the same number."""
    from scipy import sparse  # loaded when used: every import would wait for it
    from scipy.sparse.csgraph import connected_components

    job, node = view.nodes[:, [POSITION, NODE]].astype(np.int64).T
    jobs_on_nodes = sparse.csr_array((np.ones(len(job)), (job, node)), shape=(len(view), view.cluster.total_nodes))
    return connected_components(jobs_on_nodes.T @ jobs_on_nodes, directed=False)[1]


@dataclass
class Demands:
    """The jobs of a view that each part must be able to place, by the GPU types that they can use and the GPUs that they ask for.

    `types` (m, T) bool and `gpus` (m,) are all that differ; the last one is one GPU of any type, so that no part is without nodes.
    """

    view: View
    rule: str
    types: np.ndarray
    gpus: np.ndarray

    @classmethod
    def of(cls, view: View, rule: str) -> "Demands":
        """Return the `Demands` of a view under a rule of placement, one of `gpuschedlab.cluster.RULES`."""
        requests = distinct_rows(np.column_stack([view.usable(), view.gpus])).rows
        any_type = np.ones((1, requests.shape[1]))
        demands = np.concatenate([requests, any_type])
        return cls(view, rule, demands[:, :-1] > 0, demands[:, -1])

    def could_fit(self, part_count: int) -> bool:
        """Whether the GPUs that are up are enough for each demand in so many parts, in whichever way they are dealt."""
        return all(
            (self.view.capacity[types] // gpus).sum() >= part_count
            for types, gpus in zip(self.types, self.gpus, strict=True)
        )

    def fit(self, part: np.ndarray, part_count: int) -> bool:
        """Whether each part, were it empty, could place each demand on nodes of one type that are up; `part` (N,) is that of each node."""
        cluster = self.view.cluster
        for part_number in range(part_count):
            empty = FreeGpus(cluster, self.rule, up=self.view.up & (part == part_number))
            if not empty.fits(self.gpus, self.types).all():
                return False
        return True


def on_nodes(view: View, answer: Allocation, rule: str) -> Allocation:
    """Return the same `Allocation` with nodes for all jobs, of those that are up in the view."""
    # Jobs that keep their GPUs stay where they are, the others follow, largest first. Where one finds no place, all are placed
    # anew, each where it was if that is still free; who then finds none gets nothing, and the status counts them. `rule` is one of
    # `gpuschedlab.cluster.RULES`.
    gpus = np.asarray(answer.gpus, float)
    guest = np.full(len(view), -1) if answer.partner is None else np.where(gpus > 0, answer.partner, -1)
    named = np.zeros((0, 3)) if answer.nodes is None else np.asarray(answer.nodes, float)
    todo = np.flatnonzero((gpus > 0) & (guest < 0) & ~np.isin(np.arange(len(view)), named[:, POSITION]))
    todo = todo[np.argsort(-gpus[todo], kind="stable")].tolist()
    same = (view.gpu_type == answer.gpu_type) & (np.abs(view.running_gpus - gpus) < 0.01)
    free = np.where(view.up, view.cluster.node_gpus, 0).astype(float)
    np.subtract.at(free, named[:, NODE].astype(np.int64), named[:, GPUS])
    types = np.arange(len(view.capacity))
    node_cells, unplaced_jobs = repacked(
        view,
        todo,
        same,
        np.zeros(len(view), bool),
        lambda: FreeGpus(view.cluster, rule, free, view.up),
        lambda room, i: room.take(gpus[i], types == answer.gpu_type[i]),
    )
    node_cells = np.concatenate([named, node_cells])
    lost = np.isin(np.arange(len(view)), unplaced_jobs) | np.isin(guest, unplaced_jobs or [-2])
    status = (
        f"{answer.status}{', ' if answer.status else ''}{len(unplaced_jobs)} without a place"
        if unplaced_jobs
        else answer.status
    )
    return replace(answer, gpus=np.where(lost, 0.0, gpus), nodes=node_cells if len(node_cells) else None, status=status)
