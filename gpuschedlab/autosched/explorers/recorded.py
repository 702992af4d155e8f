"""The RecordedExplorer: a recorded contest of tuners, step by step, and live from any of its hours."""

from functools import cache
from importlib.resources import files
from uuid import uuid4

from gpuschedlab._extras import need
from gpuschedlab.autosched.recording.answers import ASKED
from gpuschedlab.autosched.recording.player import page, pictures
from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.autosched.recording.stages import STAGES
from gpuschedlab.errors import RunError, interrupts
from gpuschedlab.widgets.parts.controls import close_all
from gpuschedlab.widgets.parts.explorer_base import free_earlier

HERE = files("gpuschedlab.autosched.recording")
HOUR = 3600.0


@cache
def _tie() -> type:
    """Class of the widget that hears the page's button."""
    traitlets = need("traitlets", "explorers")
    code = {"_esm": (HERE / "live.js").read_text(encoding="utf-8")}
    made = {"player": traitlets.Unicode().tag(sync=True)} | code
    return type("PlayerTie", (need("anywidget", "explorers").AnyWidget,), made)


class RecordedExplorer:
    """Step through a recorded contest: every hour, and the seven stages of each decision, each with a sentence of its numbers.

    The page holds all of it: it plays without a kernel, in a saved notebook and on a site. Where a kernel answers, *Go live* takes
    the contest up at the hour that is shown, below, as an `AutoSchedExplorer`.

    Parameters
    ----------
    recording : Recording, optional
        By default the one that ships.
    hours : float, optional
        Hour that is shown first; by default that after the first in which most was measured again.
    stage : int
        Stage that is shown first, 1 to 7.

    Attributes
    ----------
    live : AutoSchedExplorer or None
        The contest that goes on, once it is asked for.

    Raises
    ------
    RunError
        There is no such hour or stage.

    Examples
    --------
    See notebooks/09_autosched.ipynb.
    """

    def __init__(self, recording: Recording | None = None, hours: float | None = None, stage: int = 1):
        w = need("ipywidgets")
        free_earlier(self)
        self.recording = recording or Recording.read()
        known = [hour.now / HOUR for hour in self.recording.hours]
        later = range(min(1, len(known) - 1), len(known))
        first = max(later, key=lambda place: sum(len(gains) for _, gains in self.recording.hours[place].again))
        hours = known[first] if hours is None else hours
        if hours not in known or stage not in range(1, len(STAGES) + 1):
            raise RunError(
                f"RecordedExplorer: found hour {hours}, stage {stage}; expected one of {known[0]:g} to {known[-1]:g}, and 1 to "
                f"{len(STAGES)}."
            )
        self.place = known.index(hours)
        self.stage = stage - 1
        self.live = None
        self.identity = f"gpuschedlab-{uuid4().hex}"
        self.tie = _tie()(player=self.identity)
        self.tie.on_msg(self._heard)
        self.status = w.HTML()
        self.below = w.VBox()
        self.error = w.Output()
        self.box = w.VBox([self.tie, self.status, self.error, self.below])

    def go_live(self, hours: float):
        """Take the contest up at an hour: recorded decisions are repeated, and it goes on below."""
        from gpuschedlab.autosched.explorers.live import AutoSchedExplorer
        from gpuschedlab.autosched.recording.resume import resumed

        self.status.value = f"Repeating the decisions up to {hours:g} h; a few seconds."
        earlier = self.live
        self.live = AutoSchedExplorer(resumed(self.recording, hours))
        self.below.children = (self.live.box,)
        self.status.value = f"<b>Live from {hours:g} h</b>: <i>One hour</i> takes the next decision."
        if earlier is not None:
            earlier.close()

    def _heard(self, widget, content: dict, buffers):
        if content["kind"] == "ping":
            widget.send({"kind": "pong"})
        elif content["kind"] == "live":
            self.error.outputs = ()
            try:
                with interrupts():
                    self.go_live(self.recording.hours[content["at"]].now / HOUR)
            except Exception as error:  # the edge of a widget: nobody above could show it
                self.status.value = ""
                report = {"output_type": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": []}
                self.error.outputs = (report,)

    def html(self) -> str:
        """A page of its own with the player, and below it what a class asks, answered; whole without a network."""
        body = page(self.recording, self.place, self.stage, self.identity)  # outside a kernel it carries plotly
        for asked, answer in ASKED.items():
            body += f'<h2>{asked}</h2><div style="overflow-x: auto">{answer(self.recording)._repr_html_()}</div>'
        head = '<meta charset="utf-8"><title>A recorded contest of tuners</title><meta name="viewport" content="width=device-width">'
        return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{body}</body></html>'

    def _ipython_display_(self):
        """Show a picture where no script runs, the player, and what needs a kernel."""
        display = need("IPython.display", "explorers")
        still = display.display(display.HTML(""), display_id=True)
        shown = page(self.recording, self.place, self.stage, self.identity)
        display.display(display.HTML(shown))
        untrusted = {"text/plain": "Going live needs a kernel: run this cell."}
        display.display(self.box._repr_mimebundle_() | untrusted, raw=True)
        if still is not None:  # last, since it takes longest; None outside a kernel
            still.update(display.HTML(pictures(self.recording, self.place, self.stage, self.identity)))

    def close(self):
        """Free all widgets, here and in the browser."""
        if self.live is not None:
            self.live.close()
        close_all(self.box)
