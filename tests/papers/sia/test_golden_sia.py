"""Golden answers of Sia: utilities, programs, rounds with each knob elsewhere, configurations, tables, figures."""

from dataclasses import replace

import numpy as np
import polars as pl
from golden_answers import digest, drawn, golden, ran, refusal, varied

from gpuschedlab import Outage
from gpuschedlab.estimators import Bootstrap
from gpuschedlab.optim import solve
from gpuschedlab.papers.sia import configurations, figures, placer, program, speeds, workload
from gpuschedlab.papers.sia.policy import Sia
from gpuschedlab.papers.sia.task import Goodput

SMALL = Goodput(jobs=12)


def goodput(seed: int, n: int = 6) -> tuple:
    rng = np.random.default_rng(seed)
    gpus = np.array([1, 2, 4, 1, 2, 8])
    kinds = np.array([0, 0, 0, 1, 1, 1])
    made = rng.uniform(0.2, 2, (n, 1)) * gpus**0.7 * (1 + kinds)
    made[rng.random((n, 6)) < 0.15] = np.nan
    return made, gpus, kinds, rng


@golden
def test_programs():
    found = {}
    for seed in range(4):
        made, gpus, kinds, rng = goodput(seed)
        current = rng.integers(-1, 6, 6)
        for power in (-0.5, 1.0):
            values = program.sia_utility(
                made, gpus, power=power, penalty=1.1 + seed, factor=rng.uniform(0.3, 1, 6), current=current
            )
            found[f"{seed} {power}"] = digest(values)
        problem = program.sia_round(values, kinds, gpus, np.array([4, 9]), 0.05 * seed, mandatory=rng.random(6) < 0.3)
        found[f"{seed} round"] = [digest(problem), f"{solve(problem).objective:.6g}"]
        given = {
            "age": rng.uniform(0, 900, 6),
            "restarts": rng.integers(0, 4, 6).astype(float),
            "restart": rng.uniform(5, 90, 6),
        }
        found[f"{seed} steady"] = program.sia_steady_for(made, gpus, current=current, **given)
    found["rounded"] = program.sia_utility(*goodput(9)[:2], decimals=1)
    nodes = [([0, 0, 1], [4, 4, 8]), ([0, 0, 0, 1, 1], [8, 8, 3, 1, 6])]
    found["configurations"] = [configurations.sia_configurations(np.array(t), np.array(g)) for t, g in nodes]
    return found


@golden
def test_rounds():
    found = {}
    scenario = SMALL(3)
    down = replace(scenario.cluster, events=(Outage(0, 900.0, 4000.0), Outage(5, 2000.0, 2500.0)))
    for name, policy in varied(Sia(), "interval", "time_limit", "solver").items():
        found[name] = ran(scenario, policy)
    found["prices"] = ran(SMALL(4), Sia(solver="prices"))
    found["failing"] = ran(scenario.replace(cluster=down), Sia())
    found["learning"] = ran(scenario.replace(estimator=Bootstrap()), Sia(evictions=True))
    return found


@golden
def test_estimates_and_tables(tmp_path):
    rng = np.random.default_rng(1)
    true = rng.uniform(0.5, 2, (3, 5)) * np.array([1, 2, 4, 1, 2])
    types = np.array([0, 0, 0, 1, 1])
    gpus = np.array([1, 2, 4, 1, 2])
    learnt = [np.array(ran_) for ran_ in ([[0, 0]] * 3, [[2, 0], [0, 2], [4, 1]], [[4, 2]] * 3)]
    rows = [
        ("m", kind, nodes, g, p, 2.0 * g / nodes * (1 + p))
        for kind in ("t4", "rtx")
        for nodes, g in ((1, 1), (1, 2), (2, 4))
        for p in (10.0, 100.0)
    ]
    table = pl.DataFrame(rows, ["model", "gpu_type", "n_nodes", "n_gpus", "progress", "goodput"], orient="row")
    file = tmp_path / "workload.csv"
    file.write_text("name,time,application,num_replicas,batch_size\na,0,ncf,1,32768\nb,60,bert,4,48\nc,70,nobody,2,8\n")
    return {
        "learnt": [Bootstrap().rates(true, each, types, gpus) for each in learnt],
        "speeds": digest(speeds.goodput_speeds(table, calibrated=False)),
        "workload": [workload.read_workload(file, durations=100.0), refusal(workload.read_workload, file)],
        "orderly": [placer.orderly(np.array([4, 2, 8, 8]), np.array(g)) for g in ([1, 2, 4, 8], [3, 3, 16, 1])],
    }


NAMES = {"names": tuple("uvwxyz"), "jobs": tuple("abcd")}


@golden
def test_figures():
    made, gpus, kinds, _ = goodput(2, 4)
    worth = figures.worth(made, kinds, gpus, np.array([4.0, 9.0]), **NAMES)
    own = np.array([1.0, 1.8, 3.0])
    other_ = np.array([2.0, 3.5, 5.0])
    return {
        "worth": drawn(worth),
        "penalised": drawn(figures.worth(made, kinds, gpus, np.array([2.0, 8.0]), **NAMES, power=1.0, penalty=3.0)),
        "bootstrap": [
            drawn(figures.bootstrap(np.array([1, 2, 4]), own, other_, ran_here=h, ran_there=t))
            for h, t in ((1, 1), (2, 1), (0, 4), (0, 0), (4, 4))
        ],
    }
