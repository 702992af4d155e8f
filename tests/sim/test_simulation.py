"""The simulator: delays, outages, snapshots, other knobs under way, warm starts, both drivers, and errors."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import polars as pl
import pytest
from small_jobs import EIGHT, ONE, jobs, random_trace

from gpuschedlab.cli.commands.compare import _table
from gpuschedlab.cli.commands.run import _metrics
from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.comparison import compare
from gpuschedlab.errors import ClusterError, PolicyError, RunError, SpeedError, TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.policies import Edf, Fifo, Lucid, Sjf, Srtf, Themis, ThemisRounds, Tiresias
from gpuschedlab.report import write_report
from gpuschedlab.sim import Allocation, Delays, Ordered, Round, Scenario, Simulation, simulate
from gpuschedlab.sim.engine.events import PAUSED, TURNS, advance
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.speeds import Speeds, default_speeds
from gpuschedlab.widgets import Explorer

ORDERED = [
    Fifo(),
    Fifo(backfill="easy"),
    Sjf(),
    Srtf(),
    Edf(),
    Tiresias(),
    Themis(lease_term=600.0),
    Lucid(profiler_nodes=0),
]


def frames(run):
    return [f.serialize() for f in (run.jobs, run.timeline, run.allocations)]


def test_a_suspended_job_pays_the_restart_and_every_start_the_switch():
    trace = jobs((0, 1, 100), (10, 1, 20))
    run = simulate(trace, ONE, Srtf(), delays=Delays(restart=5, switch=2))
    # a: 2 s switch, 8 s work, suspended at 10; b: 2 + 20 s, ends at 32; a: 2 + 5 s, 92 s left
    assert run.jobs["end"].to_list() == [131, 32]
    assert run.jobs["overhead"].to_list() == [9, 2]
    assert run.jobs["preemptions"].to_list() == [1, 0]
    assert run.jobs["restarts"].to_list() == [1, 0]


def test_the_trace_s_own_restart_delay_overrides():
    trace = jobs((0, 1, 100), (10, 1, 20), restart=[7.0, None])
    assert simulate(trace, ONE, Srtf(), delays=Delays(restart=5)).jobs["end"][0] == 127


@pytest.mark.parametrize(("checkpoint", "lost", "end"), [(None, 50, 210), (20.0, 10, 170), (0.0, 0, 160)])
def test_a_failure_costs_the_progress_since_the_last_checkpoint(checkpoint, lost, end):
    cluster = Cluster((Nodes("a", 1, 1),), (Outage(0, 50, 110),))
    run = simulate(jobs((0, 1, 100)), cluster, Fifo(), delays=Delays(checkpoint=checkpoint))
    assert run.jobs["lost"].to_list() == [lost]
    assert run.jobs["end"].to_list() == [end]
    assert run.jobs["failures"].to_list() == [1]
    assert run.jobs["preemptions"].to_list() == [0]


def test_allocations_say_what_each_start_cost():
    run = simulate(jobs((0, 1, 100), (10, 1, 20)), ONE, Srtf(), delays=Delays(restart=5, switch=2))
    assert run.allocations.select("job", "start", "end", "delay").rows() == [
        (0, 0, 10, 2),
        (1, 10, 32, 2),
        (0, 32, 131, 7),
    ]


def test_overlapping_outages_keep_a_node_down_until_the_last_ends():
    cluster = Cluster((Nodes("a", 1, 1),), (Outage(0, 10, 100), Outage(0, 50, 200)))
    assert simulate(jobs((20, 1, 5)), cluster, Fifo()).jobs["start"].to_list() == [200]


def test_many_may_be_suspended_at_once_for_many():
    """A node of 32: at 10 s a batch of 32 short jobs takes it from 32 long ones, at one instant."""
    trace = jobs(*[(0, 1, 100)] * 32, *[(10, 1, 5)] * 32)
    run = simulate(trace, Cluster.homogeneous(1, 32), Srtf())
    assert run.jobs["end"].to_list() == [105.0] * 32 + [15.0] * 32
    assert run.jobs["preemptions"].to_list() == [1] * 32 + [0] * 32


@pytest.mark.parametrize("policy", [Fifo(), Srtf(interval=60.0), ThemisRounds()], ids=lambda p: p.name)
@pytest.mark.parametrize("log", [False, True])
def test_a_job_that_can_never_start_is_left_unfinished_not_looped_over(policy, log, monkeypatch):
    """Its node is down for good. A decision each minute must not keep the run going, and the run says what it leaves."""
    monkeypatch.setattr("gpuschedlab.sim.watch.PATIENCE", 6000.0)
    cluster = Cluster((Nodes("a", 1, 1),), (Outage(0, 10),))
    run = simulate(jobs((0, 1, 5), (20, 1, 5)), cluster, policy, log=log)
    assert run.jobs["end"].to_list() == [5, None]
    assert run.jobs["start"].to_list() == [0, None]
    left = "1 of 2 jobs never end, 1 of them never started: j1; 1 node is down and not repaired."
    assert run.never_ended == ["j1"]
    assert left in run.left
    assert left in repr(run)
    assert left in run._repr_html_()
    stopped = simulate(jobs((0, 1, 5), (20, 1, 5)), cluster, policy, until=30.0)
    assert (stopped.never_ended, stopped.left) == ([], "")


def test_what_a_run_leaves_is_said_wherever_it_is_shown(tmp_path):
    scenario = Scenario(jobs((0, 1, 5), (20, 1, 5)), Cluster((Nodes("a", 1, 1),), (Outage(0, 10),)))
    done = compare(scenario, [Fifo(), Sjf()])
    said = "1 of 2 jobs never end, 1 of them never started: j1; 1 node is down and not repaired."
    assert all(said in _metrics(name, run) for name, run in done.runs.items())
    pages = [_table(done, Recipe()), done._repr_html_(), write_report(done.runs, tmp_path / "a.html").read_text()]
    pages.append(Explorer(scenario, [Sjf(), Fifo()]).status.value)
    assert all(f"{name}: {said}" in page for page in pages[:3] for name in done.runs)
    assert said in pages[3]


@dataclass(frozen=True)
class EachFiveMinutes(Ordered):
    """Decides every five minutes, since its keys drift by themselves."""

    interval = 300.0
    moving = "all"

    @staticmethod
    def key(now, job, knobs):
        return job.submit - now


def test_compiled_code_returns_to_python_without_an_event_that_needs_it():
    """So that Ctrl-C is served: a policy that decides each five minutes, and a job whose node is down for good."""
    cluster = Cluster((Nodes("a", 1, 1),), (Outage(0, 10),))
    simulation = Simulation(Scenario(jobs((20, 1, 5)), cluster), EachFiveMinutes())
    assert advance(simulation.state, np.inf) == PAUSED
    assert simulation.now == pytest.approx(300 * TURNS, rel=1e-3)


@pytest.mark.parametrize("rule", ["pack", "consolidate", "relax", "buddy", "widest", "spread"])
def test_a_job_may_have_all_nodes_whatever_their_sizes(rule):
    cluster = Cluster.parse("1x8:v100,2x4:v100")
    run = simulate(jobs((0, 16, 600), (0, 1, 60), (0, 12, 60)), cluster, Fifo(placement=rule))
    assert run.jobs["end"].to_list() == [600, 660, 660]


@pytest.mark.parametrize("end", [1000.0, np.inf])
def test_no_job_waits_behind_one_that_waits_for_a_repair(end):
    """j0 needs both nodes, one of which is down: by EASY, nothing is kept for it; strictly first come, all wait."""
    cluster = Cluster((Nodes("v100", 2, 8),), (Outage(1, 0.0, end),))
    trace = jobs((0, 16, 100), (1, 4, 100), (2, 4, 5000))
    run = simulate(trace, cluster, Fifo(backfill="easy"), log=True)
    later = 5002 if end == 1000 else None
    assert run.jobs["start"].to_list() == [later, 1, 2]
    assert run.explain("j1").summary()["waited"] == 0
    strict = simulate(trace, cluster, Fifo(backfill="none"))
    assert strict.jobs["start"].to_list() == ([1000, 1100, 1100] if end == 1000 else [None] * 3)


def test_the_first_job_that_repairs_do_not_hold_up_has_the_reservation():
    """A node of 8 is up. j1 waits for a repair, j2 for j0: j4 would delay j2, j3 ends before."""
    cluster = Cluster((Nodes("v100", 2, 8),), (Outage(1, 0.0),))
    trace = jobs((0, 4, 100), (1, 16, 100), (2, 8, 100), (3, 4, 50), (4, 4, 200))
    run = simulate(trace, cluster, Fifo(backfill="easy"), log=True)
    assert run.jobs["start"].to_list() == [0, None, 100, 3, 200]
    blockers = run.decisions.filter(pl.col("reason") == "reserved").select("job", "blocker").unique().rows()
    assert blockers == [(4, 2)]


def test_a_consolidated_job_waits_for_the_repair_of_a_large_node():
    """Fewest nodes is one, the one of 8: with two of 4 the job would be split, so that it waits, and others pass."""
    cluster = Cluster((Nodes("a", 1, 8), Nodes("a", 2, 4)), (Outage(0, 0.0, 500.0),))
    trace = jobs((0, 8, 100), (1, 4, 100))
    starts = {
        rule: simulate(trace, cluster, Fifo(backfill="easy", placement=rule)).jobs["start"].to_list()
        for rule in ("consolidate", "pack")
    }
    assert starts == {"consolidate": [500, 1], "pack": [0, 100]}


@pytest.mark.parametrize("later", [0.0, 40.0])
def test_a_job_that_another_policy_stops_at_once_was_never_started(later):
    """Switched at the very instant of the start: nothing ran. Switched later: it ran, and pays for its restart."""
    trace = jobs((0, 1, 100), (0, 1, 50))
    simulation = Simulation(Scenario(trace, ONE, delays=Delays(restart=30)), Fifo())
    simulation.advance(later)
    simulation.switch(Srtf())
    run = simulation.run()
    ran = later > 0
    # after 40 s, j0 has 60 s left and goes behind j1's 50 s
    assert run.jobs["start"].to_list() == ([0, 40] if ran else [50, 0])
    assert run.jobs["end"].to_list() == ([180, 90] if ran else [150, 50])
    assert run.jobs["preemptions"].to_list() == [int(ran), 0]
    assert run.jobs["restarts"].to_list() == [int(ran), 0]


def test_keys_that_change_all_the_time_are_found_out():
    @dataclass(frozen=True)
    class Restless(Ordered):
        """Looks again after a nanosecond."""

        @staticmethod
        def key(now, job, knobs):
            """Always the same."""
            return 0.0

        @staticmethod
        def change(now, job, knobs):
            """Soon."""
            return now + 1e-9

    with pytest.raises(
        PolicyError, match=r"Restless was woken 10000 times between t=.* and .* at least a millisecond apart"
    ):
        simulate(jobs((0, 1, 5)), ONE, Restless())


def test_a_policy_that_leaves_one_job_alone_is_found_out(monkeypatch):
    monkeypatch.setattr("gpuschedlab.sim.watch.PATIENCE", 6000.0)

    @dataclass(frozen=True)
    class Nobody(Round):
        """Gives GPUs to the first job only."""

        interval = 60.0

        def allocate(self, view):
            """The first one that was submitted at 0."""
            return Allocation(np.zeros(len(view), int), np.where(view.submit == 0, 1.0, 0.0))

    with pytest.raises(PolicyError, match="let none of 1 jobs progress for 6000 s"):
        simulate(jobs((0, 1, 5), (1, 1, 5)), ONE, Nobody())
    assert simulate(jobs((0, 1, 5), (1, 1, 5)), ONE, Nobody(), until=3600.0).jobs["end"].to_list() == [5, None]


@pytest.mark.parametrize("policy", ORDERED, ids=lambda p: p.name)
def test_stopping_and_going_on_changes_nothing(policy):
    trace = random_trace()
    whole = simulate(trace, EIGHT, policy, delays=Delays(restart=30))
    parts = Simulation(Scenario(trace, EIGHT, delays=Delays(restart=30)), policy)
    for until in (1000.0, 5000.0, 5000.0, 9000.0):
        parts.run(until)
    run = parts.run()
    assert run.jobs["end"].to_list() == pytest.approx(whole.jobs["end"].to_list(), abs=1e-6)
    assert run.allocations.height == whole.allocations.height


@pytest.mark.parametrize("policy", ORDERED, ids=lambda p: p.name)
def test_a_snapshot_goes_its_own_way(policy):
    simulation = Simulation(Scenario(random_trace(), EIGHT), policy)
    simulation.advance(5000)
    twin = simulation.copy()
    other = pickle.loads(pickle.dumps(simulation.state))
    first = frames(simulation.run())
    assert twin.now == 5000
    assert (other.scalar == twin.state.scalar).all()
    assert frames(twin.run()) == first


def gone_on(pickled):
    return frames(pickle.loads(pickled).run())


def test_a_simulation_goes_on_in_another_process():
    # Knobs are passed to compiled keys by address: more of them than a record's first bytes, and of the process that runs.
    simulations = [
        Simulation(Scenario(random_trace(), EIGHT), policy) for policy in (Srtf(), Tiresias(), Themis(lease_term=600.0))
    ]
    for simulation in simulations:
        simulation.advance(5000)
    kept = [pickle.dumps(simulation) for simulation in simulations]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        there = list(pool.map(gone_on, kept))
    assert there == [gone_on(pickled) for pickled in kept] == [frames(simulation.run()) for simulation in simulations]


@pytest.mark.parametrize("policy", ORDERED, ids=lambda p: p.name)
def test_the_same_run_twice_is_the_same_to_the_byte(policy):
    assert frames(simulate(random_trace(), EIGHT, policy)) == frames(simulate(random_trace(), EIGHT, policy))


@pytest.mark.parametrize(
    "policy", [*ORDERED, Lucid(), Lucid(profiler_nodes=3, profile_time=900.0)], ids=lambda p: p.name
)
def test_switching_to_the_same_knobs_changes_nothing(policy):
    trace = random_trace(load=1.3)
    speeds = default_speeds(EIGHT)
    trace = trace.with_columns(model=pl.Series(np.random.default_rng(0).choice(speeds.models, trace.height)))
    cluster = Cluster(EIGHT.groups, tuple(Outage(node, 3000 * node, 3000 * node + 900) for node in range(8)))
    given = {"speeds": speeds, "delays": Delays(restart=30)}
    simulation = Simulation(Scenario(trace, cluster, **given), policy)
    for until in range(500, 40_000, 500):
        (simulation.advance if until % 5000 else simulation.run)(
            until
        )  # a run has its books added up, which takes longer
        held = simulation.state.scalar["used"][0]
        simulation.switch(policy)
        assert simulation.state.scalar["used"][0] == held
    expected = simulate(trace, cluster, policy, **given)
    assert simulation.run().jobs["end"].to_list() == pytest.approx(expected.jobs["end"].to_list())


def test_jobs_on_a_profiler_count_among_all_others_once_there_is_none():
    """Where decisions suspend jobs they count room by pool: one that is no more would be memory of others."""
    simulation = Simulation(Scenario(random_trace(load=1.3), EIGHT), Lucid(profiler_nodes=3, profile_time=900.0))
    simulation.advance(4000)
    running = simulation.state.job["state"] == 2
    assert set(simulation.state.body["pool"][running]) == {0, 1}
    simulation.switch(Tiresias())
    assert set(simulation.state.body["pool"][running]) == {0}
    assert simulation.run().jobs["end"].null_count() == 0


def test_profilers_get_the_nodes_that_they_lack_as_these_fall_empty():
    """One of three nodes is free at the switch, the second at 10 s; job j3, of two GPUs, waits for a profiler of two until then."""
    trace = jobs((0, 1, 10), (0, 1, 20), (0, 1, 300), (6, 2, 500))
    simulation = Simulation(Scenario(trace, Cluster.homogeneous(4, 1, "a")), Fifo())
    simulation.advance(5)
    simulation.switch(Lucid(profiler_nodes=2, profile_time=50.0))
    for now, profilers in ((5, 1), (15, 2), (25, 2), (400, 2)):
        simulation.advance(now)
        state = simulation.state
        held = np.bincount(state.nodes["pool"], state.nodes["size"], len(state.pools))
        assert state.pools["size"].tolist() == state.pools["total"].tolist() == held.tolist()
        assert held[state.pools["stage"] == 1].sum() == profilers * SLOTS
    assert simulation.run().jobs["start"].to_list() == [0, 0, 0, 10]


@dataclass(frozen=True)
class Reserving(Round):
    """Give each job its GPUs in order of arrival, and reserve the rest."""

    on_event = True

    def allocate(self, view):
        left = view.capacity[0]
        gpus = np.zeros(len(view))
        for i, asked in enumerate(view.gpus):
            gpus[i] = asked if asked <= left else 0.0
            left -= gpus[i]
        return Allocation(np.zeros(len(view), int), gpus, reserved={"rest": [left]})


def test_what_a_policy_had_reserved_is_given_back_at_a_switch(added_up):
    """To a policy that orders jobs at once; a round policy says by its first answer what it keeps."""
    trace = jobs((0, 2, 100), (10, 1, 20), (50, 4, 30))
    simulation = Simulation(Scenario(trace, Cluster.homogeneous(1, 4)), Reserving())
    simulation.advance(40.0)
    kept = simulation.copy()
    simulation.switch(Fifo())
    run = simulation.run()
    assert run.pools.rows()[-1] == (40.0, "rest", "v100", 0.0)
    assert run.pools["gpus"].to_list() == [2, 1, 2, 0]
    held = 2 * 100 + 20 + 4 * 30
    assert run.summary()["gpu_time_billed"] == held + 2 * 10 + 1 * 20 + 2 * 10
    kept.switch(Reserving())
    assert kept.run().pools["gpus"].to_list() == [2, 1, 2, 0, 4]
    assert len(added_up) == 2


@dataclass(frozen=True)
class Profiling(Round):
    """Hold one GPU for each job, without progress."""

    on_event = True

    def allocate(self, view):
        return Allocation(np.zeros(len(view), int), np.ones(len(view)), profiling=np.ones(len(view), bool))


def test_a_job_profiled_on_fewer_gpus_than_it_asks_for_does_not_run_on_them_after_a_switch(added_up):
    simulation = Simulation(Scenario(jobs((0, 2, 100), (0, 1, 50)), Cluster.homogeneous(1, 4)), Profiling())
    simulation.advance(40.0)
    simulation.switch(Fifo())
    run = simulation.run()
    assert run.jobs["end"].to_list() == [140, 90]
    assert run.jobs["profiled"].to_list() == [40, 40]
    assert run.jobs["restarts"].to_list() == [1, 0]
    assert added_up


@pytest.mark.parametrize("policy", [Srtf(), Tiresias(metric="gittins"), Lucid(profiler_nodes=2)], ids=lambda p: p.name)
def test_a_copy_under_another_policy_is_a_copy_that_was_switched(policy):
    simulation = Simulation(Scenario(random_trace(load=1.3), EIGHT), Tiresias())
    simulation.advance(4000)
    before = pickle.dumps(simulation.state)
    twin = simulation.under(policy)
    other = simulation.copy()
    other.switch(policy)
    assert frames(twin.run()) == frames(other.run())
    assert pickle.dumps(simulation.state) == before


@dataclass(frozen=True)
class Restless(Tiresias):
    """Looks at all keys, and decides, whenever one changes."""

    moving = "running"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "knobs",
    [
        {"metric": "gittins"},
        {"metric": "gittins", "queues": 3, "thresholds": (600.0, 6000.0), "starve_limit": 1.0, "pack_limit": 1.0},
        {"metric": "gittins", "placement": "pack", "interval": 300.0},
        {"queues": 5, "thresholds": (60.0, 600.0, 6000.0, 60_000.0)},
    ],
    ids=str,
)
def test_changes_of_rank_among_those_that_go_first_need_no_decision(knobs, seed):
    trace = random_trace(seed=seed, load=0.7 + 0.15 * seed)
    delays = Delays(restart=20.0)
    runs = [simulate(trace, EIGHT, policy(**knobs), delays=delays) for policy in (Tiresias, Restless)]
    assert runs[0].jobs["end"].to_list() == pytest.approx(runs[1].jobs["end"].to_list(), rel=1e-12)
    for column in ("job", "node", "start"):
        found = [run.allocations[column].to_list() for run in runs]
        assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_other_knobs_take_over_at_once():
    """FIFO until 10 s, then shortest first: the short job goes next."""
    trace = jobs((0, 1, 100), (1, 1, 50), (2, 1, 10))
    simulation = Simulation(Scenario(trace, ONE), Fifo())
    simulation.advance(10)
    simulation.switch(Sjf())
    assert simulation.run().jobs["end"].to_list() == [100, 160, 110]
    simulation = Simulation(Scenario(trace, ONE), Fifo())
    simulation.advance(10)
    simulation.switch(Srtf())
    assert simulation.run().jobs["end"].to_list() == [160, 70, 20]


@pytest.mark.parametrize(
    "policy",
    [
        Fifo(placement="pack"),
        Sjf(placement="pack"),
        Tiresias(pack_limit=0),
        Lucid(placement="pack"),
        Lucid(profiler_nodes=4, profile_time=900.0, placement="pack"),
    ],
    ids=lambda p: p.name,
)
def test_starting_in_the_midst_goes_on_where_another_stopped(policy):
    trace = random_trace(load=1.5)
    first = Simulation(Scenario(trace, EIGHT), policy)
    first.advance(3000)
    left = first.unfinished()
    done = first.result().jobs.filter(pl.col("end").is_not_null())["job_id"]
    rest = trace.filter(~pl.col("job_id").is_in(done.to_list()))
    again = Simulation(Scenario(rest, EIGHT), policy, start=3000.0, initial=left)
    again.advance(3000)
    assert again.state.scalar["used"][0] == first.state.scalar["used"][0]
    assert again.unfinished().sort("job_id").equals(left.sort("job_id"))
    ends = dict(first.run().jobs.select("job_id", "end").iter_rows())
    for name, end in again.run().jobs.select("job_id", "end").iter_rows():
        assert end == pytest.approx(ends[name], abs=1e-6)


def test_an_initial_state_that_does_not_match_the_trace_is_refused():
    with pytest.raises(RunError, match="j0"):
        Simulation(Scenario(jobs((0, 1, 5)), ONE), Fifo(), start=10.0)


def table(**rates):
    """Speeds of one model on type a by GPUs on one node."""
    rows = [("m", "a", 1, int(g[1:]), r) for g, r in rates.items()]
    return Speeds.from_frame(
        pl.DataFrame(rows, schema=["model", "gpu_type", "n_nodes", "n_gpus", "rate"], orient="row")
    )


@dataclass(frozen=True)
class Grow(Round):
    """One GPU in the first round, two from then on."""

    interval = 10.0

    def allocate(self, view):
        """Give each job its share."""
        gpus = np.where(view.age < 10, 1.0, 2.0)
        return Allocation(np.zeros(len(view), int), gpus)


def test_an_elastic_job_changes_its_rate_with_its_gpus():
    run = simulate(
        jobs((0, 1, 1), model=["m"], target=[100.0]),
        Cluster.homogeneous(1, 2, "a"),
        Grow(),
        speeds=table(g1=2.0, g2=4.0),
        delays=Delays(restart=3),
    )
    assert run.jobs["end"].to_list() == [33]  # 20 units by 10 s, 3 s of restart, 80 units at 4 a second
    assert run.jobs["attained"].to_list() == [10 + 2 * 23]
    assert run.rounds["time"].to_list()[:3] == [0, 10, 20]


def test_a_rate_that_changes_with_progress_is_followed():
    rows = [("m", "a", 1, 1, 1.0, 10.0), ("m", "a", 1, 1, 5.0, 60.0)]
    speeds = Speeds.from_frame(
        pl.DataFrame(rows, schema=["model", "gpu_type", "n_nodes", "n_gpus", "rate", "progress"], orient="row")
    )
    run = simulate(jobs((0, 1, 1), model=["m"]), Cluster.homogeneous(1, 1, "a"), Fifo(), speeds=speeds)
    assert run.jobs["end"].to_list() == [20]  # 10 units at 1, 50 at 5


def phases() -> Speeds:
    """4 units a second up to 40, and 1 from there on."""
    rows = [("m", "a", 1, 1, 4.0, 40.0), ("m", "a", 1, 1, 1.0, 60.0)]
    return Speeds.from_frame(
        pl.DataFrame(rows, schema=["model", "gpu_type", "n_nodes", "n_gpus", "rate", "progress"], orient="row")
    )


@pytest.mark.parametrize(("checkpoint", "lost", "end"), [(8.0, 5, 32), (None, 13, 40), (0.0, 0, 27)])
def test_a_failure_throws_back_to_what_was_done_at_the_checkpoint(checkpoint, lost, end):
    """43 units are done when the node fails at 13 s, and were 32 at 8 s, in the phase before; it is back at 20 s."""
    cluster = Cluster((Nodes("a", 1, 1),), (Outage(0, 13, 20),))
    delays = Delays(checkpoint=checkpoint)
    run = simulate(jobs((0, 1, 1), model=["m"], target=[50.0]), cluster, Fifo(), speeds=phases(), delays=delays)
    assert run.jobs.select("lost", "end").row(0) == (lost, end)


def test_a_stay_on_the_profiler_loses_the_seconds_that_it_took():
    """50 s, in which it does 80 units in two phases."""
    trace = jobs((0, 1, 1), model=["m"], target=[100.0])
    run = simulate(trace, Cluster.homogeneous(2, 1, "a"), Lucid(profiler_nodes=1, profile_time=50.0), speeds=phases())
    assert run.jobs.select("lost", "end").row(0) == (50, 50 + 10 + 60)


def test_jobs_that_share_slow_each_other_down_and_count_half():
    frame = pl.DataFrame({"model": ["x"], "gpu_type": ["a"], "n_nodes": [1], "n_gpus": [1], "rate": [1.0]})
    made = Speeds.from_frame(frame)
    speeds = Speeds(
        made.models, made.gpu_types, made.first, made.code, made.row, made.rate, made.seg_first, made.seg_end,
        np.array([True]), np.array([[0.8]]),
    )  # fmt: skip
    trace = jobs((0, 1, 80), (0, 1, 160), model=["x", "x"])
    run = simulate(trace, Cluster.homogeneous(1, 1, "a"), Lucid(profiler_nodes=0), speeds=speeds)
    assert run.jobs["end"].to_list() == [100, 180]  # both at 0.8 for 100 s; then 80 s of work alone
    assert run.jobs["attained"].to_list() == [50, 130]
    assert run.jobs["shared"].to_list() == [100, 100]
    apart = simulate(trace, Cluster.homogeneous(1, 1, "a"), Lucid(profiler_nodes=0, share_limit=1.7), speeds=speeds)
    assert apart.jobs["end"].to_list() == [80, 240]


def test_a_configuration_without_a_speed_names_job_and_configuration():
    with pytest.raises(SpeedError, match=r"job j0 \(model m\) was given 1 GPUs of a on 1 nodes"):
        simulate(
            jobs((0, 1, 1), model=["m"], target=[9.0]), Cluster.homogeneous(1, 2, "a"), Grow(), speeds=table(g2=4.0)
        )


def answer(types, gpus):
    """Round policy that always gives the same answer."""

    @dataclass(frozen=True)
    class Stubborn(Round):
        """Always the same."""

        def allocate(self, view):
            """Give it."""
            return Allocation(np.array(types), np.array(gpus))

    return Stubborn()


@pytest.mark.parametrize(
    ("types", "gpus", "words"),
    [
        ([0], [9.0], "gave 9 GPUs of v100 at t=0 s; the cluster has 8 up. Return at most view.capacity"),
        ([0], [-1.0], "negative"),
        ([0], [np.nan], "not finite"),
        ([1], [1.0], "expected 0 to 0"),
        ([0, 0], [1.0, 1.0], r"expected \(1,\)"),
    ],
)
def test_an_impossible_allocation_is_refused(types, gpus, words):
    with pytest.raises(PolicyError, match=words):
        simulate(jobs((0, 1, 5)), Cluster.homogeneous(1, 8), answer(types, gpus))


def test_a_policy_that_never_gives_anything_is_found_out():
    with pytest.raises(PolicyError, match="let none of 1 jobs progress"):
        simulate(jobs((0, 1, 5)), Cluster.homogeneous(1, 8), answer([0], [0.0]))


def test_slices_shorter_than_the_delays_are_found_out():
    @dataclass(frozen=True)
    class Turns(Round):
        """A second each, in turns."""

        interval = 1.0

        def allocate(self, view):
            """Give the whole cluster to the one that had least."""
            gpus = np.zeros(len(view))
            gpus[np.argmin(view.executed)] = 1
            return Allocation(np.zeros(len(view), int), gpus)

    with pytest.raises(PolicyError, match="stops them within their delays"):
        simulate(jobs((0, 1, 50), (0, 1, 50)), ONE, Turns(), delays=Delays(switch=5))


@pytest.mark.compiled
def test_leases_as_short_as_the_delays_are_found_out():
    """Jobs in turns, each turn as long as what it takes to start: they would go on for ever, and fill the memory."""
    trace = jobs(*[(0, 1, 5000)] * 8)
    turns = Themis(lease_term=60.0)
    with pytest.raises(PolicyError, match="Themis starts jobs over and over .* stops them within their delays"):
        simulate(trace, ONE, turns, delays=Delays(restart=60))
    assert simulate(trace, ONE, turns, delays=Delays(restart=60), until=3e6).summary()["finished"] == 0
    assert simulate(trace, ONE, turns, delays=Delays(restart=30)).summary()["finished"] == 8


@pytest.mark.compiled("about compiling a key")
def test_a_key_that_does_not_compile_is_explained():
    @dataclass(frozen=True)
    class Broken(Ordered):
        """Does what cannot be compiled."""

        @staticmethod
        def key(now, job, knobs):
            """A text."""
            return str(job.submit)

    with pytest.raises(PolicyError, match=r"Broken.key does not compile"):
        simulate(jobs((0, 1, 5)), ONE, Broken())


def test_what_does_not_fit_is_refused_at_the_door():
    with pytest.raises(ClusterError, match="job j0 asks for 9 GPUs"):
        simulate(jobs((0, 9, 5)), Cluster.homogeneous(1, 8), Fifo())
    mixed = Cluster.parse("1x8:a,2x4:a,1x12:b")
    profiled = Lucid(profiler_nodes=1)
    said = "job j1 asks for 17 GPUs; the rule 'consolidate' could never place it on 1x8:a,2x4:a,1x12:b, all nodes up and empty"
    with pytest.raises(ClusterError, match=said):
        simulate(jobs((0, 16, 5), (0, 17, 5)), mixed, Fifo())
    assert simulate(jobs((0, 12, 5), (0, 8, 5)), mixed, profiled).summary()["finished"] == 2
    simulation = Simulation(Scenario(jobs((0, 16, 5)), mixed), Fifo())
    with pytest.raises(ClusterError, match="16 GPUs; .* has 12 beside the 1 node that profiler_nodes sets aside"):
        simulation.switch(profiled)
    with pytest.raises(TraceError, match="duration"):
        simulate(jobs((0, 1, -5)), ONE, Fifo())
    with pytest.raises(PolicyError, match="expected an instance of it"):
        simulate(jobs((0, 1, 5)), ONE, Fifo)
    with pytest.raises(ClusterError, match="expected a Cluster"):
        simulate(jobs((0, 1, 5)), 8, Fifo())
    with pytest.raises(ValueError, match="restart"):
        Delays(restart=-1)


def test_fractions_of_a_gpu_share_it_exactly():
    trace = jobs(*[(0, 0.25, 100)] * 5)
    run = simulate(trace, ONE, Fifo())
    assert run.jobs["end"].to_list() == [100, 100, 100, 100, 200]
    assert run.timeline["used"].max() == 1


def test_an_interval_holds_decisions_to_its_grid():
    run = simulate(jobs((1, 1, 50), (2, 1, 5)), ONE, Fifo(interval=60))
    assert run.jobs["start"].to_list() == [60, 120]


def test_repacking_makes_room_that_fragmentation_hides():
    """Two nodes of 4: 2 + 2 spread over both, then 4 comes; one job of 2 moves, the other stays."""

    @dataclass(frozen=True)
    class AllOfIt(Round):
        """Everybody gets what they ask."""

        interval = 10.0

        def allocate(self, view):
            """Give it."""
            return Allocation(np.zeros(len(view), int), view.gpus)

    trace = jobs((0, 2, 25), (0, 3, 9), (0, 2, 100), (15, 4, 50))
    run = simulate(trace, Cluster.homogeneous(2, 4), AllOfIt())
    assert run.jobs["start"].to_list()[3] == 20
    assert run.jobs["end"].null_count() == 0


# --- rows that stand for several jobs


@pytest.mark.parametrize(
    "policy",
    [
        *ORDERED,
        *(Tiresias(metric=m, starve_limit=2.0) for m in ("service", "time", "gittins")),
        Lucid(profiler_nodes=1),
    ],
    ids=repr,
)
def test_a_row_of_several_jobs_goes_as_each_of_them_would(policy):
    rng = np.random.default_rng(0)
    duration = rng.lognormal(8, 2, 200)
    one = jobs(*((t, 1, d) for t, d in zip(np.sort(rng.uniform(0, duration.sum() / 5, 200)), duration)))
    five = one.with_columns(gpus=pl.lit(5.0), jobs=pl.lit(5.0))
    alone, together = (
        simulate(trace, Cluster.homogeneous(4, gpus), policy, delays=Delays(restart=30.0)).jobs
        for trace, gpus in ((one, 1), (five, 5))
    )
    assert together["end"].to_list() == pytest.approx(alone["end"].to_list())
    assert together["attained"].to_list() == pytest.approx((5 * alone["attained"]).to_list())


@pytest.mark.parametrize(("each", "nodes", "rate"), [(1, 4, 1.0), (2, 1, 0.8), (2, 2, 0.8), (2, 4, 0.5), (4, 1, 0.6)])
def test_each_job_of_a_row_goes_at_its_own_speed(each, nodes, rate):
    rows = [("m", "a", 1, 1, 1.0), ("m", "a", 1, 2, 0.8), ("m", "a", 2, 2, 0.5), ("m", "a", 1, 4, 0.6)]
    speeds = Speeds.from_frame(
        pl.DataFrame(rows, schema=["model", "gpu_type", "n_nodes", "n_gpus", "rate"], orient="row")
    )
    trace = jobs((0, 4, 1), jobs=[4 / each], model=["m"], target=[120.0])
    run = simulate(trace, Cluster.homogeneous(nodes, 4 // nodes, "a"), Fifo(placement="relax"), speeds=speeds)
    assert run.jobs["end"].to_list() == pytest.approx([120 / rate])


def test_round_policies_are_told_what_a_row_of_several_jobs_takes_in_all():
    told = []

    @dataclass(frozen=True)
    class Look(Round):
        """All it asks for."""

        def allocate(self, view):
            """Note and give it."""
            told.append((view.gpus.tolist(), view.attained.tolist(), view.running_gpus.tolist()))
            return Allocation(np.zeros(len(view), int), view.gpus)

    run = simulate(jobs((0, 6, 100), jobs=[3.0]), EIGHT, Look())
    assert told[:2] == [([6.0], [0.0], [0.0]), ([6.0], [6.0 * Look.interval], [6.0])]
    assert run.jobs["attained"].to_list() == [600.0]


def test_a_row_of_several_jobs_keeps_what_they_attained_when_it_is_begun_anew():
    trace = jobs((0, 6, 100), jobs=[3.0])
    first = Simulation(Scenario(trace, EIGHT), Tiresias())
    first.advance(40.0)
    assert first.unfinished()["attained"].to_list() == [240.0]
    again = Simulation(Scenario(trace, EIGHT), Tiresias(), start=40.0, initial=first.unfinished())
    assert again.run().jobs.select("end", "attained").rows() == [(100.0, 600.0)]


def test_an_estimator_is_asked_about_one_job_of_a_row():
    class Sized(Estimator):
        """As many seconds as GPUs."""

        needs_history = False

        def _predict(self, jobs):
            return jobs["gpus"].to_numpy()

    trace = jobs((0, 6, 100), (1, 6, 100), jobs=[3.0, None])
    simulation = Simulation(Scenario(trace, EIGHT, estimator=Sized()), Sjf())
    assert simulation.state.job["estimate"].tolist() == simulation.state.job["gpus"].tolist() == [2.0, 6.0]


def test_a_row_of_less_than_one_job_is_refused():
    with pytest.raises(TraceError, match="column jobs .* found 0.5; expected jobs that the row stands for"):
        simulate(jobs((0, 1, 1), jobs=[0.5]), ONE, Fifo())
