"""Figure widgets that keep their traces, take new numbers in one batch, and fill the width that they are given."""

from functools import cache

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.plots.style import refresh, render


def finite(value):
    """Copy of nested numbers with None for nan and inf, which JSON cannot say; rows of numbers travel as bytes, and stay.

    Examples
    --------
    >>> finite({"range": [0.0, float("inf")], "z": np.array([[1.0, float("nan")]])})
    {'range': [0.0, None], 'z': array([[1.0, None]], dtype=object)}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    if isinstance(value, np.ndarray) and value.ndim > 1 and value.dtype.kind == "f":
        known = np.isfinite(value)
        return value if known.all() else np.where(known, value.astype(object), None)
    return None if isinstance(value, float) and not np.isfinite(value) else value


FIT = """
export default { render({ el }) {
  // Figures are drawn before they have a place on the page, and learn its width from the window alone.
  let due = 0;
  const tell = () => {
    cancelAnimationFrame(due);
    due = requestAnimationFrame(() => window.dispatchEvent(new Event("resize")));
  };
  const watch = new ResizeObserver(tell);
  watch.observe(el);
  document.addEventListener("plotlywidget-after-render", tell);
  // Letters and arrows choose and move here; to JupyterLab they would be the notebook's shortcuts, too.
  const keep = ({ target }) => {
    if (target.closest(".gpuschedlab-explorer") && target.matches("select, .noUi-handle"))
      target.setAttribute("data-lm-suppress-shortcuts", "true");
  };
  document.addEventListener("focusin", keep);
  return () => {
    watch.disconnect();
    document.removeEventListener("plotlywidget-after-render", tell);
    document.removeEventListener("focusin", keep);
  };
} };
"""


@cache
def _fit_class():
    anywidget = need("anywidget", "explorers")
    return type("Fit", (anywidget.AnyWidget,), {"_esm": FIT})


def _sendable(drawings: dict) -> dict:
    return {name: d._replace(data=finite(d.data), live=finite(d.live)) for name, d in drawings.items()}


class Pictures:
    """Figure widgets by name: new numbers go into the figure that is there, in one batch.

    Parameters
    ----------
    drawings : dict of str to Drawing
        What to show first.
    height : int
        Height of each, pixels.
    heights : dict of str to int, optional
        Height of some.
    """

    def __init__(self, drawings: dict, height: int = 360, **heights):
        w = need("ipywidgets")
        self._height, self._heights, self.drawings = height, heights, _sendable(drawings)
        self.slots = {name: w.VBox([self._made(name)]) for name in drawings}
        for slot in self.slots.values():
            slot.layout = w.Layout(overflow="hidden", min_width="0")

    def _made(self, name: str):
        plain = render(self.drawings[name])
        plain.update_layout(height=self._heights.get(name, self._height), autosize=True)
        made = need("plotly.graph_objects").FigureWidget(plain)
        made._config = made._config | {"responsive": True, "displaylogo": False}
        return made

    def __getitem__(self, name: str):
        """Present figure widget of a name."""
        return self.slots[name].children[0]

    def show(self, drawings: dict):
        """Put new drawings in place; a figure with another number of traces is made anew."""
        drawings = _sendable(drawings)
        self.drawings |= drawings
        for name, drawing in drawings.items():
            if len(self[name].data) == len(drawing.data):
                refresh(self[name], drawing)
            else:
                old = self[name]
                self.slots[name].children = (self._made(name),)
                old.close()

    def grid(self, *names: str, wide: int = 480):
        """Box of some figures, as many beside each other as fit at `wide` pixels."""
        w = need("ipywidgets")
        columns = f"repeat(auto-fit, minmax(min({wide}px, 100%), 1fr))"
        layout = w.Layout(grid_template_columns=columns, grid_gap="4px", width="100%")
        return w.GridBox([self.slots[name] for name in names], layout=layout)

    def fit(self):
        """Invisible widget that makes the figures as wide as the box it stands in, and keeps its keys from the notebook."""
        return _fit_class()(layout=need("ipywidgets").Layout(width="100%", height="0", margin="0"))
