"""Golden answers of Ymir: recipe, merges, estimators, tables of transfer, steps, figures, explorer."""

import numpy as np
import polars as pl
import pytest
from golden_answers import brief, digest, drawn, golden, moved, ran, refusal, varied
from scenes.merger_steps import MergerSteps

from gpuschedlab.optim import solve
from gpuschedlab.papers.ymir import figures, steps
from gpuschedlab.papers.ymir.estimators import iterations, tasks, transferability
from gpuschedlab.papers.ymir.explorer import YmirExplorer
from gpuschedlab.papers.ymir.metrics import merged_shares
from gpuschedlab.papers.ymir.policy import Ymir
from gpuschedlab.papers.ymir.program import Merging, slowdown, transfer_weight
from gpuschedlab.papers.ymir.recipe import MergingCluster, digits_estimator, digits_pairs
from gpuschedlab.papers.ymir.speeds import switching, transfer
from gpuschedlab.papers.ymir.speeds import tasks as task_tables
from reproduce.papers.ymir.gain_errors import GainErrors

SMALL = MergingCluster(nodes=1, hours=1.5, data_sets=5).with_knobs(interval=300.0)


@golden
def test_recipe():
    found = {name: digest([small(2).trace, small(2).delays]) for name, small in varied(SMALL).items()}
    digits = SMALL.with_knobs(foundation="digits", method="fitted")
    return found | {"gains": SMALL.gains(1), "digits": digits.gains(1), "pairs": digest(digits_pairs(0.3, 2))}


@golden
def test_policies():
    found = {}
    for name, small in varied(SMALL, "nodes", "hours", "load", "data_sets", "foundation").items():
        runs = {
            each: small(1).run(policy) for each, policy in small.policies.items() if name == "begin" or each == "Ymir"
        }
        found[name] = {each: brief(run) | {"shares": merged_shares(run)} for each, run in runs.items()}
    scenario = SMALL(4)
    for name, policy in varied(Ymir(interval=300.0), "interval").items():
        found[f"Ymir {name}"] = ran(scenario, policy)
    return found


@pytest.mark.filterwarnings("ignore:divide by zero")
@golden
def test_estimators():
    k = np.arange(1.0, 9)
    found = {}
    for name, loss in {
        "power": 0.1 + 1 / k,
        "fast": 0.3 + np.exp(-k),
        "flat": 0.5 + 0 * k,
        "line": 1 - 0.05 * k,
    }.items():
        for square in (True, False):
            curve = iterations.fit_loss(k, loss, square=square)
            found[f"{name} {square}"] = [
                [f"{v:.4g}" for v in curve.of([0, 2, 50])],
                [iterations.converged(curve), iterations.converged(curve, 0.2), iterations.converged(curve, most=20)],
                [
                    iterations.iterations(curve, gain, rule=rule)
                    for gain in (0.0, 0.3, -0.2)
                    for rule in ("paper", "target")
                ],
                [f"{iterations.saved(curve, 0.25, rule=rule):.5g}" for rule in ("paper", "target")],
            ]
    rng = np.random.default_rng(0)
    a = rng.random((6, 4))
    b = rng.random((6, 4))
    found["joint"] = [iterations.joint_iterations(*each) for each in (((10.0, 20.0), (8, 16), (100, 50)),)]
    found["scores"] = [
        transferability.embedding_distance(a, b), transferability.temporal_score(a, b, a + 0.1),
        transferability.joint_score(a, a + 0.1, b, b),
        transferability.transfer_gain([0.9, -2.0, 0.5], [0.8, -4.0, 0.5]),
    ]  # fmt: skip
    pairs = pl.DataFrame({"source": list("abcabc"), "target": list("bcacab"), "score": rng.random(6)})
    model = transferability.GainRegression().fit(pairs, rng.normal(size=6))
    found["regression"] = model.predict(pairs)
    found["errors"] = GainErrors.of(pairs["target"], rng.normal(size=6), rng.normal(size=6))
    losses = pl.DataFrame({"task": [*"aaaaabbbbb"], "k": [*k[:5], *k[:5]], "loss": [*(1 / k[:5]), *(1 / (k[:5] + 1))]})
    two = pl.DataFrame(
        {"mode": "transfer", "source": ["a", "b"], "target": ["b", "a"], "score": [0.1, 0.2], "gain": [0.3, 0.1]}
    )
    known = tasks.YmirEstimator().fit(losses, pairs=two)
    found["known"] = [known.iterations_, known.factors("transfer", "a", "b"), known.factors("transfer", "b", "a")]
    fitted = digits_estimator(0.4, 1)
    names = sorted(fitted.iterations_)[:4]
    found["digits"] = [
        f"{fitted.factors(mode, x, y):.5g}" for mode in ("transfer", "merged") for x in names for y in names if x != y
    ]
    found["early"] = [f"{digits_estimator(0.6, 2, 'early', 'leep').factors('transfer', *names[:2]):.5g}"]
    return found


def made(seed: int) -> Merging:
    """A merger's program of some jobs and pairs on two types."""
    rng = np.random.default_rng(seed)
    n = 5
    p = 4
    first = rng.integers(0, n - 1, p)
    second = np.full(p, n - 1)
    cost = rng.uniform(0.5, 9, (n, 4))
    pair = rng.uniform(0.5, 12, (p, 4))
    return Merging(
        rng.choice([1, 2, 4], n), cost, gpus=np.array([1, 2, 4, 1]), kind=np.array([0, 0, 0, 1]), room=np.array([4.0, 2.0]),
        first=first, second=second, pair_cost=np.where(rng.random((p, 4)) < 0.2, np.nan, pair), idle=rng.uniform(9, 20, n),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@golden
def test_programs(seed):
    program = made(seed)
    solution = solve(program.program())
    return {
        "program": digest(program.program()),
        "objective": f"{solution.objective:.7g}",
        "columns": program.columns(),
        "table": program.table(solution.x),
        "second": f"{getattr(steps.second_best(program, solution), 'objective', 0):.7g}",
        "weights": transfer_weight(10.0 + seed, 20.0, np.array([10.0, 15.0, 25.0]), np.array([1, 2, 1])),
        "slower": [
            slowdown(np.array([[8.0, 4.0, np.nan], [5.0, 5.0, 1.0]]), np.array([1, 2, 4]), np.array([3, 1])[i], literal)
            for i in range(2)
            for literal in (False, True)
        ],
    }


@golden
def test_speeds():
    alone = {"fm": "vit", "task": "b", "learning_rate": 1e-3, "grad_steps": 1}
    own = pl.DataFrame([alone | {"epoch": e, "value": v} for e, v in ((1.0, 0.5), (2.0, 0.7), (3.0, 0.8), (4.0, 0.85))])
    own = pl.concat([own, own.with_columns(task=pl.lit("a"), value=pl.col("value") * 0.9)])
    after = pl.DataFrame(
        {
            "fm": "vit",
            "source": ["a", "a", "b"],
            "target": ["b", "b", "a"],
            "epoch": [1.0, 2.0, 1.0],
            "value": [0.7, 0.9, 0.4],
        }
    )
    joint = pl.DataFrame(
        {"fm": "vit", "task_a": "a", "task_b": "b", "task": ["b", "a"], "epoch": [1.0, 2.0], "value": [0.6, 0.7]}
    )
    goal = own.select("task", "learning_rate", "grad_steps", target=pl.lit(0.68)).unique(maintain_order=True)
    return {
        "switch": [
            switching.pipeline_switch(4, *times, reverse=r)
            for times in ((1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 0.5, 3.0))
            for r in (True, False)
        ],
        "loader": [switching.loader_switch(*each) for each in ((10, 30, 30), (10, 50, 30), (10, 5, 0))],
        "transfer": digest(list(transfer.transfer_speeds(own, after, joint, "vit", goal))),
        "tasks": [
            digest([s.models, s.total, s.transfer, s.merged]) for s in (task_tables.task_speeds("vit", 4), SMALL.speeds)
        ],
        "jobs": digest(task_tables.finetuning_jobs(SMALL.speeds, gpus=8, hours=2.0, load=2.0, rng=3)),
        "refused": [refusal(task_tables.task_speeds, "nobody")],
    }


@golden
def test_steps_and_figures():
    rounds = steps.recorded_rounds(SMALL(0), SMALL.ymir)
    cases, at = steps.cases_of(rounds, 3)
    player = MergerSteps(SMALL, most=2)
    return {
        "rounds": len(rounds),
        "at": at,
        "cases": [
            [case.name, case.head, [[s.line, s.read, s.decided, len(s.rows), s.lit] for s in case.steps]]
            for case in cases
        ],
        "rows": digest([[s.rows for s in case.steps] for case in cases]),
        "sentences": player.sentences().partition("<p>")[2],
        "maps": [drawn(figures.pair_map(SMALL.gains(0), mode)) for mode in ("merged", "transfer")],
        "believed": drawn(figures.believed(SMALL.gains(0))),
    }


@golden
def test_explorer():
    return moved(
        YmirExplorer(nodes=1, hours=1.0),
        "data_sets",
        "hours",
        "prepare",
        "notice",
        "measured",
        "foundation",
        "load",
        "nodes",
        "interval",
        "literal",
    )
