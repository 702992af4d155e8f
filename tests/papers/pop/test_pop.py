"""POP as a policy: parts that keep the nodes of their jobs, on random jobs and nodes that come, go and fail."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from policies_in_parts import policies_in_parts

from gpuschedlab.check.laws import ENDED
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.papers.pop.policy import on_nodes
from gpuschedlab.policies import Optimus, Pop, ThemisRounds
from gpuschedlab.policies.kept_placement import repacked
from gpuschedlab.sim import Allocation, Delays, Round, Scenario, Simulation, Wrapped, simulate
from gpuschedlab.speeds import Speeds

GPUS = (1, 2, 3, 4, 6, 8, 12, 16)
KINDS = (("a", "t4", 1.0), ("a", "a100", 3.0), ("b", "t4", 1.0))
ROWS = [(m, t, g, k * g**0.8) for m, t, k in KINDS for g in GPUS]
SPEEDS = Speeds.from_frame(
    pl.DataFrame(ROWS, ["model", "gpu_type", "n_gpus", "rate"], orient="row").with_columns(progress=2000.0)
)


@dataclass(frozen=True)
class Inside(Wrapped):
    """A policy that holds its part to what it may rely on: all that its jobs hold is in the part."""

    policy: Round

    def allocate(self, view):
        held = view.nodes[:, 1].astype(int)
        assert view.up[held].all()
        assert (np.bincount(held, view.nodes[:, 2], len(view.up)) <= view.cluster.node_gpus + 1e-9).all()
        return self.policy.allocate(view)


def drawn(seed: int, choices) -> tuple[pl.DataFrame, Cluster, Round, dict]:
    """One of some policies; 4 to 15 jobs on one type or two, of nodes of several sizes, some of which fail; some jobs are elastic."""
    rng = np.random.default_rng(seed)
    groups = [f"{rng.integers(2, 7)}x{rng.choice([2, 4, 6])}:t4"]
    groups += [f"{rng.integers(1, 5)}x{rng.choice([4, 8])}:a100"] * int(rng.integers(2))
    cluster = Cluster.parse(",".join(groups))
    nodes = rng.permutation(cluster.total_nodes)[: rng.integers(0, 4)]
    begin = rng.uniform(10, 3000, len(nodes)).round(1)
    ends = begin + rng.uniform(50, 2000, len(nodes)).round(1)
    cluster = replace(cluster, events=tuple(sorted(map(Outage, nodes.tolist(), begin, ends), key=lambda e: e.start)))
    n = int(rng.integers(4, 16))
    sizes = [0.5, 1, 1, 2, 3, 4] + [8] * (6 not in cluster.node_gpus)  # a whole node of 8, or of 6, and none of both
    asked = np.minimum(rng.choice(sizes, n), cluster.node_gpus.max())
    table = {"job_id": [f"{i:02}" for i in range(n)], "submit": np.sort(rng.uniform(0, 2500, n)).round(), "gpus": asked}
    trace = pl.DataFrame(table | {"duration": rng.uniform(60, 3000, n).round()})
    parts = {"delays": Delays(restart=float(rng.choice([0, 30, 90])))}
    if rng.random() < 0.6:
        models = np.where((asked >= 1) & (rng.random(n) < 0.7), rng.choice(["a", "b"], n), None)
        trace = trace.with_columns(model=pl.Series(models.tolist(), dtype=pl.Utf8), target=pl.col("duration"))
        parts["speeds"] = SPEEDS
    if rng.random() < 0.3:
        trace = trace.with_columns(preemptible=pl.Series(rng.random(n) < 0.8))
    policy = choices[rng.integers(len(choices))]
    return trace, cluster, Pop(Inside(policy), parts=int(rng.integers(2, 9))), parts


def broken(seed: int) -> str | None:
    """The first law that a random run breaks."""
    trace, cluster, policy, parts = drawn(seed, [Optimus(), ThemisRounds(), *policies_in_parts()])
    scenario = Scenario(trace, cluster, **parts)
    run = scenario.run(policy)
    problems = (law(run, cluster) for law in ENDED)
    return next(filter(None, problems), None) or books_add_up(run, scenario, policy)


@pytest.mark.parametrize("seed", range(10))
def test_parts_keep_the_nodes_of_their_jobs(seed):
    assert broken(seed) is None


@dataclass(frozen=True)
class All(Round):
    """All GPUs that jobs ask for, in order, while there are any; no nodes."""

    interval = 0.0
    placement = "pack"

    def allocate(self, view):
        fits = np.cumsum(view.gpus) <= view.capacity.sum()
        return Allocation(np.zeros(len(view), int), view.gpus * fits)


def trace_of(*rows) -> pl.DataFrame:
    """Jobs of (submit, GPUs, duration)."""
    frame = pl.DataFrame(rows, schema=["submit", "gpus", "duration"], orient="row").cast(pl.Float64)
    return frame.with_columns(job_id=pl.Series([f"{i}" for i in range(len(rows))]))


def test_jobs_run_on_nodes_of_their_part_and_these_follow_when_parts_become_fewer():
    """Two nodes, a part each: jobs 0 and 2 on the first, 1 on the second. A job of 3 GPUs still fits into a part of 4 GPUs.

    One of 5 does not: there is one part from then on, in which nothing is moved.
    """
    trace = trace_of((0, 1, 100), (0, 1, 100), (0, 2, 100), (10, 3, 100), (20, 5, 100))
    run = simulate(trace, Cluster.homogeneous(2, 4), Pop(All(), parts=2))
    at = run.allocations.filter(pl.col("start") < 20).select("job", "node", "gpus", "start").sort("job").rows()
    assert at == [(0, 0, 1.0, 0.0), (1, 1, 1.0, 0.0), (2, 0, 2.0, 0.0), (3, 1, 3.0, 10.0)]
    assert run.jobs["start"].to_list() == [0.0, 0.0, 0.0, 10.0, 100.0]
    assert run.jobs["restarts"].sum() == 0


@dataclass(frozen=True)
class Consolidated(All):
    """The same on the fewest nodes that could hold a job if all of them were empty."""

    interval = 60.0
    placement = "consolidate"


@pytest.mark.parametrize("seed", range(30))
def test_large_jobs_find_a_place_though_nodes_differ_in_size(seed):
    """Nodes of 2 to 6 GPUs, jobs of up to half of all: a part that has the GPUs for one may still need too many nodes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, rng.integers(3, 8)).tolist()
    cluster = Cluster.parse(",".join(f"1x{size}:v100" for size in sizes))
    asked = rng.integers(1, sum(sizes) // 2 + 1, 6).tolist()
    run = simulate(
        trace_of(*((60.0 * i, gpus, 100) for i, gpus in enumerate(asked))), cluster, Pop(Consolidated(), parts=3)
    )
    assert run.jobs["end"].is_finite().all()


def test_nodes_for_all_jobs_of_an_answer():
    """Both nodes hold a job of 1 GPU; one of 4 comes: one of them makes room. One of 4 more finds no place."""
    simulation = Simulation(
        Scenario(trace_of((0, 1, 99), (0, 1, 99), (5, 4, 9), (5, 4, 9)), Cluster.homogeneous(2, 4)), All()
    )
    first = simulation.ask()
    simulation.answer(first, Allocation(np.zeros(2, int), np.ones(2), nodes=np.array([[0, 0, 1.0], [1, 1, 1.0]])))
    view = simulation.ask()
    both = on_nodes(view, Allocation(np.zeros(4, int), np.array([1.0, 1, 4, 0])), "consolidate")
    assert sorted(both.nodes.tolist()) == [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0, 0.0, 4.0]]
    assert not both.status
    more = on_nodes(view, Allocation(np.zeros(4, int), np.array([1.0, 1, 4, 4]), status="x"), "consolidate")
    assert more.gpus.tolist() == [0.0, 0.0, 4.0, 4.0]
    assert more.status == "x, 2 without a place"


def held_view(held, gpus):
    """What `repacked` reads of a view: rows (job, node, GPUs) that are held by jobs of so many GPUs."""

    class Held(SimpleNamespace):
        def __len__(self):
            return len(gpus)

    return Held(nodes=np.array(held, float).reshape(-1, 3))


def test_who_may_stay_goes_where_it_was_if_that_is_still_free():
    """Job 4 needs two of five nodes, and jobs on four of them may stay: if not all can, each goes in its turn where it was."""
    gpus = np.array([1.0, 1.0, 1.0, 1.0, 8.0])
    view = held_view([(i, i, 1.0) for i in range(4)], gpus)
    same = np.arange(5) < 4
    none = np.zeros(5, bool)

    def placed(todo, pinned):
        rows, left = repacked(
            view, todo, same, pinned, lambda: FreeGpus(Cluster.homogeneous(5, 4)), lambda free, i: free.take(gpus[i])
        )
        return sorted(map(tuple, rows[:, :2].astype(int).tolist())), left

    assert placed([3, 2, 1, 0], none) == ([(i, i) for i in range(4)], [])  # nobody moves without need
    rows, left = placed([4, 3, 2, 1, 0], none)
    taken = [node for job, node in rows if job == 4]
    assert (len(taken), left) == (2, [])
    stay = [job for job in range(4) if job not in taken]
    assert [row for row in rows if row[0] in stay] == [(job, job) for job in stay]
    pinned = np.isin(np.arange(5), taken)  # who would move is sure to stay
    rows, left = placed([4, 3, 2, 1, 0], pinned)
    assert [row for row in rows if row[0] in taken] == [(job, job) for job in taken]
    assert left == []
    assert placed([4, 3, 2, 1, 0], same) == ([(i, i) for i in range(4)], [4])


def test_parts_answers_become_one_with_every_field():
    one = Allocation(np.array([1]), np.array([2.0]), delay=np.array(["warm"]), partner=np.array([-1]), wake=5.0)
    two = Allocation(
        np.array([0, 0]), np.array([1.0, 1.0]), partner=np.array([1, 0]), merged=np.array([True, True]),
        profiling=np.array([False, True]), source=np.array([7, -1]), nodes=np.array([[1, 0, 1.0]]), wake=3.0,
        reserved={"bank": np.array([2.0])},
    )  # fmt: skip
    three = Allocation(
        np.array([0]), np.array([0.0]), delay=np.array(["quite cold"]), wake=9.0, reserved={"bank": np.array([1.0])}
    )
    whole = Allocation.combined(5, [(np.array([4]), one), (np.array([0, 2]), two), (np.array([1]), three)])
    assert whole.delay.tolist() == ["", "quite cold", "", "", "warm"]
    assert whole.partner.tolist() == [2, -1, 0, -1, -1]
    assert whole.merged.tolist() == [True, False, True, False, False]
    assert whole.profiling.tolist() == [False, False, True, False, False]
    assert whole.source.tolist() == [7, -1, -1, -1, -1]
    assert (whole.gpus.tolist(), whole.gpu_type.tolist()) == ([1, 0, 1, 0, 2], [0, 0, 0, 0, 1])
    assert (whole.nodes.tolist(), whole.wake, whole.reserved["bank"].tolist()) == ([[2, 0, 1]], 3.0, [3.0])
