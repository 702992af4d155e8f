"""Sia and the kinds of jobs that it takes: rigid, hybrid-parallel, declared limits, jobs that stay, reservations, congestion."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.errors import PolicyError, RunError, SpeedError
from gpuschedlab.estimators import Bootstrap
from gpuschedlab.metrics import finish_time_fairness, summary, unfair_fraction
from gpuschedlab.metrics.fairness import finish_time_fairness_by_type
from gpuschedlab.papers.sia import policy as sia
from gpuschedlab.papers.sia.placer import node_sizes, orderly, place_types
from gpuschedlab.papers.sia.policy import Sia
from gpuschedlab.sim import Scenario, Simulation, simulate
from gpuschedlab.speeds import Speeds
from reproduce.papers.sia import workloads


def table(rows) -> Speeds:
    """Speeds from rows (model, GPU type, nodes, GPUs, rate), each job's work 10,000."""
    names = ["model", "gpu_type", "n_nodes", "n_gpus", "rate"]
    return Speeds.from_frame(pl.DataFrame(rows, schema=names, orient="row").with_columns(progress=10_000.0))


def jobs(gpus, model=None, **columns) -> pl.DataFrame:
    n = len(gpus)
    frame = {"job_id": [f"j{i}" for i in range(n)], "submit": [0.0] * n, "gpus": [float(g) for g in gpus]}
    frame |= {"duration": [10_000.0] * n, "model": model or [None] * n}
    return pl.DataFrame(frame | columns, schema_overrides={"model": pl.Utf8})


def named(rounds) -> int:
    return rounds["status"].str.contains("not placed").sum()


def nodes_of(view, gpus, nodes) -> tuple[dict, list]:
    """Cells of each job of one GPU type, and those without a place, where all are looked at."""
    none = np.zeros(len(view), bool)
    rows, left = place_types(view, np.zeros(1), none.astype(int), np.array(gpus, float), np.array(nodes), none, none)
    cells = {int(i): [(int(n), g) for j, n, g in rows.tolist() if j == i] for i in rows[:, 0]}
    return cells, np.flatnonzero(left).tolist()


def rigid_speeds(sizes, cluster) -> Speeds:
    """Models that run on one number of GPUs only, on any number of nodes."""
    return table(
        [
            (f"m{g}", t, nodes, g, 1.0 + k)
            for g in sizes
            for k, t in enumerate(cluster.gpu_types)
            for nodes in range(1, g + 1)
        ]
    )


@pytest.mark.parametrize("asked", [[6], [10], [14], [6, 10, 14, 6, 3, 12]])
@pytest.mark.parametrize("nodes", ["4x4:t4", "2x8:t4", "4x4:t4,2x8:rtx"])
def test_rigid_jobs_with_tables_end_whatever_they_ask_for(asked, nodes):
    cluster = Cluster.parse(nodes)
    run = simulate(jobs(asked, [f"m{g}" for g in asked]), cluster, Sia(), speeds=rigid_speeds(set(asked), cluster))
    assert run.jobs["end"].null_count() == 0
    held = run.allocations.group_by("job", "start").agg(pl.col("gpus").sum())
    assert set(held["gpus"]) == set(map(float, asked))
    assert named(run.rounds) == 0


def test_a_rigid_trace_is_the_same_with_and_without_a_table_at_the_reference_type():
    cluster = Cluster.parse("4x4:t4")
    asked = [6, 1, 10, 2, 14, 3, 4, 8]
    speeds = table([(f"m{g}", "t4", n, g, 1.0) for g in asked for n in range(1, g + 1)])
    trace = jobs(asked, [f"m{g}" for g in asked], switch=[30.0] * 8)
    runs = [simulate(trace, cluster, Sia(), speeds=s) for s in (speeds, None)]
    assert runs[0].jobs["end"].to_list() == runs[1].jobs["end"].to_list()
    assert runs[0].jobs["start"].to_list() == runs[1].jobs["start"].to_list()


def hybrid_speeds() -> Speeds:
    """Units of 2 GPUs on a100 and of 8 on rtx; a job without limits on a100 only."""
    rows = [("gpt", "a100", max(1, g // 8), g, g / 2) for g in (2, 4, 8, 16)]
    rows += [("gpt", "rtx", g // 8, g, g / 8) for g in (8, 16)]
    return table(rows + [("bert", "a100", max(1, g // 8), g, float(g)) for g in (1, 2, 4, 8, 16)])


def test_a_hybrid_job_starts_on_the_type_that_is_free():
    cluster = Cluster.parse("1x8:a100,2x8:rtx")
    trace = jobs([8, 8, 2], ["bert", "bert", "gpt"], submit=[0.0, 0.0, 600.0], min_gpus=[4.0, 4.0, None])
    run = simulate(trace, cluster, Sia(), speeds=hybrid_speeds())
    gpt = run.jobs.filter(job_id="j2")
    assert gpt["start"][0] == 600.0
    first = run.allocations.filter(job=2).sort("start").row(0, named=True)
    assert first["gpus"] == 8
    assert first["node"] > 0  # rtx
    sizes = run.allocations.filter(job=2).group_by("start").agg(pl.col("gpus").sum())["gpus"]
    assert set(sizes) <= {2.0, 4.0, 8.0, 16.0}


def test_nodes_of_six_never_leave_a_job_without_a_place():
    cluster = Cluster.parse("2x6:t4")
    speeds = table([("m", "t4", n, g, g**0.9) for n, g in ((1, 1), (1, 2), (1, 4), (1, 6), (2, 12))])
    four = simulate(
        jobs([4] * 3, min_gpus=[4.0] * 3, max_gpus=[4.0] * 3, model=["m"] * 3), cluster, Sia(), speeds=speeds
    )
    assert named(four.rounds) == 0
    assert four.jobs["end"].null_count() == 0
    assert four.rounds["status"][0] == "heuristic, 1 without a place"  # of the bound of three jobs, two
    first = four.allocations.filter(pl.col("start") == 0)
    assert first["gpus"].to_list() == [4.0, 4.0]
    many = simulate(jobs([1] * 9, ["m"] * 9, submit=[60.0 * i for i in range(9)]), cluster, Sia(), speeds=speeds)
    assert named(many.rounds) == 0
    assert 6.0 in many.allocations["gpus"].to_list()  # a node as a whole


def test_nodes_of_several_sizes_of_one_type():
    cluster = Cluster.parse("1x8:t4,2x4:t4")
    speeds = table([("m", "t4", n, g, g**0.9) for n, g in ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (2, 12), (3, 16))])
    run = simulate(jobs([1], ["m"]), cluster, Sia(), speeds=speeds)
    sizes = run.allocations.group_by("start").agg(pl.col("gpus").sum()).sort("start")["gpus"]
    assert sizes.to_list() == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert named(run.rounds) == 0


def test_declared_limits_are_kept():
    cluster = Cluster.parse("4x4:t4")
    speeds = table([("m", "t4", max(1, g // 4), g, g**0.9) for g in (1, 2, 4, 8, 16)])
    run = simulate(jobs([1, 1], ["m"] * 2, min_gpus=[2.0, None], max_gpus=[None, 4.0]), cluster, Sia(), speeds=speeds)
    sizes = run.allocations.group_by("job", "start").agg(pl.col("gpus").sum()).sort("start")
    assert sizes.filter(job=0)["gpus"].min() == 2
    assert sizes.filter(job=1)["gpus"].max() == 4
    assert run.jobs["end"].null_count() == 0


def test_jobs_that_are_not_preemptible_never_move():
    """Long jobs that stay, among elastic ones that come and go; some have to be repacked around them."""
    cluster = Cluster.parse("4x4:t4")
    speeds = table([("m", "t4", max(1, g // 4), g, 3 * g**0.9) for g in (1, 2, 4, 8, 16)])
    rng = np.random.default_rng(0)
    trace = jobs(
        [1] * 16,
        [None] * 4 + ["m"] * 12,
        submit=[0.0, 60.0, 120.0, 600.0, *np.sort(rng.uniform(700, 9000, 12))],
        preemptible=[False] * 4 + [True] * 12,
    )
    assert trace["submit"][3] < trace["submit"][4]
    run = simulate(trace, cluster, Sia(), speeds=speeds)
    stays = run.allocations.filter(pl.col("job") < 4)
    assert stays.group_by("job").len()["len"].to_list() == [1] * 4  # one stretch each: never moved, never stopped
    assert run.jobs.sort("job_id").filter(pl.col("job_id").is_in(["j0", "j1", "j2", "j3"]))["jct"].max() <= 10_060
    assert run.jobs["end"].null_count() == 0
    free = simulate(trace.drop("preemptible"), cluster, Sia(), speeds=speeds)
    assert free.jobs["restarts"].sum() != run.jobs["restarts"].sum() or not free.jobs.equals(run.jobs)


def test_more_mandatory_demand_than_gpus_names_the_jobs():
    trace = jobs([3, 2], preemptible=[False, False])
    with pytest.raises(PolicyError, match=r"not preemptible and ask for 5 GPUs, beside 0 reserved: j0, j1; .*4"):
        simulate(trace, Cluster.parse("1x4:t4"), Sia())
    with pytest.raises(PolicyError, match=r"3 GPUs, beside 2 reserved: j0;"):
        simulate(trace.head(1), Cluster.parse("1x4:t4"), Sia(reservations=(("t4", 2, 0.0, 600.0),)))
    many = jobs([1] * 12, preemptible=[False] * 12)
    with pytest.raises(PolicyError, match=r"ask for 12 GPUs, .* reserved: j0, j1, j10, j11, (j\d, ){5}j7; "):
        simulate(many.with_columns(submit=pl.lit(0.0)), Cluster.parse("1x4:t4"), Sia())


@pytest.mark.parametrize("solver", ["prices", "highs"])
def test_mandatory_jobs_come_first(solver):
    """Two jobs of two GPUs against one of four that is worth as much as both would be: it must run."""
    trace = jobs([2, 2, 4], preemptible=[True, True, False])
    run = simulate(trace, Cluster.parse("1x4:t4"), Sia(solver=solver))
    assert run.jobs["start"].to_list() == [10_020.0, 10_020.0, 0.0]  # at the next round


def test_a_reservation_is_kept():
    cluster = Cluster.parse("2x4:t4")
    speeds = table([("m", "t4", max(1, g // 4), g, g**0.9) for g in (1, 2, 4, 8)])
    run = simulate(jobs([1] * 3, ["m"] * 3), cluster, Sia(reservations=(("t4", 4, 900.0, 1800.0),)), speeds=speeds)
    overlap = pl.min_horizontal("end", 1800.0) - pl.max_horizontal("start", 900.0)
    assert run.allocations.select((pl.col("gpus") * overlap.clip(0)).sum()).item() == 4 * 900  # the other half is kept
    assert run.pools.rows() == [(900.0, "reservation 0", "t4", 4.0), (1800.0, "reservation 0", "t4", 0.0)]
    with pytest.raises(PolicyError, match=r"found 4 GPUs of 'v100'; expected one of \['t4'\]"):
        simulate(jobs([1]), cluster, Sia(reservations=(("v100", 4, 0.0, 1.0),)))


def test_a_profile_on_absent_types_only_is_an_error_before_the_simulation():
    speeds = table([("m", "a100", 1, 1, 1.0), ("n", "t4", 1, 1, 1.0)])
    trace = jobs([1, 1, 1], ["n", "m", "m"])
    with pytest.raises(SpeedError, match=r"model 'm' \(2 jobs, such as j1\) is known on a100 only; the cluster has t4"):
        simulate(trace, Cluster.parse("1x4:t4"), Sia(), speeds=speeds)


def test_a_solver_out_of_time_says_so_and_no_job_is_lost(monkeypatch):
    """HiGHS without a single point: jobs keep what they hold, and start as soon as it has time again."""
    from gpuschedlab.errors import OutOfTime

    calls = []
    solve = sia.Session.solve

    def slow(self):
        calls.append(1)
        if 3 <= len(calls) <= 6:
            raise OutOfTime("Sia round: no point")
        return solve(self)

    monkeypatch.setattr(sia.Session, "solve", slow)
    trace = jobs([2] * 4, submit=[0.0, 60.0, 120.0, 180.0])
    run = simulate(trace, Cluster.parse("1x4:t4"), Sia(solver="highs", time_limit=600.0))
    assert run.jobs["end"].null_count() == 0
    assert run.rounds["status"].str.contains("time limit: nothing found, all stay").any()
    assert run.jobs["restarts"].sum() == 0


def test_a_job_that_makes_room_restarts_where_evictions_are_counted():
    """Two jobs of two GPUs on two nodes, then one of four: one moves to the other's node."""
    cluster = Cluster.parse("2x4:t4")
    trace = jobs([2, 4, 2, 4], submit=[0.0, 0.0, 60.0, 60.0]).with_columns(
        duration=pl.Series([9000.0, 900.0, 9000.0, 900.0]), switch=pl.lit(30.0)
    )
    three = jobs([2, 2, 4])
    view = Scenario(three, Cluster.homogeneous(2, 4)).view(Sia(), nodes=[(0, 0, 2), (1, 1, 2)])
    assert nodes_of(view, [2, 2, 4], [1, 1, 1]) == ({2: [(0, 4)], 0: [(1, 2)], 1: [(1, 2)]}, [])
    free, paid = (simulate(trace, cluster, Sia(evictions=flag)) for flag in (False, True))
    assert free.jobs["end"].null_count() == paid.jobs["end"].null_count() == 0
    assert paid.jobs["restarts"].sum() >= free.jobs["restarts"].sum() == 0


@pytest.mark.parametrize("seed", range(20))
def test_the_placer_finds_a_place_for_all_where_sizes_are_orderly(seed):
    """Largest first, powers of two and whole nodes always fit, wherever they were before."""
    rng = np.random.default_rng(seed)
    nodes = 6
    size = 8
    room = 48
    wanted = {}
    while room:
        g = int(rng.choice([1, 2, 4, 8, 16]))
        if g <= room:
            wanted[len(wanted)] = (g, max(1, g // size))
            room -= g
    gpus, counts = (np.array(a) for a in zip(*wanted.values(), strict=True))
    assert orderly(np.full(len(wanted), size), gpus).all()
    assert orderly(np.array([4, 4, 4, 0]), np.array([1, 8, 6, 4])).tolist() == [True, True, False, False]
    view = Scenario(jobs(gpus), Cluster.homogeneous(nodes, size)).view(Sia())
    placed, left = nodes_of(view, gpus, counts)
    used = np.zeros(nodes)
    for job, cells in placed.items():
        assert sum(g for _, g in cells) == wanted[job][0]
        assert len(cells) == wanted[job][1]
        for node, g in cells:
            used[node] += g
    assert not left
    assert (used == size).all()
    assert node_sizes(Cluster.parse("1x8:a,1x4:a,2x6:b,2x4:c"), np.ones(6, bool)).tolist() == [0, 0, 4]


def test_under_congestion_the_penalty_shares_time():
    """Three jobs of a whole node each on one node: without it the first runs to its end, with it all take turns.

    By hand, with W = 3 rounds: a job costs 3 more that had none of the last three, 3 - s more if it ran in the last one, and
    none if it had a turn and waits. The second and third round hence go to the jobs that had nothing yet; in the fourth the
    two others have had their turn, and the third job goes on; in the fifth the first has had none of three rounds; and so on.
    """
    cluster = Cluster.parse("1x4:t4")
    trace = jobs([4] * 3, switch=[10.0] * 3)
    alone, shared = (simulate(trace, cluster, Sia(timeshare=tau)) for tau in (0.0, 180.0))
    assert alone.jobs["restarts"].sum() == 0
    assert alone.jobs["start"].max() > 15_000
    held = shared.allocations.sort("start")
    served = [held.filter(pl.col("start") <= t, pl.col("end") > t)["job"].to_list() for t in range(30, 900, 60)]
    first, second, third = (served[k] for k in range(3))
    assert sorted(first + second + third) == [0, 1, 2]
    assert served[3:9] == [third, first, second, second, third, first]
    assert shared.jobs["end"].null_count() == 0
    for less in (0.0, 59.0):  # a window of less than a round holds none
        assert simulate(trace, cluster, Sia(timeshare=less)).jobs.equals(alone.jobs)


@pytest.mark.parametrize("restart", [40.0, 120.0, 600.0])
def test_time_sharing_is_no_ruin_of_rigid_jobs(restart):
    """Ten jobs of a whole node each on two: a job whose restart outweighs its turn keeps its GPUs, as without sharing."""
    cluster = Cluster.parse("2x4:t4")
    trace = jobs([4] * 10, switch=[restart] * 10)
    alone, shared = (simulate(trace, cluster, Sia(timeshare=tau)).jobs for tau in (0.0, 300.0))
    assert shared["restarts"].sum() == 0
    assert shared["jct"].mean() <= 1.001 * alone["jct"].mean()


def test_rigid_jobs_take_turns_where_a_restart_costs_little():
    trace = jobs([4] * 10, switch=[20.0] * 10)
    turns = simulate(trace, Cluster.parse("2x4:t4"), Sia(timeshare=300.0)).jobs
    assert turns["restarts"].mean() > 5


@pytest.mark.data
def test_time_sharing_costs_little_where_few_wait(data_dir):
    """The stand-in for Spike-240: about the average JCT and the 3 restarts per job of Sia without it."""
    form = workloads.adaptive(data_dir, "typed", workloads.workload(data_dir, workloads.SPIKE, 1))
    cluster = workloads.cluster("typed")
    trace = workloads.workload_trace(form)
    runs = [simulate(trace, cluster, Sia(timeshare=tau), speeds=form.speeds).jobs for tau in (0.0, 180.0)]
    alone, shared = (run.select(pl.col("jct", "restarts").cast(float).mean()).row(0) for run in runs)
    assert shared[0] == pytest.approx(alone[0], rel=0.05)
    assert shared[1] == pytest.approx(alone[1], abs=0.5)


def elastic_table() -> Speeds:
    rows = [("m", t, max(1, g // 4), g, k * g**0.8) for t, k in (("t4", 1.0), ("a100", 3.0)) for g in (1, 2, 4, 8)]
    return table(rows)


def test_failures_and_a_type_that_disappears_lose_no_job():
    """Both nodes of one type fail for good while jobs run on them, one of which stays until then."""
    events = (Outage(2, 600.0, np.inf), Outage(3, 900.0, np.inf), Outage(0, 300.0, 2000.0))
    cluster = dataclasses.replace(Cluster.parse("2x4:t4,2x4:a100"), events=events)
    trace = jobs(
        [1, 1, 1, 2, 6], ["m"] * 3 + [None] * 2, preemptible=[True, True, False, True, True], switch=[30.0] * 5
    )
    run = simulate(trace, cluster, Sia(), speeds=elastic_table())
    assert run.jobs["end"].null_count() == 0
    assert run.jobs["failures"].sum() > 0
    assert named(run.rounds) == 0
    late = run.allocations.filter(pl.col("start") > 900)["node"]
    assert not set(late) & {2, 3}


def test_fairness_without_the_speeds_is_unknown_and_not_fair():
    speeds = elastic_table()
    cluster = Cluster.parse("2x4:t4")
    run = simulate(jobs([1] * 4, ["m"] * 4), cluster, Sia(), speeds=speeds)
    assert np.isnan(finish_time_fairness(run)).all()
    assert np.isnan(unfair_fraction(finish_time_fairness(run)))
    blind = summary(run)
    seeing = summary(run, speeds=speeds)
    assert blind["rho_worst"] is blind["rho_mean"] is blind["unfair_fraction"] is None
    assert seeing["rho_worst"] > 0
    with pytest.raises(RunError, match="found 4 elastic jobs and no speeds"):
        finish_time_fairness_by_type(run, None)
    rigid = simulate(jobs([1] * 4), cluster, Sia(), speeds=speeds)
    assert summary(rigid)["rho_worst"] > 0


def test_bootstrapped_speeds_lead_through_the_types():
    """A job that hardly scales on the type that is faster on one GPU: known once it ran on two, and expected of the other."""
    rows = [("m", "t4", 1, g, 1.0 * g**0.9) for g in (1, 2, 4)] + [
        ("m", "a100", 1, g, 1.5 * g**0.05) for g in (1, 2, 4)
    ]
    speeds = table(rows)
    cluster = Cluster.parse("1x4:t4,1x4:a100")
    trace = jobs([1], ["m"])
    knows, learns, blind = (
        simulate(trace, cluster, Sia(), speeds=speeds, estimator=Bootstrap(mode))
        for mode in ("oracle", "bootstrap", "none")
    )
    first = [run.allocations.sort("start").select("node", "gpus").rows() for run in (knows, learns)]
    assert (1, 2.0) not in first[0]  # two GPUs of a100 are no better than one
    assert first[1][:2] == [(1, 1.0), (1, 2.0)]  # believed to be twice as good
    assert first[0][-1] == (0, 4.0)
    assert {node for node, _ in first[1]} == {1}  # by equation 3.1 it scales as badly on t4: it never goes there
    assert knows.jobs["jct"][0] < learns.jobs["jct"][0]
    assert blind.jobs["end"].null_count() == 0
    again = simulate(trace, cluster, Sia(), speeds=speeds)
    assert again.jobs.equals(knows.jobs)


def test_what_was_learnt_goes_along_with_a_copy():
    rows = [("m", "t4", 1, g, 1.0 * g**0.9) for g in (1, 2, 4)] + [
        ("m", "a100", 1, g, 1.5 * g**0.05) for g in (1, 2, 4)
    ]
    parts = {"speeds": table(rows), "estimator": Bootstrap()}
    simulation = Simulation(
        Scenario(jobs([1, 1], ["m", "m"], submit=[0.0, 700.0]), Cluster.parse("1x4:t4,1x4:a100"), **parts), Sia()
    )
    simulation.advance(70.0)
    twin = simulation.copy()
    simulation.advance(2000.0)
    assert (twin.learnt <= simulation.learnt).all()
    assert (twin.learnt != simulation.learnt).any()
    assert_frame_equal(twin.run().jobs, simulation.run().jobs, rel_tol=1e-12)  # sums up to another stop
