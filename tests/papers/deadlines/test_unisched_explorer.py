"""Leases as figures, and the explorer of them: numbers by hand, what moves when a control moves."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab import plots
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import slo_violation
from gpuschedlab.policies import UniSched
from gpuschedlab.sim import simulate
from gpuschedlab.widgets import SmallLeases, UniSchedExplorer

NODE = Cluster.homogeneous(1, 8)


@pytest.fixture(scope="module")
def run():
    """A strict and a soft job that need the node at once, and best effort; the soft one is late for its first date."""
    frame = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": 0.0, "gpus": 8.0, "duration": 600.0})
    lists = ([[600.0], [600.0, 1200.0], None], [[100.0], [100.0, 80.0], None])
    columns = zip(("deadlines", "rewards"), lists)
    frame = frame.with_columns(*(pl.Series(n, v, pl.List(pl.Float64)) for n, v in columns))
    return simulate(frame.with_columns(kind=pl.Series(["strict", "soft", "best_effort"])), NODE, UniSched(profile=0))


def test_the_board_by_hand(run):
    board = plots.lease_board(run)
    assert board.jobs == ("a", "b", "c")
    rows = sorted(zip(board.row, board.group, board.begin, board.end))
    assert rows == [(0, 0, 0, 600), (1, 1, 600, 1200), (2, 2, 1200, 1800)]
    met, missed = (list(zip(points["y"], points["x"] * 3600, points["text"])) for points, _ in board.over)
    assert met == [("a", 600, "100"), ("b", 1200, "80")]
    assert missed == [("b", 600, "100")]
    assert plots.draw(board).live["title_text"].endswith("0 of 2 jobs missed every deadline")
    assert plots.draw(board).layout["xaxis"]["dtick"] == pytest.approx(1 / 6)
    assert len(plots.figure(board).data) == 7


def test_profiling_has_a_colour_of_its_own():
    frame = pl.DataFrame({"job_id": ["a"], "submit": 0.0, "gpus": 8.0, "duration": 600.0})
    frame = frame.with_columns(kind=pl.lit("strict"), deadline=pl.lit(3600.0))
    board = plots.lease_board(simulate(frame, NODE, UniSched()))
    assert [(k, g, e) for k, g, e in zip(board.group, board.gpus, board.end)] == [(3, 2, 300), (0, 8, 900)]


def test_a_run_without_kinds_is_an_error():
    frame = pl.DataFrame({"job_id": ["a"], "submit": 0.0, "gpus": 8.0, "duration": 600.0})
    with pytest.raises(RunError, match="without kind; expected one with deadlines"):
        plots.lease_board(simulate(frame, NODE, UniSched()))


def test_the_trade_off_by_hand(run):
    found = plots.trade_off({"now": run}, "now")
    assert found.values["now"]["y"].tolist() == pytest.approx([10.0])  # 100 and 80 of 200
    assert found.values["now"]["x"].tolist() == [0.5]
    assert plots.draw(found).data[0]["marker_size"] == 18


def test_a_curve_without_noise_gets_there_when_it_says():
    found = plots.arrival(0.9 - 0.6 / np.arange(1.0, 61.0), 20, 0.88)
    expected = int(found.title.split("expected at ")[1].split(";")[0])
    assert abs(expected - 30) <= 1
    assert found.title.endswith("in truth at 30")
    ahead = found.values["chance that it is there"][20:]
    assert (np.diff(ahead) >= -1e-9).all()
    assert ahead[-1] > 0.99
    assert len(plots.figure(found).data) == len(found.values)
    few = plots.arrival(np.array([0.1, 0.2, 0.3]), 2, 0.5)
    assert few.title.endswith("in truth not by 3")
    assert set(few.values) == {"seen", "truth"}  # two points are no curve


# The explorer


@pytest.fixture(scope="module")
def explorer():
    return UniSchedExplorer(SmallLeases(nodes=2), jobs=15)


def test_it_shows_what_simulate_says(explorer):
    small = explorer.knobs.thing
    own = small(0).run(small.policies["UniSched"])
    drawn = explorer.board.drawings["trade"].data[0]
    assert drawn["name"] == "UniSched"
    assert drawn["y"][0] == pytest.approx(100 * slo_violation(own))
    assert f"{100 * slo_violation(own):.1f}% of the value" in explorer.status.value
    assert explorer.run.jobs.equals(own.jobs)


def test_a_moved_knob_moves_the_board(explorer):
    before = explorer.board.drawings["leases"].data
    explorer.knobs["policy"].value = "Chronus"
    assert "Leases under Chronus" in explorer.board.drawings["leases"].live["title_text"]
    explorer.knobs["policy"].value = "UniSched"
    explorer.knobs["profile"].value = 300.0
    assert explorer.run.jobs["profiled"].max() > 0
    assert len(explorer.board.drawings["leases"].data[3]["x"]) > len(before[3]["x"]) == 0
    assert "profiling took" in explorer.status.value
    explorer.knobs["profile"].value = 0.0


def test_its_static_twin_has_all_figures(explorer):
    assert len(explorer.figure("leases").data) == 7
    assert len(explorer.figure().figures) == 2
    assert "of the value" in explorer._note()


def test_what_it_shows_first_has_enough_jobs_to_say_something():
    late, jct = UniSchedExplorer().page.comparisons
    assert late.measure == "late"
    assert late.kind in ("less", "short")
    assert late.jobs >= 30
    assert late.now < late.before
    assert jct.jobs == SmallLeases().jobs


def test_policies_have_the_leases_of_the_knobs():
    small = SmallLeases(jobs=40).with_knobs(lease=1200, spread=False, profile=300)
    made = small.policies
    assert (made["UniSched"].lease, made["Chronus"].lease, made["UniSched"].spread) == (1200, 1200, False)
    assert made["UniSched"].profile == 300
    trace = small().trace
    assert set(trace.filter(kind="soft")["rewards"].list.get(1)) == {80.0}
    assert set(SmallLeases(second=40, jobs=40)().trace.filter(kind="soft")["rewards"].list.get(3)) == {10.0}
    assert set(trace["kind"]) == {"strict", "soft", "best_effort"}
    load = (trace["gpus"] * trace["duration"]).sum() / (trace["submit"].max() * 24)
    assert load == pytest.approx(small.load, rel=0.01)
