"""What small internal functions of figures and of speeds return."""

from dataclasses import replace

import numpy as np
import polars as pl
from stand_in import hand_run

from gpuschedlab.plots.job_changes import SENT, Compared
from gpuschedlab.plots.nodes.gpu_cells import _runs_of, seats
from gpuschedlab.plots.sweep_figures import _uneven
from gpuschedlab.speeds.spread import _grid


def test_neighbouring_bits():
    assert _runs_of(0b1100110) == [(1, 3), (5, 7)]


def test_values_that_a_linear_axis_cannot_show():
    assert _uneven([0.0, 0.1, 0.3, 1.0, 3.0, 10.0])
    assert not _uneven([1.0, 2.0, 4.0, 8.0])


def test_nodes_and_gpus_in_use():
    nodes, gpus = _grid(2, nodes=2, gpus=4)
    assert (nodes.tolist(), gpus.tolist()) == ([1, 1, 2, 2, 2], [1, 2, 2, 3, 4])


def test_seats_have_the_numbers_of_the_frames():
    """Stretches are those of the allocations; of a long name its last eight letters are written."""
    run = hand_run()
    run = replace(run, jobs=run.jobs.with_columns(job_id="application-" + pl.col("job_id") + "-0123456"))
    found = seats(run)
    held = run.allocations.sort("start", "job", "node")
    assert found.label.tolist() == ["-0123456"] * 5
    assert seats(hand_run()).label.tolist() == list("abcde")
    for name in ("job", "node", "start", "end"):
        assert getattr(found, name).tolist() == held[name].to_list()
    assert [int(bits).bit_count() for bits in found.bits] == held["gpus"].to_list()
    assert found.submit.tolist() == run.jobs["submit"].to_list()
    assert found.demand.tolist() == run.jobs["gpus"].to_list()
    assert found.moments.tolist() == sorted({*held["start"], *held["end"]})
    for k, stretch in enumerate(found.bits):
        beside = (found.node == found.node[k]) & (found.start < found.end[k]) & (found.end > found.start[k])
        assert all(stretch & other == 0 for i, other in enumerate(found.bits) if beside[i] and i != k)


def test_of_a_large_log_a_page_gets_extremes_a_share_of_the_others_and_counts_of_all():
    n = 40_000
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 6e5, n))
    before = rng.lognormal(8, 2, n)
    now = before * rng.lognormal(-0.2, 0.4, n)
    now[::50] = np.nan  # never ended
    moved = np.select([now - before > 60, now - before < -60], [1, -1], 0)
    given = Compared(("A", "B"), rng.integers(1, 9, n), submit, before / 2, now, before, moved, None)
    timed = submit < 3e5
    sent = given.sent(7, timed, submit >= 0)
    rows = sent["rows"]
    change = now - before
    assert 7 in rows
    assert len(rows) <= 3 * SENT + 1
    for way, name in ((1, "later"), (-1, "sooner")):
        mine = np.flatnonzero(timed & (moved == way))
        assert sent["all"][name] == len(mine)
        assert {*mine[np.argsort(-np.abs(change[mine]))[: SENT // 4]]} <= {*rows}
        assert np.isin(rows, mine).sum() > 0.5 * SENT, "dots of both kinds"
    assert all((sent[name] == getattr(given, name)[rows]).all() for name in ("gpus", "submit", "duration", "before"))
    seconds = 3600 * sent["lines"]["hours"]
    alone = [((submit <= at) & ~(submit + now <= at)).sum() for at in seconds[::40]]
    assert sent["lines"]["now"][::40].tolist() == alone, "lines are those of all jobs"
    few = given._replace(**{name: getattr(given, name)[:100] for name in Compared._fields[1:7]})
    whole = few.sent(None, timed[:100], timed[:100])
    assert "rows" not in whole
    assert len(whole["now"]) == 100
