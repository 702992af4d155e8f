"""Sweeps in one process: grids, what a cell is, what is kept."""

import gc
import importlib.util
import json
import sys
import weakref
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuschedlab import Cluster, Delays, Fifo, History, Noisy, Run, Runtime, Scenario, Srtf, Themis, Tiresias, simulate
from gpuschedlab.check import small_trace
from gpuschedlab.errors import PolicyError
from gpuschedlab.metrics import METRICS
from gpuschedlab.sim import Simulation
from gpuschedlab.sim.setup.prepared import Prepared
from gpuschedlab.speeds import default_speeds
from gpuschedlab.sweep import Sweep, cross, grid, identity, sweep
from gpuschedlab.sweep.store import Store
from gpuschedlab.sweep.work import HELD

pytest.importorskip("joblib")
CLUSTER = Cluster.homogeneous(2, 8)


def trace(seed: int) -> pl.DataFrame:
    return small_trace(12, rng=seed)


def scenario(seed: int) -> Scenario:
    return Scenario(trace(seed), CLUSTER)


def cells(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (Path(folder) / "cells").iterdir()}


# Grids --------------------------------------------------------------------------------------------------------


def test_a_grid_follows_the_scale_of_its_knobs():
    assert [p.f for p in grid(Themis, f=4)] == [0.0, 0.33, 0.66, 0.99]
    terms = np.array([p.lease_term for p in grid(Themis, lease_term=5)])
    assert np.allclose(terms[1:] / terms[:-1], (86_400 / 60) ** 0.25)
    assert [p.queues for p in grid(Tiresias, queues=9)] == [1, 2, 3, 4, 5]
    assert [p.thresholds for p in grid(Tiresias, thresholds=[300, (600.0,)])] == [(300.0,), (600.0,)]
    assert [p.backfill for p in grid(Fifo, backfill="all")] == ["none", "easy", "greedy", "plan"]


def test_a_grid_is_a_product_on_top_of_a_policy():
    made = grid(Themis(threshold=0.5), f=[0.1, 0.2], priority="all")
    assert [(p.f, p.priority, p.threshold) for p in made] == [
        (0.1, "time", 0.5),
        (0.1, "service", 0.5),
        (0.2, "time", 0.5),
        (0.2, "service", 0.5),
    ]


def test_a_grid_leaves_out_what_constraints_forbid_and_lets_the_others_follow():
    both = grid(Tiresias, queues=[2, 3], thresholds=[[100], [100, 1000]])
    assert [(p.queues, p.thresholds) for p in both] == [(2, (100.0,)), (3, (100.0, 1000.0))]
    assert [len(p.thresholds) for p in grid(Tiresias, queues=[1, 4])] == [0, 3]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"speed": 3}, "no knob 'speed'"),
        ({"f": [2.0]}, "found 2.0; expected 0 to 0.99"),
        ({"f": 1}, "found 1 steps; expected 2 or more"),
        ({"f": []}, r"found []; expected a number of steps"),
        ({"priority": 3}, "3 steps of a choice"),
        ({"priority": ["mood"]}, "expected one of"),
    ],
)
def test_a_wrong_grid_says_so(values, told):
    with pytest.raises(PolicyError) as error:
        grid(Themis, **values)
    assert told in str(error.value)
    with pytest.raises(PolicyError, match="no combination"):
        grid(Tiresias, queues=[3], thresholds=[(100.0,)])


# What a cell is -----------------------------------------------------------------------------------------------


def test_a_frame_is_known_by_its_content():
    frame = small_trace(30)
    parts = pl.concat([frame[:7], frame[7:20], frame[20:]], rechunk=False)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1).sort("submit")
    assert identity.digest(frame) == identity.digest(parts) == identity.digest(shuffled)
    changed = [
        frame.with_columns(submit=pl.col("submit") + 1e-9),
        frame.with_columns(user=pl.lit("")),
        frame.with_columns(user=pl.lit(None, pl.String)),
        frame.rename({"user": "uses"}),
        frame[:-1],
        frame.with_columns(job_id=pl.col("job_id").shift(-1, fill_value="job-000")),
    ]
    assert len({identity.digest(f) for f in [frame, *changed]}) == 7


@given(st.lists(st.text(max_size=3), min_size=2, max_size=2), st.lists(st.text(max_size=3), min_size=2, max_size=2))
def test_words_do_not_run_into_each_other(a, b):
    digests = [identity.digest(pl.DataFrame({"x": words}, schema={"x": pl.String})) for words in (a, b)]
    assert (digests[0] == digests[1]) == (a == b)


def test_policies_estimators_and_speeds_are_known_by_what_they_hold():
    history = small_trace(50, rng=9)
    things = [Fifo(), Fifo(backfill="easy"), Srtf(), Tiresias(), Tiresias().fit(history), CLUSTER]
    things += [CLUSTER.with_failures(1e4, 1e3, 1e5, 1), default_speeds(CLUSTER), History().fit(history)]
    things += [History().fit(trace(1)), History(), Noisy(rng=1), Noisy(rng=2), lambda: 1, lambda: 2]
    assert len({identity.digest(thing) for thing in things}) == len(things)
    used = Cluster.homogeneous(2, 8)
    assert used.total_gpus == used.capacity.sum()  # fills the caches of a cluster
    assert identity.digest(used) == identity.digest(CLUSTER)
    assert identity.digest(History().fit(history)) == identity.digest(History().fit(history))
    pytest.importorskip("xgboost")
    fitted = [identity.digest(Runtime(trees=5).fit(h)) for h in (history, history.clone(), trace(1))]
    assert fitted[0] == fitted[1] != fitted[2]


OWN = """
from dataclasses import dataclass
from gpuschedlab import Ordered

@dataclass(frozen=True)
class Mine(Ordered):
    '''Mine.'''
    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        return {sign} * job.submit
"""


def test_a_policy_whose_code_changes_is_computed_again(tmp_path, monkeypatch):
    def load(sign):
        path = tmp_path / f"mine{sign}.py"
        path.write_text(OWN.format(sign=sign))
        spec = importlib.util.spec_from_file_location("mine", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "mine", module)
        spec.loader.exec_module(module)
        return module.Mine()

    first, second, third = (
        sweep(Scenario(small_trace(60), CLUSTER), load(sign), tmp_path / "s", progress=False) for sign in (1, -1, 1)
    )
    assert len(cells(tmp_path / "s")) == 2
    assert first.frame.equals(third.frame)
    assert not first.frame.equals(second.frame)


# What is kept -------------------------------------------------------------------------------------------------


def test_a_row_is_what_simulate_says(tmp_path):
    policies = {"first": Fifo(), "fair": grid(Themis, f=[0.2, 0.8])}
    clusters = {"small": CLUSTER, "large": Cluster.homogeneous(4, 8)}
    found = sweep(cross({"a": trace, "b": trace(5)}, clusters), policies, tmp_path, seeds=(3, 4), progress=False)
    frame = found.frame
    assert frame.height == 3 * 2 * 2 * 2
    assert frame.columns[:6] == ["policy", "scenario", "cluster", "estimator", "seed", "f"]
    assert frame.select("scenario", "cluster", "seed", "policy", "f").rows()[2:5] == [
        ("a", "small", 3, "fair", 0.8),
        ("a", "small", 4, "first", None),
        ("a", "small", 4, "fair", 0.2),
    ]
    for row in frame.filter(seed=4).iter_rows(named=True):
        policy = Fifo() if row["policy"] == "first" else Themis(f=row["f"])
        jobs = trace(4) if row["scenario"] == "a" else trace(5)
        expected = simulate(jobs, clusters[row["cluster"]], policy).summary()
        assert {k: row[k] for k in METRICS if k != "seconds"} == {k: v for k, v in expected.items() if k != "seconds"}
    assert Sweep.read(tmp_path).frame.equals(frame)
    assert found.times["seconds"].min() > 0
    table = found.table(["jct_mean"])
    assert table.height == 12
    assert table["seeds"].to_list() == [2] * 12
    assert table["jct_mean"][0] == pytest.approx(
        frame.filter(policy="first", scenario="a", cluster="small")["jct_mean"].mean()
    )


def test_a_larger_sweep_computes_only_what_is_new(tmp_path):
    sweep(scenario, [Fifo(), Srtf()], tmp_path, seeds=range(2), progress=False)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()}
    found = sweep({"other": scenario}, [Fifo(), Srtf(), Fifo()], tmp_path, seeds=range(3), progress=False)
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()}
    assert found.frame.height == len(after) == 6  # the second Fifo is the first one
    assert {name: after[name] for name in before} == before
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 6


def test_runs_are_kept_without_what_differs_between_two_computers(tmp_path):
    for name in ("a", "b"):
        sweep(scenario, Fifo(), tmp_path / name, keep_runs=True, progress=False)
    files = [{p.name: p.read_bytes() for p in sorted((tmp_path / n / "runs").glob("*/*"))} for n in ("a", "b")]
    assert files[0] == files[1]
    (folder,) = (tmp_path / "a" / "runs").iterdir()
    run = Run.from_parquet(folder)
    expected = simulate(trace(0), CLUSTER, Fifo())
    assert run.jobs.equals(expected.jobs)
    assert "seconds" not in run.info
    (folder / "jobs.parquet").unlink()
    sweep(scenario, Fifo(), tmp_path / "a", keep_runs=True, progress=False)
    assert Run.from_parquet(folder).jobs.equals(expected.jobs)


def test_estimators_and_policies_learn_from_the_history(tmp_path):
    history = small_trace(80, rng=7).with_columns(pl.col("submit") - 1e6)  # all of it has ended
    policies = {"srtf": [(Srtf(), History()), Srtf()], "gittins": Tiresias(metric="gittins")}
    found = sweep(Scenario(trace(0), CLUSTER, history=history), policies, tmp_path, progress=False).frame
    assert found["estimator"].to_list() == ["history", "oracle", "oracle"]
    expected = [
        simulate(trace(0), CLUSTER, Srtf(), estimator=History().fit(history)),
        simulate(trace(0), CLUSTER, Srtf()),
        simulate(trace(0), CLUSTER, Tiresias(metric="gittins").fit(history)),
    ]
    assert found["jct_mean"].to_list() == [run.summary()["jct_mean"] for run in expected]


def test_functions_of_a_seed_make_scenarios_and_estimators(tmp_path):
    def failing(seed):
        return CLUSTER.with_failures(2e3, 500, 1e4, seed)

    def made(seed):
        return Scenario(trace(seed), failing(seed), estimator=Noisy(rng=seed), speeds=default_speeds)

    options = {"seeds": range(2), "measure": {"prices": 2.0}, "progress": False}
    found = sweep(made, Srtf(), tmp_path / "a", **options).frame
    crossed = cross(trace, failing, speeds=default_speeds)
    again = sweep(crossed, (Srtf(), lambda seed: Noisy(rng=seed)), tmp_path / "b", **options).frame
    for seed in range(2):
        cluster = failing(seed)
        run = simulate(trace(seed), cluster, Srtf(), estimator=Noisy(rng=seed), speeds=default_speeds(cluster))
        assert found["jct_mean"][seed] == again["jct_mean"][seed] == run.summary()["jct_mean"]
    assert found["cost"].min() > 0
    assert found["estimator"].to_list() == again["estimator"].to_list() == ["noisy"] * 2


@dataclass(frozen=True)
class Few:
    """A recipe of a trace, which counts how often it is followed."""

    jobs: int = 12

    def __call__(self, seed: int) -> pl.DataFrame:
        MADE.append(seed)
        return small_trace(self.jobs, rng=seed)


MADE: list[int] = []


def test_traces_are_made_once_and_recipes_where_the_cell_is_computed(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "MADE", made := [])
    clusters = [CLUSTER, Cluster.homogeneous(3, 8)]
    eager = sweep(cross(lambda seed: Few()(seed), clusters), Fifo(), tmp_path / "a", seeds=2, progress=False)
    assert made == [0, 1]
    lazy = sweep(cross(Few(), clusters), [Fifo(), Srtf()], tmp_path / "b", seeds=2, progress=False)
    assert made == [0, 1] + [0, 1] * 2
    lazy = lazy.filter(policy="fifo").frame
    assert lazy.equals(eager.frame)
    sweep(cross(Few(), clusters), [Fifo(), Srtf()], tmp_path / "b", seeds=2, progress=False)
    assert len(made) == 6
    sweep(cross(Few(13), CLUSTER), Fifo(), tmp_path / "b", progress=False)
    assert len(made) == 7


@dataclass(frozen=True)
class Recipe:
    """A recipe of a scenario."""

    delay: float

    def __call__(self, seed: int) -> Scenario:
        return Scenario(trace(seed), CLUSTER, estimator=Noisy(rng=seed), delays=Delays(switch=self.delay))


def test_a_recipe_of_a_scenario_is_followed_with_its_seed(tmp_path):
    given = {"quick": Recipe(0.0), "slow": Recipe(600.0)}
    found = sweep(given, Srtf(), tmp_path, seeds=[4], progress=False).frame
    assert found.select("scenario", "cluster", "estimator", "seed").rows() == [
        ("quick", "2x8:v100", "noisy", 4),
        ("slow", "2x8:v100", "noisy", 4),
    ]
    expected = [recipe(4).run(Srtf()).summary()["jct_mean"] for recipe in given.values()]
    assert found["jct_mean"].to_list() == expected
    assert expected[0] != expected[1]


CHANGES = {
    "trace": small_trace(13), "cluster": Cluster.homogeneous(3, 8), "history": small_trace(40), "speeds": default_speeds,
    "estimator": Noisy(), "delays": Delays(restart=1.0), "until": 5e3,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:sweep")
@pytest.mark.parametrize("part", CHANGES)
def test_every_part_of_a_scenario_makes_another_cell(tmp_path, part):
    first = Scenario(small_trace(12), CLUSTER)
    for each in (first, first.replace(**{part: CHANGES[part]}), Scenario(small_trace(12), Cluster.homogeneous(2, 8))):
        sweep(each, Fifo(), tmp_path, progress=False)
    assert len(cells(tmp_path)) == 2


@pytest.mark.parametrize("harm", ["cut", "empty", "other", "bit", "text"])
def test_a_broken_cell_is_computed_again(tmp_path, harm):
    sweep(scenario, [Fifo(), Srtf()], tmp_path, progress=False)
    before = cells(tmp_path)
    first, second = sorted((tmp_path / "cells").iterdir())
    raw = first.read_bytes()
    if harm == "bit":
        first.write_bytes(raw[:200] + bytes([raw[200] ^ 1]) + raw[201:])
    else:
        harmed = {"cut": raw[: len(raw) // 2], "empty": b"", "other": second.read_bytes(), "text": b"PAR1 no PAR1"}
        first.write_bytes(harmed[harm])
    assert Sweep.read(tmp_path).missing == 1
    assert Sweep.read(tmp_path).frame.height == 1
    sweep(scenario, [Fifo(), Srtf()], tmp_path, progress=False)
    assert cells(tmp_path) == before


# What cells have in common ------------------------------------------------------------------------------------


@pytest.fixture
def alive(monkeypatch) -> list[int]:
    """Number of scenarios that were prepared in this test and are still in memory as each cell is kept."""
    counts = []
    prepared = []
    make = Prepared.__init__
    keep = Store.keep

    def making(self, *arguments, **options):
        make(self, *arguments, **options)
        prepared.append(weakref.ref(self))

    def counted(store, outcome, about):
        gc.collect(1)
        counts.append(sum(reference() is not None for reference in prepared))
        keep(store, outcome, about)

    monkeypatch.setattr(Prepared, "__init__", making)

    monkeypatch.setattr(Store, "keep", counted)
    return counts


def test_memory_does_not_grow_with_cells(tmp_path, alive):
    sweep(scenario, Fifo(), tmp_path / "own traces", seeds=6 * HELD, progress=False)
    assert 0 < max(alive) <= 2 * HELD
    alive.clear()
    base = scenario(0)
    sweep(base, [Fifo(), Srtf()], tmp_path / "one trace", seeds=20, progress=False)
    assert set(alive) == {1}
    assert "prepared" not in base._common


def test_seeds_of_a_scenario_are_learnt_for_once(tmp_path, monkeypatch):
    fits = []
    fit = History.fit

    def counted(estimator, history):
        fits.append(history.height)
        return fit(estimator, history)

    monkeypatch.setattr(History, "fit", counted)
    history = small_trace(40, rng=9).with_columns(pl.col("submit") - 1e6)
    base = Scenario(trace(0), CLUSTER, history=history, estimator=History())
    found = sweep(base, [Fifo(), (Srtf(), Noisy(error=0.5))], tmp_path / "s", seeds=5, progress=False)
    assert fits == [40]
    alone = [simulate(base, Fifo()), simulate(base.replace(estimator=Noisy(error=0.5)), Srtf())]
    assert found.frame["jct_mean"].to_list() == [run.summary()["jct_mean"] for run in alone] * 5


def test_a_seed_makes_another_cell_whichever_seed_its_scenario_has(tmp_path):
    for base in (scenario(0), scenario(0).replace(seed=7), scenario(0).replace(seed=1)):
        sweep(base, Fifo(), tmp_path, seeds=range(3), progress=False)
    assert len(cells(tmp_path)) == 3


# The books of cells -------------------------------------------------------------------------------------------


def test_the_books_of_one_cell_in_fifty_are_added_up(tmp_path):
    found = sweep(scenario, grid(Themis, f=17), tmp_path / "s", seeds=3, progress=False)
    lines = [json.loads(line) for line in (tmp_path / "s" / "log.jsonl").read_text().splitlines()]
    assert [i for i, line in enumerate(lines) if "books" in line] == [0, 50]
    assert [line["books"] for line in lines if "books" in line] == ["", ""]
    assert found.wrong == {}
    assert "books" not in found.frame.columns


def test_books_that_do_not_add_up_are_said_at_the_end_and_in_the_table(tmp_path, monkeypatch):
    result = Simulation.result

    def forged(self, last=False):
        run = result(self, last)
        return replace(run, allocations=run.allocations.with_columns(gpus=9 * pl.col("gpus")))

    monkeypatch.setattr(Simulation, "result", forged)
    with pytest.warns(
        UserWarning, match=r"the books of fifo on scenario, 2x8:v100, seed 0 do not add up.* gave .* it has 8"
    ):
        found = sweep(scenario, [Fifo(), Srtf()], tmp_path / "s", seeds=2, progress=False)
    assert [*found.wrong] == ["fifo on scenario, 2x8:v100, seed 0"]
    assert [row is None for row in found.frame["books"]] == [False, True, True, True]
    assert [row is None for row in found.table()["books"]] == [False, True]
    assert repr(found) == "Sweep(4 finished, 1 with wrong books; no knobs)"
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="do not add up"):  # the same call says it again
        again = sweep(scenario, [Fifo(), Srtf()], tmp_path / "s", seeds=2, progress=False)
    assert again.wrong == found.wrong
    assert again.frame.equals(found.frame)
