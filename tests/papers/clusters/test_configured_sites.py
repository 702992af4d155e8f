"""Made sites of the bench of verdicts: what they hand over is what they are, and how answers are judged."""

from dataclasses import replace

import numpy as np
import pytest

from reproduce.papers.clusters.configured_sites import ONE, SEVERAL, Made, given, questions, right, row_of


@pytest.mark.parametrize("kind", [ONE, SEVERAL])
def test_a_site_hands_over_what_it_is(kind, tmp_path):
    """Its files are read as the very rule, nodes and limit; a replay differs by the launches that no file has."""
    made = Made(9990, kind)
    site = made.hand_over(tmp_path)
    for name in (
        "weight_age",
        "weight_fairshare",
        "weight_size",
        "depth",
        "plan",
        "half_life",
        "max_age",
        "recalculated",
    ):
        assert getattr(site.slurm, name) == getattr(made.rule, name), name
    assert f"{site.nodes}" == f"{made.cluster()}"
    assert [limit.gpus for limit in site.description.limits] == [made.most]
    assert site.slurm.tree.users == made.rule.tree.users
    scenario = site.recorded()
    recorded = (scenario.trace["started"] - scenario.trace["submit"]).mean()
    replayed = scenario.run(site.own).jobs
    assert (replayed["start"] - replayed["submit"]).mean() == pytest.approx(recorded, rel=0.2)
    assert made.mean(made.waits(made.rule, made.most)) > made.mean(made.waits(made.rule, np.inf))


def test_questions_change_the_site_as_they_change_the_truth():
    made = Made(9990, ONE)
    for asked, true in questions(made).values():
        assert made.rule in (
            true["rule"],
            replace(true["rule"], weight_age=made.rule.weight_age, depth=made.rule.depth),
        )
        assert len(asked) == 1


def answer(true, model, verdict):
    return {"true": true, "model": model, "verdict": verdict}


def test_a_verdict_is_right_by_its_side():
    """By hand: fewer seconds are lower; a change of 1 % at most is none."""
    assert right(answer([100, 80], [100, 90], "lower, in this log"))
    assert not right(answer([100, 80], [100, 120], "higher"))
    assert not right(answer([100, 80], [100, 99], "undecided"))
    assert right(answer([100, 100.5], [100, 100], "no change, in this log"))
    assert right(answer([100, 100.5], [100, 99], "lower, in this log"))
    assert not right(answer([100, 100.5], [100, 70], "lower, in this log"))
    assert not given(answer([1, 1], [1, 1], "too short to tell"))
    assert not given(answer([1, 1], [1, 1], "no verdict"))
    rows = [answer([100, 80], [100, 90], "lower"), answer([100, 80], [100, 90], "too short to tell")]
    expected = {"sites": ONE, "change": "x", "asked": 2, "verdicts": 1, "right": 1, "sides": 1}
    assert row_of(ONE, "x", rows) == expected
