"""Metrics against sums done by hand, and against each other on runs of the simulator."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in import StandIn, allocation_frame, free_levels, hand_run, plain_run

import gpuschedlab as lab
from gpuschedlab import metrics
from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import usage
from gpuschedlab.metrics.columns import reading


@pytest.fixture
def run() -> StandIn:
    return hand_run()


def with_jobs(run: StandIn, **columns) -> StandIn:
    return replace(run, jobs=run.jobs.with_columns(**{k: pl.Series(v) for k, v in columns.items()}))


def test_times_by_hand(run):
    assert metrics.jct(run).tolist() == [10.0, 20.0, 23.0, 6.0]
    assert metrics.queueing(run).tolist() == [0.0, 0.0, 18.0, 2.0]
    assert metrics.slowdown(run).tolist() == pytest.approx([1.0, 1.0, 4.6, 1.5])
    # Durations 10, 20, 5 and 4 s: the threshold of 10 s applies to the last two.
    assert metrics.bounded_slowdown(run).tolist() == pytest.approx([1.0, 1.0, 2.3, 1.0])
    assert metrics.bounded_slowdown(run, threshold=4.0).tolist() == pytest.approx([1.0, 1.0, 4.6, 1.5])
    assert metrics.makespan(run) == 25.0


def test_spread_is_exact():
    found = metrics.spread(np.arange(101.0))
    assert found == metrics.Spread(101, 50.0, 50.0, 90.0, 99.0, 100.0)
    assert metrics.spread(np.zeros(0)).count == 0
    assert np.isnan(metrics.spread(np.zeros(0)).p99)
    for size in range(1, 15):
        values = np.random.default_rng(size).lognormal(0, 2, size)
        assert metrics.spread(values)[2:5] == tuple(np.quantile(values, (0.5, 0.9, 0.99)))


def test_means_over_no_time_are_unknown():
    for time in ([], [1.0], [1.0, 1.0]):
        assert np.isnan(usage.time_mean({"time": time, "used": [2.0] * len(time)}, "used"))
    assert usage.time_mean({"time": [0.0, 0.5, 2.0], "used": [4.0, 0.0, 7.0]}, "used") == 1.0


def test_fairness_by_hand(run):
    # JCT / (duration x contention): 10 / 12.5, 20 / 28, 23 / 10, 6 / 6.
    rho = metrics.finish_time_fairness(run)
    assert rho.tolist() == pytest.approx([0.8, 20 / 28, 2.3, 1.0])
    assert metrics.unfair_fraction(rho) == 0.25
    assert metrics.unfair_fraction(np.array([1 + 1e-10, 1 + 1e-8])) == 0.5  # a rounding error is not unfair
    assert np.isnan(metrics.unfair_fraction(np.zeros(0)))


def test_contention_below_one_does_not_shrink_the_isolated_time(run):
    idle = with_jobs(run, contention=[0.1, 0.1, 0.1, 0.1, 0.1])
    assert metrics.finish_time_fairness(idle).tolist() == pytest.approx(metrics.slowdown(run).tolist())


def test_use_of_the_cluster_by_hand(run):
    # GPUs held: 6 6 8 6 8 over 2 s each, 2 over 10 s, 8 over 2, 3 and 5 s: 168 GPU-s of 240.
    assert metrics.utilisation(run) == pytest.approx(168 / 240)
    assert metrics.contention(run) == pytest.approx(340 / 240)
    assert metrics.gpu_time(run) == metrics.GpuTime(168.0, 144.0, 16.0, 8.0)


def test_fragmentation_by_hand(run):
    # Free: node 0 has 4 GPUs from 10 to 20 s; node 1 has 2 over 16 s.
    assert free_levels(run).rows() == [(2.0, 32.0), (4.0, 40.0)]
    assert [metrics.fragmentation(run, g) for g in (1, 2, 3, 4, 8)] == pytest.approx([0, 0, 32 / 72, 32 / 72, 32 / 72])
    # Demands of the jobs: 4, 2, 8, 2, 8; those of 8 want whole nodes.
    assert metrics.fragmentation(run) == pytest.approx(3 / 5 * 32 / 72)


def test_guests_and_outages_leave_no_free_gpus(run):
    guest = allocation_frame([(4, 1, 2, 0.0, 20.0)]).with_columns(guest=pl.lit(True))
    shared = replace(run, allocations=pl.concat([run.allocations.with_columns(guest=pl.lit(False)), guest]))
    assert free_levels(shared).rows() == free_levels(run).rows()
    assert metrics.cost(shared, 1.0) == metrics.cost(run, 1.0)
    down = replace(run, info=run.info | {"cluster": Cluster((Nodes("v100", 2, 4),), (Outage(0, 12.0, 20.0),))})
    assert free_levels(down).rows() == [(2.0, 32.0), (4.0, 8.0)]
    words = replace(run, info=run.info | {"cluster": "2x4:v100", "events": [[0, 12.0, 20.0]]})
    assert free_levels(words).rows() == free_levels(down).rows()


def test_fragmentation_without_free_gpus():
    full = StandIn(
        pl.DataFrame({"submit": [0.0], "end": [5.0], "gpus": [4.0]}),
        pl.DataFrame({"time": [0.0, 5.0]}),
        allocation_frame([(0, 0, 4, 0.0, 5.0)]),
        {"cluster": "1x4"},
    )
    assert np.isnan(metrics.fragmentation(full))


def test_time_up_to_the_stop_counts(run):
    longer = replace(run, info=run.info | {"now": 40.0})
    assert metrics.utilisation(longer) == pytest.approx((168 + 80) / 320)
    assert metrics.utilisation(replace(run, info=run.info | {"now": float("inf")})) == pytest.approx(0.7)


def idle_around(run: StandIn) -> StandIn:
    """The run with all jobs ended, and an hour before the first of them and one after the last in which none is there."""
    line = run.timeline.with_columns(demanded=pl.when(pl.col("time") < 30).then("demanded").otherwise(0.0))
    none = line.tail(1).with_columns(pl.col("used", "demanded") * 0.0, pl.col("running", "waiting") * 0)
    early, late = (none.with_columns(time=pl.lit(t)) for t in (-3600.0, 3630.0))
    line = pl.concat([early, line[:-1], none, late]).with_columns(pl.col("time") + 3600)
    jobs = run.jobs.with_columns(pl.col("end").fill_null(30.0)).with_columns(pl.col("submit", "start", "end") + 3600)
    held = run.allocations.with_columns(pl.col("start", "end") + 3600)
    return replace(run, jobs=jobs, timeline=line, allocations=held, info=run.info | {"now": 9999.0})


def test_time_without_jobs_before_the_first_and_after_the_last_does_not_count(run):
    idle = idle_around(run)
    assert reading(idle).window == (3600.0, 3630.0)
    assert usage.timeline_of(idle)["time"].to_list() == (run.timeline["time"] + 3600).to_list()
    for metric in (metrics.utilisation, metrics.contention, metrics.fragmentation):
        assert metric(idle) == pytest.approx(metric(run)), metric.__name__
    # With a job left, all of it counts up to where the run stopped.
    left = replace(idle, jobs=idle.jobs.with_columns(end=pl.when(pl.col("job_id") != "e").then("end")))
    assert reading(left).window == (3600.0, 9999.0)
    assert metrics.utilisation(left) == pytest.approx(168 / (8 * 6399))
    # A run that starts among jobs counts from there.
    begun = replace(run, jobs=run.jobs.with_columns(pl.col("submit") - 5))
    assert reading(begun).window == (0.0, 30.0)


def test_reserved_gpus_after_the_last_end_are_billed_under_their_own_name(run):
    rows = [(3610.0, "idle", "v100", 2.0), (3626.0, "idle", "v100", 1.0), (3650.0, "idle", "v100", 0.0)]
    pools = pl.DataFrame(
        rows, schema={"time": pl.Float64, "name": pl.Utf8, "gpu_type": pl.Utf8, "gpus": pl.Float64}, orient="row"
    )
    idle = idle_around(run)
    found = metrics.summary(replace(idle, pools=pools), prices=3600.0)
    assert (found["gpu_time_billed"], found["gpu_time_kept"]) == pytest.approx((168 + 2 * 16 + 4, 20))
    assert found["cost"] == pytest.approx(168 + 32 + 24)


def test_rounds_and_keep_alive_after_the_last_end_change_no_metric():
    """One job, 100 s on one of 4 GPUs, submitted at 50 s, while a node is down from 0 to 10 and from 40,000 to 50,000 s."""
    trace = pl.DataFrame({"job_id": ["a"], "submit": [50.0], "gpus": [1.0], "duration": [100.0]})
    cluster = Cluster((Nodes("v100", 2, 2),), (Outage(1, 0.0, 10.0), Outage(1, 40_000.0, 50_000.0)))
    run = lab.simulate(trace, cluster, lab.policies.ThemisRounds(interval=36_000.0))
    assert run.info["now"] == 72_000.0  # its last round
    found = run.summary()
    assert run.jobs["end"].to_list() == [36_100.0]
    assert found["utilisation"] == pytest.approx(100 / (4 * 36_050))
    assert found["contention"] == pytest.approx(1 / 4)
    assert free_levels(run)["gpu_time"].sum() == pytest.approx(4 * 36_050 - 100)


def test_a_run_of_less_than_a_second_has_means():
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [0.5]})
    run = lab.simulate(trace, Cluster.homogeneous(1, 2), lab.Fifo())
    assert (metrics.utilisation(run), metrics.contention(run)) == (0.5, 0.5)


def test_contention_by_hand():
    """Four GPUs. a: 2 for 20 s; b: 4, from 10 s, waits until 20. Demanded over up: .5, 1.5 and 1, each for 10 s."""
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 10], "gpus": [2.0, 4], "duration": [20.0, 10]})
    run = lab.simulate(trace, Cluster.homogeneous(1, 4), lab.Fifo())
    assert run.jobs["contention"].to_list() == [1.0, 1.25]
    assert metrics.contention(run) == 1.0
    assert metrics.finish_time_fairness(run).tolist() == [1.0, 1.6]


def test_contention_of_a_job_that_is_there_all_the_time_is_that_of_the_run():
    """Half of the GPUs are down for a while, and then all of them: that time counts as 0."""
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 4], "gpus": [1.0, 1], "duration": [20.0, 2]})
    cluster = Cluster((Nodes("v100", 2, 1),), (Outage(1, 2.0, 100.0), Outage(0, 8.0, 12.0)))
    run = lab.simulate(trace, cluster, lab.Fifo(), delays=lab.Delays(checkpoint=1.0))
    # Ends at 26: 1/2 for 2 s, 1 for 2, 2 for 4, none up for 4, 2 for 12 and 1 for 2, when b runs at last.
    assert run.jobs["end"].to_list() == [24.0, 26.0]
    assert run.jobs["contention"][0] * 24 == pytest.approx(1 + 2 + 8 + 24)
    assert metrics.contention(run) * 26 == pytest.approx(1 + 2 + 8 + 24 + 2)


def test_cost_by_hand(run):
    assert metrics.cost(run, 3.0) == pytest.approx(168 / 3600 * 3.0)
    typed = replace(run, allocations=run.allocations.with_columns(gpu_type=pl.Series(["a"] * 4 + ["b"] * 4)))
    assert metrics.cost(typed, {"a": 3600.0, "b": 7200.0}) == pytest.approx(88 + 2 * 80)
    with pytest.raises(RunError, match=r"found no price for \['b'\]"):
        metrics.cost(typed, {"a": 1.0})


def test_slos_by_hand(run):
    # a ends on its deadline, b misses, c is best-effort, d has none, e is unfinished when its deadline (27 s) passes.
    columns = {"deadline": [10.0, 19.0, 1.0, None, 5.0], "kind": ["strict", "soft", "best_effort", "strict", "strict"]}
    slo = with_jobs(run, **columns, reward=[80.0, 100.0, 100.0, 100.0, None])
    assert metrics.slo_attainment(slo) == pytest.approx(1 / 3)
    assert metrics.slo_violation(slo) == pytest.approx(1 - 0.8 / 3)
    for before, share in ((5e-9, 1 / 3), (5e-8, 0.0)):  # a rounding error is no violation
        assert metrics.slo_attainment(with_jobs(slo, deadline=[10.0 - before, 19.0, 1.0, None, 5.0])) == pytest.approx(
            share
        )
    # Nothing is known yet about a deadline after the run's stop.
    later = with_jobs(slo, deadline=[10.0, 19.0, 1.0, None, 100.0])
    assert metrics.slo_attainment(later) == 0.5
    assert np.isnan(metrics.slo_attainment(run))
    assert np.isnan(metrics.slo_violation(run))
    # Without the columns, every job with a deadline is strict and worth 100.
    bare = with_jobs(run, deadline=[10.0, 19.0, None, None, None])
    assert metrics.slo_violation(bare) == 0.5


def test_soft_slos_by_hand(run):
    # JCTs 10, 20, 23, 6 s; e is submitted at 22 s and unfinished when the run stops at 30 s.
    deadlines = [[10.0, 12.0], [15.0, 18.0, 30.0], [5.0, 22.0], None, [4.0, 7.0]]
    rewards = [[100.0, 50.0], [90.0, 50.0, 20.0], [100.0, 80.0], None, [100.0, 40.0]]
    soft = with_jobs(run, deadlines=deadlines, rewards=rewards, deadline=[None, None, None, 5.0, None])
    # a ends on its first deadline, b by its third, c and d after their last; the last one of e (29 s) has passed.
    assert metrics.slo_violation(soft) == pytest.approx(1 - (100 + 20 + 0 + 0 + 0) / 500)
    assert metrics.slo_attainment(soft) == pytest.approx(1 / 5)
    # The first deadline of e has passed, the last (31 s) has not: it missed, and may still earn 40.
    deadlines[-1] = [4.0, 9.0]
    open_ = with_jobs(soft, deadlines=deadlines)
    assert metrics.slo_violation(open_) == pytest.approx(1 - (100 + 20 + 0 + 0) / 400)
    assert metrics.slo_attainment(open_) == pytest.approx(1 / 5)


def test_one_step_is_a_single_deadline(run):
    due = [10.0, 19.0, 24.0, None, 5.0]
    worth = [80.0, 100.0, 60.0, None, 70.0]
    single = with_jobs(run, deadline=due, reward=worth)
    tables = {"deadlines": [d and [d] for d in due], "rewards": [w and [w] for w in worth]}
    for metric in (metrics.slo_violation, metrics.slo_attainment):
        assert metric(single) == metric(with_jobs(run, **tables)) == metric(with_jobs(single, **tables))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True))))
def test_the_violation_rate_is_the_mean_of_the_steps(jobs):
    """Jobs of any JCT (s) and deadlines, worth 90, 70, 50 and 30, against a loop."""
    worth = [90.0, 70.0, 50.0, 30.0]
    tables = [sorted(map(float, d)) for _, d in jobs]
    frame = pl.DataFrame(
        {"submit": [7.0] * len(jobs), "end": [7.0 + jct for jct, _ in jobs]}
        | {"deadlines": tables, "rewards": [worth[: len(d)] for d in tables]},
        schema={"submit": pl.Float64, "end": pl.Float64} | dict.fromkeys(("deadlines", "rewards"), pl.List(pl.Float64)),
    )
    run = StandIn(frame, pl.DataFrame({"time": [0.0, 100.0]}), allocation_frame([]))
    earned = [next((w for d, w in zip(ds, worth) if jct <= d), 0.0) for (jct, _), ds in zip(jobs, tables)]
    met = [jct <= ds[0] for (jct, _), ds in zip(jobs, tables)]
    expected = (1 - np.mean(earned) / 100, np.mean(met)) if jobs else (np.nan, np.nan)
    assert (metrics.slo_violation(run), metrics.slo_attainment(run)) == pytest.approx(expected, nan_ok=True)


def test_censored_jobs_are_left_out_and_counted(run):
    some = with_jobs(run, censored=[False, True, False, None, False])
    assert metrics.jct(some).tolist() == [10.0, 23.0, 6.0]
    assert metrics.jct(some, censored=True).tolist() == [10.0, 20.0, 23.0, 6.0]
    found = metrics.summary(some)
    assert (found["jobs"], found["finished"], found["unfinished"], found["censored"]) == (5, 3, 1, 1)
    assert metrics.summary(some, censored=True)["jct_mean"] == 14.75
    assert found["gpu_time"] == 168.0  # GPUs were held all the same


def test_summary_has_every_metric(run):
    found = metrics.summary(run, prices=1.0)
    assert list(found) == list(metrics.METRICS)
    assert (found["preemptions"], found["failures"], found["restarts_mean"]) == (1, 1, 0.2)
    assert (found["jct_mean"], found["jct_max"], found["rho_worst"], found["seconds"]) == (14.75, 23.0, 2.3, 0.5)
    assert found["slo_violation"] is None  # no SLO jobs
    assert all(m.doc and m.label and m.better in ("lower", "higher", "") for m in metrics.METRICS.values())


def test_nothing_finished(run):
    begun = with_jobs(run, end=pl.Series([None] * 5, dtype=pl.Float64))
    found = metrics.summary(begun)
    assert (found["finished"], found["unfinished"]) == (0, 5)
    assert found["jct_mean"] is found["unfair_fraction"] is found["makespan"] is None
    assert found["utilisation"] == pytest.approx(0.7)


def test_compare_is_one_row_a_run(run):
    frame = metrics.compare({"one": run, "two": with_jobs(run, end=[20.0, 20.0, 25.0, 10.0, None])})
    assert frame["policy"].to_list() == ["one", "two"]
    assert frame.columns == ["policy", *metrics.METRICS]
    assert frame["jct_mean"].to_list() == [14.75, 17.25]
    assert frame.schema["slo_violation"] == pl.Float64  # numbers even where none applies
    assert metrics.compare({"one": run}, ["makespan"]).columns == ["policy", "makespan"]
    with pytest.raises(RunError, match="unknown metrics"):
        metrics.compare({"one": run}, ["speed"])


def test_what_is_no_run_is_refused(run):
    with pytest.raises(RunError, match="expected a Run"):
        metrics.jct(pl.DataFrame({"a": [1]}))
    with pytest.raises(RunError, match="expected a Cluster"):
        metrics.fragmentation(replace(run, info={}))


def typed_run(end: float, others: int = 0) -> StandIn:
    """One job of 12 units of work from 0 to `end`, beside `others`, on 2 GPUs of type a and 1 of type b."""
    jobs = pl.DataFrame(
        {"submit": [0.0], "end": [end], "gpus": [2.0], "duration": [12.0], "model": ["m"], "target": [12.0]}
    )
    line = pl.DataFrame({"time": [0.0, end], "running": [1, 0], "waiting": [others, others]})
    return StandIn(jobs, line, allocation_frame([]), {"cluster": Cluster((Nodes("a", 1, 2), Nodes("b", 1, 1)))})


def speeds(relative: bool = False, progress: bool = False) -> lab.Speeds:
    """1 GPU of a: 1 unit/s; 2: 1.5; 1 of b: 2. With `progress`: twice that after the first 6 units."""
    rows = {"gpu_type": ["a", "a", "b"], "n_nodes": [1, 1, 1], "n_gpus": [1, 2, 1], "rate": [1.0, 1.5, 2.0]}
    frame = pl.DataFrame({"model": ["m"] * 3} | rows)
    if progress:
        half = frame.with_columns(progress=6.0)
        rest = frame.with_columns(pl.col("rate") * 2, progress=12.0)
        frame = pl.concat([half, rest])
    return lab.Speeds.from_frame(frame, relative=relative)


@pytest.mark.parametrize(
    ("others", "table", "expected"),
    [
        # Alone: 12 units take 8 s on two GPUs of a (share 2 of 3 GPUs), 6 s on b.
        (0, speeds(), 2 / 3 * 9 / 8 + 1 / 3 * 9 / 6),
        # Two jobs: a share of one GPU of a (12 s; both half the time would be 16), half of b (12 s).
        (1, speeds(), 2 / 3 * 9 / 12 + 1 / 3 * 9 / 12),
        # The second half twice as fast: 6 s and 4.5 s.
        (0, speeds(progress=True), 2 / 3 * 9 / 6 + 1 / 3 * 9 / 4.5),
        # Relative to its two GPUs, the job cannot run on one: type b is left out.
        (0, speeds(relative=True), 9 / 8),
        # Rigid and alike on all types: 12 s on a; b is half of what it needs, 24 s.
        (0, None, 2 / 3 * 9 / 12 + 1 / 3 * 9 / 24),
    ],
)
def test_fairness_by_type_is_equation_3_6(others, table, expected):
    found = metrics.finish_time_fairness_by_type(typed_run(9.0, others), table)
    assert found.tolist() == pytest.approx([expected])
    if table is not None:
        assert metrics.summary(complete(typed_run(9.0, others)), speeds=table)["rho_worst"] == pytest.approx(expected)


def complete(run: StandIn) -> StandIn:
    """The same run with the columns that a summary reads besides."""
    zero = dict.fromkeys(("queueing", "overhead", "lost", "attained", "preemptions", "restarts", "failures"), 0.0)
    jobs = run.jobs.with_columns(
        contention=pl.lit(1.0), executed=pl.lit(9.0), **{k: pl.lit(v) for k, v in zero.items()}
    )
    line = run.timeline.with_columns(used=pl.lit(1.0), demanded=pl.lit(1.0), capacity=pl.lit(3.0))
    return replace(run, jobs=jobs, timeline=line)


def test_one_type_reduces_to_the_homogeneous_definition():
    # Share 8 / N GPUs of one type; a job of g GPUs takes max(1, g N / 8) times its duration there.
    run = hand_run()
    rho = metrics.finish_time_fairness_by_type(run, None)
    jobs = (2 * 2 + 2 * 3 + 3 * 4 * 2) / 10  # jobs in the system during a's life, 0 to 10 s
    assert rho[0] == pytest.approx(10 / (10 * max(1, 4 * jobs / 8)))
    # From 2 to 25 s, 0 to 20 and 4 to 10 there are 58 / 23, 2.7 and 4 jobs.
    assert rho[1:].tolist() == pytest.approx([20 / 20, 23 / (5 * 58 / 23), 6 / 4])


@pytest.mark.parametrize("shortest", [False, True])
def test_gpu_time_is_told_the_same_by_all_frames(shortest):
    run = plain_run(400, 4, seed=3, shortest=shortest)
    span = run.timeline["time"].max() - run.timeline["time"].min()
    held = metrics.utilisation(run) * span * 32
    total = float((run.allocations["gpus"] * (run.allocations["end"] - run.allocations["start"])).sum())
    assert held == pytest.approx(total)
    assert held == pytest.approx(metrics.gpu_time(run).total)
    assert free_levels(run)["gpu_time"].sum() == pytest.approx(span * 32 - total)


def test_runs_of_the_simulator():
    trace = plain_run(200, 4, seed=5).jobs.select("job_id", "submit", "gpus", "duration")
    cluster = Cluster.homogeneous(3, 8).with_failures(20_000.0, 2_000.0, 30_000.0, rng=1)
    run = lab.simulate(trace, cluster, lab.Srtf(), delays=lab.Delays(restart=10.0))
    found = metrics.summary(run)
    assert found["jct_mean"] == pytest.approx(run.jobs["jct"].mean())
    assert found["failures"] > 0
    assert found["preemptions"] > 0
    up = usage.time_mean(run.timeline, "capacity") * (run.timeline["time"].max() - run.timeline["time"].min())
    assert found["gpu_time"] == pytest.approx(found["utilisation"] * up)
    stopped = lab.simulate(trace, cluster, lab.Fifo(), until=3_000.0)
    assert metrics.summary(stopped)["unfinished"] == stopped.jobs["end"].null_count() > 0


def test_soft_deadlines_pass_through_a_run():
    """One GPU, 10-s jobs: Edf orders by the first deadline, and each earns what its table gives at its end."""
    trace = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": 0.0, "gpus": 1.0, "duration": 10.0}).with_columns(
        deadlines=pl.Series([[25.0, 30.0], [10.0], [15.0, 20.0]]),
        rewards=pl.Series([[100.0, 40.0], [100.0], [100.0, 60.0]]),
    )
    run = lab.simulate(trace, Cluster.homogeneous(1, 1), lab.Edf())
    assert run.jobs["end"].to_list() == [30.0, 10.0, 20.0]
    assert run.summary()["slo_violation"] == pytest.approx(1 - (40 + 100 + 60) / 300)
    assert run.summary()["slo_attainment"] == pytest.approx(1 / 3)
