"""The window of a Gantt and the nodes that it shows, played through time."""

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.widgets.parts.controls import control, row
from gpuschedlab.widgets.parts.knob_controls import quiet

HOUR = 3600.0
LENGTHS = {"1 h": 1.0, "6 h": 6.0, "1 day": 24.0, "3 days": 72.0, "1 week": 168.0}
STEPS = 6
"""Steps in which a window moves past itself."""
ROWS = 16
"""Nodes that are shown."""


class Player:
    """Play button and sliders that choose a window of time, GPU types and nodes."""

    def __init__(self, moved):
        w = need("ipywidgets")
        self._moved, self._quiet = moved, False
        self.length = control("Dropdown", "window", 124, 52, options=list(LENGTHS), value="6 h")
        self.begin = control("IntSlider", "from (h)", 200, 52, min=0, max=1, readout_format="d")
        self.play = w.Play(min=0, max=1, interval=700, tooltip="play the window through time")
        self.types = control("Dropdown", "GPU type", 130, 62, options=["all"])
        self.first = control("IntSlider", "first node", 190, 66, min=0, max=1)
        self._link = w.jslink((self.play, "value"), (self.begin, "value"))
        for part in (self.begin, self.types, self.first, self.length):
            part.observe(self._changed, "value")
        self.box = row(self.play, self.begin, self.length, self.types, self.first)

    def _changed(self, change):
        if not self._quiet:
            self._fit_nodes() if change["owner"] is self.types else None
            self._moved()

    def fit(self, cluster, end: float, window: tuple[float, float] | None = None):
        """Fit the sliders to a cluster and to a run that ends at `end` (s); begin with `window` (s), if it is given."""
        with quiet(self):
            self._cluster, self._end = cluster, end
            options = ["all", *cluster.gpu_types]
            if list(self.types.options) != options:
                self.types.options, self.types.value = options, "all"
                self.types.layout.display = None if len(options) > 2 else "none"
            hours = max(1, int(np.ceil(end / HOUR)))
            step = max(1, round(LENGTHS[self.length.value] / STEPS))
            for part in (self.begin, self.play):
                part.max, part.step = hours, step
            if window:
                # The browser copies one to the other; here both, or the play button would begin at zero.
                self.begin.value = self.play.value = int(window[0] / HOUR) // step * step
            self._fit_nodes()

    def _fit_nodes(self):
        last = max(0, len(self._of_type()) - ROWS)
        self.first.max = last
        self.first.layout.display = None if last else "none"

    def _of_type(self) -> np.ndarray:
        kind, types = self.types.value, self._cluster.gpu_types
        chosen = np.arange(len(types)) if kind == "all" else [types.index(kind)]
        return np.flatnonzero(np.isin(self._cluster.node_type, chosen))

    @property
    def seconds(self) -> float:
        """Length of the window, s."""
        return LENGTHS[self.length.value] * HOUR

    @property
    def view(self) -> dict:
        """What to show, as `plots.gantt` takes it."""
        start = self.begin.value * HOUR
        nodes = self._of_type()[self.first.value : self.first.value + ROWS]
        end = max(start + 60.0, min(start + self.seconds, self._end))  # no time in which nothing can be
        return {"start": start, "end": end, "nodes": nodes.tolist()}

    def close(self):
        """Free what is in no box."""
        self._link.close()
