"""What small internal functions of figures and of speeds return."""

from dataclasses import replace

import polars as pl
from stand_in import hand_run

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
    found, held = seats(run), run.allocations.sort("start", "job", "node")
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
