"""Steps of single rounds: recorded from the policies' own code, equal to their answers, and shown by one player."""

import base64
import copy
import gzip
import itertools
import json
import re

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab import plots, widgets
from gpuschedlab.errors import RunError
from gpuschedlab.optim import solve
from gpuschedlab.papers.prompttuner import steps as prompt
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.papers.ymir import steps as merger
from gpuschedlab.papers.ymir.program import Merging
from gpuschedlab.papers.ymir.recipe import MergingCluster
from gpuschedlab.policies.steps import Case, Step
from gpuschedlab.sim.simulation import Simulation
from gpuschedlab.widgets import MergerSteps, PromptSteps, StepPlayer

SMALL = MergingCluster(nodes=2, hours=2.0, data_sets=6).with_knobs(method="target", interval=300.0)


@pytest.fixture(scope="module")
def rounds():
    return merger.recorded_rounds(SMALL(0), SMALL.ymir)


def packed(player) -> list:
    """What a player's page holds."""
    (pack,) = re.findall(r'"pack": "([^"]+)"', player.html())
    return json.loads(gzip.decompress(base64.b64decode(pack)))


# The merger ------------------------------------------------------------------------------------------------


def test_recorded_rounds_are_those_of_the_run(rounds):
    run = SMALL(0).run(SMALL.ymir)
    solved = run.rounds.filter(pl.col("status") == "optimal")
    proved = {r.now: r.solution.objective for r in rounds}
    assert len(solved) > 5
    assert all(proved[time] == objective for time, objective in solved.select("time", "objective").iter_rows())


def test_each_tested_pair_is_in_the_program_or_says_why_not(rounds):
    kept, out = 0, set()
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
    chosen, second = case.steps[-2], case.steps[-1]
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
    count, gpus = rng.integers(1, 3, 2), np.array([1, 2])
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


# Algorithms 1 and 2 ----------------------------------------------------------------------------------------


def by_hand(third: float = 35.0):
    """Three jobs of 10 s at 100 s, and 10 s of warming up, as in notebook 13."""
    rates = [("llm", "v100", n, float(n)) for n in (1, 2, 4)]
    speeds = lab.Speeds.from_frame(pl.DataFrame(rates, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"))
    jobs = pl.DataFrame({"job_id": ["first", "second", "third"], "deadline": [20.0, 32.0, third]})
    jobs = jobs.with_columns(submit=100.0, gpus=1.0, duration=10.0, target=10.0, model=pl.lit("llm"))
    return lab.Scenario(
        jobs, lab.Cluster.homogeneous(1, 4), speeds=speeds, delays=lab.Delays(kinds={"warm": 0.0, "cold": 10.0})
    )


@pytest.mark.parametrize("delaying", ["any", "warm", "own", "never"])
@pytest.mark.parametrize("window", [60.0, 0.0])
def test_a_round_decided_again_is_the_round_of_the_policy(delaying, window):
    policy = lab.PromptTuner(delaying=delaying, window=window)
    simulation = Simulation(PromptLab(gpus=16).with_knobs(load="low")(0), policy)
    decided, started = 0, 0
    while (view := simulation.ask()) is not None and decided < 300:
        before = set(view.memory.running)
        turn = prompt.decided_again(view, policy, {})
        kept = copy.deepcopy(turn.view.memory)
        wake = turn.next_change()
        answer = kept.answer(turn.view, turn.demand, turn.delay, policy.window, wake)
        real = policy.allocate(view)
        for name in ("gpu_type", "gpus", "delay", "wake"):
            assert np.array_equal(getattr(answer, name), getattr(real, name)), (view.now, name)
        assert (kept.pools, kept.running, kept.bought) == (view.memory.pools, view.memory.running, view.memory.bought)
        begun = {int(view.index[i]) for i, word in turn.decided.items() if "starts" in word}
        assert begun == set(view.memory.running) - before
        decided, started = decided + 1, started + len(begun)
        simulation.answer(view, real)
    assert started > 5


def test_a_deadline_tips_whether_the_third_job_can_wait():
    """Its pool's GPU is free at 130 s, and it needs 10 s of it."""
    view = prompt.busiest_round(by_hand(), lab.PromptTuner())
    cases, at, job = prompt.cases_of(view, lab.PromptTuner(), "third", count=40)
    assert (job, cases[at].name) == ("third", "due in 35 s")
    words = {float(c.name.split()[2]): {r[0]: r[-1] for r in c.steps[-1].rows}["third"] for c in cases}
    later = {due: word for due, word in words.items() if due > 33}  # after the deadlines of the others
    assert {word for due, word in later.items() if due >= 40} == {"waits for GPUs of its pool"}
    assert {word for due, word in later.items() if due < 39.9} == {"warms up 1"}
    own = next(c for c in cases if c.name == "due in 35 s")
    assert [step.line for step in own.steps] == [2, 2, 2, 6, 6, 6, 9, 6, 7, 6, 6, 6, 9]
    waits = own.steps[7]
    assert (waits.state.entries, waits.state.latest, waits.state.due) == ([(20.0, 1.0)], 22.0, 32.0)
    assert own.steps[8].state.entries == [(30.0, 1.0)]  # claimed by the second job


def test_a_player_of_a_round_wants_a_pending_job_of_it():
    view = prompt.busiest_round(by_hand(), lab.PromptTuner())
    with pytest.raises(RunError, match="no pending job 'fifth' at 100 s; expected one of first, second, third"):
        prompt.cases_of(view, lab.PromptTuner(), "fifth")
    with pytest.raises(RunError, match="no round with 1 to 0 pending jobs"):
        prompt.busiest_round(by_hand(), lab.PromptTuner(), 0)


# The player ------------------------------------------------------------------------------------------------


def test_the_page_holds_every_step_of_every_case():
    player = PromptSteps(by_hand(), job="third")
    held = packed(player)
    assert [case["name"] for case in held] == [case.name for case in player.cases]
    for there, case in zip(held, player.cases):
        assert [(s["line"], s["read"], s["decided"]) for s in there["steps"]] == [s[:3] for s in case.steps]
        assert all(step["figures"]["figure"]["data"] for step in there["steps"])
    assert "fonts.googleapis" not in player.html()
    assert player.sentences().count("<li>") == len(player.cases[player.at].steps)


def test_the_merger_is_shown_without_a_figure():
    player = MergerSteps(SMALL, most=3)
    assert 1 <= len(player.cases) <= 3
    held = packed(player)
    assert "figures" not in held[0]["steps"][0]
    pages = (re.sub("gpuschedlab-[0-9a-f]{32}", "", each.html()) for each in (player, MergerSteps(SMALL, most=3)))
    assert len(set(pages)) == 1


def test_a_player_without_steps_is_refused():
    with pytest.raises(RunError, match="StepPlayer: found 1 cases, 1 without steps"):
        StepPlayer(("line",), [Case("empty", ("a",), [])])
    with pytest.raises(RunError, match="found 0 cases"):
        StepPlayer(("line",), [])
    text = StepPlayer(("a < b",), [Case("<b>", ("a",), [Step(1, "<i>", "</script>", [("x",)])])])._repr_html_()
    assert "<i>" not in text
    assert "&lt;i&gt;" in text


# Figures ---------------------------------------------------------------------------------------------------


def test_ready_times_are_bars_as_high_as_their_gpus():
    drawn = plots.ReadyTimes("E", np.array([0.0, 10.0]), np.array([1.0, 3.0]), 5.0, 40.0, 30.0).draw()
    held, free, latest, due = drawn.data
    assert (held["x"].tolist(), free["base"].tolist(), free["x"].tolist()) == ([0.0, 10.0], [0.0, 10.0], [30.0, 20.0])
    assert (held["y"].tolist(), held["width"].tolist()) == ([0.5, 2.5], [0.9, 2.7])
    assert (latest["x"], due["x"]) == ([5.0, 5.0], [])
    empty = plots.ReadyTimes("E", np.zeros(0), np.zeros(0), np.nan, 5.0, 9.0)
    assert plots.figure(empty).layout.yaxis.range == (1.0, 0)


def test_prompts_lie_on_the_plane_of_greatest_variance():
    from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank

    bank = PromptBank(np.random.default_rng(0).normal(size=(40, 6)), 5)
    loss = np.random.default_rng(1).random(40)
    found = bank.look_up(lambda which: loss[which])
    shown = plots.prompt_map(bank, found.scored, found.prompt)
    unit = bank.features / np.linalg.norm(bank.features, axis=1, keepdims=True)
    variance = np.linalg.eigvalsh(np.cov(unit.T))[::-1]
    assert shown.at.var(axis=0, ddof=1).tolist() == pytest.approx(variance[:2].tolist())
    assert shown.share.tolist() == pytest.approx((variance[:2] / variance.sum()).tolist())
    every, lit, middles, chosen = shown.draw().data
    assert (len(every["x"]), len(lit["x"]) + len(middles["x"]), len(middles["x"])) == (40, found.evaluations, 5)
    assert chosen["customdata"][0].tolist() == [found.prompt, bank.cluster[found.prompt]]
    assert f"{found.evaluations} of 40 prompts scored" in shown.draw().live["title_text"]


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


# The explorer ----------------------------------------------------------------------------------------------


def test_a_move_of_the_threshold_runs_ymir_alone():
    explorer = widgets.YmirExplorer(MergingCluster(nodes=1, hours=1.0))
    before = dict(explorer.runs)
    explorer.knobs["threshold"].value = 2.0
    same = [name for name, run in explorer.runs.items() if run is before[name]]
    assert same == ["Ymir, no merges", "Optimus"]
