"""Laws of a round of PromptTuner: ready times by brute force, GPUs that are conserved, and answers that are the pools' own."""

from collections import defaultdict
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import prompt_tuning
from scenes.prompt_day import HELD_OUT

from gpuschedlab.errors import LabError
from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
from gpuschedlab.papers.prompttuner.jobs import LLMS, PromptJobs, worth_a_search
from gpuschedlab.papers.prompttuner.policy import PromptTuner, Turn
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.papers.prompttuner.speeds.llms import prompt_delays, search_as_work
from gpuschedlab.papers.prompttuner.warm_pools import Demand, Job, WarmPools

POLICIES = [
    PromptTuner(),
    PromptTuner(late="drop"),
    PromptTuner(delaying="never"),
    PromptTuner(delaying="own"),
    PromptTuner(window=0.0),
    PromptTuner(interval=5.0),
]


class Instant(SimpleNamespace):
    """As much of a view as pools of GPUs are decided by."""

    def __len__(self):
        return len(self.index)


def instant(seed: int) -> tuple[Instant, Demand]:
    """Jobs that wait or run, pools that are idle or warm up, in whole seconds and GPUs: much happens at once."""
    rng = np.random.default_rng(seed)
    n = 8
    now = 100.0
    model = rng.integers(-1, 1, n)
    kind = rng.integers(0, 2, n)
    runs = rng.random(n) < 0.4
    gpus = np.tile([1.0, 2.0, 4.0], (n, 1))
    work = np.ceil(rng.integers(4, 40, (n, 1)) / gpus)
    work[rng.random((n, 3)) < 0.15] = np.inf
    begin = rng.integers(0, 3, n).astype(float)
    words = np.full(n, "warm", object), np.full(n, "cold", object)
    due = now + rng.integers(-2, 60, n)
    demand = Demand(kind, gpus, work + begin[:, None], work, due, begin, rng.integers(0, 12, n) * 1.0, *words)
    memory = WarmPools()
    for key in {(int(m), int(k)) for m, k in zip(model, kind, strict=True)}:
        pool = memory.pool(key)
        pool.idle = sorted(
            (now - float(rng.integers(0, 30)), float(rng.integers(1, 4))) for _ in range(rng.integers(3))
        )
        pool.warming = sorted(
            (now + float(rng.integers(0, 9)), float(rng.integers(1, 3))) for _ in range(rng.integers(3))
        )
    for i in np.flatnonzero(runs)[: rng.integers(4)]:
        memory.running[int(i)] = Job((int(model[i]), int(kind[i])), 2.0, now + float(rng.integers(-2, 30)))
    memory.bought = {int(i): now + float(rng.integers(-5, 6)) for i in np.flatnonzero(~runs)[:2]}
    view = Instant(
        now=now, index=np.arange(n), model=model, gpu_type=kind, running=runs, partner=np.full(n, -1), memory=memory,
        running_gpus=np.full(n, 2.0), capacity=rng.integers(14, 30, 2) * 1.0, speeds=SimpleNamespace(models=["a"]),
    )  # fmt: skip
    return view, demand


@pytest.mark.parametrize("reused", [True, False])
def test_what_comes_back_together_is_waited_for_together(reused):
    """Brute force: by each instant, all that was ready before and stays, or what is ready at that instant alone."""
    counted = 0
    for seed in range(60):
        view, demand = instant(seed)
        turn = Turn(view, demand, 0.05, "any", reused)
        for key in view.memory.pools:
            times = turn.ready_times(key)
            for gpus, busy in product((1.0, 2.0, 3.0, 5.0), (True, False)):
                for most in (turn.now, turn.now + 5, np.inf):
                    there = {
                        t: sum(g for u, g, held in times if (busy or not held) and (u <= t if reused else u == t))
                        for t, *_ in times
                    }
                    enough = [t for t, g in there.items() if g >= gpus and t <= most]
                    assert turn._wait(key, gpus, most, busy) == min(enough, default=np.inf)
                    counted += bool(enough)
    assert counted > 200


def in_pools(memory: WarmPools, kind: int) -> float:
    """GPUs of a type that are in pools or held by running jobs."""
    pools = sum(pool.ready + pool.loading for key, pool in memory.pools.items() if key[1] == kind)
    return pools + sum(job.gpus for job in memory.running.values() if job.key[1] == kind)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_gpus_of_a_round_come_from_pools_or_from_the_cold_ones(policy):
    started = 0
    for seed in range(40):
        view, demand = instant(seed)
        memory = view.memory
        memory.settle(view, demand, policy.window)
        before = dict(memory.running)
        held = [in_pools(memory, kind) for kind in range(2)]
        turn = policy.decided(view, demand)
        new = {row: job for row, job in memory.running.items() if row not in before}
        started += len(new)
        assert {row: memory.running[row] for row in before} == before, "running jobs keep their GPUs"
        assert new.keys().isdisjoint(turn.pending)
        assert new.keys() | set(turn.pending) == set(range(8)) - before.keys()
        for kind in range(2):
            bought = in_pools(memory, kind) - held[kind]
            assert bought >= -1e-9
            assert held[kind] + bought <= max(view.capacity[kind], held[kind]) + 1e-9
        for row, job in new.items():
            level = int(np.flatnonzero(demand.gpus[row] == job.gpus)[0])
            assert job.key == (view.model[row], demand.gpu_type[row])
            assert job.end == pytest.approx(view.now + demand.seconds[row, level])
            assert turn.delay[row] in ("warm", "cold")
    assert started > 20


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_an_answer_is_what_pools_and_running_jobs_hold(policy):
    for seed in range(40):
        view, demand = instant(seed)
        memory = view.memory
        turn = policy.decided(view, demand)
        answer = memory.answer(view, demand, turn.delay, policy.window, turn.next_change())
        assert answer.wake > view.now
        reserved = defaultdict(lambda: np.zeros(2))
        for (model, kind), pool in memory.pools.items():
            name = "other" if model < 0 else "a"
            reserved[f"idle {name}"][kind] += pool.ready
            reserved[f"warming {name}"][kind] += pool.loading
        assert {name: gpus.tolist() for name, gpus in answer.reserved.items()} == {
            name: gpus.tolist() for name, gpus in reserved.items() if gpus.any()
        }
        for row in range(8):
            job = memory.running.get(row)
            assert answer.gpus[row] == (job.gpus if job else 0.0)
            assert job is None or answer.gpu_type[row] == job.key[1]
        ends = [since + policy.window for pool in memory.pools.values() for since, _ in pool.idle]
        ends += [ready for pool in memory.pools.values() for ready, _ in pool.warming]
        assert answer.wake <= max(min(ends, default=np.inf), view.now + 1e-3)


def test_pools_lose_what_was_idle_longest_and_take_what_was_idle_last():
    pool = WarmPools().pool((0, 0))
    pool.idle = [(10.0, 2.0), (20.0, 3.0)]
    pool.warming = [(40.0, 1.0), (50.0, 2.0)]
    assert pool.take(4.0) == 4.0
    assert pool.idle == [(10.0, 1.0)]
    assert pool.drop(2.0) == 2.0
    assert (pool.idle, pool.warming) == ([], [(40.0, 1.0), (50.0, 1.0)])
    assert pool.drop(9.0) == 2.0


def test_a_prompt_that_is_tuned_ends_and_the_others_go_on():
    """With another cap the same prompts end at the same iterations, if these are below it."""
    rng = np.random.default_rng(0)
    prompts = prompt_tuning.candidates(rng, 6)
    long = prompt_tuning.tune(HELD_OUT[0], prompts, np.random.default_rng(3), 60)
    short = prompt_tuning.tune(HELD_OUT[0], prompts, np.random.default_rng(3), 12)
    assert np.minimum(long.iterations, 12).tolist() == list(short.iterations)
    assert (np.asarray(long.iterations)[np.asarray(long.reached)] <= 60).all()
    assert not np.asarray(short.reached)[np.asarray(long.iterations) > 12].any()


def test_bounds_follow_their_knobs():
    trace = PromptJobs("low", minutes=2)(1)
    usual = UpperBound().predict(trace)
    assert UpperBound(above=2.0, worst=1.5).predict(trace.with_columns(look_up=0.0)) == pytest.approx(
        3 * UpperBound().predict(trace.with_columns(look_up=0.0))
    )
    drawn = UpperBound(spread=0.5, rng=2)
    assert drawn.predict(trace).tolist() == drawn.predict(trace[::-1]).tolist()[::-1], "drawn by the names of jobs"
    assert not np.allclose(drawn.predict(trace), usual)
    assert np.median(np.log(drawn.predict(trace) / usual)) == pytest.approx(0, abs=0.3)


def test_a_search_of_the_bank_is_a_delay_or_work_but_not_both():
    llms = list(LLMS)
    for kind in ("warm", "cold"):
        plain = prompt_delays(2.0, 3.0).seconds(kind, llms)
        assert (prompt_delays(2.0, 3.0).seconds(f"{kind} bank", llms) > plain).all()
        assert search_as_work(2.0, 3.0).seconds(f"{kind} bank", llms).tolist() == plain.tolist()
    assert prompt_delays(0.0, 3.0).seconds("cold", llms).tolist() == [3.0] * len(llms)
    assert worth_a_search(9.0, [5.0, 40.0, 100.0]).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PromptLab(gpus=12), "12"),
        (lambda: PromptLab(gpus=0), "0"),
        (lambda: PromptJobs("some"), "'some'"),
    ],
)
def test_refusals_name_what_was_found(call, words):
    with pytest.raises(LabError, match=words):
        call()
