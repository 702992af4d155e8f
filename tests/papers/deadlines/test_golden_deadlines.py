"""Golden answers of jobs with deadlines: recipe, policies, lease plans, learning curves, figures, explorer."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, drawn, golden, moved, ran, refusal, varied

from gpuschedlab import Cluster
from gpuschedlab.estimators import LearningCurve
from gpuschedlab.optim import solve
from gpuschedlab.papers.deadlines import figures, placing, starts, workload
from gpuschedlab.papers.deadlines.chronus import ACCEPTED, DEMOTED, NEW, Chronus, _admit, rounded_up
from gpuschedlab.papers.deadlines.estimators import families, learning_curve
from gpuschedlab.papers.deadlines.explorer import UniSchedExplorer
from gpuschedlab.papers.deadlines.genie import Genie
from gpuschedlab.papers.deadlines.leases import plan, prices, program
from gpuschedlab.papers.deadlines.orders import Hydra
from gpuschedlab.papers.deadlines.recipe import SmallLeases, jobs_of
from gpuschedlab.papers.deadlines.threesigma import ThreeSigma
from gpuschedlab.papers.deadlines.unisched import UniSched, suspensions_slo

SMALL = SmallLeases(nodes=2, jobs=12)


@golden
def test_recipe():
    found = {name: digest(small(2).trace) for name, small in varied(SMALL).items()}
    return found | {"jobs": digest(jobs_of(SMALL, 0))}


POLICIES = [UniSched(), Chronus(), Genie(), Hydra(), ThreeSigma(interval=300.0, horizon=4, window=5)]


def varied_policies() -> dict:
    """Each policy with each knob elsewhere."""
    return {
        f"{type(p).__name__} {name}": each
        for p in POLICIES
        for name, each in varied(p, "time_limit", "interval").items()
    }


@golden
def test_policies():
    found = {}
    scenario = SMALL(3).replace(until=20_000.0)
    failing = scenario.replace(cluster=scenario.cluster.with_failures(6.0, 1.0, 50_000.0, 1))
    for name, policy in (SMALL.policies | varied_policies()).items():
        found[name] = ran(failing if "begin" in name else scenario, policy)
    return found


def jobs_with_leases(seed: int) -> program.LeaseJobs:
    """Jobs of one to three deadlines in leases."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 11))
    due = np.sort(rng.integers(1, 9, (n, 3)), axis=1) + np.arange(3)
    due[:, 1:] *= rng.random((n, 2)) < 0.6
    due[:, 2] *= due[:, 1] > 0
    value = -np.sort(-rng.uniform(1, 100, (n, 3)), axis=1) * (due > 0)
    return program.LeaseJobs.of(rng.choice([1.0, 2, 4, 8], n), rng.integers(1, 5, n), due, value)


@pytest.mark.parametrize("seed", range(6))
@golden
def test_lease_plans(seed):
    jobs = jobs_with_leases(seed)
    made = plan.plan_leases(jobs, 8.0)
    aimed = plan.plan_leases(jobs, 12.0, np.random.default_rng(seed).integers(-1, 3, len(jobs.gpus)))
    bound, cost = prices.lease_prices(jobs, 8.0)
    ran = np.random.default_rng(seed).integers(0, 2, len(jobs.gpus))
    return {
        "plan": made._asdict() | {"bound": f"{made.bound:.6g}"},
        "aimed": [aimed.step, aimed.objective],
        "gap": f"{made.gap:.5f}",
        "in force": made.in_force(jobs, ran),
        "table": plan.timetable(jobs, made.step, 8.0),
        "backward": plan.backward(jobs.gpus, jobs.need[:, 0], jobs.due[:, 0], 8.0),
        "prices": [f"{bound:.4g}", len(cost)],
        "blocks": program.growing_blocks(20 + seed, 3),
        "program": digest(program.lease_program(jobs, 8.0)),
        "optimum": f"{solve(program.lease_program(jobs, 8.0)).objective:.6g}",
        "choices": program.lease_choices(jobs),
        "board": drawn(figures.planned_leases(jobs, 8.0)),
    }


@golden
def test_deadlines_of_a_trace(tmp_path):
    trace = pl.DataFrame(
        {
            "job_id": [f"{i}" for i in range(20)],
            "submit": np.arange(20.0),
            "gpus": 0.5 * np.arange(1, 21),
            "duration": 100.0,
        }
    )
    trace = trace.filter((pl.col("gpus") < 1) | (pl.col("gpus") % 1 == 0))
    file = tmp_path / "job_info.csv"
    file.write_text(
        "job_id,user,num_gpu,submit_time,duration,expect_time_list,expect_value_list,job_type\n"
        "1,vc_1,4,10,60,90-99,10-8,soft\n2,vc_2,1,20,30,50,10,strict\n3,vc_1,2,5,100,,,best\n"
    )
    return {
        "plain": workload.with_deadlines(trace, strict=0.4, soft=0.3, slack=(1.1, 3.0), rng=1),
        "values": workload.with_deadlines(
            trace, strict=0.0, soft=1.0, slack=(2.0, 2.0), values=(90.0, 50.0, 20.0, 1.0), rng=2
        ),
        "delays": workload.with_start_delays(trace, 20.0)["switch"],
        "chronus": workload.read_chronus(file),
        "slo": suspensions_slo(np.arange(1.0, 6), np.arange(2.0, 7) ** 1.5),
        "counted": placing.chosen_by_count(np.array([3, 1, 0, 2]), np.array([4.0, 2, 1, 3]), 6.0),
        "proved": [
            placing.proved(EMPTY, *words).status
            for words in ((90, 100, "optimal", 0.2), (90, 100, "optimal", 0.05), (9, 9, "time", 0))
        ],
        "refused": [
            refusal(workload.with_deadlines, trace, strict=0.9, soft=0.9),
            refusal(workload.with_deadlines, trace, slack=(3.0, 1.0)),
            refusal(figures.lease_board, SMALL(0).replace(trace=trace).run(Chronus())),
        ],
    }


EMPTY = placing.Allocation(np.zeros(1, int), np.ones(1))


class Instant(SimpleNamespace):
    """As much of a view as deadlines and configurations are computed from."""

    def __len__(self):
        return len(self.index)


def instant(seed: int) -> Instant:
    """Jobs of no deadline to three, on two types of GPU that some of them cannot use, some of which run."""
    rng = np.random.default_rng(seed)
    n = 9
    deadlines = np.where(rng.random((n, 3)) < 0.4, np.inf, 1000 + np.sort(rng.uniform(-50, 4000, (n, 3)), axis=1))
    known = rng.random((n, 2)) < 0.7

    def rates(types, nodes, gpus):
        rate = gpus ** rng.uniform(0.4, 1.0, (n, 1)) * (1 + types) / (1 + 0.1 * nodes)
        return np.where(known[:, types], rate, np.nan)

    runs = rng.random(n) < 0.4
    return Instant(
        now=1000.0, index=np.arange(n) + 3, deadlines=deadlines, rewards=-np.sort(-rng.uniform(0, 100, (n, 3)), axis=1),
        kind=np.isfinite(deadlines).sum(axis=1), gpus=rng.choice([0.5, 1.0, 2.0, 3.0, 6.0], n), elastic=rng.random(n) < 0.6,
        running=runs, running_gpus=np.where(runs, 2.0, 0.0), rates=rates, usable=lambda: known, restart=rng.uniform(0, 60, n),
        pause=rng.uniform(0, 9, n), cluster=Cluster.parse("2x4:slow,1x8:fast,1x2:fast"), estimate=rng.uniform(50, 3000, n),
    )  # fmt: skip


@golden
def test_parts_of_policies():
    """What programs are made of, on random instants."""
    found = {}
    at = np.array([0.0, 600.0, 1200.0, 3000.0])
    for seed in range(6):
        view = instant(seed)
        rng = np.random.default_rng(seed)
        slo = view.kind > 0
        left = view.estimate
        sigmas = [ThreeSigma(sigma=sigma)._reward(view, left, slo, np.array([4, 0, 7, 2]), at) for sigma in (0.0, 0.7)]
        genies = [Genie(stretch=stretch)._configurations(view, left) for stretch in (1, 4)]
        need, due = UniSched()._needs(view, left)
        needs = [UniSched(**{name: False})._needs(view, left) for name in ("suspensions", "partial")]
        spread = UniSched()._may_spread(view, need, due, slo)
        density = UniSched(ahead=0.3)._density(view.rewards[:, 0], view.gpus, slo)
        state = rng.choice([NEW, NEW, ACCEPTED, DEMOTED], 9)
        aim = np.zeros(9, int)
        jobs = program.LeaseJobs.of(np.ceil(view.gpus), rng.integers(1, 4, 9), rng.integers(0, 7, (9, 3)), view.rewards)
        _admit(jobs, state, aim, 8.0)
        found[f"{seed}"] = [*sigmas, genies, rounded_up(view), need, due, needs, spread, density, state, aim]
    return found


@golden
def test_starts():
    rng = np.random.default_rng(3)
    load = rng.choice([0.0, 1.0, 2.0], (4, 3, 5))
    worth = rng.uniform(0, 9, (4, 3))
    made = starts.start_program(worth, load, [], np.zeros((0, 5)), np.full(5, 3.0))
    return {"program": digest(made), "optimum": f"{solve(made).objective:.6g}"}


@golden
def test_learning_curves():
    found = {}
    x = np.arange(1.0, 25)
    for name, curve in {
        "fast": 0.9 - 0.6 / x,
        "slow": 0.5 * (1 - np.exp(-x / 30)),
        "logs": 0.2 * np.log(x + 1),
        "odd": 0.5 + 0.1 * np.sin(x),
    }.items():
        made = families.fit_curve(x[:12], curve[:12])
        found[name] = {
            "members": sorted(m.name for m in made.members if m.weight > 1e-3),
            "mean": [f"{v:.3g}" for v in made.mean([13, 20, 60])],
            "above": [f"{v:.2f}" for v in made.above(0.6, [13, 40])],
            "reached": [made.reached(0.6, 50), made.reached(0.99, 30, 20)],
            "figure": drawn(figures.arrival(curve, 12, 0.7))["words"],
        }
    found["rising"] = [
        learning_curve.rising(np.array(m), t) for m, t in (([5.0, 60.0], 80.0), ([0.9, 0.3], 0.1), ([0.1, 0.4], 0.5))
    ]
    found["there"] = [
        learning_curve.measurements_to((0.1, 0.5, 0.7), 0.5, 9.0),
        learning_curve.measurements_to((3.0, 2.0), 2.5, 9.0),
    ]
    found["estimator"] = LearningCurve(targets={"b": 0.5, "a": 0.9}).targets
    return found


@golden
def test_figures():
    runs = {name: SMALL(1).run(policy) for name, policy in SMALL.policies.items()}
    return {
        "boards": [drawn(figures.lease_board(run, 900.0, 12)) for run in runs.values()],
        "trade-off": drawn(figures.trade_off(runs, "Chronus")),
    }


@golden
def test_explorer():
    return moved(UniSchedExplorer(SmallLeases(nodes=2, jobs=8)), "ahead", "spread", "odd", "delays", "load", "slack")
