"""An explorer of one thing with knobs: controls, figures, a line of words; the smaller explorers are made of it."""

from gpuschedlab._extras import need
from gpuschedlab.widgets.cache import Cache
from gpuschedlab.widgets.controls import KnobControls
from gpuschedlab.widgets.live import Live
from gpuschedlab.widgets.pictures import Pictures
from gpuschedlab.widgets.stack import stack


class Small(Live):
    """Base: subclasses give `names`, `_compute`, `_numbers` (of each figure by name), `_told` and `_rows`.

    Parameters
    ----------
    thing : Knobbed
        What the controls change.
    cache : Cache, optional
        Where results are kept.

    Attributes
    ----------
    names : tuple of str
        Names of the figures, in the order of the static twin.
    heights : dict of str to int
        Heights of figures that are not 360 pixels high.
    """

    names: tuple[str, ...] = ()
    heights: dict[str, int] = {}

    def __init__(self, thing, cache: Cache | None = None):
        super().__init__(cache)
        self.knobs = KnobControls(thing, self._changed)
        self._first()
        self._lay_out()

    def _numbers(self, found) -> dict:
        """Numbers of each figure, by its name; abstract."""
        raise NotImplementedError

    def _told(self) -> str:
        """What the line of words says; abstract."""
        raise NotImplementedError

    def _rows(self) -> list:
        """Boxes below the controls; abstract."""
        raise NotImplementedError

    def _show(self, found):
        from gpuschedlab import plots

        drawings = {name: plots.draw(numbers) for name, numbers in self._numbers(found).items()}
        if hasattr(self, "pictures"):
            self.pictures.show(drawings)
        else:
            self.pictures = Pictures(drawings, **self.heights)
        self.status.value = self._told()

    def figure(self, name: str | None = None):
        """Static twin: one figure by its name, or all of them in one.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        from gpuschedlab.plots.style import render

        drawn = self.pictures.drawings
        return render(drawn[name]) if name else stack([render(drawn[n]) for n in self.names])

    def _sliders(self) -> list:
        return self.knobs.sliders

    def _lay_out(self):
        w = need("ipywidgets")
        reset = w.Button(description="Reset knobs", tooltip="as it was in the beginning", layout=w.Layout(width="auto"))
        begin = self.knobs.thing
        reset.on_click(lambda _: self.guarded(lambda: self.knobs.show(begin)))
        top = w.Box([self.knobs.box, reset], layout=w.Layout(flex_flow="row wrap", align_items="center"))
        self.box = w.VBox([self.pictures.fit(), top, self.error, self.status, *self._rows()])
        self.box.add_class("gpuschedlab-explorer")
