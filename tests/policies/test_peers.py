"""Small cases that other simulators and schedulers publish, with their results: jobs are (submit s, duration s, GPUs)."""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

from gpuschedlab import Cluster, Fifo, Ordered, Sjf, Srtf, Tiresias, simulate
from gpuschedlab.estimators import Oracle, Requested
from gpuschedlab.policies import Edf


def trace(jobs, **more):
    """Trace of (submit, duration, GPUs) rows; job ids ascend with the row."""
    submit, duration, gpus = np.array(jobs, float).T
    ids = [f"{i:06d}" for i in range(len(jobs))]
    return pl.DataFrame({"job_id": ids, "submit": submit, "duration": duration, "gpus": gpus, **more})


def run(jobs, gpus, policy, **more):
    """Run on one node of so many GPUs; durations are known."""
    return simulate(trace(jobs, **more), Cluster.homogeneous(1, gpus), policy, estimator=Oracle())


SCHEDGYM = [(0, 2, 2), (1, 2, 1), (1, 2, 3), (1, 1, 2), (1, 1, 2), (3, 1, 2)]


@pytest.mark.parametrize(
    ("policy", "jobs", "starts", "makespan"),
    [
        (Fifo(backfill="easy"), SCHEDGYM, [0, 1, 3, 2, 5, 6], 7),
        (Fifo(), SCHEDGYM[:4], [0, 1, 3, 5], 6),
    ],
    ids=["easy", "fifo"],
)
def test_schedgym_on_three_processors(policy, jobs, starts, makespan):
    """From schedgym/test_schedgym.py of renatolfc/sched-rl-gym."""
    done = run(jobs, 3, policy).jobs
    assert done["start"].to_list() == starts
    assert done["end"].max() == makespan


def test_batsim_ten_delays_on_two_hosts():
    """From oar-team/batsim, workloads/test_delays.json: ten jobs of 10 s, one every 3 s, each on one host."""
    done = simulate(trace([(3 * i, 10, 1) for i in range(10)]), Cluster.homogeneous(2, 1), Fifo()).jobs
    assert done["end"].max() == 53


@pytest.mark.parametrize(
    ("policy", "lengths", "response", "turnaround"),
    [(Fifo(), (9, 8, 5), 8.67, 16.00), (Sjf(), (169, 152, 85), 107.33, 242.67)],
    ids=["fifo", "sjf"],
)
def test_ostep_scheduler_homework(policy, lengths, response, turnaround):
    """From remzi-arpacidusseau/ostep-homework, cpu-sched/scheduler.py: `-p FIFO -j 3` and `-p SJF -j 3 -m 200`.

    Means (s) to two places; the lengths are those that its seed 0 draws.
    """
    done = run([(0, length, 1) for length in lengths], 1, policy).jobs
    assert round(done["queueing"].mean(), 2) == response
    assert round(done["jct"].mean(), 2) == turnaround


FLUX_NODES = (4, 3, 3, 2, 2, 2, 2) + (1,) * 10
FLUX_LIMITS = (80,) * 7 + tuple(range(70, 20, -5))


@pytest.mark.parametrize(("backfill", "waves"), [("none", 8), ("easy", 7)])
def test_flux_sched_572_waves_of_equal_jobs(backfill, waves):
    """From flux-framework/flux-sched#572: 17 jobs of 20 s on 4 nodes, with time limits; EASY takes 7 waves.

    There job 8 starts with job 2, and job 9 with job 3. Without backfill they take 8, counted by hand.
    """
    jobs = trace([(0, 20, n) for n in FLUX_NODES], requested_time=[60.0 * limit for limit in FLUX_LIMITS])
    done = simulate(jobs, Cluster.homogeneous(4, 1), Fifo(backfill=backfill), estimator=Requested()).jobs
    assert done["start"].unique().sort().to_list() == [20 * wave for wave in range(waves)]
    if backfill == "easy":
        assert done["start"][[7, 8]].to_list() == done["start"][[1, 2]].to_list() == [20, 40]


def test_simmer_114_preemption_on_servers_that_are_not_all_busy():
    """From r-simmer/simmer#114: 10 servers, 5 busy; a job of 7 with priority suspends two at once, which end at 19."""
    deadlines = [1000.0] * 5 + [100.0]
    done = run([(0, 10, 1)] * 5 + [(1, 10, 7)], 10, Edf(), deadline=deadlines).jobs
    assert done["start"].to_list() == [0, 0, 0, 0, 0, 1]
    assert sorted(done["preemptions"][:5]) == [0, 0, 0, 1, 1]
    assert sorted(done["end"]) == [10, 10, 10, 11, 19, 19]


@pytest.mark.parametrize(("backfill", "start"), [("none", 100), ("easy", 2), ("greedy", 2)])
def test_volcano_2384_a_small_job_behind_a_large_one(backfill, start):
    """From volcano-sh/volcano#2384: 7 processors are usable, 4 are held, a job of 4 waits, and then one of 1 comes.

    Durations are ours: none are given there.
    """
    done = run([(0, 100, 4), (1, 100, 4), (2, 50, 1)], 7, Fifo(backfill=backfill)).jobs
    assert done["start"].to_list() == [0, 100, start]


def erlang_wait(arrivals, service, servers):
    """Mean wait (s) in M/M/c: Erlang's C over c x service - arrivals; rates per s."""
    load = arrivals / service
    free = sum(load**k / math.factorial(k) for k in range(servers))
    full = load**servers / math.factorial(servers) / (1 - load / servers)
    return full / (free + full) / (servers * service - arrivals)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("arrivals", "service", "servers", "law", "replications", "jobs", "published", "wait"),
    [
        (0.2, 0.1, 3, "M", 20, 20_000, 4.444, erlang_wait(0.2, 0.1, 3)),
        (0.7, 1.0, 1, "M", 20, 20_000, 2.333, erlang_wait(0.7, 1.0, 1)),
        (7.2, 1.0, 8, "M", 24, 40_000, 0.877, erlang_wait(7.2, 1.0, 8)),
        (0.7, 1.0, 1, "D", 20, 20_000, 1.167, 0.7 / (2 * (1 - 0.7))),
    ],
    ids=["M/M/3", "M/M/1", "M/M/8", "M/D/1"],
)
def test_mean_waits_of_queueing_theory(arrivals, service, servers, law, replications, jobs, published, wait):
    """Erlang's C, and Pollaczek-Khinchine for M/D/1: the theory lies in the 99 % t interval, which excludes an error of 10 %.

    The first tenth of each replication is left out: it begins with an empty queue.
    """
    assert round(wait, 3) == published
    means = []
    for seed in range(replications):
        rng = np.random.default_rng(seed)
        submits = np.cumsum(rng.exponential(1 / arrivals, jobs))
        durations = rng.exponential(1 / service, jobs) if law == "M" else np.full(jobs, 1 / service)
        done = run(np.column_stack([submits, durations, np.ones(jobs)]), servers, Fifo()).jobs
        means.append(done["queueing"][jobs // 10 :].mean())
    margin = student.ppf(0.995, replications - 1) * np.std(means, ddof=1) / math.sqrt(replications)
    error = abs(np.mean(means) - wait)
    assert error < margin
    assert error + margin < 0.1 * wait


# fmt: off
TIRESIAS = [  # simulator/60_job.csv of SymbioticLab/Tiresias, Apache-2.0: submit_time, duration, num_gpu
    (0, 164, 1), (30, 147, 8), (53, 127, 2), (79, 121, 1), (99, 121, 4), (132, 138, 8), (176, 121, 1), (204, 124, 2),
    (227, 155, 2), (252, 126, 1), (282, 230, 1), (311, 368, 1), (337, 131, 2), (363, 196, 8), (401, 121, 1),
    (434, 180, 1), (471, 143, 4), (504, 122, 2), (531, 189, 1), (554, 125, 1), (583, 536, 1), (611, 126, 2),
    (645, 123, 1), (680, 121, 8), (707, 121, 4), (733, 121, 1), (761, 121, 1), (793, 121, 8), (827, 152, 1),
    (861, 121, 1), (892, 141, 1), (918, 121, 1), (944, 125, 8), (973, 121, 1), (1008, 305, 8), (1042, 121, 4),
    (1067, 123, 4), (1100, 121, 1), (1139, 121, 2), (1165, 121, 1), (1194, 122, 1), (1223, 123, 2), (1248, 263, 1),
    (1274, 209, 1), (1315, 158, 1), (1347, 121, 2), (1381, 121, 1), (1414, 121, 8), (1447, 126, 8), (1471, 1800, 1),
    (1499, 126, 4), (1537, 130, 1), (1580, 121, 4), (1612, 121, 1), (1644, 171, 4), (1676, 135, 8), (1701, 133, 2),
    (1729, 128, 4), (1750, 122, 4), (1779, 122, 1),
]
# fmt: on


@dataclass(frozen=True)
class FewestGpus(Ordered):
    """Fewest GPUs first, and larger jobs are suspended for smaller ones: `sjf` of Tiresias' simulator."""

    preemptive = True
    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        """GPUs."""
        return job.gpus


@pytest.mark.parametrize(
    ("policy", "jct", "preemptions"),
    [
        (Fifo(), 1556.48, 0),  # fifo
        (Fifo(backfill="greedy"), 715.27, 0),  # fjf: in order of submission, each that fits
        (Srtf(), 519.87, 7),  # shortest
        (FewestGpus(), 725.70, 8),  # sjf: by a second-by-second loop of its rule
    ],
    ids=["fifo", "fjf", "shortest", "sjf"],
)
def test_tiresias_own_simulator(policy, jct, preemptions):
    """From SymbioticLab/Tiresias, simulator/run_sim.py, 60 jobs on one node of 8 GPUs: mean completion time (s) of its schedules."""
    done = run(TIRESIAS, 8, policy).jobs
    assert round(done["jct"].mean(), 2) == jct
    assert done["preemptions"].sum() == preemptions


def test_tiresias_own_simulator_keeps_running_jobs_where_ours_goes_by_submission():
    """Two queues at 3,250 GPU-s: `dlas-gpu` serves the running jobs of a queue first, 715.27 s and no preemption.

    Ours serves a queue by submission. No job here leaves the first queue, so theirs is `fjf`.
    """
    assert max(duration * gpus for _, duration, gpus in TIRESIAS) < 3250
    done = run(TIRESIAS, 8, Tiresias(queues=2, thresholds=(3250.0,))).jobs
    assert round(done["jct"].mean(), 2) == 789.70
    assert done["preemptions"].sum() == 29
