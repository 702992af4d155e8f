"""Pollux (Qiao et al., OSDI'21): goodput of the whole cluster by a genetic search on placements."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.pollux.genetic import Limits, Worth, search
from gpuschedlab.policies.remaining import long_enough
from gpuschedlab.policies.restarts import restart_factor
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

SMALL = 1e-3
"""Added to each speed-up, one node's worth of GPUs being 1, so that a job without GPUs has a finite mean (artifact)."""


@dataclass(frozen=True)
class Pollux(Round):
    """Give jobs the GPUs, node by node, that make the power mean of their speed-ups largest (equation 11).

    A job's speed-up is its goodput on its GPUs over that on a 1/n share of the cluster; it is discounted by the restart
    factor if its GPUs change. A genetic search on matrices (job, node) of GPUs goes on from the matrices of the round
    before. No two jobs that are spread over nodes share one. A job starts on one GPU, and may have at most `growth` times
    the most that it ever had, and never more than `max_gpus`, if the trace has that column. With a table of fixed batch sizes
    only GPUs are chosen.

    Differs from the paper in
    -------------------------
    Goodput follows from the speed table, rather than from a model fitted to the job's measurements. As in the artifact,
    a child has the rows of two parents up to and from a random job, and a mutation resets or thins rows, or adds GPUs where
    there are free ones; jobs that had least service keep their GPUs first when a matrix is repaired. The artifact keeps
    the Pareto front of fitness and utilisation in each generation and returns the fittest; here survival is by fitness
    alone, and a search may end after `patience` generations without a better matrix. Rigid jobs are placed as a
    whole. On several GPU types (Sia thesis, 3.4.3) it knows no types: a job's goodput is the mean over them, large nodes
    count as several small ones, and a job on more than one type keeps the GPUs of the type that it has most of.

    References
    ----------
    Qiao et al., Pollux, OSDI'21, sections 4.2 and 4.3; Jayaram Subramanya, PhD thesis, CMU 2025, section 3.4.3.

    Examples
    --------
    >>> Pollux(power=-2.0).population
    100
    """

    power: Annotated[float, Knob(-4, 1, help="fairness p of the mean: the lower, the fairer")] = -1.0
    population: Annotated[int, Knob(4, 400, log=True, help="matrices in each generation")] = 100
    generations: Annotated[int, Knob(1, 400, log=True, help="generations of a round")] = 100
    patience: Annotated[int, Knob(1, 400, log=True, help="generations without a better matrix until it ends")] = 100
    growth: Annotated[float, Knob(1, 64, unit="x", help="most GPUs of a job, over the most it ever had")] = 2.0
    seed: Annotated[int, Knob(0, 1_000_000, help="of the search")] = 0
    interval: Annotated[float, Knob(1, 3600, log=True, unit="s", help="between rounds")] = 60.0
    set_aside: ClassVar = (*Round.set_aside, "population", "generations", "patience", "seed")

    def begin(self) -> "_Carried":
        """Return the state from round to round, a `_Carried`."""
        return _Carried(np.array([2 * self.seed + 1], np.uint64))

    def allocate(self, view: View) -> Allocation:
        """Search from where the round before left off, and return the best `Allocation`."""
        if len(view.index) == 0 or not view.up.any():
            return Allocation(np.zeros(len(view.index), np.int64), np.zeros(len(view.index)))
        cells = _Cells.of(view)
        search_memory = view.memory
        attained_order = np.lexsort((view.submit, view.attained))
        whole_gpus = np.ceil(view.gpus).astype(np.int64)
        elastic = view.elastic
        search_memory.most = long_enough(search_memory.most, view.index)
        most_held = search_memory.most[view.index]
        speedup = cells.speedups(view)
        able = (speedup > 0).any(axis=1)  # on each number of GPUs
        most_able = (able * np.arange(speedup.shape[2])).max(axis=1)
        top = np.minimum(most_able, view.declared("max_gpus", np.inf))
        fewest = np.where(able.any(axis=1), able.argmax(axis=1), 0)
        most_gpus = np.minimum(np.maximum(self.growth * most_held, fewest), top).astype(np.int64)
        most_gpus = np.where(elastic, most_gpus, whole_gpus)
        least = np.where(elastic, 1, whole_gpus)
        base = search_memory.base(view, cells)
        factor = restart_factor(view.age, view.restarts, view.restart)
        small = SMALL * cells.size.sum() / max((cells.size > 0).sum(), 1)
        population = search_memory.matrices(view.index, base, self.population)[:, attained_order]
        limits = Limits(
            cells.size, most_gpus[attained_order], least[attained_order], view.allowed[:, cells.kind][attained_order]
        )
        worth = Worth(base[attained_order], speedup[attained_order], factor[attained_order], float(self.power), small)
        found_matrices, fitness_values = search(
            population, limits, worth, self.generations, self.patience, search_memory.state
        )
        back = np.argsort(attained_order)
        search_memory.rows = found_matrices[:, back]
        search_memory.index = view.index
        chosen = cells.one_type(view, search_memory.rows[0])
        lost = search_memory.rows[0].any(axis=1) & ~chosen.any(axis=1)
        search_memory.rows[:, lost] = 0  # or the search would find it as good again, for ever
        search_memory.last = chosen
        search_memory.most[view.index] = np.maximum(most_held, chosen.sum(axis=1))
        return cells.answer(view, chosen, objective=float(fitness_values[0]))


@dataclass(frozen=True)
class _Cells:
    """Nodes as the search sees them: N cells of `width` GPUs each (`size` 0 if the node is down), as many as a node holds."""

    node: np.ndarray
    kind: np.ndarray
    size: np.ndarray
    width: int

    @classmethod
    def of(cls, view) -> "_Cells":
        """Return the nodes of a cluster as `_Cells` of their greatest common size."""
        gpus = view.cluster.node_gpus.astype(np.int64)
        width = int(np.gcd.reduce(gpus))
        node = np.repeat(np.arange(len(gpus)), gpus // width)
        return cls(node, view.cluster.node_type[node], np.where(view.up[node], width, 0), width)

    def speedups(self, view) -> np.ndarray:
        """Return an array (n, N + 1, G + 1): goodput of each job on cells and GPUs over that on its fair share; 0: impossible."""
        total_gpus = int(self.size.sum())
        cells = int((self.size > 0).sum())
        shape = (len(view.index), len(self.size) + 1, int(len(self.size) * self.width) + 1)
        # Numbers of cells that can hold each number of GPUs.
        cells_and_gpus = [
            (m, g) for g in range(1, total_gpus + 1) for m in range(-(-g // self.width), min(g, cells) + 1)
        ]
        used, gpus = np.array(cells_and_gpus, np.int64).reshape(-1, 2).T
        goodput = np.zeros((shape[0], len(used)))
        weight = np.zeros((shape[0], len(used)))
        for kind, capacity in enumerate(np.bincount(self.kind, self.size)):
            smallest_node = view.cluster.node_gpus[view.cluster.node_type == kind].min()
            cells_per_node = int(smallest_node) // self.width
            rate = view.rates(np.full(len(used), kind), -(-used // cells_per_node), gpus)
            has_rate = ~np.isnan(rate)
            goodput += np.where(has_rate, rate, 0.0) * capacity
            weight += has_rate * capacity
        goodput = np.divide(goodput, weight, out=goodput, where=weight > 0)
        fair = -(-total_gpus // max(shape[0], 1))
        near = np.where(
            goodput > 0, np.where(gpus <= fair, fair - gpus, total_gpus + gpus) * len(self.size) + used, np.inf
        )
        basis = goodput[np.arange(shape[0]), near.argmin(axis=1)]
        speedup_table = np.zeros(shape)
        speedup_table[:, used, gpus] = goodput / np.where(basis > 0, basis, 1.0)[:, None]
        return speedup_table

    def one_type(self, view, rows) -> np.ndarray:
        """Return an array (n, N) of rows in which each job keeps the type that it has most GPUs of, and has none if it cannot run."""
        kinds = len(view.capacity)
        sums = [rows[:, self.kind == k].sum(axis=1) for k in range(kinds)]
        by_type = np.stack(sums, axis=1)
        chosen = np.where(self.kind == by_type.argmax(axis=1)[:, None], rows, 0)
        gpus = chosen.sum(axis=1)
        jobs_with_gpus = np.flatnonzero(gpus)
        rigid = jobs_with_gpus[
            ~view.elastic[jobs_with_gpus] & (gpus[jobs_with_gpus] < np.ceil(view.gpus[jobs_with_gpus]))
        ]
        chosen[rigid] = 0
        jobs_with_gpus = np.setdiff1d(jobs_with_gpus, rigid)
        nodes_of_jobs = (np.unique(self.node[chosen[j] > 0]) for j in jobs_with_gpus)
        nodes = np.array([len(used) for used in nodes_of_jobs], np.int64)
        rate = view.rates(by_type[jobs_with_gpus].argmax(axis=1), nodes, gpus[jobs_with_gpus])[
            jobs_with_gpus, np.arange(len(jobs_with_gpus))
        ]
        chosen[jobs_with_gpus[np.isnan(rate)]] = 0
        return chosen

    def answer(self, view, rows, objective: float) -> Allocation:
        """Return the `Allocation` that rows (n, N) of GPUs stand for."""
        node_count = len(view.cluster.node_gpus)
        gpus_on_nodes = np.stack([np.bincount(self.node, matrix_row, node_count) for matrix_row in rows])
        share = np.where(view.elastic, 1.0, view.gpus / np.ceil(view.gpus))  # a part of a GPU was counted as one
        job, node = np.nonzero(gpus_on_nodes)
        gpus = gpus_on_nodes.sum(axis=1) * share
        kind = np.zeros(len(rows), np.int64)
        kind[job] = view.cluster.node_type[node]
        cells = np.column_stack([job, node, gpus_on_nodes[job, node] * share[job]])
        return Allocation(kind, gpus, objective=objective, nodes=cells)


@dataclass
class _Carried:
    """State of Pollux: its random numbers, the last matrices with their jobs, the last answer, the most GPUs ever held."""

    state: np.ndarray
    rows: np.ndarray | None = None
    index: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    last: np.ndarray | None = None
    most: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def _now(self, index) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of arrays: positions of jobs that are there still, in the last round, and now."""
        _, rows_then, rows_now = np.intersect1d(self.index, index, return_indices=True)
        return rows_then, rows_now

    def base(self, view, cells) -> np.ndarray:
        """Return an array (n, N) of the GPUs of jobs: as the last answer laid it out, if they hold as many."""
        node_count = len(view.cluster.node_gpus)
        held_gpus = np.zeros((len(view.index), node_count), np.int64)
        job, node = view.nodes[:, :2].T.astype(int)
        held_gpus[job, node] = np.ceil(view.nodes[:, 2])
        gpu_matrix = np.zeros((len(view.index), len(cells.node)), np.int64)
        free = cells.size.copy()
        rows_then, rows_now = self._now(view.index)
        for i, j in zip(rows_then, rows_now, strict=True):
            if np.array_equal(np.bincount(cells.node, self.last[i], node_count), held_gpus[j]):
                gpu_matrix[j] = self.last[i]
                free -= gpu_matrix[j]
        for j, n in zip(
            *np.nonzero(held_gpus - np.stack([np.bincount(cells.node, r, node_count) for r in gpu_matrix])), strict=True
        ):
            gpus_left = held_gpus[j, n]
            for c in np.flatnonzero(cells.node == n):
                gpu_matrix[j, c] = max(min(gpus_left, free[c]), 0)
                free[c] -= gpu_matrix[j, c]
                gpus_left -= gpu_matrix[j, c]
        return gpu_matrix

    def matrices(self, index, base, population: int) -> np.ndarray:
        """Return an array (P, n, N) of matrices to begin with: the present one, and those of the round before."""
        population_matrices = np.repeat(base[None], population, axis=0)
        if self.rows is not None:
            rows_then, rows_now = self._now(index)
            kept_matrices = min(population - 1, len(self.rows))
            population_matrices[1 : kept_matrices + 1] = 0
            population_matrices[1 : kept_matrices + 1, rows_now] = self.rows[:kept_matrices, rows_then]
        return population_matrices
