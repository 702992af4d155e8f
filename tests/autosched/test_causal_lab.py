"""The causal lab without a browser: its numbers are the library's, a click plays no new row, and rows arrive while controls are live."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")

from gpuschedlab.autosched.explorers import causal_lab
from gpuschedlab.autosched.explorers.causal_lab import TRUTH_SEED, VALUES, CausalLab
from gpuschedlab.autosched.figures.edited_graph import NODE_TRACE, POINTS
from gpuschedlab.autosched.lab.backends import modelled
from gpuschedlab.autosched.lab.edges import FULL, LOAD, THESIS, cut, lab_graph, learnt
from gpuschedlab.autosched.lab.held_fixed import held, naive
from gpuschedlab.autosched.lab.interval_log import IntervalLog
from gpuschedlab.autosched.lab.sentences import Answers, edge_words
from gpuschedlab.autosched.lab.truth import Truth
from gpuschedlab.autosched.lab.world import IntervalWorld
from gpuschedlab.metrics.sentence import plain

WORLD = IntervalWorld(jobs=50)
ROWS = 60
INTERVALS = 4


def small(**options) -> CausalLab:
    """A lab of a few short intervals, as a script has it."""
    return CausalLab(WORLD, seed=3, rows=ROWS, intervals=INTERVALS, **options)


@pytest.fixture
def lab():
    """A lab in which all rows and intervals are there."""
    shown = small().finish()
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def played() -> tuple:
    """The same log and truth from code."""
    log = IntervalLog(WORLD, 3).filled(ROWS)
    truth = Truth(WORLD, WORLD.values(VALUES), TRUTH_SEED + 3).filled(INTERVALS)
    return log.frame, truth


def answers(played: tuple, graph, setting: int, backend: str = "path model") -> Answers:
    """What the library says."""
    frame, truth = played
    rows = (naive(frame, truth.values), held(graph, frame, truth.values), modelled(backend, graph, frame, truth.values))
    return Answers(WORLD, graph, *rows, truth.curve(), ROWS, INTERVALS, backend, 0, setting)


def click(lab: CausalLab, edge: tuple[str, str]):
    """Click in the middle of an edge, as the page says it."""
    number = lab.graph_panel.edits.every.index(edge)
    lab._asked("clicked", ["graph", 0, number * POINTS + POINTS // 2])


def click_box(lab: CausalLab, name: str):
    """Click on a variable, as the page says it; what goes wrong is shown in the box."""
    point = lab.graph.layers.names.index(name)
    lab.guarded(lambda: lab._asked("clicked", ["graph", NODE_TRACE, point]))


def words(lab: CausalLab) -> str:
    return plain(lab.status.value)


def says(lab: CausalLab, expected: Answers) -> bool:
    """Whether the screen says a headline, an explanation and their basis."""
    return all(text in words(lab) for text in (expected.headline, expected.explanation, expected.basis))


@pytest.mark.parametrize(
    "graph", [FULL, FULL[4:], THESIS, FULL[:5] + FULL[6:]], ids=["full", "load", "thesis", "waiting"]
)
@pytest.mark.parametrize("setting", [VALUES - 1, 5])
def test_every_number_on_the_screen_is_the_librarys(lab, played, graph, setting):
    for edge in set(FULL) - set(graph):
        click(lab, edge)
    lab.panel.do.value = setting
    expected = answers(played, lab_graph(graph), setting)
    assert says(lab, expected)
    rows, _, naive_line, model_line, truth = lab.board.drawings["curves"].data
    frame, _ = played
    np.testing.assert_array_equal(rows["x"], 10.0 ** frame["knob"].to_numpy())
    np.testing.assert_array_equal(rows["y"], np.exp(frame["outcome"].to_numpy()))
    for trace, curve in ((naive_line, expected.naive), (model_line, expected.model), (truth, expected.truth)):
        np.testing.assert_array_equal(trace["x"], 10.0 ** WORLD.values(VALUES))
        np.testing.assert_array_equal(trace["y"], np.exp(curve.mean))
    whiskers = truth["error_y"]
    np.testing.assert_allclose(truth["y"] + whiskers["array"], np.exp(expected.truth.high))
    np.testing.assert_allclose(truth["y"] - whiskers["arrayminus"], np.exp(expected.truth.low))
    assert lab.board.drawings["curves"].live["shapes"][0]["x0"] == 10.0 ** WORLD.values(VALUES)[setting]


def test_a_click_answers_without_a_new_row_and_restores_bitwise(lab, monkeypatch):
    before = lab.status.value, lab.board.drawings
    monkeypatch.setattr(IntervalLog, "grow", lambda *_: pytest.fail("a row was played"))
    monkeypatch.setattr(Truth, "grow", lambda *_: pytest.fail("an interval was played"))
    lab.graph_panel.together.click()
    assert lab.graph == cut(lab_graph(), *LOAD)
    assert lab.status.value != before[0]
    lab.graph_panel.together.click()
    assert lab.status.value == before[0]
    for name, drawing in lab.board.drawings.items():
        assert repr(drawing) == repr(before[1][name])


def test_the_slider_computes_nothing_anew(lab, monkeypatch):
    monkeypatch.setattr(causal_lab, "curves_of", lambda *_: pytest.fail("curves were computed"))
    said = set()
    for setting in range(1, VALUES):
        lab.panel.do.value = setting
        assert lab.answers.second == setting
        said.add(words(lab))
    assert len(said) == VALUES - 1, "the lowest value is what the others are compared with"
    assert not lab.error.outputs


def test_boxes_draw_an_edge_and_turn_it(lab):
    click_box(lab, "preempted")
    assert lab.graph_panel.chosen == "preempted"
    click_box(lab, "waiting")
    assert ("preempted", "waiting") in lab.graph.edges
    click_box(lab, "waiting")
    click_box(lab, "preempted")
    assert ("waiting", "preempted") in lab.graph.edges
    assert ("preempted", "waiting") not in lab.graph_panel.edits.every
    assert edge_words([("waiting", "preempted")]) in lab.answers.explanation
    click_box(lab, "load")
    click_box(lab, "load")
    assert lab.graph_panel.chosen == "", "the same box twice is no edge"


def test_what_the_layers_forbid_is_said_and_nothing_is_lost(lab):
    before = lab.graph_panel.edits, lab.status.value
    click_box(lab, "waiting")
    click_box(lab, "load")
    (error, _) = lab.error.outputs
    assert "waiting -> load" in error["evalue"]
    assert (lab.graph_panel.edits, lab.status.value) == before
    assert lab.graph_panel.chosen == ""
    click(lab, FULL[0])
    assert lab.status.value != before[1], "the next click works"


def test_keys_do_what_clicks_do(lab):
    panel = lab.graph_panel
    panel.edge.value = ("load", "knob")
    assert panel.toggle.description == "cut"
    panel.toggle.click()
    assert lab.graph == lab_graph(THESIS)
    assert panel.toggle.description == "restore"
    panel.toggle.click()
    panel.cause.value = "preempted"
    panel.effect.value = "waiting"
    panel.add.click()
    assert ("preempted", "waiting") in lab.graph.edges
    panel.edge.value = ("preempted", "waiting")
    panel.turn.click()
    assert ("waiting", "preempted") in lab.graph.edges
    panel.as_given.click()
    assert lab.graph == lab_graph()
    assert lab.graph_panel.edits.every == FULL
    panel.thesis.click()
    assert lab.graph == lab_graph(THESIS)
    panel.learnt.click()
    assert lab.graph == learnt(lab.log.frame)


def test_the_truth_does_not_depend_on_the_operator(lab):
    truth = lab.truth
    lab.panel.knobs["strictness"].value = 4.0
    assert lab.truth is truth
    assert len(lab.log) < ROWS
    lab.panel.knobs["restart"].value = 60.0
    assert lab.truth is not truth
    lab.panel.knobs["restart"].value = WORLD.restart
    assert lab.truth is truth, "what was played is kept"


def test_other_policies_and_knobs_are_asked_in_their_own_units(lab):
    lab.panel.policy.value = "Easy"
    lab.panel.knob.value = "depth"
    lab.finish()
    assert lab.world.knob == "depth"
    assert lab.panel.do.description == "do: depth"
    assert [text for text, _ in lab.panel.do.options][-1].endswith(" jobs")
    assert says(lab, lab.answers)
    lab.panel.policy.value = "Tiresias"
    lab.panel.knob.value = "thresholds"
    assert lab.world == WORLD


def test_backends_are_words_of_the_menu(lab, played):
    lab.panel.backend.value = "adjustment"
    assert says(lab, answers(played, lab_graph(), VALUES - 1, "adjustment"))


def test_rows_arrive_in_the_background_and_a_moved_control_ends_them():
    async def look_on():
        shown = small()
        counts = []
        while not shown.arrivals.done:
            await asyncio.sleep(0.01)
            counts.append((len(shown.log), len(shown.truth)))
        assert counts[-1] == (ROWS, INTERVALS)
        assert sorted(counts) == counts
        assert len(set(counts)) > 5
        assert f"{ROWS} rows" in words(shown)
        assert "width: 0%" in shown.status.value, "the bar has gone"
        shown.panel.knobs["restart"].value = 60.0
        log = shown.log
        await asyncio.sleep(0.05)
        shown.panel.knobs["restart"].value = 120.0
        rows = len(log)
        assert 0 < rows < ROWS
        await asyncio.sleep(0.05)
        assert len(log) == rows
        assert len(shown.log) > 0
        shown.close()
        rows = len(shown.log)
        await asyncio.sleep(0.05)
        assert len(shown.log) == rows
        return words(shown)

    asyncio.run(look_on())


def test_what_goes_wrong_with_a_row_is_shown_and_the_next_world_plays(monkeypatch):
    async def look_on():
        shown = small()
        whole = IntervalLog._row

        def broken(log, number):
            if log.world.restart == 60.0:
                raise ZeroDivisionError("a row that cannot be")
            return whole(log, number)

        monkeypatch.setattr(IntervalLog, "_row", broken)
        shown.panel.knobs["restart"].value = 60.0
        await asyncio.sleep(0.3)
        assert "a row that cannot be" in shown.error.outputs[0]["evalue"]
        shown.panel.knobs["restart"].value = WORLD.restart
        while not shown.arrivals.done:
            await asyncio.sleep(0.01)
        assert not shown.error.outputs
        assert f"{ROWS} rows" in words(shown)
        shown.close()

    asyncio.run(look_on())


def test_the_model_and_the_truth_wait_for_the_guess():
    shown = small(guess=True).finish()
    traces = shown.board.drawings["curves"].data
    assert [len(trace["x"]) for trace in traces] == [ROWS, 0, VALUES, 0, 0]
    assert shown.answers.truth_number not in words(shown)
    assert shown.answers.log_number in words(shown)
    notes = [plain(note) for note, _, _ in shown.states()["states"]]
    assert all("In truth" in note for note in notes), "no kernel would take a guess there"
    assert "In truth" not in words(shown)
    sooner, later, *_ = shown.sign_guess.box.children
    assert (sooner.description, later.description) == ("sooner", "later")
    sooner.click()
    assert says(shown, shown.answers)
    assert "You guessed sooner" in words(shown)
    assert all(len(trace["x"]) for trace in shown.board.drawings["curves"].data)
    shown.close()


def test_a_page_without_a_kernel_holds_three_graphs_and_two_values(lab, played):
    click(lab, FULL[3])
    lab.panel.do.index = 2
    before = lab.graph_panel.edits, lab.panel.do.index, lab.status.value
    recorded = lab.states()
    assert (lab.graph_panel.edits, lab.panel.do.index, lab.status.value) == before
    assert [control["name"] for control in recorded["controls"]] == ["graph", lab.panel.do.description]
    notes = [plain(note) for note, _, _ in recorded["states"]]
    graphs = (
        FULL,
        tuple(edge for edge in FULL if edge not in LOAD),
        tuple(e for e in FULL if e != ("knob", "waiting")),
    )
    places = [(graph, setting) for graph in graphs for setting in (VALUES // 2, VALUES - 1)]
    for note, (graph, setting) in zip(notes, places, strict=True):
        assert answers(played, lab_graph(graph), setting).headline in note
    assert "<html" in lab.html()
    figures = lab.figure()
    assert len(figures) == 2


def test_the_same_seed_says_the_same_and_another_one_another():
    one, same, other = (CausalLab(WORLD, seed, rows=ROWS, intervals=2).finish() for seed in (5, 5, 6))
    assert one.status.value == same.status.value != other.status.value
