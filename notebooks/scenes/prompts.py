"""Notebook 13: three jobs by hand, tasks that are tuned from the bank, and a bank that learns."""

import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank
from scenes import prompt_tuning as tuning
from scenes.prompt_day import PromptLoop
from scenes.tiny_transformer import HELD_OUT


def three_jobs(third: float = 35.0) -> lab.Run:
    """PromptTuner on three jobs of 10 s that come at 100 s; warming up takes 10 s, the last job is due after `third` s."""
    rates = [("llm", "v100", n, float(n)) for n in (1, 2, 4)]
    speeds = lab.Speeds.from_frame(pl.DataFrame(rates, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"))
    jobs = pl.DataFrame({"job_id": ["first", "second", "third"], "deadline": [20.0, 32.0, third]})
    jobs = jobs.with_columns(submit=100.0, gpus=1.0, duration=10.0, target=10.0, model=pl.lit("llm"))
    delays = lab.Delays(kinds={"warm": 0.0, "cold": 10.0})
    return lab.Scenario(jobs, lab.Cluster.homogeneous(1, 4), speeds=speeds, delays=delays).run(lab.PromptTuner())


def tune_from_bank(seed: int, clusters: int = tuning.CLUSTERS, visited: int = tuning.VISITED):
    """Every held-out task, tuned from the bank's prompt and from four at random: iterations, and figures of one task."""
    rng = np.random.default_rng(seed)
    known, shown = tuning.candidates(rng), HELD_OUT[rng.integers(len(HELD_OUT))]
    bank, rows = PromptBank(tuning.features(known), clusters, visited=visited), []
    for task in HELD_OUT:
        found = bank.look_up(tuning.scores_on(task, known, rng))
        starts = known[[found.prompt, *rng.choice(len(known), 4, replace=False)]]
        tuned = tuning.tune(task, starts, rng, cap=60)
        if task == shown:
            losses, lit = tuned.losses, found
        row = {"order": task.order, "shift": task.shift, "scored": found.evaluations}
        others = float(np.median(tuned.iterations[1:]))
        rows.append(row | {"from the bank": int(tuned.iterations[0]), "at random, median": others})
    names = ["from the bank", *(f"at random {i + 1}" for i in range(4))]
    curves = {name: losses[:, i] for i, name in enumerate(names)}
    title = f"Order {shown.order}, shift {shown.shift}"
    loss = plots.Lines(title, "iteration", "loss (nats)", np.arange(len(losses)), curves)
    return lab.Table(pl.DataFrame(rows)), plots.Figures(
        [plots.figure(loss), plots.plot_prompt_map(bank, lit.scored, lit.prompt)]
    )


def bank_that_learns(gpus: int, seed: int) -> lab.Table:
    """Iterations of the same jobs, in order of their starts: with a bank that takes new prompts in, and with one that does not."""
    day = PromptLoop(gpus=gpus).with_knobs(load="low", minutes=5, cap=25)
    growing = day.loop(seed)
    frozen = day.with_knobs(grows=False).loop(seed, growing.prompts)
    without = {start.row: start.tuning.iterations for start in frozen.starts}
    pairs = [(s.tuning.iterations, without[s.row]) for s in growing.starts if s.evaluations]
    first, second = (part.mean(axis=0) for part in np.array_split(np.array(pairs), 2))
    columns = {"jobs": ["first half", "second half"], "bank that grows": [first[0], second[0]]}
    return lab.Table(pl.DataFrame(columns | {"frozen bank": [first[1], second[1]]}))
