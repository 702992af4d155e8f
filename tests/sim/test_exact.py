"""The simulator against queueing theory and brute force: references that share no code with it."""

import itertools
import math
from functools import cache

import numpy as np
import polars as pl
import pytest
from brief_policies import brief

from gpuschedlab import simulate
from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.estimators import Noisy
from gpuschedlab.policies import ALL, Edf, Fifo, Srtf

EXACT = 1e-9  # s


def trace(submit, duration, gpus=1.0, **more):
    frame = pl.DataFrame({"submit": np.asarray(submit, float), "duration": np.asarray(duration, float), **more})
    ids = [f"{i:05d}" for i in range(frame.height)]
    return frame.with_columns(pl.Series("job_id", ids), gpus=pl.lit(gpus) if np.isscalar(gpus) else pl.Series(gpus))


def random_queue(seed, n=400, servers=1, load=0.9, law="exponential"):
    """Submission times and durations (s) of a queue at the given load."""
    rng = np.random.default_rng(seed)
    durations = {
        "exponential": lambda: rng.exponential(600, n),
        "heavy": lambda: 30 * rng.pareto(1.5, n) + 1,
        "whole": lambda: rng.integers(1, 20, n).astype(float),
    }[law]()
    gaps = rng.exponential(durations.mean() / (servers * load), n)
    gaps[0] = 0
    submits = np.cumsum(gaps)
    return (np.floor(submits), durations) if law == "whole" else (submits, durations)


def lindley(submits, durations):
    """Waiting times on one server: W(n+1) = max(0, W(n) + S(n) - (A(n+1) - A(n)))."""
    waits = [0.0]
    for n in range(len(submits) - 1):
        waits.append(max(0.0, waits[-1] + durations[n] - (submits[n + 1] - submits[n])))
    return np.array(waits)


def kiefer_wolfowitz(submits, durations, servers):
    """Waiting times on c servers: the least of the ascending vector of the servers' remaining work."""
    work = [0.0] * servers
    waits = []
    for n in range(len(submits)):
        if n:
            work = [max(0.0, w - (submits[n] - submits[n - 1])) for w in work]
        waits.append(work[0])
        work = sorted([work[0] + durations[n], *work[1:]])
    return np.array(waits)


LAWS = ("exponential", "heavy", "whole")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_fifo_on_one_server_is_lindleys_recursion(seed, law):
    submits, durations = random_queue(seed, load=(0.5, 0.9, 1.0, 1.3)[seed], law=law)
    run = simulate(trace(submits, durations), Cluster.homogeneous(1, 1), Fifo())
    np.testing.assert_allclose(run.jobs["queueing"], lindley(submits, durations), rtol=0, atol=EXACT)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (2, 4), (8, 8)])
def test_fifo_on_many_servers_is_kiefer_wolfowitz(shape, law):
    nodes, each = shape
    submits, durations = random_queue(nodes, servers=nodes * each, law=law)
    run = simulate(trace(submits, durations), Cluster.homogeneous(nodes, each), Fifo())
    waits = kiefer_wolfowitz(submits, durations, nodes * each)
    np.testing.assert_allclose(run.jobs["start"] - run.jobs["submit"], waits, rtol=0, atol=EXACT)
    np.testing.assert_allclose(run.jobs["jct"], waits + durations, rtol=0, atol=EXACT)


def srtf_by_events(submits, durations):
    """End times on one server that always serves the least remaining work (plain event loop)."""
    left = dict(enumerate(durations))
    ends = np.zeros(len(durations))
    now = 0.0
    while left:
        present = [j for j in left if submits[j] <= now]
        coming = min((submits[j] for j in left if submits[j] > now), default=math.inf)
        if not present:
            now = coming
            continue
        j = min(present, key=lambda j: (left[j], submits[j], j))
        if now + left[j] <= coming:
            now += left.pop(j)
            ends[j] = now
        else:
            left[j] -= coming - now
            now = coming
    return ends


@pytest.mark.parametrize("law", ["exponential", "heavy"])
@pytest.mark.parametrize("seed", range(3))
def test_srtf_on_one_server_is_the_preemptive_schedule(seed, law):
    submits, durations = random_queue(seed, n=200, law=law)
    run = simulate(trace(submits, durations), Cluster.homogeneous(1, 1), Srtf())
    np.testing.assert_allclose(run.jobs["end"], srtf_by_events(submits, durations), rtol=0, atol=1e-7)


def least_total_jct(submits, durations):
    """Least sum of completion times of any preemptive schedule of one server, by trying all (whole s)."""

    @cache
    def least(now, left):
        if not any(left):
            return 0
        coming = min((s for s, d in zip(submits, left) if d and s > now), default=None)
        ready = [j for j, d in enumerate(left) if d and submits[j] <= now]
        if not ready:
            return least(coming, left)
        answers = []
        for j in ready:
            after = (*left[:j], left[j] - 1, *left[j + 1 :])
            answers.append((now + 1 - submits[j] if after[j] == 0 else 0) + least(now + 1, after))
        return min(answers)

    return least(0, tuple(durations))


@pytest.mark.parametrize("seed", range(12))
def test_srtf_has_the_least_total_jct_of_all_preemptive_schedules(seed):
    rng = np.random.default_rng(seed)
    submits = np.sort(rng.integers(0, 8, 5)).tolist()
    durations = rng.integers(1, 7, 5).tolist()
    run = simulate(trace(submits, durations), Cluster.homogeneous(1, 1), Srtf())
    assert run.jobs["jct"].sum() == pytest.approx(least_total_jct(tuple(submits), tuple(durations)), abs=EXACT)


@pytest.mark.parametrize("seed", range(12))
def test_edf_on_one_server_minimises_the_greatest_lateness(seed):
    rng = np.random.default_rng(seed)
    durations = rng.integers(1, 50, 6).astype(float)
    deadlines = rng.integers(1, 200, 6).astype(float)
    run = simulate(trace(np.zeros(6), durations, deadline=deadlines), Cluster.homogeneous(1, 1), Edf())
    latest = max((run.jobs["end"] - run.jobs["submit"] - run.jobs["deadline"]).to_list())
    orders = (list(order) for order in itertools.permutations(range(6)))
    assert latest == pytest.approx(min((np.cumsum(durations[o]) - deadlines[o]).max() for o in orders), abs=EXACT)


def reservation(now, running, need, free):
    """When `need` GPUs will be free by the (end, GPUs) promised, and how many more are free then."""
    ends = [max(now, end) for end, _ in running]
    for until in sorted(ends):
        then = free + sum(gpus for end, (_, gpus) in zip(ends, running) if end <= until)
        if then >= need:
            return until, then - need
    raise AssertionError("the job never fits")


def easy_backfill(submits, durations, gpus, estimates, capacity):
    """Start times under EASY backfill on one node of each type, as Lifka (1995) states it, from event to event.

    The first job that has to wait is promised the type that by the estimates has room for it first.
    """
    n = len(submits)
    types = range(len(capacity))
    starts = np.full(n, np.nan)
    ends = np.full(n, math.inf)
    on = np.full(n, -1)
    queue = []
    arrived = 0
    now = 0.0
    while arrived < n or queue:
        running = [j for j in range(n) if starts[j] <= now < ends[j]]
        free = [capacity[t] - sum(gpus[j] for j in running if on[j] == t) for t in types]
        promised = -1
        until = math.inf
        extra = math.inf  # before a job has to wait, all may start
        for j in list(queue):
            late = now + estimates[j] > until
            fits = [t for t in types if gpus[j] <= free[t] and (t != promised or not late or gpus[j] <= extra)]
            if fits:
                queue.remove(j)
                starts[j] = now
                ends[j] = now + durations[j]
                on[j] = fits[0]
                running.append(j)
                free[fits[0]] -= gpus[j]
                extra -= gpus[j] * (late and fits[0] == promised)
            elif promised < 0:
                ways = []
                for t in types:
                    if gpus[j] <= capacity[t]:
                        held = [(starts[r] + estimates[r], gpus[r]) for r in running if on[r] == t]
                        ways.append((*reservation(now, held, gpus[j], free[t]), t))
                until, extra, promised = min(ways, key=lambda way: way[0])
        now = min([ends[j] for j in running] + ([submits[arrived]] if arrived < n else []))
        while arrived < n and submits[arrived] <= now:
            queue.append(arrived)
            arrived += 1
    return starts


@pytest.mark.parametrize("nodes", [(8,), (4, 8)])
@pytest.mark.parametrize("error", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_fifo_with_easy_backfill_is_lifkas_rule(seed, error, nodes):
    rng = np.random.default_rng(seed)
    submits, durations = random_queue(seed, n=150, servers=3)
    gpus = rng.choice([1.0, 2.0, 4.0, 8.0], 150, p=[0.5, 0.2, 0.2, 0.1])
    jobs = trace(submits * len(nodes) ** -0.5, durations, gpus)
    estimator = Noisy(error=error, rng=seed)
    cluster = Cluster(tuple(Nodes(f"type {size}", 1, size) for size in nodes))
    run = simulate(jobs, cluster, Fifo(backfill="easy"), estimator=estimator)
    starts = easy_backfill(jobs["submit"].to_numpy(), durations, gpus, estimator.predict(jobs), nodes)
    np.testing.assert_allclose(run.jobs["start"], starts, rtol=0, atol=1e-7)
    strict = simulate(jobs, cluster, Fifo())
    assert run.jobs["queueing"].mean() < strict.jobs["queueing"].mean()


@pytest.mark.parametrize("name", sorted(ALL))
def test_littles_law_holds_on_the_path(name):
    submits, durations = random_queue(5, n=60, servers=4)
    gpus = np.random.default_rng(5).choice([1.0, 2.0], 60, p=[0.7, 0.3])
    run = simulate(trace(submits, durations, gpus), Cluster.homogeneous(4, 2), brief(name))
    times = run.timeline["time"].to_numpy()
    present = (run.timeline["running"] + run.timeline["waiting"]).to_numpy()
    assert present[-1] == 0
    assert np.sum(present[:-1] * np.diff(times)) == pytest.approx(run.jobs["jct"].sum(), rel=1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize(("law", "second"), [("exponential", 2.0), ("uniform", 4 / 3)])
def test_mean_wait_on_one_server_is_pollaczek_khinchines(law, second):
    """Mean of 40 replications against load x E[S^2] / (2 E[S] (1 - load)), by a 99.9 % t interval."""
    load = 0.6
    mean = 100.0
    waits = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        durations = mean * (rng.exponential(1, 4000) if law == "exponential" else rng.uniform(0, 2, 4000))
        submits = np.cumsum(rng.exponential(mean / load, 4000))
        run = simulate(trace(submits, durations), Cluster.homogeneous(1, 1), Fifo())
        waits.append(run.jobs["queueing"][400:].mean())
    margin = 3.56 * np.std(waits, ddof=1) / math.sqrt(len(waits))
    expected = load * second * mean / (2 * (1 - load))
    assert abs(np.mean(waits) - expected) < margin < 0.15 * expected
