"""Kinds of logs, and that what a what-if says of its intervals is what the page says was measured."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuschedlab.papers.clusters.kinds import FIGURES, HELD, Kind, kind_of
from gpuschedlab.papers.clusters.whatif import compared
from papers.clusters.test_whatif_coverage import KINDS, WORDS, jobs_of

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "intervals.md"
FEW = 10
"""Percent of logs with an interval, from which on a cell counts."""


@pytest.mark.parametrize("seed", range(3, 9))
@pytest.mark.parametrize("weeks", [4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_made_logs_is_recognised(kind, weeks, seed):
    submit, _, duration = jobs_of(0.8, weeks, kind, seed)
    assert str(kind_of(submit, duration)) == kind


def test_kinds_do_not_depend_on_the_unit_of_run_times_or_how_many_jobs_come():
    submit, _, duration = jobs_of(0.8, 8, "daily and heavy tails", 5)
    assert kind_of(submit, duration / 60) == kind_of(submit, duration) == kind_of(submit[::3], duration[::3])


def test_logs_of_few_jobs_are_flat():
    assert kind_of(np.zeros(2), np.ones(2)) == Kind()
    assert kind_of(np.zeros(0), np.zeros(0)) == Kind()
    assert kind_of(np.zeros(9), np.zeros(9)) == Kind(daily=True)  # all at one instant, for no time


def test_what_is_said_of_a_kind_is_what_the_page_measured():
    measured = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        world, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        kind = world.partition(", ")[2].partition(", ")[0]
        if kind not in KINDS:
            continue
        for figure, cell in zip(FIGURES, cells[1:], strict=True):
            _, told, held = map(int, cell.split(", "))
            if told >= FEW:
                measured.setdefault((kind, figure), []).append(held / 100)
    assert {(f"{kind}", figure): ends for kind in HELD for figure, ends in HELD[kind].items()} == {
        where: (min(shares), max(shares)) for where, shares in measured.items()
    }
    assert {kind for kind, _ in measured} == set(KINDS)
    assert {word for kind in KINDS for word in kind.split(" and ")} == {"flat", *WORDS}


@pytest.mark.parametrize("kind", ["flat", "heavy tails and batches"])
def test_a_what_if_says_how_often_its_intervals_held(kind):
    submit, _, duration = jobs_of(0.8, 8, kind, 6)
    names = [f"{i}" for i in range(len(submit))]
    waits = np.random.default_rng(0).exponential(1800.0, len(submit))
    jobs = pl.DataFrame({"job_id": names, "submit": submit, "ran": duration, "undone": 0.0, "wait": waits})
    found = compared(jobs, jobs.with_columns(wait=pl.col("wait") / 2))
    assert str(found.kind) == kind
    assert f"({kind})" in found.lines()[-1]
    assert f"({kind})" in found.shown().caption
    shown = found.shown().frame
    for line, figure, held in zip(found.lines(), FIGURES, shown["held"], strict=False):
        assert held == found.kind.in_percent(figure)
        assert line.startswith(figure)
        assert f"held in {held}]" in line
    assert "95 %" not in shown.columns


def test_where_there_is_no_interval_none_held():
    jobs = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "ran": [9.0], "undone": 0.0, "wait": [5.0]})
    found = compared(jobs, jobs.with_columns(wait=pl.col("wait") + 4000.0))
    assert "95 %" not in f"{found}"
    assert "held" not in f"{found}"
