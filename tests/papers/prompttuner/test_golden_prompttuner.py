"""Golden answers of PromptTuner: recipe, policies, shares, the bank, the small transformer, steps, figures, explorer."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from golden_answers import brief, digest, drawn, golden, moved, ran, refusal, varied
from scenes import prompt_tuning, tiny_transformer
from scenes.prompt_day import HELD_OUT, Prompts
from scenes.prompt_steps import PromptSteps

from gpuschedlab.papers.prompttuner import figures, jobs, shares, steps
from gpuschedlab.papers.prompttuner.elasticflow import ElasticFlow
from gpuschedlab.papers.prompttuner.estimators import prompt_bank
from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
from gpuschedlab.papers.prompttuner.explorer import PromptExplorer
from gpuschedlab.papers.prompttuner.infless import Infless
from gpuschedlab.papers.prompttuner.jobs import PromptJobs
from gpuschedlab.papers.prompttuner.metrics import pool_levels
from gpuschedlab.papers.prompttuner.policy import PromptTuner, Turn
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.papers.prompttuner.speeds import llms
from gpuschedlab.papers.prompttuner.warm_pools import Demand, Job, WarmPools

LAB = PromptLab(gpus=8).with_knobs(load="low", minutes=3)


@golden
def test_recipe():
    found = {name: digest([lab(2).trace, lab(2).delays]) for name, lab in varied(LAB, "gpus").items()}
    found |= {f"jobs {name}": digest(each(3)) for name, each in varied(PromptJobs("low", minutes=3)).items()}
    found["grown"] = digest(PromptLab(PromptJobs("low", minutes=2), gpus=64, grown=True)(1).trace)
    table = jobs.task_table("gpt2-base")
    found["tasks"] = digest(table)
    found["of tasks"] = digest(
        PromptJobs("low", minutes=2).of_tasks(
            {llm: jobs.task_table(llm) for llm in jobs.LLMS}, dict.fromkeys(jobs.LLMS, 9.0), 1
        )
    )
    found["worth"] = [bool(jobs.worth_a_search(9.0, due)) for due in (5.0, 40.0, 100.0)]
    found["refused"] = [refusal(PromptLab, gpus=12), refusal(PromptJobs, "some"), refusal(PromptLab, gpus=0)]
    return found


@golden
def test_policies():
    scenario = LAB(1)
    found = {}
    for policy in (PromptTuner(), Infless(), ElasticFlow(), ElasticFlow(aware=False), Infless(aware=False)):
        for name, each in varied(policy, "interval").items():
            found[f"{type(policy).__name__} {policy.knobs.get('aware')} {name}"] = ran(scenario, each)
    for load in ("medium", "high"):
        run = LAB.with_knobs(load=load)(2).run(PromptTuner())
        found[load] = brief(run) | {"levels": digest(pool_levels(run)), "pools": drawn(figures.pools(run, "all", 40))}
    return found


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


@golden
def test_turns():
    found = {}
    for name, policy in varied(PromptTuner(), "most").items():
        told = found[name] = []
        for seed in range(25):
            view, demand = instant(seed)
            pools = view.memory
            turn = policy.decided(view, demand)
            told.append(
                [turn.ready_at(0), turn.pending, {str(k): v for k, v in turn.ready.items()}, turn.next_change()]
            )
            told.append([{str(k): [p.idle, p.fresh, p.warming] for k, p in pools.pools.items()}, pools.bought])
            told.append({str(row): [str(job.key), *job[1:]] for row, job in pools.running.items()})
            made = pools.answer(view, demand, turn.delay, policy.window, turn.next_change())
            told.append([made.gpu_type, made.gpus, [str(d) for d in made.delay], made.reserved, made.wake])
            told.append([pool.drop(3.0) for pool in pools.pools.values()])
        found[name] = [digest(one) for one in zip(*(told[i::5] for i in range(5)), strict=True)]
    return found


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


@golden
def test_shares():
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 5
        gpus = np.array([1.0, 2, 4, 8])
        seconds = rng.uniform(20, 200, (n, 1)) / gpus**0.8
        seconds[rng.random((n, 4)) < 0.1] = np.inf
        free = np.full(12, 8.0)
        jobs = shares.DatedJobs(
            np.tile(gpus, (n, 1)),
            seconds,
            rng.uniform(0, 20, n),
            rng.choice([0.0, 2.0, 4.0], n),
            rng.uniform(0, 5, n),
            rng.uniform(30, 250, n),
        )
        found.append([*shares.satisfactory_shares(jobs, free, 15.0), free])
    return found


@golden
def test_bank():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(40, 5))
    loss = rng.random(60)
    bank = prompt_bank.PromptBank(features, clusters=5, visited=2, rng=1)
    found = {
        "distances": prompt_bank.cosine_distances(features[:3], features[3:6]),
        "medoids": prompt_bank.k_medoids(prompt_bank.cosine_distances(features, features), 4, 3),
    }
    found["looked up"] = bank.look_up(lambda which: loss[which])
    found["members"] = [bank.members(k) for k in range(3)]
    found["map"] = drawn(figures.prompt_map(bank, np.array([0, 3, 7]), 3))
    found["inserted"] = [bank.insert(rng.normal(size=5)) for _ in range(6)]
    found["later"] = [bank.look_up(lambda which: loss[which]), bank.worst()]
    small = (
        prompt_bank.PromptBank(features[:8], clusters=2, size=8, rng=0)
        if "size" in prompt_bank.PromptBank.__init__.__code__.co_varnames
        else bank
    )
    found["full"] = [small.insert(rng.normal(size=5)) for _ in range(3)]
    ready = figures.ready_times("E", np.array([0.0, 5.0, 20.0]), np.array([2.0, 1.0, 4.0]), 12.0, 30.0, 40.0)
    return found | {"ready": drawn(ready)}


@golden
def test_tuning():
    rng = np.random.default_rng(0)
    task = HELD_OUT[0]
    prompts = prompt_tuning.candidates(rng, 5)
    inputs, targets = tiny_transformer.samples(task, 6, rng)
    weights = prompt_tuning.frozen()
    judged = tiny_transformer.judge(weights, prompts, inputs, targets)
    fresh = tiny_transformer.fresh(np.random.default_rng(1))
    tuned = prompt_tuning.tune(task, prompts[:2], np.random.default_rng(3), 8)
    day = Prompts(HELD_OUT[:2], 5, 1)
    return {
        "samples": [inputs, targets],
        "words": tiny_transformer.words(task),
        "prompts": digest(prompts),
        "features": [f"{v:.4g}" for v in prompt_tuning.features(prompts)[0][:5]],
        "judged": [f"{v:.4g}" for v in judged.loss],
        "shapes": {name: list(shape) for name, shape in tiny_transformer.shapes().items()},
        "fresh": digest([fresh[name] for name in sorted(fresh)]),
        "tuned": [
            tuned.iterations,
            tuned.reached,
            [f"{v:.3f}" for v in np.linalg.norm(tuned.prompts.reshape(2, -1), axis=1)],
        ],
        "scores": [f"{v:.4g}" for v in day.score(1, np.array([0, 3, 5, 3]))],
        "day": [day.known, day.users, day.tune(0, 2)],
    }


@golden
def test_speeds_and_estimates():
    table = llms.prompt_speeds()
    trace = PromptJobs("low", minutes=2)(1)
    return {
        "speeds": digest([table.models, table.total]),
        "delays": [
            [llms.prompt_delays(w, c).table(list(jobs.LLMS)) for w, c in ((1.0, 2.0), (0.0, 0.0))],
            llms.search_as_work().table(["gpt2-base"]),
        ],
        "above": digest([UpperBound(above=a, spread=s, rng=2).predict(trace) for a, s in ((1.0, 0.0), (2.0, 0.5))]),
    }


@golden
def test_steps():
    lab = LAB.with_knobs(load="medium")
    view = steps.busiest_round(lab(0), PromptTuner(), 5)
    cases, at, job = steps.cases_of(view, PromptTuner(), count=5)
    player = PromptSteps(lab, most=4)
    told = [[case.name, case.head, [[s.line, s.read, s.decided] for s in case.steps]] for case in cases]
    rows = digest([[[s.rows, s.lit] for s in case.steps] for case in cases])
    figure = drawn(player.draw(player.cases[0].steps[0], player.cases[0]))
    refused = [
        refusal(steps.busiest_round, lab(0), PromptTuner(), 0),
        refusal(steps.cases_of, view, PromptTuner(), "nobody"),
    ]
    return {"cases": told, "rows": rows, "at": [at, job], "figure": figure, "refused": refused}


@golden
def test_explorer():
    return moved(PromptExplorer(LAB), "gpus", "minutes", "warm_up", "bank", "slo", "load", "error")
