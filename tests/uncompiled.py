"""Small results of every part with compiled code: the same with NUMBA_DISABLE_JIT=1 as without (`python uncompiled.py`)."""

import json

import polars as pl
from compiled_of_papers import COMPILED

import gpuschedlab as lab
from gpuschedlab.check.samples import elastic_sample, recurring_sample, small_trace
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.gym import Agent
from gpuschedlab.gym.agent import first_come
from gpuschedlab.metrics import summary
from gpuschedlab.policies import ALL, ThemisRounds
from gpuschedlab.speeds import Speeds

SHORT = {"population": 8, "generations": 5, "interval": 300.0}
OUTAGES = (lab.Outage(0, 300.0, 900.0), lab.Outage(3, 500.0, 700.0))
ONE_TYPE = lab.Cluster((lab.Nodes("v100", 4, 4), lab.Nodes("v100", 1, 2)), OUTAGES)
TWO_TYPES = lab.Cluster((lab.Nodes("slow", 2, 4), lab.Nodes("fast", 2, 4)))
DELAYS = lab.Delays(restart=20.0, switch=5.0, checkpoint=100.0)
MEASURED = (
    "start",
    "end",
    "queueing",
    "attained",
    "overhead",
    "lost",
    "preemptions",
    "restarts",
    "contention",
    "shared",
)


def policies() -> dict:
    """One of each class, and of each placement rule and backfill; a long search is cut short."""
    made = {name: cls(**SHORT if "generations" in cls().knobs else {}) for name, cls in ALL.items()}
    made |= {f"fifo {rule}": lab.Fifo(placement=rule) for rule in ("pack", "spread", "widest", "relax", "buddy")}
    made |= {f"fifo {backfill}": lab.Fifo(backfill=backfill) for backfill in ("easy", "greedy")}
    made |= {"leased": lab.Themis(lease_term=600), "agent": Agent(first_come)}
    return made | {"pop": lab.Pop(ThemisRounds(), parts=2)}


def runs() -> dict:
    """What jobs got under each policy: rigid ones while nodes fail, and elastic ones on two types."""
    jobs, speeds = elastic_sample()
    found = {}
    for name, policy in policies().items():
        rigid = lab.simulate(small_trace(24), ONE_TYPE, policy, delays=DELAYS)
        elastic = lab.simulate(jobs.head(10), TWO_TYPES, policy, speeds=speeds, delays=DELAYS)
        for kind, run in (("rigid", rigid), ("elastic", elastic)):
            found[f"{name}, {kind}"] = [run.jobs[c].cast(float).fill_null(-1).to_list() for c in MEASURED]
            found[f"{name}, {kind}, summary"] = {
                k: v for k, v in summary(run).items() if k != "seconds" and v is not None
            }
    return found


def parts() -> dict:
    """What compiled code outside the engine gives: speeds, estimators' features, rooms, generator, decisions, solvers."""
    rows = {
        "model": "m",
        "gpu_type": "b",
        "n_gpus": 4,
        "placement": ["22", "4", "31", "211"],
        "rate": [1.0, 2.0, 0.5, 0.7],
    }
    shapes = Speeds.from_frame(pl.DataFrame(rows), relative=True)
    jobs = small_trace(12).with_columns(gpus=4.0, model=pl.lit("m"))
    placed = lab.simulate(jobs, lab.Cluster.parse("3x4:b"), lab.Fifo(placement="spread"), speeds=shapes)
    log = lab.simulate(small_trace(20), ONE_TYPE, lab.Srtf(), log=True).decisions
    simulation = lab.Simulation(lab.Scenario(recurring_sample(60, 0), lab.Cluster.homogeneous(2, 4)), lab.Fifo())
    simulation.advance(20_000.0)
    room = FreeGpus(ONE_TYPE, "buddy")
    return {
        "shapes": placed.jobs["end"].to_list(),
        "log": log.select("time", "job", "free", "missing").fill_null(-1).to_numpy().tolist(),
        "room": [room.take(g).tolist() for g in (3.0, 1.0, 4.0, 8.0)],
        "generated": lab.generate("venus", days=0.5, jobs=40, rng=1).select("submit", "duration").to_numpy().tolist(),
        "history": lab.History().fit(recurring_sample(80, 1)).predict(recurring_sample(9, 2)).tolist(),
        **{name: function(simulation) for name, function in COMPILED.items()},
    }


if __name__ == "__main__":
    print(json.dumps({"runs": runs(), "parts": parts()}))
