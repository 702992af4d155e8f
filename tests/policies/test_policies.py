"""The ordered policies, each on a trace small enough to follow by hand."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
import pytest
from brief_policies import brief
from present import here
from small_jobs import ONE, jobs, random_trace

from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.errors import ClusterError
from gpuschedlab.knobs import Data, Knob
from gpuschedlab.policies import ALL, Edf, Fifo, Lucid, Sjf, Srtf, Themis, Tiresias
from gpuschedlab.policies.tiresias import GRID, WIDEST, gittins_ranks
from gpuschedlab.sim import Ordered, Scenario, Simulation, simulate
from gpuschedlab.speeds import Speeds

TWO = Cluster.homogeneous(1, 2)
TIME_LIMITED = {"chronus": "deadlines", "threesigma": "deadlines", "unisched": "deadlines", "sia": "sia"}
"""Policies that take a limit in seconds, and the paper of each."""


def ends(trace, cluster, policy, **more):
    """Completion times (s), in order of the trace."""
    return simulate(trace, cluster, policy, **more).jobs["end"].to_list()


def test_strict_fifo_waits_behind_a_job_that_does_not_fit():
    trace = jobs((0, 1, 100), (1, 2, 10), (2, 1, 5))
    assert ends(trace, TWO, Fifo(backfill="none")) == [100, 110, 115]
    assert ends(trace, TWO, Fifo(backfill="greedy")) == [100, 110, 7]


def test_easy_lets_pass_only_what_does_not_delay_the_first():
    trace = jobs((0, 1, 100), (1, 2, 10), (2, 1, 99), (3, 1, 97))
    # the second is promised 100 s; the third would end at 101 and may not pass, the fourth ends at 100 and may
    assert ends(trace, TWO, Fifo(backfill="easy")) == [100, 110, 209, 100]


def test_edf_suspends_for_an_earlier_deadline_only_if_allowed():
    trace = jobs((0, 1, 100), (10, 1, 10), deadline=[500.0, 50.0])
    assert ends(trace, ONE, Edf()) == [110, 20]
    assert ends(trace, ONE, Edf(preemptive=False)) == [100, 110]


def test_sjf_keeps_what_runs_and_srtf_does_not():
    trace = jobs((0, 1, 100), (10, 1, 20), (11, 1, 5))
    assert ends(trace, ONE, Sjf()) == [100, 125, 105]
    assert ends(trace, ONE, Srtf()) == [125, 35, 16]


def test_tiresias_moves_a_job_down_as_it_crosses_a_threshold():
    """The first job falls at 50 s to the second queue, and the new job, which has waited since 10 s, takes over."""
    trace = jobs((0, 1, 100), (10, 1, 30))
    assert ends(trace, ONE, Tiresias(thresholds=(50.0,))) == [130, 80]
    assert ends(trace, ONE, Tiresias(queues=1, thresholds=())) == [100, 130]


def test_tiresias_counts_service_as_gpus_times_time():
    trace = jobs((0, 2, 100), (10, 2, 30))
    assert ends(trace, TWO, Tiresias(thresholds=(50.0,))) == [125, 130]  # both fall after 25 s
    assert ends(trace, TWO, Tiresias(metric="time", thresholds=(50.0,))) == [130, 80]


def test_tiresias_promotes_a_starving_job_for_as_long_as_a_new_one_would_stay():
    """Falls at 10 s; has waited as long as it ran at 20 s, and so goes before the job that comes at 25 s, for 10 s at most."""
    trace = jobs((0, 1, 30), (1, 1, 9.5), (2, 1, 9.5), (25, 1, 9.5))
    run = simulate(trace, ONE, Tiresias(thresholds=(10.0,), starve_limit=1.0))
    first = run.allocations.filter(pl.col("job") == 0).sort("start")
    assert first["start"].to_list()[0] == 0
    assert first["end"].to_list()[0] == 10
    assert first["start"].to_list()[1] == 29
    assert first["end"].to_list()[1] == 39
    never = simulate(trace, ONE, Tiresias(thresholds=(10.0,)))
    assert never.allocations.filter(pl.col("job") == 0).sort("start")["start"].to_list()[1] == pytest.approx(38.5)


def brute_gittins(services, a):
    """Largest P(S - a <= d | S > a) / E[min(S - a, d) | S > a] over d."""
    left = services[services > a] - a
    return max((left <= d).mean() / np.minimum(left, d).mean() for d in left) if len(left) else 0.0


def test_gittins_ranks_are_those_of_the_definition():
    services = np.random.default_rng(0).lognormal(5, 2, 60)
    grid = np.expm1(np.linspace(0, WIDEST, GRID))
    index = np.array([brute_gittins(services, a) for a in grid])
    ranks = np.array(gittins_ranks(services))
    alive = grid < services.max()
    assert (np.diff(index[alive][np.argsort(ranks[alive])]) <= 1e-12).all()
    assert sorted(ranks) == list(range(GRID))


def test_gittins_prefers_the_job_that_is_about_to_end():
    """Services are 10 or 1000: at 9 GPU-s a job is likely to end now, at 20 it is not."""
    policy = Tiresias(metric="gittins", queues=1, thresholds=()).fit(jobs(*[(0, 1, 10)] * 9, (0, 1, 1000)))
    trace = jobs((0, 1, 1000), (30, 1, 10))
    assert ends(trace, ONE, policy) == [1010, 40]


def test_themis_lets_nobody_take_a_lease_away():
    trace = jobs((0, 1, 1000), (10, 1, 10))
    assert ends(trace, ONE, Themis(lease_term=300.0)) == [1010, 310]
    assert ends(trace, ONE, Themis(lease_term=60.0)) == [1010, 70]
    assert ends(trace, ONE, Themis(lease_term=61.0)) == [1010, 130]  # a lease ends on a full minute


def test_themis_gate_favours_the_worst_treated_and_its_absence_the_least_served():
    """At the end of the lease a long job that has waited little competes with a short one that has waited long."""
    trace = jobs((0, 1, 100), (0, 1, 5), (99, 1, 400))
    strict = simulate(trace, ONE, Themis(lease_term=100.0, f=0.99)).jobs["start"].to_list()
    assert strict[1] < strict[2]


def sharing(value):
    """Speeds of one model `x` on one GPU that goes at `value` beside itself."""
    made = Speeds.from_frame(
        pl.DataFrame({"model": ["x"], "gpu_type": ["v100"], "n_nodes": [1], "n_gpus": [1], "rate": [1.0]})
    )
    arrays = (made.first, made.code, made.row, made.rate, made.seg_first, made.seg_end)
    return Speeds(made.models, made.gpu_types, *arrays, np.array([True]), np.array([[value]]))


def test_lucid_profiles_first_and_starts_over():
    """One profiler node of two: the job runs 50 s there, then begins anew on the other."""
    run = simulate(jobs((0, 1, 100), (0, 1, 20)), Cluster.homogeneous(2, 1), Lucid(profiler_nodes=1, profile_time=50.0))
    assert run.jobs["end"].to_list() == [150, 70]
    assert run.jobs["lost"].to_list() == [50, 0]
    nodes = run.allocations.filter(pl.col("job") == 0).sort("start")["node"].to_list()
    assert nodes == [0, 1]


def test_a_profiler_that_grows_takes_nodes_as_they_become_empty():
    """Jobs hold two nodes of three for long, and the third until 20 s; a job that waits by then is profiled then."""
    trace = jobs((0, 1, 1000), (0, 1, 900), (0, 1, 20), (30, 1, 100), (31, 1, 10))
    early = trace.with_columns(submit=pl.col("submit") - pl.when(pl.col("submit") > 0).then(15).otherwise(0))
    late = [1000, 900, 20, 1000, 90]
    for frame, at, expected in ((trace, 25.0, late), (trace, 10.0, late), (early, 10.0, [1000, 900, 20, 1000, 80])):
        simulation = Simulation(Scenario(frame, Cluster.homogeneous(3, 1)), Lucid(profiler_nodes=0, pack=False))
        simulation.advance(at)
        for share_limit in (1.5, 1.2):  # what it has it keeps
            simulation.switch(Lucid(profiler_nodes=1, profile_time=50.0, pack=False, share_limit=share_limit))
        simulation.advance(np.inf)
        assert simulation.result().jobs["end"].to_list() == expected


@pytest.mark.parametrize(("second", "expected"), [(300, 340), (2000, 1040)])
def test_a_job_is_profiled_once_the_profiler_is_large_enough(second, expected):
    """The profiler wants two nodes of four, and gets one at 20 s and one when the second job ends; or it is too late."""
    trace = jobs((0, 1, 1000), (0, 1, 1000), (0, 1, second), (0, 1, 20), (10, 2, 40))
    simulation = Simulation(Scenario(trace, Cluster.homogeneous(4, 1)), Lucid(profiler_nodes=0, pack=False))
    simulation.advance(5)
    simulation.switch(Lucid(profiler_nodes=2, profile_time=50.0, pack=False))
    assert simulation.run().jobs["end"][4] == expected


def test_lucid_serves_the_smallest_expected_gpu_time_first():
    trace = jobs((0, 2, 50), (1, 2, 30), (2, 1, 40))
    assert simulate(trace, TWO, Lucid(profiler_nodes=0)).jobs["start"].to_list() == [0, 90, 50]


def test_lucid_shares_only_where_it_pays_and_only_between_two():
    trace = jobs((0, 1, 80), (0, 1, 80), (0, 1, 80), model=["x"] * 3)
    cluster = Cluster.homogeneous(1, 1)
    assert ends(trace, cluster, Lucid(profiler_nodes=0), speeds=sharing(0.8)) == [100, 100, 180]
    assert ends(trace, cluster, Lucid(profiler_nodes=0), speeds=sharing(0.7)) == [80, 160, 240]
    assert ends(trace, cluster, Lucid(profiler_nodes=0, pack=False), speeds=sharing(0.8)) == [80, 160, 240]


def test_a_key_may_read_learnt_numbers_and_choices():
    @dataclass(frozen=True)
    class Mine(Ordered):
        """By a table, in either direction."""

        mode: Annotated[str, Knob(choices=("up", "down"))] = "up"
        table: Annotated[tuple[float, ...], Data(4)] = (0.0, 3.0, 1.0, 2.0)

        @staticmethod
        def key(now, job, knobs):
            """Look up by GPUs."""
            value = knobs.table[int(job.gpus) - 1]
            return value if knobs.mode == 0 else -value

    trace = jobs((0, 4, 10), (1, 2, 10), (1, 3, 10), (1, 4, 10))
    four = Cluster.homogeneous(1, 4)
    assert np.argsort(ends(trace, four, Mine())).tolist() == [0, 2, 3, 1]
    assert np.argsort(ends(trace, four, Mine(mode="down"))).tolist() == [0, 1, 3, 2]


@pytest.mark.parametrize("placement", ["pack", "spread", "widest", "consolidate", "relax", "buddy"])
@pytest.mark.parametrize("cls", [Fifo, Srtf, Tiresias, Themis, Lucid])
def test_every_rule_serves_every_policy_to_the_end(cls, placement):
    trace = random_trace(200, load=1.2)
    run = simulate(trace, Cluster.homogeneous(8, 8), cls(placement=placement))
    assert run.jobs["end"].null_count() == 0
    if placement in ("consolidate", "buddy"):
        fewest = (trace["gpus"] / 8).ceil().to_list()
        assert run.jobs["nodes"].to_list() == fewest


def test_a_profiler_that_takes_all_nodes_is_explained():
    with pytest.raises(ClusterError, match=r"profiler_nodes=2; expected fewer than the nodes of the cluster \(1\)"):
        simulate(jobs((0, 1, 9)), Cluster.homogeneous(1, 8), Lucid())
    with pytest.raises(ClusterError, match="has 8 beside the 1 node that profiler_nodes sets aside"):
        simulate(jobs((0, 16, 9)), Cluster.homogeneous(2, 8), Lucid(profiler_nodes=1))


def test_no_policy_is_limited_by_seconds_unless_asked():
    """Work is counted; a limit in seconds, by which an answer depends on the machine, is a guard that a user sets."""
    limited = {name: cls for name, cls in ALL.items() if "time_limit" in cls().knobs}
    assert set(limited) == {name for name, paper in TIME_LIMITED.items() if here(paper)}
    for name, cls in limited.items():
        assert cls().time_limit is None, name
        assert "work" in cls.set_aside, name
        assert "time_limit" in cls.set_aside, name


@pytest.mark.parametrize("name", [n for n in ALL if n != "lucid"])  # Lucid sets nodes aside
def test_jobs_wait_while_no_node_is_up(name):
    policy = brief(name)
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 150.0], "gpus": [2, 2], "duration": [300.0, 60.0]})
    cluster = Cluster((Nodes("v100", 1, 2),), (Outage(0, 100.0, 500.0),))
    run = simulate(trace.with_columns(deadline=pl.lit(5000.0), kind=pl.lit("strict")), cluster, policy)
    assert run.jobs["end"].null_count() == 0
    assert not run.allocations.filter((pl.col("start") < 500) & (pl.col("end") > 100)).height
