"""The mechanism of every explorer: controls, then a cached computation, then one batched redraw; errors in a box."""

import asyncio
import json
import threading
import traceback
from html import escape
from itertools import product

from gpuschedlab import plots
from gpuschedlab._extras import need
from gpuschedlab._knob import knob_word
from gpuschedlab.errors import LabError, interrupts
from gpuschedlab.metrics.sentence import head
from gpuschedlab.plots import web
from gpuschedlab.plots.kinds.style import HIDDEN
from gpuschedlab.plots.web.cell import execution, in_batch
from gpuschedlab.plots.web.encode import plain, short
from gpuschedlab.plots.web.sides import words
from gpuschedlab.sim.run import left_of
from gpuschedlab.widgets.parts.board import Board
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.controls import close_all
from gpuschedlab.widgets.parts.explorer_state import Controls, Page
from gpuschedlab.widgets.parts.guess import folded

QUICK = 0.5
"""Seconds: figures follow the hand while a run takes less, and its release otherwise: of moves that a run outlasts the last counts."""
DELAY = 0.002
"""Seconds between a move in the browser and the redraw, in which further moves join it."""


def from_browser() -> bool:
    """Whether the present change was made by a hand in the browser, rather than by a cell or a script."""
    cell_execution = execution()
    return cell_execution is not None and cell_execution.kind == "comm_msg"


_made: dict[str, tuple[str, list]] = {}
"""Explorers that each cell made, and the request that it was run by."""


def free_earlier(explorer):
    """Close the explorers that an earlier run of the present cell made; this one is closed at the next."""
    cell_execution = execution()
    if cell_execution is None or not cell_execution.cell:
        return
    request, earlier = _made.get(cell_execution.cell, ("", []))
    if request != cell_execution.request:
        for earlier_explorer in earlier:
            earlier_explorer.close()
        earlier = []
    _made[cell_execution.cell] = (cell_execution.request, [*earlier, explorer])


class BaseExplorer:
    """Base of the explorers: a subclass gives `places`, and how its controls are computed and shown.

    Controls say a state (`_controls`), which is computed (`_compute`); a page shows the answer (`_page`). Its requests are
    answered by `_asked`.

    A change that a cell or script makes is drawn at once, so that batch runs see its errors; one from the browser is
    drawn `DELAY` seconds later with all that came in between. Errors are shown in a box, as an output of type
    "error", and the figures keep the last state that worked. Running a cell again frees the explorer that it made before.

    If a program runs the cells (papermill, a site's build), the page holds each combination of the values that `Controls.kept` names.

    If a page has not drawn an update for some seconds, a bar above the figures says so; a page that does not hear gets another widget.

    Parameters
    ----------
    cache : Cache, optional
        Cache of results.

    Attributes
    ----------
    places : tuple of Place
        The figures, in order.
    runs : dict of str to Run
        Runs that are shown, by name: the line above the figures says which jobs they leave.
    controls : Controls
        Controls that the reader moves.
    page : Page
        Page that shows the answer.
    seconds : float
        Time to compute the present state when it is not kept.
    board : Board
        The figures.
    box : ipywidgets.VBox
        All of it.
    """

    places: tuple[plots.Place, ...] = ()
    remembers = False
    """Whether an answer is kept by the state: of what else it depends on there must be one value only."""
    guess = False
    """Whether the reader guesses first: what stands for the explorer without a kernel is folded until then."""

    def __init__(self, cache: Cache | None = None):
        ipywidgets = need("ipywidgets")
        free_earlier(self)
        self.cache = cache or Cache()
        hidden = ipywidgets.Layout(border="2px solid #B91C1C", padding="4px 8px", display="none")
        self.error = ipywidgets.Output(layout=hidden).add_class("gpuschedlab-error")
        self.status = ipywidgets.HTML().add_class("gpuschedlab-status").add_class("gpuschedlab-said")
        self.table = ipywidgets.HTML()
        self._timer = None
        self._quiet = False
        self._guarding = False
        self._one = threading.RLock()
        self.seconds = 0.0
        self.controls = Controls()
        self.board = None
        self.runs = {}
        self.more = None
        self.keeping = False

    def _controls(self) -> Controls:
        """Return the `Controls` that the reader moves, and their state."""
        return Controls()

    def _compute(self, state):
        """Answer to the state that the controls say: anything that `_page` understands; abstract."""
        raise NotImplementedError

    def _page(self, answer) -> Page:
        """Return the `Page` of an answer; abstract."""
        raise NotImplementedError

    def _asked(self, page_request: str, value):
        """Answer to a request of the page: "clicked" with (figure, number of the trace, of the point), or words of its own."""
        if page_request == "more":
            self.open(not self.opened)
            self.refresh()

    @property
    def opened(self) -> bool:
        """Whether *more* is seen."""
        return self.more is not None and self.more.layout.display is None

    def open(self, opened: bool):
        """Show or hide the parts seen with *more*."""
        self.more.layout.display = None if opened else "none"
        (self.box.add_class if opened else self.box.remove_class)("gpuschedlab-more")

    def _open(self):
        """Compute, draw and lay out for the first time: errors go to the caller, a plain cell."""
        ipywidgets = need("ipywidgets")
        self.controls = controls = self._controls()
        self.more = ipywidgets.VBox(controls.more, layout=ipywidgets.Layout(display="none")).add_class(
            "gpuschedlab-pickers"
        )
        self._show(self._answer())
        strip = ipywidgets.Box(controls.row).add_class("gpuschedlab-strip")
        control_boxes = [self.status, *controls.above, strip, self.more, self.error, *controls.below]
        top = ipywidgets.VBox(control_boxes).add_class("gpuschedlab-controls")
        self.main = ipywidgets.VBox([self.board.widget, self.table]).add_class("gpuschedlab-main")
        explorer_sides = ipywidgets.VBox([top, self.main]).add_class("gpuschedlab-sides")
        explorer_layout = ipywidgets.Layout(width="100%", display="block", overflow="visible")
        self.box = ipywidgets.Box([explorer_sides], layout=explorer_layout).add_class("gpuschedlab-explorer")
        self._pace()

    def _answer(self):
        """Return the answer to the present state of the controls, any object of `_compute`."""
        state = self.controls.state()
        if not self.remembers:
            return self._compute(state)
        answer = self.cache.get((type(self), state), lambda: self._compute(state))
        self.seconds = answer.seconds
        return answer.value

    def _show(self, answer):
        """Draw an answer, in one message."""
        self.page = page = self._page(answer)
        self._draw(page.figures)
        left_over_notes = (f"{escape(line.rstrip('.'))}." for line in left_of(self.runs))
        head_html = page.head
        if head_html is None:
            head_html = head(page.comparisons, page.words, *left_over_notes)
        self.status.value = head_html
        self.table.value = page.below
        page.after()

    def _draw(self, numbers: dict):
        """Draw some figures, from their numbers by name."""
        drawings = {figure_name: plots.draw(figure_numbers) for figure_name, figure_numbers in numbers.items()}
        if self.board is None:
            answer_page = lambda *page_request: self.guarded(lambda: self._asked(*page_request))  # noqa: E731
            self.board = Board(self.places, drawings, answer_page, self._again)
            self.board.link = self.board.widget.link = self.page.address()
        else:
            self.board.show(drawings, self.page.address())

    def _again(self):
        """Give the page another widget with the same figures."""
        earlier = self.board.again()
        self.main.children = (self.board.widget, self.table)
        earlier.close()  # not before: a view whose widget is gone would say that the kernel is

    def _redraw(self, figure_name: str, make):
        """Draw one figure anew, from the numbers that `make()` returns: a control moved that changes nothing else."""
        if self.board is not None and not self._quiet:
            self.guarded(lambda: self._draw({figure_name: make()}))

    def _changed(self, change=None):
        """Answer to a control that moved."""
        self.controls.moved()
        if self._quiet:
            return
        if not from_browser():
            self.refresh()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self._fire, self.error.outputs)

    def _fire(self, earlier: tuple):
        self._timer = None
        self.refresh(keep=self.error.outputs != earlier)  # what went wrong since the control moved is not of its doing

    def refresh(self, keep: bool = False):
        """Compute and draw the state of the controls; an error goes to the box, which keeps an earlier one only with `keep`."""
        self.guarded(lambda: self._show(self._answer()), keep)
        self._pace()

    def guarded(self, do, keep: bool = False):
        """Do something, and show its error in the box; functions that it calls may, too: of these it returns the result.

        Other threads wait.
        """
        with self._one:
            if self._guarding:
                return do()
            self._guarding = True
            try:
                with interrupts():
                    do()
            except Exception as error:  # the edge of a widget: nobody above could show it
                self._report(error)
            else:
                if self.error.outputs and not keep:
                    self.error.outputs = ()
                    self.error.layout.display = "none"
            finally:
                self._guarding = False

    def _report(self, error: Exception):
        """Show an error: errors of the package in one line, others with their trace."""
        trace = [] if isinstance(error, LabError) else traceback.format_exception(error)
        report = {"ename": type(error).__name__, "evalue": str(error), "traceback": trace}
        standing = f"The figures show the last state that worked. {words(self.status.value)}\n"
        stream = {"output_type": "stream", "name": "stdout", "text": standing}
        self.error.layout.display = None
        self.error.outputs = ({"output_type": "error"} | report, stream)

    def _pace(self):
        """Let sliders follow the hand, or its release, by the time of the last run."""
        for slider in self.controls.sliders():
            slider.continuous_update = self.seconds < QUICK

    def _note(self, still: bool = False) -> str:
        """HTML above the figures if no kernel answers, and no script runs if they are `still`."""
        return f'<div class="gpuschedlab-said">{self.status.value}</div>{self.page.note(still)}'

    def states(self) -> dict:
        """Return a dict of states of a page without a kernel: controls, notes and figures by combination, and the `first`."""
        values_of_controls = self.controls.kept()
        states = []
        figures = {}
        first_figures = [figure_place.name for figure_place in self.board.first if not figure_place.words]
        if not values_of_controls:
            return {}
        axes = [control_values for control_values, _ in values_of_controls.values()]
        grid = list(product(*axes))
        present_values = tuple(present_value for _, present_value in values_of_controls.values())
        for control_values in (*grid, present_values):  # at last as before
            self.keeping = len(states) < len(grid)
            self.controls.put(dict(zip(values_of_controls, control_values)))
            self._show(self._answer())
            if self.keeping:
                drawn_figures = {
                    figure_name: short(plain(self.board.drawings[figure_name])) for figure_name in first_figures
                }
                figure_numbers = {
                    figure_name: figures.setdefault(json.dumps(drawn_figure), len(figures))
                    for figure_name, drawn_figure in drawn_figures.items()
                }
                states.append((self._note(), figure_numbers, self.table.value))
        controls = [
            {"name": control_label, "texts": [*map(knob_word, control_values)]}
            for control_label, (control_values, _) in values_of_controls.items()
        ]
        return {
            "controls": controls,
            "first": grid.index(present_values),
            "states": states,
            "figures": [*map(json.loads, figures)],
        }

    def html(self) -> str:
        """Return a page of its own as HTML text, from recorded states; whole without a network."""
        return web.document(self.board.html(self._note() + self.table.value, self.states()), type(self).__name__)

    def figure(self, name: str | None = None):
        """Return the static twin: one plotly `Figure` by its name, or the `Figures` of the first screen.

        Returns
        -------
        plotly.graph_objects.Figure, or plots.Figures

        Raises
        ------
        LabError
            There is no such figure, or it has nothing to show.
        """
        figures = [figure_place.name for figure_place in self.places if not figure_place.words]
        if name and name not in figures:
            raise LabError(f"{type(self).__name__}.figure: found {name!r}; expected one of {', '.join(figures)}.")
        places = [
            figure_place
            for figure_place in self.places
            if (figure_place.name == name if name else not (figure_place.more or figure_place.words))
        ]
        if name and name not in self.board.drawings:  # nobody has asked for it yet
            self.board.drawings[name] = plots.draw(self.page.rare[name]())
        shown_drawings = [(self.board.drawings[figure_place.name], figure_place.height) for figure_place in places]
        static_figures = [
            plots.figure(drawing).update_layout(height=figure_height)
            for drawing, figure_height in shown_drawings
            if drawing is not HIDDEN
        ]
        if name and not static_figures:
            raise LabError(
                f"{type(self).__name__}.figure: found nothing to show in {name!r}; expected what it is of to be chosen."
            )
        return static_figures[0] if name else plots.Figures(static_figures, columns=2, note=self._note(True))

    def _ipython_display_(self):
        """Show the widget, and before it its static twins: figures for where no kernel answers, pictures for where no script runs."""
        display = need("IPython.display", "explorers")
        batch = in_batch()
        asks = self.guess and not batch
        pictures = display.display(display.HTML(""), display_id=True)
        figures = self.board.html(self._note() + self.table.value, self.states() if batch else {})
        display.display(display.HTML(folded(figures) if asks else figures))
        untrusted = "The controls of this explorer are there once its cell is run, or its notebook trusted."
        display.display(self.box._repr_mimebundle_() | {"text/plain": untrusted}, raw=True)
        if pictures is not None:  # last, since they take longest; None outside a kernel
            still = self.board.pictures(self._note(True))
            pictures.update(display.HTML(folded(still) if asks else still))

    def close(self):
        """Free all widgets, here and in the browser."""
        if self._timer is not None:
            self._timer.cancel()
        close_all(self.box)
