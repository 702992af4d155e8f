"""Steps of the merger's rounds, recorded from its own code and equal to its answers."""

import itertools
import re

import numpy as np
import polars as pl
import pytest
from player_pages import packed
from scenes.merger_steps import MergerSteps

from gpuschedlab import plots, widgets
from gpuschedlab.optim import solve
from gpuschedlab.papers.ymir import steps as merger
from gpuschedlab.papers.ymir.program import Merging
from gpuschedlab.papers.ymir.recipe import MergingCluster

SMALL = MergingCluster(nodes=2, hours=2.0, data_sets=6).with_knobs(method="target", interval=300.0)


@pytest.fixture(scope="module")
def rounds():
    return merger.recorded_rounds(SMALL(0), SMALL.ymir)


def test_recorded_rounds_are_those_of_the_run(rounds):
    run = SMALL(0).run(SMALL.ymir)
    solved = run.rounds.filter(pl.col("status") == "optimal")
    proved = {r.now: r.solution.objective for r in rounds}
    assert len(solved) > 5
    assert all(proved[time] == objective for time, objective in solved.select("time", "objective").iter_rows())


def test_each_tested_pair_is_in_the_program_or_says_why_not(rounds):
    kept = 0
    out = set()
    for found in rounds:
        whys = [why for _, _, why, *_ in found.candidates]
        assert whys.count("") == len(found.made.first)
        out |= set(whys) - {""}
        kept += whys.count("")
        for _, _, why, _, gain in found.candidates:
            if gain is not None:
                assert bool(why) == (not (gain >= found.threshold).any())
    assert kept > 0
    assert out >= {"gains too little", "one task"}


def test_the_last_steps_show_the_plan_chosen_and_the_second_best(rounds):
    found = max(rounds, key=lambda r: len(r.made.first))
    case = merger.case_of(found)
    x = np.round(found.solution.x)
    chosen = case.steps[-2]
    second = case.steps[-1]
    assert (chosen.line, second.line) == (5, 6)
    assert [i for i, cells in enumerate(chosen.rows) if cells[-1].startswith("chosen")] == np.flatnonzero(x).tolist()
    other = merger.second_best(found.made, found.solution)
    assert f"{found.solution.objective - other.objective:.3f} less" in second.decided
    gpus = found.made.gpus[found.made.columns()[1]]
    assert x @ gpus <= found.made.room.sum()
    out = [cells for cells in second.rows if cells[-1].startswith("left out: TranWt")]
    assert out
    assert all(float(cells[4]) < found.threshold + 0.005 for cells in out)
    assert {step.line for step in case.steps} == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize("seed", range(40))
def test_the_second_best_plan_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 3, 2)
    gpus = np.array([1, 2])
    pairs = {"first": np.array([0]), "second": np.array([1]), "pair_cost": rng.uniform(0.5, 4, (1, 2))}
    room = np.array([float(rng.integers(2, 5))])
    made = Merging(
        count,
        rng.uniform(0.5, 4, (2, 2)),
        **pairs,
        gpus=gpus,
        kind=np.zeros(2, int),
        room=room,
        idle=rng.uniform(5, 9, 2),
    )
    program = made.program()
    values = []
    for x in itertools.product(*(range(int(u) + 1) for u in program.upper)):
        if (program.A @ np.array(x) <= program.row_upper + 1e-9).all():
            values.append(program.value(np.array(x, float)))
    best, second = sorted(values, reverse=True)[:2]
    solution = solve(program, gap=1e-9)
    assert solution.objective == pytest.approx(best)
    assert merger.second_best(made, solution).objective == pytest.approx(second)


def test_the_merger_is_shown_without_a_figure():
    player = MergerSteps(SMALL, most=3)
    assert 1 <= len(player.cases) <= 3
    held = packed(player)
    assert "figures" not in held[0]["steps"][0]
    pages = (re.sub("gpuschedlab-[0-9a-f]{32}", "", each.html()) for each in (player, MergerSteps(SMALL, most=3)))
    assert len(set(pages)) == 1


@pytest.mark.parametrize("mode", ["temporal", "spatial"])
def test_the_gantt_marks_jobs_that_were_merged(mode):
    recipe = SMALL if mode == "temporal" else MergingCluster("vit", nodes=1, hours=2.0).with_knobs(temporal=False)
    run = recipe(0).run(recipe.ymir)
    numbers = plots.gantt(run, 0.0, by="model")
    links, shares = numbers.draw().data[-2:]
    if mode == "temporal":
        rows = run.jobs.with_row_index("row")
        after = rows.filter(pl.col("source").is_not_null(), pl.col("source") != pl.col("row"))
        assert after.height > 0
        starts = after["start"].to_numpy() / 3600
        assert np.sort(links["x"][1::3]) == pytest.approx(np.sort(starts), abs=1e-4)
        assert (links["x"][::3] <= links["x"][1::3] + 1e-6).all()
    else:
        guests = run.allocations.filter(pl.col("guest"))
        assert guests["job"].n_unique() > 0
        assert set(numbers.job[numbers.shared >= 0].tolist()) == set(guests["job"].to_list())
        assert len(shares["x"]) == (numbers.shared >= 0).sum()
        assert "shares the GPUs of" in shares["text"][0]


def test_a_move_of_the_threshold_runs_ymir_alone():
    explorer = widgets.YmirExplorer(MergingCluster(nodes=1, hours=1.0))
    before = dict(explorer.runs)
    explorer.knobs["threshold"].value = 2.0
    same = [name for name, run in explorer.runs.items() if run is before[name]]
    assert same == ["Ymir, no merges", "Optimus"]
