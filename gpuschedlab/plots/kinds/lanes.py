"""Stretches in lanes, a row for each job."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import HOUR, Drawing, axis, bar, bars, time_axis


class Lanes(NamedTuple):
    """Stretches of jobs by group, one row per job.

    title : words; jobs : (J,) names in order of submission; groups : names of the groups; row, group : (k,) job and group of each
    stretch; gpus : (k,) GPUs; begin, end : (k,) s; hover : what is shown of a stretch, NAME its group; colours : of some groups
    by name; over : traces over the lanes, as in `Drawing.of`; side : more of the time axis.
    """

    title: str
    jobs: tuple[str, ...]
    groups: tuple[str, ...]
    row: np.ndarray
    group: np.ndarray
    gpus: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    hover: str
    colours: dict[str, str] | None = None
    over: tuple = ()
    side: dict | None = None

    def draw(self) -> Drawing:
        """A colour per group."""
        traces = []
        for i, name in enumerate(self.groups):
            look = bars(bar(i, (self.colours or {}).get(name)), self.hover.replace("NAME", name), name=name)
            traces.append((self.stretches(self.group == i), look))
        y = axis("job", autorange="reversed", showticklabels=False, type="category", categoryorder="array")
        live = {"title_text": self.title, "yaxis_categoryarray": list(self.jobs)}
        x = time_axis(**self.side or {})
        return Drawing.of([*traces, *self.over], live, barmode="overlay", x=x, y=y)

    def stretches(self, mine) -> dict:
        """Bars of some stretches."""
        parts = {"base": self.begin[mine] / HOUR, "x": (self.end - self.begin)[mine] / HOUR}
        return {"y": [self.jobs[r] for r in self.row[mine]]} | parts | {"customdata": self.gpus[mine]}


JobLanes = Lanes
