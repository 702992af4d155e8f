"""An explorer of one thing with knobs: its controls, and a button that resets them."""

from gpuschedlab._extras import need
from gpuschedlab.widgets.core.base import BaseExplorer
from gpuschedlab.widgets.core.cache import Cache
from gpuschedlab.widgets.core.knob_controls import KnobControls


class KnobExplorer(BaseExplorer):
    """Base: a subclass gives `places`, `_compute`, `_numbers` and `_words`; `self.knobs.thing` is what the controls say.

    Parameters
    ----------
    thing : Knobbed
        What the controls change.
    cache : Cache, optional
        Where results are kept.

    Examples
    --------
    >>> from gpuschedlab import Tiresias, plots
    >>> class Queues(KnobExplorer):
    ...     places = (plots.Place("queues", height=250),)
    ...     _compute = lambda self: [float(i) for i in range(self.knobs.thing.queues)]
    ...     _numbers = lambda self, x: {"queues": plots.Lines("Queues", "number", "weight", x, {"all": x})}
    >>> explorer = Queues(Tiresias())
    >>> explorer.knobs["queues"].value = 3  # as a hand would move the slider
    >>> len(explorer.board.drawings["queues"].data[0]["x"])
    3
    """

    def __init__(self, thing, cache: Cache | None = None):
        super().__init__(cache)
        self.knobs = KnobControls(thing, self._changed)
        self._open()

    def _sliders(self) -> list:
        return self.knobs.sliders

    def _controls(self) -> list:
        w = need("ipywidgets")
        reset = w.Button(description="Reset knobs", tooltip="as in the beginning", layout=w.Layout(width="auto"))
        begin = self.knobs.thing
        reset.on_click(lambda _: self.guarded(lambda: self.knobs.show(begin)))
        return [w.Box([self.knobs.box, reset], layout=w.Layout(flex_flow="row wrap", align_items="center"))]
