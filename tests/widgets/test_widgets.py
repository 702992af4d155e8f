"""What explorers are made of: controls from knobs, kept results, the error box, the scan, the difference."""

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.errors import LabError, PolicyError, RunError, TraceError
from gpuschedlab.knobs import Constraint, Knob, Knobbed, knobs_of

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")


from gpuschedlab import plots
from gpuschedlab.parse import knob_in_words
from gpuschedlab.speeds import default_speeds
from gpuschedlab.widgets import Cache, find_errors
from gpuschedlab.widgets.parts import explorer_base as base
from gpuschedlab.widgets.parts.controls import KnobControls, control, nice_step
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.first_screen import clock, measured
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer
from gpuschedlab.widgets.parts.step_player import short
from gpuschedlab.widgets.sources import (
    Generated,
    argument_code,
    cluster_code,
    named_policies,
    named_traces,
    policy_code,
)

HALF = Constraint("low at most half of high", lambda k: k["low"] <= k["high"] / 2, lambda k: {"low": k["high"] / 2})


@dataclass(frozen=True)
class Every(Knobbed):
    """One knob of each kind."""

    low: Annotated[float, Knob(0, 10, unit="s", help="a plain number")] = 1.0
    high: Annotated[float, Knob(0, 10)] = 8.0
    wide: Annotated[float, Knob(1, 1e6, log=True, unit="GPU-s")] = 57_600.0
    count: Annotated[int, Knob(1, 9)] = 3
    on: Annotated[bool, Knob(help="a toggle")] = False
    way: Annotated[str, Knob(choices=("near", "far"))] = "far"
    many: Annotated[tuple[float, ...], Knob(1, 100, log=True, many=3)] = (10.0, 20.0)
    constraints = (HALF,)


def kinds(controls: KnobControls) -> dict:
    return {name: type(c.parts[0]).__name__ for name, c in controls.controls.items()}


def test_each_kind_of_knob_gets_its_control():
    controls = KnobControls(Every())
    assert kinds(controls) == {
        "low": "FloatSlider", "high": "FloatSlider", "wide": "FloatLogSlider", "count": "IntSlider",
        "on": "Checkbox", "way": "Dropdown", "many": "FloatLogSlider",
    }  # fmt: skip
    low, wide, many = (controls[name].parts for name in ("low", "wide", "many"))
    assert (low[0].min, low[0].max, low[0].description, low[0].tooltip) == (0, 10, "low (s)", "low (s): a plain number")
    assert 10 ** wide[0].max == pytest.approx(1e6)
    assert [part.layout.display for part in many] == [None, None, "none"]
    assert controls["way"].parts[0].options == (("near", "near"), ("far", "far"))


def test_controls_that_nobody_moved_change_nothing():
    given = Every(wide=57_601.5, many=(1.0, 100.0), low=0.123456789)
    assert KnobControls(given).thing == given


def test_a_moved_slider_gives_a_round_number():
    controls = KnobControls(Every())
    controls["wide"].parts[0].value = 10**4.1234567
    assert controls.thing.wide == 13_300.0
    controls["wide"].parts[0].value = 1e6
    assert controls.thing.wide == 1e6


def test_constraints_hold_and_say_what_followed():
    heard = []
    controls = KnobControls(Every(), lambda: heard.append(controls.thing.low))
    controls["high"].value = 1.0
    assert heard == [0.5], "one answer to one move"
    assert controls["low"].value == controls["low"].parts[0].value == 0.5
    assert controls.note == "low followed, to keep: low at most half of high"
    controls["count"].value = 4
    assert controls.note == ""


def test_a_tuple_grows_with_its_constraint():
    controls = KnobControls(lab.Tiresias())
    controls["queues"].value = 4
    shown = [part.layout.display for part in controls["thresholds"].parts]
    assert shown == [None, None, None, "none"]
    assert len(controls.thing.thresholds) == 3
    controls["queues"].value = 1
    assert controls.thing.thresholds == ()


def test_the_end_of_a_slider_is_no_limit_where_there_may_be_none():
    controls = KnobControls(lab.Fifo(backfill="plan", depth=5))
    controls["depth"].value = math.inf
    assert controls["depth"].parts[0].value == 100
    assert controls.thing.depth == math.inf
    controls["depth"].parts[0].value = 99
    assert controls.thing.depth == 99
    controls["depth"].parts[0].value = 100  # as a hand moves it
    assert controls.thing.depth == math.inf
    assert "without a limit" in controls["depth"].parts[0].tooltip


@pytest.mark.parametrize("policy", sorted(__import__("gpuschedlab.policies", fromlist=["ALL"]).ALL))
def test_every_policy_gets_its_controls(policy):
    from gpuschedlab.policies import ALL

    made = ALL[policy]()
    controls = KnobControls(made)
    assert set(controls.controls) == set(lab.knobs_of(made))
    assert controls.thing == made


@pytest.mark.parametrize(
    ("hint", "default", "message"),
    [
        (
            Annotated[float, Knob(5, 1)],
            3.0,
            "Mine.knob: found range 5 to 1; expected Knob(low, high)",
        ),
        (Annotated[float, Knob(0, 9, log=True)], 3.0, "Mine.knob: a log scale from 0 is undefined; expected low > 0."),
        (Annotated[dict, Knob(0, 9)], 3.0, "expected int, float, bool, tuple[float, ...], or choices=(...)."),
        (Annotated[float, Knob(0, 9)], 30.0, "Mine.knob: the default 30.0 is outside its knob; expected 0 to 9."),
    ],
)
def test_a_wrong_knob_is_a_clear_error(hint, default, message):
    mine = dataclass(frozen=True)(type("Mine", (lab.Ordered,), {"__annotations__": {"knob": hint}, "knob": default}))
    with pytest.raises(PolicyError) as told:
        named_policies([mine], [])
    assert message in str(told.value)


def test_steps_are_nice_and_many():
    for low, high in ((0, 1), (0, 3600), (5, 86_400), (0, 0.99), (-3, 3)):
        step = nice_step(low, high)
        assert 100 <= (high - low) / step <= 260
        assert f"{step:e}"[0] in "125"


def test_results_are_kept_and_the_oldest_goes_first():
    made = []
    cache = Cache(limit=2)

    def get(key):
        return cache.get(key, lambda: made.append(key) or key)

    assert get("a") is get("a")
    for key in "bcab":
        get(key)
    assert made == ["a", "b", "c", "a", "b"]
    assert len(cache) == 2
    with pytest.raises(RunError, match="limit: found 0"):
        Cache(limit=0)


def test_results_are_bounded_by_their_size():
    frame = small_trace(200)
    size = int(frame.estimated_size())
    cache = Cache(limit=99, size=int(2.5 * size))
    for key in range(5):
        cache.get(key, lambda: frame.clone())
    assert [size for _, size in cache._held.values()] == 2 * [size]


def test_what_fails_is_not_kept():
    cache = Cache()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 / 0)
    assert cache.get("a", lambda: 7).value == 7


class Doubler(base.BaseExplorer):
    """An explorer that fails for negative numbers."""

    def __init__(self):
        super().__init__()
        self.number = 1
        self.shown = []

    def _compute(self, state):
        if self.number == 13:
            raise RuntimeError("thirteen")
        if self.number < 0:
            raise TraceError("found -1; expected 0 or more.")
        return 2 * self.number

    def _show(self, found):
        self.shown.append(found)


def test_errors_show_in_the_box_and_go_when_they_are_mended():
    doubler = Doubler()
    doubler._changed()
    doubler.number = -1
    doubler._changed()
    told = doubler.error.outputs[0]
    assert (told["output_type"], told["ename"]) == ("error", "TraceError")
    assert told["evalue"] == "found -1; expected 0 or more."
    assert told["traceback"] == [], "an error of the package speaks for itself"
    assert doubler.error.layout.display is None
    doubler.number = 13
    doubler._changed()
    assert "RuntimeError: thirteen" in "".join(doubler.error.outputs[0]["traceback"])
    doubler.number = 4
    doubler._changed()
    assert doubler.error.outputs == ()
    assert doubler.error.layout.display == "none"
    assert doubler.shown == [2, 8]


def test_moves_in_the_browser_are_drawn_together(monkeypatch):
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(base, "from_browser", lambda: True)
    doubler = Doubler()

    async def drag():
        due = asyncio.get_running_loop().create_future()
        show = doubler._show
        doubler._show = lambda found: (show(found), due.set_result(None))
        for doubler.number in range(50):
            doubler._changed()
        assert doubler.shown == []
        await due

    # A loop of another test may be running in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, drag()).result()
    assert doubler.shown == [98]


def test_a_board_sends_bytes_in_one_message_and_nothing_that_json_cannot_say():
    from wire import wired

    from gpuschedlab.plots.kinds.style import Drawing
    from gpuschedlab.plots.web import Place
    from gpuschedlab.widgets.parts.board import Board

    def drawing(last: float):
        data = [{"y": np.array([1.0, last]), "customdata": np.array([[1.0, last]])}]
        return Drawing(data, [{"type": "scatter"}], {"xaxis_range": [0.0, last]}, {})

    with wired() as wire:
        board = Board((Place("a"), Place("b")), {"a": drawing(np.inf), "b": drawing(1.0)})
        opened = wire.messages
        board.show({"a": drawing(np.nan), "b": drawing(2.0)})
        assert wire.messages == opened + 1, "both figures in one message"
        board.show({"a": drawing(np.nan), "b": drawing(2.0)})
        assert wire.messages == opened + 1, "what did not change is not sent"
    y = board.widget.figure_1["data"][0]["y"]
    assert np.frombuffer(y["bdata"], "<f4").tolist() == [1.0, 2.0]
    assert board.widget.figure_0["layout"]["xaxis"]["range"] == [0.0, None]


def test_plotly_goes_to_the_page_once_and_when_asked():
    from gpuschedlab.plots import web
    from gpuschedlab.plots.kinds.style import Drawing
    from gpuschedlab.widgets.parts.board import Board

    clicks = []
    sent = []
    drawing = Drawing([{"y": np.arange(3)}], [{"type": "scatter"}], {}, {})
    board = Board((web.Place("a"),), {"a": drawing}, lambda *what: clicks.append(what))
    assert len(board.widget._esm) < 64_000, "the code that a widget carries is light"
    board.widget.send = lambda content, buffers: sent.append((content, buffers))
    board._heard(board.widget, {"kind": "library"}, [])
    assert sent == [({"kind": "library"}, [web.plotly()])]
    board._heard(board.widget, {"kind": "ask", "what": "clicked", "value": ["a", 0, 2]}, [])
    assert clicks == [("clicked", ["a", 0, 2])]


def test_running_a_cell_again_frees_what_it_made(monkeypatch):
    from ipywidgets.widgets.widget import _instances

    from gpuschedlab.plots.web.cell import Execution
    from gpuschedlab.widgets import Explorer

    counts = []
    for request in ("first", "second", "third"):
        monkeypatch.setattr(base, "execution", lambda request=request: Execution("cell", request))
        kept = Explorer(small_trace(20), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Tiresias])
        kept.panel.policy.value = "Fifo"  # its controls are made anew, and those of Tiresias freed
        kept.panel.policy.value = "Tiresias"
        counts.append(len(_instances))
    assert counts[0] == counts[1] == counts[2]
    kept.close()


@pytest.mark.parametrize("until", [None, 3000.0])
def test_numbers_of_the_table_are_those_of_the_summary(until):
    run = lab.simulate(small_trace(), lab.Cluster.homogeneous(2, 4), lab.Fifo(), until=until)
    mine = measured(run).table()
    summary = run.summary()
    assert len(mine) == 7
    assert mine == pytest.approx({name: summary[name] for name in mine}, nan_ok=True)


def test_the_table_of_some_jobs_is_of_these():
    run = lab.simulate(small_trace(), lab.Cluster.homogeneous(2, 4), lab.Fifo())
    few = run.jobs["gpus"].to_numpy() == 1
    part = run.jobs.filter(few)
    found = measured(run).table(few)
    assert found["jct_mean"] == pytest.approx((part["end"] - part["submit"]).mean())
    assert found["queueing_mean"] == pytest.approx(part["queueing"].mean())
    assert math.isnan(measured(run).table(np.zeros(len(few), bool))["jct_p99"])


def test_traces_are_checked_at_the_door():
    with pytest.raises(TraceError, match="found int as trace 'week'"):
        named_traces({"week": 7})
    with pytest.raises(LabError, match="two policies named 'Fifo'"):
        named_policies([lab.Fifo(), lab.Fifo(backfill="easy")], [])


def test_python_is_written_that_makes_the_same():
    space = {"lab": lab, "Tiresias": lab.Tiresias}
    policy = lab.Tiresias(queues=3, thresholds=(10.0, 1e5), metric="gittins")
    assert eval(policy_code(policy), space) == policy
    assert policy_code(lab.Tiresias(queues=1, thresholds=())) == "Tiresias(queues=1, thresholds=())"
    cluster = lab.Cluster.parse("2x8:v100,3x4:t4")
    down = lab.Cluster(cluster.groups, (lab.Outage(1, 5.0, 9.5), lab.Outage(0, 7.0)))
    assert eval(cluster_code(cluster), space) == cluster
    assert eval(cluster_code(down), space) == down
    recipe = Generated("pai", {"days": 0.25})
    assert eval(recipe.code(4), space).equals(recipe(4))
    delays = lab.Delays(restart=30.0, kinds={"cold": {"gpt2": 20.0, "*": 50.0}})
    text, place = argument_code(delays)
    assert place == "from gpuschedlab.speeds import Delays"
    assert eval(text, {"Delays": lab.Delays}) == delays
    assert argument_code(lab.Delays(restart=30.0))[0] == "Delays(restart=30.0, switch=0.0, checkpoint=None, kinds=())"
    place = "from gpuschedlab.speeds import default_speeds"
    assert argument_code(default_speeds) == ("default_speeds(cluster)", place)


ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}


def notebook(outputs=(), state=None) -> dict:
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": list(outputs)}]
    saved = {"application/vnd.jupyter.widget-state+json": {"state": state}} if state is not None else {}
    return {"cells": cells, "metadata": {"widgets": saved} if saved else {}}


def test_the_scan_finds_errors_of_cells_and_of_widgets(tmp_path):
    from gpuschedlab.widgets import notebook_errors as scan

    view = {"output_type": "display_data", "data": {scan.VIEW: {"model_id": "abc"}}}
    state = {"abc": {"model_name": "OutputModel", "state": {"outputs": [ERROR]}}, "def": {"state": {}}}
    assert find_errors(notebook()) == []
    assert find_errors(notebook([ERROR])) == ["cell 1: ValueError: no"]
    assert find_errors(notebook([view], state)) == ["widget abc: ValueError: no"]
    warning = {"output_type": "stream", "name": "stderr", "text": f"x.py:1: UserWarning: {scan.UNSENDABLE} with:\nnan"}
    assert find_errors(notebook([warning])) == ["cell 1: Message serialization failed with: nan"]
    assert find_errors(notebook([warning | {"text": "a step took long"}])) == []
    assert find_errors(notebook([view])) == ["1 widgets were shown, but their state was not saved"]
    good = tmp_path / "good.ipynb"
    bad = tmp_path / "bad.ipynb"
    good.write_text(json.dumps(notebook()))
    bad.write_text(json.dumps(notebook([ERROR])))
    assert find_errors(good) == []
    assert find_errors(bad) == ["cell 1: ValueError: no"]
    bad.write_text("{}")
    with pytest.raises(RunError, match="expected an executed notebook"):
        find_errors(bad)


def test_what_went_wrong_stays_when_an_earlier_control_is_answered_later(monkeypatch):
    class Numbers(KnobExplorer):
        places = (plots.Place("a"),)
        begin = lab.Tiresias

        def _compute(self, policy):
            return [float(policy.queues)]

        def _page(self, x):
            return Page({"a": plots.Lines("a", "x", "y", x, {"all": x})})

    async def moves():
        explorer = Numbers()
        monkeypatch.setattr(base, "from_browser", lambda: True)
        explorer.knobs["queues"].value = 3  # answered soon
        explorer.guarded(lambda: explorer.knobs["nothing"])
        await asyncio.sleep(3 * base.DELAY)
        shown = explorer.board.drawings["a"].data[0]["x"]
        kept = [told.get("ename") for told in explorer.error.outputs]
        explorer.knobs["queues"].value = 4
        await asyncio.sleep(3 * base.DELAY)
        return list(shown), kept, explorer.error.outputs

    assert asyncio.run(moves()) == ([3.0], ["KeyError", None], ())


def test_words_of_times_knobs_and_numbers():
    assert (clock(35.5, 0), clock(35.0, None)) == ("Tue 11:30", "day 2 11:00")
    knobs = knobs_of(lab.Tiresias)
    assert knob_in_words(knobs["thresholds"], (57_600.0,)) == "next queue after 16 GPU-h"
    assert (knob_in_words(knobs["queues"], 3), knob_in_words(knobs["interval"], 600.0)) == (
        "queues 3",
        "decides every 10 min",
    )
    few = short({"x": np.array([1.0, 2 / 3, np.nan]), "name": "a", "on": True})
    assert few == {"x": [1.0, 0.6667, None], "name": "a", "on": True}
    assert control("IntSlider", "nodes", 210, 44, min=1, max=9).layout.width == "210px"
