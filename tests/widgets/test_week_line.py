"""The line below the head of an explorer: what it says is recomputed from its seeds, and a key press ends what was being played."""

import asyncio
import re

import numpy as np
import pytest

import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.metrics import median_interval
from gpuschedlab.metrics.like_weeks import times
from gpuschedlab.metrics.sentence import plain
from gpuschedlab.papers.ymir.explorer import YmirExplorer
from gpuschedlab.widgets import Explorer, Generated
from gpuschedlab.widgets.parts import explorer_base, week_line

CLUSTER = lab.Cluster.homogeneous(4, 8)
DAYS = Generated("venus", {"days": 7, "jobs": 300, "load": 0.9, "cluster_gpus": 32})
POLICIES = {"Easy": lab.Fifo(backfill="easy"), "Srtf": lab.Srtf, "Tiresias": lab.Tiresias}


def explorer(**options):
    return Explorer(DAYS, CLUSTER, POLICIES, **options)


def words(shown) -> str:
    return plain(shown.week_line.said.value)


def mean_jct(policy, seed: int) -> float:
    jobs = lab.simulate(DAYS(seed), CLUSTER, policy, seed=seed).jobs
    return float((jobs["end"] - jobs["submit"]).mean())


def test_the_line_is_recomputed_from_the_seeds_that_it_names():
    shown = explorer(seed=4)
    said = shown.play_weeks(7)
    assert "in this week" in plain(shown.status.value).lower()
    assert said.seeds == (4, *range(10_000, 10_000 + len(said.seeds) - 1))
    ratios = [mean_jct(POLICIES["Easy"], seed) / mean_jct(lab.Srtf(), seed) for seed in said.seeds]
    np.testing.assert_allclose(said.ratios, ratios)
    middle = median_interval(np.array(ratios))
    if said.kind == "sooner":
        assert f"{times(middle.median)} times sooner" in words(shown)
    assert f"In {len(said.seeds)} such weeks, each of which begins empty," in words(shown)
    assert said.source in words(shown)


def test_what_was_played_is_kept_and_another_policy_plays_its_own():
    shown = explorer()
    shown.play_weeks(6)
    played = set(shown.other_seeds.figures)
    shown.panel.policy.value = "Tiresias"
    assert words(shown) == ""
    shown.play_weeks(6)
    added = set(shown.other_seeds.figures) - played
    assert {key[0].name for key in added} == {"Tiresias"}
    shown.panel.policy.value = "Srtf"
    again = shown.play_weeks(6)
    assert len(set(shown.other_seeds.figures)) == len(played) + len(added)
    assert again.names == ("Srtf", "Easy")


def test_other_nodes_are_other_weeks():
    shown = explorer()
    one = shown.play_weeks(6).ratios
    shown.panel.nodes.value = 5
    assert shown.play_weeks(6).ratios.tolist() != one.tolist()


def test_a_frame_has_no_other_weeks_and_a_function_of_a_seed_has():
    shown = Explorer(small_trace(80), CLUSTER, POLICIES)
    assert shown.play_weeks() is None
    assert shown.week_line.box.layout.display == "none"
    shown = Explorer(lambda seed: small_trace(60, rng=seed), CLUSTER, POLICIES)
    assert "In this trace" in plain(shown.status.value)
    assert len(shown.play_weeks(6).seeds) == 6
    assert "In 6 such traces" in words(shown)
    shown.panel.against.value = shown.panel.policy.value
    assert shown.play_weeks() is None, "it is compared with itself"


def test_a_guess_comes_first():
    shown = explorer(guess=True)
    assert shown.play_weeks() is None
    shown._asked("guessed", "")
    assert shown.play_weeks(6) is not None


def test_an_explorer_of_a_recipe_plays_its_scenarios_on_a_click():
    shown = YmirExplorer(nodes=1, hours=1.0)
    assert "too few" not in shown.status.value
    assert words(shown) == ""
    assert len(shown.play_weeks(6).seeds) == 6


@pytest.fixture
def moved(monkeypatch):
    """Changes come from a browser."""
    monkeypatch.setattr(explorer_base, "from_browser", lambda: True)
    monkeypatch.setattr(week_line, "IDLE", 0.01)


def test_it_is_refined_while_nobody_moves_and_a_move_ends_it(moved):
    async def hand():
        shown = explorer()
        line = shown.week_line
        seen = []
        for _ in range(2000):
            await asyncio.sleep(0.01)
            seen.append(0 if line.weeks is None else len(line.weeks.seeds))
            if seen[-1] == 3:
                break
        assert sorted(set(seen) | {0}) == list(range(4)), "weeks come one by one"
        begun = len(shown.other_seeds.figures)
        old = line.background.pieces
        shown.panel.policy.value = "Tiresias"
        assert line.background.pieces is None, "none of an old setting after a press"
        await asyncio.sleep(0.1)
        assert line.background.pieces is not old
        for _ in range(2000):
            await asyncio.sleep(0.01)
            if line.weeks is not None and len(line.weeks.seeds) >= 6:
                break
        assert line.weeks.names == ("Tiresias", "Easy")
        assert len({key[0].name for key in list(shown.other_seeds.figures)[begun:]} - {"Fifo", "Tiresias"}) == 0
        assert re.search(r"In \d+ such weeks", words(shown))
        shown.close()
        assert not line.background.waits

    asyncio.run(hand())


def test_an_error_in_another_week_is_shown_and_ends_it(moved, monkeypatch):
    async def hand():
        shown = explorer()

        def fails(setting):
            yield
            raise lab.errors.TraceError("week: found none; expected one.")

        monkeypatch.setattr(shown, "scenario_in_pieces", fails)
        for _ in range(200):
            await asyncio.sleep(0.01)
            if shown.error.outputs:
                break
        assert "found none" in shown.error.outputs[0]["evalue"]
        assert not shown.week_line.background.waits

    asyncio.run(hand())


def test_a_piece_of_an_old_setting_that_comes_late_plays_nothing(moved):
    """Keys are heard by another thread, which may hold the explorer while a piece is about to begin."""

    async def hand():
        shown = explorer()
        line = shown.week_line
        old = line.background.pieces
        shown.panel.policy.value = "Tiresias"
        line.background.step(old)
        assert not shown.error.outputs
        assert line.weeks is None
        await asyncio.sleep(0.1)
        line.background.step(old)
        assert not shown.error.outputs
        assert line.background.waits, "the new setting is played on"
        shown.close()

    asyncio.run(hand())


def test_a_run_in_which_no_job_ends_has_no_other_weeks():
    shown = explorer(until=1.0)
    assert shown.play_weeks() is None
    assert not shown.error.outputs


def test_what_is_looked_at_changes_nothing_in_the_line():
    shown = explorer()
    shown.play_weeks(6)
    said = words(shown)
    shown._asked("view", {"job": 3})
    assert words(shown) == said
    shown.panel.policy.value = "Tiresias"
    assert words(shown) == ""


def test_a_control_that_is_moved_within_a_piece_ends_it(moved):
    async def hand():
        shown = explorer()
        line = shown.week_line

        def moves_within():
            line.stop()
            yield None

        line.background.pieces = pieces = moves_within()
        line.background.step(pieces)
        line.background.step(None)
        assert not shown.error.outputs
        assert not line.background.waits
        shown.close()

    asyncio.run(hand())
