"""The CausalLab: a knob's effect by an operator's log, by a model on a graph, and in truth."""

from collections.abc import Iterator

from gpuschedlab import plots
from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.explorers.drawn_arrivals import Arrivals
from gpuschedlab.autosched.explorers.graph_edits import GraphEdits
from gpuschedlab.autosched.explorers.graph_panel import GraphPanel
from gpuschedlab.autosched.explorers.lab_panel import WorldPanel
from gpuschedlab.autosched.explorers.lab_view import Curves, LabView, Progress, curves_of
from gpuschedlab.autosched.explorers.sign_guess import SignGuess
from gpuschedlab.autosched.figures.edited_graph import EditedGraph, edited_graph
from gpuschedlab.autosched.lab.edges import LOAD, cut, lab_graph
from gpuschedlab.autosched.lab.interval_log import IntervalLog
from gpuschedlab.autosched.lab.sentences import NAMES, Answers
from gpuschedlab.autosched.lab.truth import Truth
from gpuschedlab.autosched.lab.world import IntervalWorld
from gpuschedlab.knobs import knobs_of
from gpuschedlab.plots.web.cell import in_batch
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.controls import quiet
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from gpuschedlab.widgets.parts.explorer_state import Controls, Page

VALUES = 12
"""Settings of the knob at which the truth is simulated."""
TRUTH_SEED = 10_000
"""Added to the seed of the log: the truth is of other intervals."""
OPERATOR = ("by_load", "strictness", "noise")
"""Knobs of the world that the truth does not depend on."""
FIRST_ROWS = 20
"""Rows that are there before the screen is."""
GRAPHS = {
    "all edges": lab_graph(),
    "load's edges cut": cut(lab_graph(), *LOAD),
    "knob \N{RIGHTWARDS ARROW} waiting cut": cut(lab_graph(), ("knob", "waiting")),
}
"""Graphs of a page without a kernel, by their words."""


class CausalLab(BaseExplorer):
    """Ask for the effect of setting a knob: of an operator's log, of a model on a causal graph, and of the simulator.

    Rows of the log arrive in the background, and after them simulated intervals in which the knob is set to each value: the truth,
    with its own interval. A click on an edge of the graph cuts or restores it; a click on a variable and then on another draws an
    edge, or turns the one that is there. Nothing is simulated again for that.

    Parameters
    ----------
    world : IntervalWorld, optional
        Cluster and jobs of the log: the values at which the controls begin.
    seed : int
        Seed of the log; the truth is of intervals of other seeds.
    rows, intervals : int
        Intervals of the log, and of the truth.
    guess : bool
        Whether the reader guesses the sign of the effect first.
    cache : Cache, optional
        Where answers are kept.

    Attributes
    ----------
    answers : Answers or None
        Every number and sentence that is shown (`gpuschedlab.autosched.Answers`); None while there are too few rows.
    graph : CausalGraph
        The graph without the edges that are cut.
    log, truth : IntervalLog, Truth
        As far as they have grown.

    Raises
    ------
    EstimatorError
        The world is none.

    Examples
    --------
    >>> lab = CausalLab(IntervalWorld(jobs=50), rows=40, intervals=3).finish()
    >>> lab.answers.rows, lab.answers.intervals
    (40, 3)
    >>> lab.close()

    See notebooks/10_causal.ipynb.
    """

    places = (plots.Place("graph", 420, least=206), plots.Place("curves", 420, least=206))

    def __init__(self, world=None, seed: int = 0, *, rows: int = 300, intervals: int = 60, guess=False, cache=None):
        super().__init__(cache)
        self.seed = seed
        self.rows = rows
        self.intervals = intervals
        self.guess = guess
        self.worlds = Cache()
        self.world = None
        self.log = None
        self.truth = None
        self.answers = None
        self.sign_guess = SignGuess(self, guess and not in_batch())
        self.panel = WorldPanel(self, world or IntervalWorld())
        self.graph_panel = GraphPanel(self, lab_graph(), self.panel.backend)
        self.arrivals = Arrivals(self, self._draw_all)
        self._take(self.panel.world)
        self.log.filled(min(rows, FIRST_ROWS))  # what is wrong with the world is said in the cell
        self._open()

    # State -------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> CausalGraph:
        """`CausalGraph` without the edges that are cut."""
        return self.graph_panel.edits.graph

    def finish(self) -> "CausalLab":
        """Play all rows and intervals at once, as a program that has no time to wait does, and return this `CausalLab`."""
        self.arrivals.finish()
        self._draw_all()
        return self

    def _take(self, world: IntervalWorld):
        """Begin the log of another world, or go on with one that was begun before."""
        self.world = world
        seed = self.seed
        knob_values = world.values(VALUES)
        infos = knobs_of(world)
        asked_world = world.with_knobs(**{knob_name: infos[knob_name].default for knob_name in OPERATOR})
        self.log = self.worlds.get(("log", world, seed), lambda: IntervalLog(world, seed)).value
        self.truth = self.worlds.get(
            ("truth", asked_world, seed), lambda: Truth(asked_world, knob_values, TRUTH_SEED + seed)
        ).value
        self.panel.offer(world, knob_values)
        self.arrivals.begin(self._pieces(self.log, self.truth))

    def _pieces(self, log: IntervalLog, truth: Truth) -> Iterator[int]:
        """Grow the log, then the truth; yield how much there is after each piece."""
        yield from log.grow(self.rows)
        yield from truth.grow(self.intervals)

    def _controls(self) -> Controls:
        return Controls(
            state=lambda: self.panel.world,
            row=[*self.panel.first, self.graph_panel.box],
            more=self.panel.rest,
            above=[self.sign_guess.box],
            kept=self._kept_values,
            put=self._put_values,
        )

    def _compute(self, world) -> LabView:
        if world != self.world:
            self._take(world)
        frame = self.log.frame
        curves = self._curves(frame)
        self.answers = None
        if curves is not None:
            self.answers = Answers(
                world=world,
                graph=self.graph,
                naive=curves.naive,
                held=curves.held,
                model=curves.model,
                truth=self.truth.curve(),
                rows=frame.height,
                intervals=len(self.truth),
                backend=self.panel.backend.value,
                first=0,
                second=self.panel.setting,
            )
        return LabView(world, frame, self.answers, self.truth.values, self.panel.setting, self._progress())

    def _curves(self, frame) -> Curves | None:
        """Return the answer of the rows by the present graph and backend as `Curves`: computed once; None without rows."""
        graph = self.graph
        backend = self.panel.backend.value
        knob_values = self.truth.values
        key = ("curves", self.world, self.seed, frame.height, graph.edges, backend)
        return self.cache.get(key, lambda: curves_of(graph, frame, knob_values, backend)).value

    def _progress(self) -> Progress:
        """Return how much has come as `Progress`."""
        return Progress(len(self.log), self.rows, len(self.truth), self.intervals)

    # Drawing -----------------------------------------------------------------------------------------------

    def _draw_all(self):
        """Draw the answers that have come."""
        self._show(self._answer())

    def _page(self, view: LabView) -> Page:
        figures = {"graph": self._graph_numbers(), "curves": view.figure(self.sign_guess.open)}
        self.sign_guess.show(view)
        lab_html = view.html + self.sign_guess.verdict(view)
        if self.sign_guess.open:
            lab_html = self.sign_guess.question(view)
        return Page(figures, head=lab_html + view.progress.bar)

    def _graph_numbers(self) -> EditedGraph:
        panel = self.graph_panel
        figure = edited_graph(self.graph, panel.edits.every, panel.chosen, NAMES)
        if self.keeping:  # on a page on which a click changes nothing
            return figure._replace(title=figure.title.partition("<br>")[0])
        return figure

    def draw_graph(self):
        """Draw the graph alone: nothing else has changed."""
        self._draw({"graph": self._graph_numbers()})

    def _asked(self, page_request: str, value):
        if page_request != "clicked":
            super()._asked(page_request, value)
            return
        figure, trace, point = value
        if figure == "graph":
            self.graph_panel.clicked(trace, point)

    # Pages without a kernel --------------------------------------------------------------------------------

    def _kept_values(self) -> dict:
        """Return a dict of the graphs and values of the knob that such a page holds, by control."""
        settings = self._settings()
        ends = tuple(dict.fromkeys((settings[len(settings) // 2], settings[-1])))
        graphs = tuple(GRAPHS)
        return {"graph": (graphs, graphs[0]), self.panel.do.description: (ends, ends[-1])}

    def _put_values(self, kept_values: dict):
        """Show one of these."""
        graph, setting = kept_values.values()
        with quiet(self):
            self.graph_panel.put(GraphEdits.of(GRAPHS[graph], lab_graph().edges))
            self.panel.do.index = self._settings().index(setting)

    def _settings(self) -> list[str]:
        """List of the values that the slider offers, as texts."""
        return [setting_text for setting_text, _ in self.panel.do.options]

    def states(self) -> dict:
        """Return a dict of the states of a page without a kernel: three graphs, and two values of the knob.

        The screen stays as it is.
        """
        edits = self.graph_panel.edits
        setting = self.panel.do.index
        asking = self.sign_guess.open
        self.sign_guess.open = False  # nothing on that page would answer
        recorded = super().states()
        self.sign_guess.open = asking
        with quiet(self):
            self.graph_panel.put(edits)
            self.panel.do.index = setting
        self._draw_all()
        return recorded

    def html(self) -> str:
        """Return a page of its own as HTML text, from recorded states; whole without a network."""
        self.finish()
        return super().html()

    def _ipython_display_(self):
        if in_batch():
            self.finish()
        super()._ipython_display_()

    def close(self):
        """Free all widgets, here and in the browser."""
        self.arrivals.stop()
        super().close()
