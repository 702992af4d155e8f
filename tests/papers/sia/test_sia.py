"""Sia: what it may and may not do, that its solvers agree, and the artifact's workloads."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import PolicyError
from gpuschedlab.papers.sia import policy as sia
from gpuschedlab.papers.sia.policy import Sia
from gpuschedlab.sim import Scenario, simulate
from gpuschedlab.speeds import Speeds

CLUSTER = Cluster.parse("2x4:slow,2x4:fast")


def elastic_speeds(scaling=0.8, work=20_000.0) -> Speeds:
    rows = [
        {
            "model": model,
            "gpu_type": kind,
            "n_nodes": nodes,
            "n_gpus": gpus,
            "rate": pace * gpus**power,
            "progress": work,
        }
        for model, power in (("wide", scaling), ("narrow", 0.3))
        for kind, pace in (("slow", 1.0), ("fast", 3.0))
        for nodes, gpus in ((1, 1), (1, 2), (1, 4), (2, 8))
    ]
    return Speeds.from_frame(pl.DataFrame(rows))


def trace(n=12, seed=0, delay=30.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "job_id": [f"j{i:02d}" for i in range(n)],
            "submit": np.sort(rng.uniform(0, 3000, n)),
            "gpus": np.ones(n),
            "duration": np.full(n, 20_000.0),
            "model": rng.choice(["wide", "narrow"], n),
            "switch": np.full(n, delay),
        }
    )


def view_of(policy, speeds, n=3, *, cluster=CLUSTER, model=None, gpus=1.0, **arrays):
    """What the policy sees of `n` jobs, of the model "wide" if no codes are given, submitted 600 s ago."""
    codes = np.zeros(n, int) if model is None else model
    jobs = trace(n).with_columns(
        submit=pl.lit(0.0),
        gpus=pl.Series(np.broadcast_to(gpus, n)),
        model=pl.Series([speeds.models[m] if m >= 0 else None for m in codes], dtype=pl.Utf8),
    )
    return Scenario(jobs, cluster, speeds=speeds).view(policy, now=600.0, **arrays)


def ever_held(policy, gpus):
    """What the policy carries after its jobs have held so many GPUs."""
    kept = policy.begin()
    kept.most = np.array(gpus, float)
    return kept


def test_a_job_starts_on_one_gpu_of_the_best_type():
    policy = Sia()
    answer = policy.allocate(view_of(policy, elastic_speeds(), n=3))
    assert answer.gpus.tolist() == [1, 1, 1]
    assert answer.gpu_type.tolist() == [1, 1, 1]
    assert answer.status == "optimal"


def test_a_job_at_most_doubles_what_it_ever_had():
    policy = Sia()
    speeds = elastic_speeds()
    view = view_of(policy, speeds, n=1)
    gpus = []
    for _ in range(5):
        answer = policy.allocate(view)
        gpus.append(int(answer.gpus[0]))
        held = {"running_gpus": answer.gpus, "gpu_type": answer.gpu_type}
        view = view_of(policy, speeds, n=1, memory=view.memory, **held)
    assert gpus == [1, 2, 4, 8, 8]
    policy = Sia(growth=8)
    assert policy.allocate(view_of(policy, speeds, n=1, memory=ever_held(policy, [1]))).gpus.tolist() == [8]


def test_a_job_that_is_restarting_is_left_alone():
    policy = Sia(growth=64)
    speeds = elastic_speeds()
    held = [(0, 0, 1)]
    moved = policy.allocate(view_of(policy, speeds, n=2, nodes=held))
    left = policy.allocate(view_of(policy, speeds, n=2, pause=[20.0, 0.0], nodes=held))
    assert (moved.gpu_type[0], moved.gpus[0]) != (0, 1)
    assert (left.gpu_type[0], left.gpus[0]) == (0, 1)


def test_restarts_are_discounted_unless_told_otherwise():
    """A job that has restarted all its life stays where it is; without the factor it moves to the faster type."""
    held = {"nodes": [(0, 0, 1)], "restarts": [15]}
    speeds = elastic_speeds()
    stays = Sia().allocate(view_of(Sia(), speeds, n=1, **held))
    moves = Sia(restarts=False).allocate(view_of(Sia(), speeds, n=1, **held))
    assert (stays.gpu_type[0], stays.gpus[0]) == (0, 1)
    assert moves.gpu_type[0] == 1


@pytest.mark.parametrize("here", [0, 1])
def test_at_equal_utility_a_job_stays(here):
    speeds = elastic_speeds()
    speeds = Speeds.from_frame(
        speeds.configurations()
        .filter(gpu_type="fast")
        .with_columns(gpu_type=pl.lit("slow"))
        .vstack(speeds.configurations().filter(gpu_type="fast"))
        .select("model", "gpu_type", "n_nodes", "n_gpus", "rate")
        .with_columns(progress=1e5)
    )
    answer = Sia(growth=1, restarts=False).allocate(view_of(Sia(), speeds, n=1, nodes=[(0, 2 * here, 1)]))
    assert (answer.gpu_type[0], answer.gpus[0]) == (here, 1)


def test_rigid_jobs_get_their_gpus_or_none():
    gpus = np.array([3.0, 0.5, 6.0])
    answer = Sia().allocate(view_of(Sia(), elastic_speeds(), n=3, model=np.full(3, -1), gpus=gpus))
    assert answer.gpus.tolist() == gpus.tolist()


@pytest.mark.parametrize("solver", ["highs", "mip"])
def test_solvers_reach_the_same_objective(solver):
    """Half-busy clusters of rigid and elastic jobs: the answers may differ, what they are worth may not."""
    rng = np.random.default_rng(1)
    for n in (6, 14):
        state = {"model": rng.choice([-1, 0, 1], n), "gpus": rng.choice([1.0, 2.0, 3.0, 4.0], n)}
        most = rng.choice([0.0, 2.0, 4.0], n)
        policies = [Sia(solver=name, gap=1e-9) for name in ("prices", solver)]
        values = [
            p.allocate(view_of(p, elastic_speeds(), n=n, memory=ever_held(p, most), **state)).objective
            for p in policies
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_whole_runs_keep_to_the_configurations():
    done = simulate(trace(), CLUSTER, Sia(), speeds=elastic_speeds())
    assert done.jobs["end"].null_count() == 0
    held = done.allocations.group_by("job", "start").agg(pl.col("gpus").sum(), pl.col("node").n_unique().alias("nodes"))
    assert set(held["gpus"].unique()) <= {1.0, 2.0, 4.0, 8.0}
    assert (held.filter(pl.col("gpus") < 8)["nodes"] == 1).all()
    assert done.rounds["status"].str.contains("not placed").sum() == 0
    assert (done.rounds["bound"] >= done.rounds["objective"] - 1e-9).all()
    assert done.jobs["restarts"].sum() > 0


def test_fairness_takes_from_the_job_that_scales_best():
    """Two jobs on eight GPUs of one type: the sum of goodputs gives all to the one that scales, p = -2 shares."""
    cluster = Cluster.parse("1x8:fast")
    rows = [("wide", g, g**0.95) for g in (1, 2, 4, 8)] + [("narrow", g, g**0.5) for g in (1, 2, 4, 8)]
    speeds = Speeds.from_frame(
        pl.DataFrame(rows, schema=["model", "n_gpus", "rate"], orient="row").with_columns(
            gpu_type=pl.lit("fast"), n_nodes=1, progress=1e5
        )
    )
    state = {"n": 2, "model": speeds.model_codes(["wide", "narrow"]), "cluster": cluster}
    gpus = {
        p: Sia(power=p, penalty=1.1)
        .allocate(view_of(Sia(), speeds, memory=ever_held(Sia(), [8, 8]), **state))
        .gpus.tolist()
        for p in (-2.0, 1.0)
    }
    assert gpus == {-2.0: [4, 4], 1.0: [8, 0]}


def test_power_zero_is_refused():
    with pytest.raises(PolicyError, match="power other than 0"):
        Sia(power=0.0)
    assert Sia.project({"power": 0.0})["power"] == -0.5


@dataclass(frozen=True)
class Anew(Sia):
    """Sia that builds and solves each round, as if nothing were known of the one before."""

    def allocate(self, view):
        view.memory.until = -np.inf
        view.memory.session._last = None
        return replace(super().allocate(view), wake=None)


def counting(monkeypatch) -> list:
    """Grows with each round that is built."""
    built = []
    monkeypatch.setattr(
        Sia, "_decide", lambda self, view, *a, do=Sia._decide: (built.append(view.now), do(self, view, *a))[1]
    )
    return built


def changing_speeds() -> Speeds:
    """Half-way, the model "wide" scales better than before, and the slow type is the faster one."""
    early = elastic_speeds(0.5, 9000.0).configurations()
    late = elastic_speeds(0.9).configurations()
    turned = pl.when(gpu_type="slow").then(pl.col("rate") * 6).otherwise("rate")
    frames = [early.with_columns(progress=9000.0), late.with_columns(rate=turned, progress=80_000.0)]
    return Speeds.from_frame(pl.concat(frames).drop("placement"))


@pytest.mark.parametrize(
    "knobs", [{}, {"solver": "highs"}, {"decimals": -1}, {"power": 0.5}, {"restarts": False}, {"growth": 64.0}]
)
@pytest.mark.parametrize("n", [2, 9])
def test_rounds_that_are_not_solved_again_would_have_had_the_same_answer(knobs, n, monkeypatch):
    built = counting(monkeypatch)
    rounds = []
    runs = []
    for kind in (Sia, Anew):
        built.clear()
        runs.append(simulate(trace(n, delay=90.0), CLUSTER, kind(**knobs), speeds=changing_speeds()))
        rounds.append(len(built))
    for frame in ("jobs", "allocations", "timeline"):  # rounds slept through are steps in which sums were not added up
        assert_frame_equal(getattr(runs[0], frame), getattr(runs[1], frame), rel_tol=1e-9)
    both = runs[0].rounds.join(runs[1].rounds, on="time", validate="1:1")
    assert both.height == runs[0].rounds.height <= runs[1].rounds.height
    assert both["objective"].to_numpy() == pytest.approx(both["objective_right"].to_numpy(), rel=1e-9, nan_ok=True)
    assert rounds[0] < rounds[1] if not knobs else rounds[0] <= rounds[1]


@pytest.mark.parametrize("solver", ["prices", "highs", "mip"])
def test_a_job_alone_is_hardly_ever_solved(solver, monkeypatch):
    built = counting(monkeypatch)
    solved = []
    monkeypatch.setattr(sia, "sia_round", lambda *a, do=sia.sia_round: (solved.append(1), do(*a))[1])
    days = 3 * 86_400.0
    one = trace(1).with_columns(submit=0.0, target=pl.lit(days))
    run = simulate(one, CLUSTER, Sia(solver=solver), speeds=elastic_speeds(work=days))
    assert run.jobs["end"][0] > days / 16
    assert run.jobs["restarts"][0] == 3  # 1, 2, 4, 8 GPUs
    assert len(built) == len(solved) <= run.rounds.height < 100


def test_rigid_jobs_that_wait_are_not_solved_again(monkeypatch):
    built = counting(monkeypatch)
    frame = trace(3).with_columns(submit=0.0, gpus=8.0, model=pl.lit(None, pl.Utf8), switch=0.0)
    run = simulate(frame, CLUSTER, Sia())
    assert run.jobs["end"].sort().to_list() == [20_000, 20_000, 40_040]  # the third starts at the next round
    assert len(built) < 10


@pytest.mark.parametrize(("decimals", "least"), [(-1, 1.01), (0, 2.0), (2, 1.01)])
def test_the_least_penalty_leaves_the_least_goodput_worth_something(decimals, least):
    assert Sia(decimals=decimals, penalty=least).penalty == least
    with pytest.raises(PolicyError, match="penalty"):
        Sia(decimals=decimals, penalty=least - 1e-3)
