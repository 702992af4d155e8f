"""PromptTuner and its baselines: the algorithms by hand, each correction a case; pools; bills; bad input."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gpuschedlab.check.recount import books_add_up
from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.errors import PolicyError, SpeedError, TraceError
from gpuschedlab.estimators import Noisy
from gpuschedlab.metrics import cost, slo_attainment, summary
from gpuschedlab.papers.prompttuner.jobs import LOADS, MINUTES, PromptJobs, _arrivals
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.papers.prompttuner.shares import DatedJobs, satisfactory_shares
from gpuschedlab.papers.prompttuner.warm_pools import Pool
from gpuschedlab.policies import ElasticFlow, Infless, PromptTuner
from gpuschedlab.sim import Allocation, Delays, Round, Scenario, simulate
from gpuschedlab.sim.frames import limited_to_up
from papers.prompttuner.small_runs import DELAYS, LAST, SPEEDS, jobs, most, run_of, starts

# --- the algorithms by hand, T_cold = 10 s


def test_prompttuner_algorithms_a_job_gets_no_more_warm_gpus_than_there_are():
    """(a) One idle GPU, and a job that needs two of them within 12 s: as printed it would start on two."""
    run = run_of(jobs((0, 10, 20), (25, 20, 12)), gpus=2)
    assert starts(run) == [10.0, None]
    empty = run_of(jobs((0, 4, 8)))  # no GPU is warm, and 10 s are too long
    assert starts(empty) == [None]


def test_prompttuner_algorithms_just_in_time_is_in_time():
    """(b) The idle GPU is given to a job that ends at its deadline."""
    run = run_of(jobs((0, 10, 20), (25, 12, 12)), gpus=1)
    assert starts(run) == [10.0, 25.0]
    assert slo_attainment(run) == 1.0


def test_prompttuner_algorithms_gpus_grow_until_the_deadline_is_met():
    """(c) 20 s of work, 10 s of warm-up, due in 20 s: two GPUs; due in 11 s: none of four suffices, and the loop ends."""
    run = run_of(jobs((0, 20, 20), (0, 50, 11)))
    assert starts(run) == [10.0, None]
    assert most(run, "warming a") == 2


def test_prompttuner_algorithms_only_cold_gpus_warm_up():
    """(d) Four GPUs would be in time; the cluster has two."""
    assert starts(run_of(jobs((0, 40, 20)), gpus=2)) == [None]
    assert starts(run_of(jobs((0, 40, 20)), gpus=4)) == [10.0]


def test_prompttuner_algorithms_ready_times_are_instants():
    """(e) At 100 s the first job's GPU is free at 120 s: too late for the second, which is due at 125 s."""
    run = run_of(jobs((100, 10, 20), (100, 10, 25)))
    assert starts(run) == [110.0, 110.0]
    assert most(run, "warming a") == 2


def test_prompttuner_algorithms_a_claim_lasts_until_its_instant():
    """(f) The second job waits until 120 s for the first one's GPU and has it until 130 s; the third, due at 135 s, cannot."""
    run = run_of(jobs((100, 10, 20), (100, 10, 32), (100, 10, 35)))
    assert most(run, "warming a") == 2
    assert slo_attainment(run) == 1.0


def test_prompttuner_algorithms_the_last_gpu_counts():
    """(g) A pool of one GPU, for which a job can wait."""
    run = run_of(jobs((0, 10, 20), (1, 10, 30)))
    assert starts(run) == [10.0, 20.0]
    assert most(run, "warming a") == 1


def test_prompttuner_algorithms_pools_are_apart():
    """(h) A job of another LLM cannot wait for that GPU."""
    run = run_of(jobs((0, 10, 20), (1, 10, 30, "b")))
    assert starts(run) == [10.0, 11.0]
    assert [most(run, f"warming {m}") for m in "ab"] == [1, 1]


def test_prompttuner_algorithms_a_lone_burst_buys_once():
    """Warming GPUs are waited for: rounds of 50 ms buy nothing again."""
    for policy in (LAST, Polling(late="drop")):
        run = run_of(jobs(*[(0, 10, 21)] * 3), policy, until=40.0)
        assert most(run, "warming a") == 3
        assert starts(run) == [10.0] * 3
    for waits, bought in (("any", 1), ("warm", 2), ("own", 2), ("never", 4)):
        assert most(run_of(jobs((0, 10, 20), (1, 10, 30)), replace(LAST, delaying=waits)), "warming a") == bought


def test_prompttuner_algorithms_each_start_has_the_least_gpus_that_suffice():
    """Brute force on four jobs and four GPUs: one GPU less would have been too late, at the instant of the start."""
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(60):
        rows = [(rng.integers(30), rng.integers(5, 60), rng.integers(8, 60), "ab"[rng.integers(2)]) for _ in range(4)]
        run = run_of(jobs(*sorted(rows)))
        held = run.allocations.group_by("job").agg(pl.col("gpus").sum(), pl.col("start").min())
        for job, gpus, start in held.select("job", "gpus", "start").iter_rows():
            row = run.jobs.row(job, named=True)
            left = row["submit"] + row["deadline"] - start
            enough = [a for a in (1, 2, 3, 4) if row["target"] / a <= left + 1e-6]
            assert enough
            assert gpus == enough[0]
            assert row["end"] == pytest.approx(start + row["target"] / gpus)
            several += gpus > 1
    assert several > 20


def test_late_jobs_are_last_or_dropped():
    trace = jobs((0, 40, 5), (0, 10, 30))
    assert starts(run_of(trace, PromptTuner(), gpus=1)) == [20.0, 10.0]
    assert starts(run_of(trace, gpus=1)) == [None, 10.0]


def test_a_gpu_leaves_its_pool_after_the_window():
    for window, second in ((60.0, 25.0), (4.0, 35.0), (0.0, 35.0)):
        run = run_of(jobs((0, 10, 20), (25, 10, 20)), PromptTuner(window=window, late="drop"))
        assert starts(run) == [10.0, second]
        last = run.pools.filter(pl.col("gpus") == 0)["time"].max()
        assert last == pytest.approx(second + 10 + window if window else second, abs=0.051)


# --- pools and bills


@dataclass(frozen=True)
class Polling(PromptTuner):
    """PromptTuner that decides every 50 ms, whether anything may have changed or not."""

    def allocate(self, view):
        return replace(super().allocate(view), wake=None)


@dataclass(frozen=True)
class PollingInfless(Infless):
    """INFless that decides on the whole grid."""

    def allocate(self, view):
        return replace(super().allocate(view), wake=None)


@pytest.fixture(scope="module")
def scenario():
    return PromptLab(PromptJobs("low", minutes=6))(seed=4)


@pytest.mark.parametrize("policy", [PromptTuner(window=20), Infless(), Infless(aware=False)], ids=lambda p: p.name)
def test_gpus_are_conserved_and_paid(scenario, policy):
    """Cold, warming, idle and busy GPUs are the cluster's at every instant, and the bill is their integral without the cold."""
    run = scenario.run(policy)
    reserved = run.pools.group_by("time", "name").agg(pl.col("gpus").last()).pivot("name", index="time", values="gpus")
    times = np.unique(np.concatenate([run.timeline["time"], run.pools["time"]]))
    frame = (
        pl.DataFrame({"time": times})
        .join(reserved, on="time", how="left")
        .sort("time")
        .fill_null(strategy="forward")
        .fill_null(0.0)
    )
    held = run.allocations.select("gpus", "start", "end").to_numpy()
    busy = np.array([held[(held[:, 1] <= t) & (t < held[:, 2]), 0].sum() for t in times])
    kept = frame.drop("time").to_numpy().sum(axis=1)
    assert (busy + kept <= 32 + 1e-9).all()
    paid = ((busy + kept)[:-1] * np.diff(times)).sum() / 3600
    assert cost(run, 1.0) == pytest.approx(paid)
    assert kept[-1] == 0
    window = policy.window if isinstance(policy, PromptTuner) else policy.keep_alive
    for name in [name for name in frame.columns if name.startswith("idle")]:
        llm = name.removeprefix("idle ")
        came = run.allocations.filter(pl.col("job").is_in(np.flatnonzero(run.jobs["model"] == llm).tolist())).select(
            "end", "gpus"
        )
        warmed = (
            frame.select("time", gpus=-pl.col(f"warming {llm}").diff()) if f"warming {llm}" in frame.columns else None
        )
        came = np.concatenate(
            [came.to_numpy(), *([] if warmed is None else [warmed.filter(pl.col("gpus") > 0).to_numpy()])]
        )
        for t, idle in zip(times, frame[name].to_numpy()):  # what is idle came within the window
            assert idle <= came[(came[:, 0] > t - window - 0.06) & (came[:, 0] <= t), 1].sum(), f"{name} at {t}"


def test_elasticflow_pays_for_the_whole_cluster(scenario):
    run = scenario.run(ElasticFlow())
    first = run.rounds["time"][0]
    assert 3600 * cost(run, 1.0) == pytest.approx(32 * (run.jobs["end"].max() - first), rel=1e-6)
    found = summary(run)
    assert found["gpu_time_billed"] > found["gpu_time"]
    assert found["late"] == 1 - slo_attainment(run)


def test_keep_alive_after_the_last_end_counts_in_no_average(scenario):
    """GPUs are idle for hours after the last job: utilisation is of the time before, and they are billed by themselves."""
    run = scenario.run(Infless(keep_alive=1e4))
    end = run.jobs["end"].max()
    found = run.summary()
    assert run.info["now"] > end + 9_000
    assert found["utilisation"] == pytest.approx(run.jobs["attained"].sum() / 32 / (end - run.jobs["submit"].min()))
    last = (
        run.pools.filter(pl.col("name").str.starts_with("idle"))
        .group_by("name")
        .agg(pl.col("time", "gpus").sort_by("time"))
    )
    kept = sum(
        gpus * (stop - max(start, end))
        for times, level in last.select("time", "gpus").iter_rows()
        for start, stop, gpus in zip(times, times[1:], level)
        if stop > end
    )
    assert found["gpu_time_kept"] == pytest.approx(kept)
    assert kept > 9_000
    assert found["gpu_time_billed"] + kept == pytest.approx(3600 * cost(run, 1.0))


def test_event_driven_rounds_start_jobs_when_polling_does():
    scenario = PromptLab(PromptJobs("medium", minutes=2))(seed=1)
    polled = scenario.run(Polling())
    woken = scenario.run(PromptTuner())
    assert woken.rounds.height < polled.rounds.height / 10
    apart = (polled.jobs["start"] - woken.jobs["start"]).abs().max()
    assert apart <= 0.05 + 1e-9


def test_unused_gpus_that_are_given_back_wake_the_jobs_that_wait_for_cold_ones():
    """At 10 s the second job takes the GPU of the first, which is late when that of the second is warm: at 11 s nobody wants it.

    The third, of another LLM, waits for a cold GPU, and has it in the round after.
    """
    trace = jobs((0, 10, 20.5), (1, 8, 19), (2, 5, 58, "b"))
    knobs = {"window": 0.0, "delaying": "own", "late": "drop"}
    for policy in (PromptTuner, Polling):
        assert starts(run_of(trace, policy(**knobs), gpus=2, until=40.0)) == [None, 10.0, pytest.approx(21.05)]


def drawn(rng) -> dict:
    """Up to eight jobs of two LLMs within a minute, on up to six GPUs; warm and cold starts; rounds of half a second."""
    n = int(rng.integers(2, 9))
    submit = np.sort(rng.uniform(0, 60, n).round(1))
    work = rng.uniform(3, 60, n).round(1)
    due = (rng.uniform(0.4, 3, n) * work + rng.choice([0, 10], n)).round(1)
    delays = Delays(kinds={"warm": float(rng.choice([0, 1])), "cold": float(rng.choice([3.3, 5, 10]))})
    rows = zip(submit, work, due, rng.choice(["a", "b"], n), strict=True)
    return {"trace": jobs(*rows), "gpus": int(rng.integers(1, 7)), "delays": delays, "until": 100.0}


@pytest.mark.parametrize("window", [0.0, None], ids=["window 0", "any window"])
def test_event_driven_rounds_decide_what_polling_decides(window):
    """All starts and ends of random instances, late jobs and noise in the durations included."""
    rng = np.random.default_rng(1)
    for seed in range(10):
        case = drawn(rng)
        size = float(rng.choice([0.02, 3, 15, 60])) if window is None else window
        knobs = {"late": str(rng.choice(["last", "drop"])), "interval": 0.5}
        kinds = (PromptTuner, Polling)
        more = {"delaying": str(rng.choice(["any", "warm", "own", "never"])), "window": size}
        if rng.random() < 0.25:
            kinds = (Infless, PollingInfless)
            more = {"aware": bool(rng.integers(2)), "keep_alive": size}
        case["estimator"] = Noisy(error=0.5, rng=seed) if rng.random() < 0.3 else None
        woken, polled = (run_of(policy=kind(**knobs, **more), **case).jobs.select("start", "end") for kind in kinds)
        assert_frame_equal(woken, polled, abs_tol=1e-6)


def test_a_policy_takes_over_running_jobs(scenario):
    """Their GPUs come to the pools as they end."""
    from gpuschedlab.sim import Simulation

    simulation = Simulation(scenario, Infless())
    simulation.advance(150.0)
    simulation.switch(PromptTuner())
    run = simulation.run()
    assert run.jobs["end"].null_count() == 0
    assert run.pools.filter(pl.col("time") > 150, pl.col("gpus") > 0).height > 0


def test_gpus_that_are_down_are_not_billed():
    """Warm from 0 to 10 s, a job until 20, idle until 80; the node is down from 30 to 45."""
    trace = jobs((0, 10, 20))
    whole = run_of(trace)
    assert 3600 * cost(whole, 1.0) == pytest.approx(80)
    down = (Outage(0, 30.0, 45.0), Outage(1, 0.0, 100.0))
    cluster = Cluster((Nodes("v100", 1, 4), Nodes("t4", 1, 4)), down)
    run = simulate(trace, cluster, LAST, speeds=SPEEDS, delays=DELAYS, until=500.0)
    assert run.jobs["end"].to_list() == [20.0]
    idle = run.pools.filter(name="idle a").select("time", "gpus").rows()
    assert idle == [(20.0, 1.0), (30.0, 0.0), (45.0, 1.0), (80.0, 0.0)]
    assert 3600 * cost(run, 1.0) == pytest.approx(80 - 15)


def test_what_is_up_and_not_held_may_be_reserved():
    """By hand: two nodes of 2 GPUs, a job holds one GPU from 0 to 8, and 3 are reserved."""
    cluster = Cluster((Nodes("v100", 2, 2),), (Outage(1, 2.0, 6.0), Outage(1, 4.0, 7.0)))
    pools = pl.DataFrame(
        [
            (0.0, "idle b", "v100", 2.0),
            (0.0, "idle a", "v100", 1.0),
            (5.0, "idle a", "v100", 0.0),
            (9.0, "idle b", "v100", 0.0),
        ],
        schema=["time", "name", "gpu_type", "gpus"],
        orient="row",
    )
    held = pl.DataFrame({"gpu_type": ["v100"], "gpus": [1.0], "start": [0.0], "end": [8.0], "guest": [False]})
    found = limited_to_up(pools, held, cluster, pools["time"].max()).select("time", "name", "gpus").rows()
    assert found == [
        (0.0, "idle a", 1.0),
        (0.0, "idle b", 2.0),
        (2.0, "idle a", 0.0),
        (2.0, "idle b", 1.0),
        (7.0, "idle b", 2.0),
        (9.0, "idle b", 0.0),
    ]
    assert limited_to_up(pools, held, Cluster(cluster.groups), 1e3) is pools


def test_the_most_recent_idle_gpus_are_taken_first():
    pool = Pool(idle=[(0.0, 1.0), (5.0, 2.0)])
    assert pool.take(1.5) == 1.5
    assert pool.idle == [(0.0, 1.0), (5.0, 0.5)]
    pool.drop(1.2)
    assert pool.idle == [(5.0, pytest.approx(0.3))]


# --- baselines


def test_infless_waits_for_its_slowest_instance_unless_it_reckons_with_it():
    """An idle GPU; 20 s of work due in 15 s: two instances are in time if both are warm. Cold starts take 10 s."""
    trace = jobs((0, 10, 20), (21, 20, 15))
    blind, aware = (run_of(trace, Infless(aware=aware)) for aware in (False, True))
    assert blind.jobs["end"].to_list() == [20.0, 41.0]  # one warm, one cold instance: 21 + 10 + 10
    assert aware.jobs["end"].to_list() == [20.0, 36.0]  # four: 21 + 10 + 5


def test_careful_infless_gives_a_late_job_nothing_that_another_needs_to_be_in_time():
    """Cold starts take 10 s, and 40 s of work are due in 12: late, unless four instances are warm, and these are not.

    Another job of 30 s, due in 20, needs three. The first takes none as long as warm ones would do, and then the one that is left.
    """
    trace = jobs((0, 40, 12), (0, 30, 20))
    careful, published = (run_of(trace, Infless(aware=aware)) for aware in (True, False))
    assert careful.jobs["end"].to_list() == [pytest.approx(2.05 + 10 + 40), 20.0]
    assert published.jobs["end"].to_list() == [20.0, 50.0]


def test_careful_infless_waits_for_idle_instances_that_would_do():
    """The first job's instance is idle at 20 s; 8 s of work that came at 12 s and are due at 29 s would be late on a new one."""
    trace = jobs((0, 10, 20), (12, 8, 17))
    rigid = {"most": 1, "late": "drop"}
    careful, published = (run_of(trace, Infless(aware=aware, **rigid)) for aware in (True, False))
    assert careful.jobs["end"].to_list() == [20.0, 28.0]
    assert published.jobs["end"].to_list() == [20.0, 30.0]


def test_careful_infless_serves_the_earliest_deadline_first():
    """Two GPUs: the first job would be in time on one of them, but the second, which is due before it, needs both."""
    trace = jobs((0, 30, 40), (0, 20, 20))
    careful, published = (run_of(trace, Infless(aware=aware), gpus=2) for aware in (True, False))
    assert careful.jobs["end"].to_list() == [35.0, 20.0]
    assert published.jobs["start"].to_list() == [0, 0]


def brute_share(gpus, seconds, setup, held, due, free, slot):
    """The least level by simulation of fine steps."""
    for top in range(len(gpus)):
        done = owed = 0.0
        before = held
        step = slot / 100
        for k in range(round(due / step)):
            able = [a for a, g in enumerate(gpus[: top + 1]) if g <= free[int(k * step / slot + 1e-9)]]
            now = gpus[able[-1]] if able else 0.0
            owed = setup if now and now != before else owed
            before = now
            if owed > 1e-9:
                owed -= step if now else 0.0
            elif able:
                done += step / seconds[able[-1]]
        if done >= 1 - 1e-6:
            return top
    return -1


def test_minimum_satisfactory_shares_are_the_least():
    rng = np.random.default_rng(1)
    found = []
    gpus = np.array([[1.0, 2.0, 4.0]])
    for _ in range(60):
        free = rng.integers(0, 5, 12).astype(float)
        work = rng.integers(4, 60)
        due = float(rng.integers(2, 55))
        setup = float(rng.integers(0, 3) * 5)
        seconds = work / gpus
        args = (setup, 0.0, due, free, 5.0)
        jobs = DatedJobs(gpus, seconds, *(np.array([x]) for x in (setup, 0.0, 0.0, due)))
        share, _, _ = satisfactory_shares(jobs, free.copy(), 5.0)
        assert share[0] == brute_share(gpus[0], seconds[0], *args)
        found.append(share[0])
    assert len(set(found)) == 4


def plan_by_hand(gpus, seconds, setup, held, still, due, free, slot):
    """Levels of one job after another, in their first slots, and when a planned one first changes; slot by slot."""
    shares = []
    firsts = []
    turn = np.inf
    for i, limit in enumerate(due):
        shares.append(-1), firsts.append(-1)
        for top in range(len(gpus)):
            plan = []
            done = 0.0
            owed = still[i]
            before = held[i]
            while done < 1 - 1e-9 and len(plan) < len(free) and len(plan) * slot < limit:
                able = [a for a in range(top + 1) if gpus[a] <= free[len(plan)]]
                room = min(slot, limit - len(plan) * slot)
                plan.append(able[-1] if able else -1)
                now = gpus[able[-1]] if able else 0.0
                owed = setup[i] if now and now != before else owed
                before = now
                if now:
                    spent = min(owed, room)
                    owed = owed - spent
                    done = done + (room - spent) / seconds[i][able[-1]]
            if done >= 1 - 1e-9:
                shares[-1] = top
                firsts[-1] = plan[0]
                free = [f - (gpus[a] if a >= 0 else 0) for f, a in zip(free, plan)] + free[len(plan) :]
                turn = min([turn, *(s * slot for s in range(1, len(plan)) if plan[s] != plan[s - 1])])
                break
    return shares, firsts, turn, free


@pytest.mark.parametrize("seed", range(30))
def test_satisfactory_shares_of_several_jobs_are_planned_one_after_another(seed):
    rng = np.random.default_rng(seed)
    n = 4
    gpus = [1.0, 2.0, 4.0]
    free = rng.integers(0, 9, 10).astype(float)
    work = rng.integers(4, 90, n)
    due = rng.integers(2, 55, n).astype(float)
    setup = rng.integers(0, 3, n) * 5.0
    held = rng.choice([0.0, *gpus], n)
    still = rng.uniform(0, 8, n)  # GPUs, and seconds of their start that are to come
    seconds = work[:, None] / np.array(gpus)
    left = free.copy()
    jobs = DatedJobs(np.tile(gpus, (n, 1)), seconds, setup, held, still, due)
    shares, firsts, turn = satisfactory_shares(jobs, left, 5.0)
    expected = plan_by_hand(gpus, seconds, setup, held, still, due, free.tolist(), 5.0)
    assert (shares.tolist(), firsts.tolist(), turn, left.tolist()) == expected


def test_elasticflow_declines_what_would_make_others_late():
    """One GPU, 10 s to start: the second job would not leave room for the first."""
    run = run_of(jobs((0, 10, 22), (1, 10, 20)), ElasticFlow(late="drop"), gpus=1)
    assert run.jobs["end"].to_list() == [20.0, None]
    both = run_of(jobs((0, 10, 22), (1, 10, 20)), ElasticFlow(late="drop"), gpus=2)
    assert slo_attainment(both) == 1.0


def test_elasticflow_gives_a_late_job_nothing_that_another_needs_to_be_in_time():
    """The first job is late on any number of GPUs; the second needs both: it starts at 20 s and ends at 20 + 10 + 15 s."""
    run = run_of(jobs((0, 60, 5), (20, 30, 26)), ElasticFlow(), gpus=2)
    assert run.jobs["end"][1] == 45.0
    assert run.jobs["end"][0] > 45.0


def test_elasticflow_gives_away_spare_gpus_and_takes_them_back():
    """60 s of work, due in 100 s: on four GPUs it ends at 10 + 15 s. Another one needs two: 20 s of work on two take 10 + 10 s."""
    run = run_of(jobs((0, 60, 100)), ElasticFlow())
    assert run.jobs["end"][0] == 25.0
    later = run_of(jobs((0, 60, 100), (20, 60, 60)), ElasticFlow())
    assert later.jobs["end"][0] == 40.0


# --- workloads and bad input


@pytest.mark.parametrize("load", LOADS)
def test_a_trace_has_the_requests_of_the_table_and_one_peak(load):
    trace = PromptJobs(load)(seed=2)
    for llm, count in zip(("gpt2-base", "gpt2-large", "vicuna-7b"), LOADS[load], strict=True):
        own = trace.filter(model=llm)
        minutes = np.bincount((own["submit"].to_numpy() // 60).astype(int), minlength=MINUTES)
        assert len(minutes) == MINUTES
        assert minutes.sum() == count
        assert minutes.max() == pytest.approx(5 * count / MINUTES, abs=1)
        assert own["task"].n_unique() > 20
    assert trace.equals(PromptJobs(load)(seed=2))


def test_the_bank_saves_iterations_and_nothing_else():
    plain, banked = (PromptJobs(bank=bank)(seed=3) for bank in (False, True))
    assert (plain["target"] == plain["iterations"]).all()
    assert plain["deadline"].equals(banked["deadline"])
    saved = (plain["target"] / banked["target"]).to_numpy()
    asks = banked["prompt"] == "bank"
    assert (saved[~asks.to_numpy()] == 1).all()
    assert np.median(saved[asks.to_numpy()]) == pytest.approx(1.5, abs=0.15)
    tight = PromptJobs(slo=0.2, warm_up=0.5)(seed=3)
    assert 0 < (tight["prompt"] == "bank").sum() < tight.height


@dataclass(frozen=True)
class Greedy(Round):
    """Reserves more than there is."""

    def allocate(self, view):
        n = len(view)
        return Allocation(np.zeros(n, int), np.zeros(n), reserved={"idle a": np.array([9.0])})


@pytest.mark.parametrize("policy", [PromptTuner(), Infless(), ElasticFlow()], ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("prompt", "kinds", "error", "said"),
    [
        (
            None,
            {"warm": 5.0, "cold": 4.0},
            SpeedError,
            "a 'cold' start of model 'a' takes 4 s, a 'warm' one 5 s; expected",
        ),
        ("Bank", {"warm": 0.0, "cold": 9.0}, TraceError, "job 0: found prompt 'Bank'; expected 'bank'"),
        ("user", {}, SpeedError, "found no kinds of start; expected 'cold', 'warm', too"),
        (None, {"warm": 0.0}, SpeedError, "found 'warm'; expected 'cold', too"),
        (
            "bank",
            {"warm": 0.0, "cold": 9.0},
            SpeedError,
            "found 'cold', 'warm'; expected 'cold bank', 'warm bank', too",
        ),
    ],
)
def test_kinds_of_start_that_say_too_little_are_named(policy, prompt, kinds, error, said):
    trace = jobs((0, 10, 40)).with_columns(prompt=pl.lit(prompt, pl.Utf8))
    with pytest.raises(error, match=said):
        run_of(trace, policy, delays=Delays(kinds=kinds))


def test_kinds_of_start_may_be_equal_or_none():
    for kinds in ({}, {"warm": 3.0, "cold": 3.0}):
        assert run_of(jobs((0, 10, 40)), delays=Delays(kinds=kinds)).jobs["end"].to_list() == [10.0 + bool(kinds) * 3]


def test_a_kind_of_start_needs_to_know_the_models_of_the_jobs_that_start_so():
    """Jobs of a search the bank; what that takes with b is nobody's question."""
    delays = Delays(kinds={"warm": 0.0, "cold": 10.0, "warm bank": {"a": 4.0}, "cold bank": {"a": 14.0}})
    trace = jobs((0, 10, 30), (0, 10, 30, "b")).with_columns(prompt=pl.Series(["bank", "user"]))
    for policy, ends in ((PromptTuner(), [24.0, 20.0]), (Infless(), [24.0, 20.0])):
        assert run_of(trace, policy, delays=delays).jobs["end"].to_list() == ends


def test_bad_input_is_named():
    cold = Delays(kinds={"warm": 0.0, "cold": {"b": 10.0}})
    with pytest.raises(SpeedError, match="'cold' says nothing of model 'a'; expected seconds"):
        run_of(jobs((0, 10, 20)), delays=cold)
    with pytest.raises(TraceError, match="column deadline .*found -5.0; expected seconds since submission, above 0"):
        run_of(jobs((0, 10, -5)))
    with pytest.raises(PolicyError, match="beside 9 reserved .*the cluster has 4 up"):
        run_of(jobs((0, 10, 20)), Greedy())
    with pytest.raises(PolicyError, match=r"PromptTuner.window: found -1"):
        PromptTuner(window=-1)


class Even:
    """In place of random numbers: minutes weigh the same, the first of each part is the busiest, and gaps are equal."""

    def gamma(self, shape, scale, size):
        return np.full(size, shape * scale)

    def integers(self, low, high):
        return low

    def exponential(self, scale, size):
        return np.full(size, scale)


@pytest.mark.parametrize(("count", "peak"), [(40, 1.0), (39, 1.0), (100, 5.0), (7, 3.0)])
def test_each_minute_has_its_share_of_the_requests(count, peak):
    """As many up to each minute as its share of the weight, to half a request."""
    found = _arrivals(count, MINUTES, peak, Even())
    weight = np.full(MINUTES, (MINUTES - peak) / (MINUTES - 1))
    weight[0] = peak
    until = np.searchsorted(found, 60.0 * np.arange(1, MINUTES + 1), side="left")
    assert np.abs(until - count * np.cumsum(weight) / MINUTES).max() <= 0.5 + 1e-9
    assert (np.diff(found) > 0).all()
    assert len(found) == count


def test_what_is_reserved_ends_with_its_node_where_a_run_is_stopped_before_the_next_round():
    """The node fails between two rounds, after the last row of the pools: nothing more is reserved, and nothing is billed."""
    columns = {"job_id": ["a"], "submit": [0.0], "gpus": [0.25], "duration": [1.0], "deadline": [2.0]}
    scenario = Scenario(pl.DataFrame(columns), Cluster((Nodes("v100", 1, 1),), (Outage(0, 8.0, 100.0),)))
    policy = PromptTuner(window=1250.0, delaying="any", most=1, late="last", interval=7.5)
    run = scenario.simulation(policy).run(until=60.0)
    assert run.pools.filter(pl.col("gpus") > 0)["time"].min() < 8.0
    assert run.pools.filter(pl.col("time") >= 8.0)["gpus"].to_list() == [0.0]
    assert cost(run, 3600.0) == pytest.approx(0.25 * 1.0 + 0.25 * 0.5)
    assert books_add_up(run, scenario, policy) is None
