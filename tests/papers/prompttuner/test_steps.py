"""Steps of PromptTuner's rounds, decided again and shown."""

import copy

import numpy as np
import polars as pl
import pytest
from player_pages import packed
from scenes.prompt_steps import PromptSteps

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.errors import RunError
from gpuschedlab.papers.prompttuner import steps as prompt
from gpuschedlab.papers.prompttuner.figures import ready_times
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.sim.simulation import Simulation


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
    decided = 0
    started = 0
    while (view := simulation.ask()) is not None and decided < 150:
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
        decided = decided + 1
        started = started + len(begun)
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


def test_a_step_says_times_without_and_with_warming_up():
    policy = lab.PromptTuner()
    view = prompt.busiest_round(by_hand(), policy)
    turn = prompt.decided_again(view, policy, {})
    at = int(np.flatnonzero(np.array(turn.shown) == turn.shown[0])[0])
    assert turn.times(turn.shown[at]) == "10 s on 1, 5 s on 2, 2.5 s on 4"
    assert turn.times(turn.shown[at], 10.0) == "20 s on 1, 15 s on 2, 12.5 s on 4"


def test_a_player_of_a_round_wants_a_pending_job_of_it():
    view = prompt.busiest_round(by_hand(), lab.PromptTuner())
    with pytest.raises(RunError, match="no pending job 'fifth' at 100 s; expected one of first, second, third"):
        prompt.cases_of(view, lab.PromptTuner(), "fifth")
    with pytest.raises(RunError, match="no round with 1 to 0 pending jobs"):
        prompt.busiest_round(by_hand(), lab.PromptTuner(), 0)


def test_the_page_holds_every_step_of_every_case():
    player = PromptSteps(by_hand(), job="third")
    held = packed(player)
    assert [case["name"] for case in held] == [case.name for case in player.cases]
    for there, case in zip(held, player.cases):
        assert [(s["line"], s["read"], s["decided"]) for s in there["steps"]] == [s[:3] for s in case.steps]
        assert all(step["figures"]["figure"]["data"] for step in there["steps"])
    assert "fonts.googleapis" not in player.html()
    assert player.sentences().count("<li>") == len(player.cases[player.at].steps)


def test_ready_times_are_bars_as_high_as_their_gpus():
    drawn = ready_times("E", np.array([0.0, 10.0]), np.array([1.0, 3.0]), 5.0, 40.0, 30.0).draw()
    held, free, latest, due = drawn.data
    assert (held["x"].tolist(), free["base"].tolist(), free["x"].tolist()) == ([0.0, 10.0], [0.0, 10.0], [30.0, 20.0])
    assert (held["y"].tolist(), held["width"].tolist()) == ([0.5, 2.5], [0.9, 2.7])
    assert (latest["x"], due["x"]) == ([5.0, 5.0], [])
    empty = ready_times("E", np.zeros(0), np.zeros(0), np.nan, 5.0, 9.0)
    assert plots.figure(empty).layout.yaxis.range == (1.0, 0)


def test_prompts_lie_on_the_plane_of_greatest_variance():
    from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank

    bank = PromptBank(np.random.default_rng(0).normal(size=(40, 6)), 5)
    loss = np.random.default_rng(1).random(40)
    found = bank.look_up(lambda which: loss[which])
    shown = plots.prompt_map(bank, found.scored, found.prompt)
    unit = bank.features / np.linalg.norm(bank.features, axis=1, keepdims=True)
    variance = np.linalg.eigvalsh(np.cov(unit.T))[::-1]
    every, lit, middles, chosen = shown.data
    for side, share in zip("xy", variance[:2] / variance.sum()):
        assert every[side].var(ddof=1) == pytest.approx(share * variance.sum())
        assert f"({share:.0%} of the variance)" in shown.layout[f"{side}axis"]["title"]["text"]
    assert (len(every["x"]), len(lit["x"]) + len(middles["x"]), len(middles["x"])) == (40, found.evaluations, 5)
    assert chosen["customdata"][0].tolist() == [found.prompt, bank.cluster[found.prompt]]
    assert f"{found.evaluations} of 40 prompts scored" in shown.live["title_text"]
