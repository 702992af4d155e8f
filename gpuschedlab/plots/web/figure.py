"""Figures as notebooks show them: drawn by the page's one plotly, present in every export."""

from pathlib import Path

from gpuschedlab._files import whole
from gpuschedlab.plots.web import Place, document, fragment, output

try:
    from plotly.graph_objects import Figure as Plotly
except ImportError:  # plotly is an extra: `plots.figure`, which makes figures, says how to install it
    Plotly = object


class Figure(Plotly):
    """A plotly figure in the house style that shares one plotly with all others of a page.

    Examples
    --------
    >>> "gpuschedlab-frame" in Figure()._repr_mimebundle_()["text/html"]
    True
    """

    _ipython_display_ = None  # plotly's own would choose a renderer

    def _place(self) -> tuple[Place, ...]:
        return (Place("figure", self.layout.height or 400, True, self.layout.width),)

    def _repr_mimebundle_(self, include=None, exclude=None, **options) -> dict:
        return {"text/html": output({"figure": self}, self._place()), "text/plain": repr(type(self))}

    def page(self, small: bool = True) -> str:
        """Return the HTML text of a page with this figure alone; `small` as in `web.library`."""
        return document(fragment({"figure": self}, self._place()), self.layout.title.text or "figure", small)


class Figures:
    """Several figures on one page.

    Parameters
    ----------
    figures : list of plotly.graph_objects.Figure
        At least one, each as high as its layout says.
    columns : int
        1: below each other. 2: two beside each other if there is room.
    note : str
        HTML above them.

    Examples
    --------
    >>> len(Figures([Figure(), Figure()]))
    2
    """

    def __init__(self, figures: list, columns: int = 1, note: str = ""):
        self.figures = list(figures)
        self.columns = columns
        self.note = note

    def __len__(self):
        return len(self.figures)

    def __getitem__(self, number: int):
        return self.figures[number]

    def _written(self, write) -> str:
        named = {f"figure-{i}": figure for i, figure in enumerate(self.figures, 1)}
        places = [
            Place(figure_name, figure_of_name.layout.height or 360, False, figure_of_name.layout.width)
            for figure_name, figure_of_name in named.items()
        ]
        return write(named, tuple(places), self.columns, self.note)

    def _repr_mimebundle_(self, include=None, exclude=None, **options) -> dict:
        return {"text/html": self._written(output), "text/plain": f"{len(self)} figures"}

    def page(self, small: bool = True) -> str:
        """Return the HTML text of a page with these figures alone; `small` as in `web.library`."""
        return document(self._written(fragment), "figures", small)


def write_page(figure: Figure | Figures, path: str | Path) -> Path:
    """Write figures as a page of their own, and return its path; some 0.7 MB, which open without a network.

    The file is complete or not there at all.
    """
    with whole(Path(path)) as part_file:
        part_file.write_text(figure.page(), encoding="utf-8")
    return Path(path)
