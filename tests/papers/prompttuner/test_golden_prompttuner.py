"""Golden answers of PromptTuner: recipe, policies, shares, the bank, the small transformer, steps, figures, explorer."""

import numpy as np
from golden_answers import brief, digest, drawn, golden, moved, ran, refusal, varied
from scenes import prompt_tuning, tiny_transformer
from scenes.prompt_day import HELD_OUT, Prompts

from gpuschedlab.papers.prompttuner import figures, jobs, shares, steps
from gpuschedlab.papers.prompttuner.elasticflow import ElasticFlow
from gpuschedlab.papers.prompttuner.estimators import prompt_bank
from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
from gpuschedlab.papers.prompttuner.explorer import PromptExplorer, PromptSteps
from gpuschedlab.papers.prompttuner.infless import Infless
from gpuschedlab.papers.prompttuner.jobs import PromptJobs
from gpuschedlab.papers.prompttuner.metrics import pool_levels
from gpuschedlab.papers.prompttuner.policy import PromptTuner
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.papers.prompttuner.speeds import llms

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
    scenario, found = LAB(1), {}
    for policy in (PromptTuner(), Infless(), ElasticFlow(), ElasticFlow(aware=False), Infless(aware=False)):
        for name, each in varied(policy, "interval").items():
            found[f"{type(policy).__name__} {policy.knobs.get('aware')} {name}"] = ran(scenario, each)
    for load in ("medium", "high"):
        run = LAB.with_knobs(load=load)(2).run(PromptTuner())
        found[load] = brief(run) | {"levels": digest(pool_levels(run)), "pools": drawn(figures.pools(run, "all", 40))}
    return found


@golden
def test_shares():
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, gpus = 5, np.array([1.0, 2, 4, 8])
        seconds = rng.uniform(20, 200, (n, 1)) / gpus**0.8
        seconds[rng.random((n, 4)) < 0.1] = np.inf
        free = np.full(12, 8.0)
        given = (
            np.tile(gpus, (n, 1)),
            seconds,
            rng.uniform(0, 20, n),
            rng.choice([0.0, 2.0, 4.0], n),
            rng.uniform(0, 5, n),
            rng.uniform(30, 250, n),
        )
        found.append([*shares.satisfactory_shares(*given, free, 15.0), free])
    return found


@golden
def test_bank():
    rng = np.random.default_rng(2)
    features, loss = rng.normal(size=(40, 5)), rng.random(60)
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
