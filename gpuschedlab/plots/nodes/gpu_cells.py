"""The GPUs of each node at an instant: the jobs that hold them, and the free cells."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, bar, bars, marks, node_axis, spoken
from gpuschedlab.plots.plotter import plotter
from gpuschedlab.plots.sizes import SIZE_LABELS, size_bucket

TEXT = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "insidetextfont": {"size": 11}}


class Seats(NamedTuple):
    """All stretches of a run, seated on GPUs.

    name : name of the run; nodes : (N,) names; width : (N,) GPUs; moments : (m,) instants at which something
    started or ended, s; job, node : (k,) row in `Run.jobs` and node; start, end : (k,) s; bits : (k,) uint64, one bit
    per GPU. submit, demand : (J,) s and GPUs of all jobs; label : (J,) end of their names.
    """

    name: str
    nodes: tuple[str, ...]
    width: np.ndarray
    moments: np.ndarray
    job: np.ndarray
    node: np.ndarray
    start: np.ndarray
    end: np.ndarray
    bits: np.ndarray
    submit: np.ndarray
    demand: np.ndarray
    label: np.ndarray


class Cells(NamedTuple):
    """Cells of the nodes at an instant, each from GPU `low` to `high` of a node.

    time : s; nodes : (N,) names; width : GPUs of the widest; node, low, high : (c,) the cell; job : (c,) row in
    `Run.jobs`, -1 for a free cell; size : (c,) bucket of the job's demand; label : (c,) name of the job or GPUs of the
    free cell; fresh : (c,) whether the job started at this instant; free, largest : GPUs free in all, and in the
    largest free cell; waiting : demands of the jobs that wait, GPUs, in order of submission; event : what happened.
    """

    time: float
    nodes: tuple[str, ...]
    width: int
    node: np.ndarray
    low: np.ndarray
    high: np.ndarray
    job: np.ndarray
    size: np.ndarray
    label: np.ndarray
    fresh: np.ndarray
    free: int
    largest: int
    waiting: np.ndarray
    event: str

    def draw(self) -> Drawing:
        """A row per node, a column per GPU; free cells white, jobs by size, new ones marked."""
        hover = "%{hovertext}<extra></extra>"
        white = {"color": "#FFFFFF", "line": {"color": style.INK, "width": 1.5}}
        free = _bars(self, np.flatnonzero(self.job < 0))
        traces = [(free, bars(white, hover, name="free cell, in GPUs") | TEXT)]
        for bucket, name in enumerate(SIZE_LABELS):
            which = np.flatnonzero(self.size == bucket)
            look = bars(bar(bucket, style.RAMP[bucket]), hover, name=f"{name} GPUs") | TEXT
            traces.append((_bars(self, which) | {"showlegend": bool(len(which)) or bucket < 4}, look))
        fresh = np.flatnonzero(self.fresh)
        points = {"x": (self.low + self.high)[fresh] / 2, "y": self.node[fresh] + 0.12}
        traces.append((points, marks(style.STOP | {"symbol": "triangle-down", "size": 11}, name="just started")))
        waiting = " ".join(f"{g:g}" for g in self.waiting[:12]) + (" \u2026" if len(self.waiting) > 12 else "")
        title = (
            f"After {spoken(self.time)}: {self.free} GPUs free, the largest cell has {self.largest}; "
            f"waiting: {waiting or 'none'}<br><sup>{self.event}</sup>"
        )
        live = {"title_text": title, "xaxis_range": [0, self.width]} | node_axis(self.nodes)
        x, y = axis("GPU of the node", dtick=1, showgrid=False), axis("", showgrid=False, ticks="")
        return Drawing.of(traces, live, barmode="overlay", legend_title_text="job size", x=x, y=y)


def seats(run, buddy: bool | None = None) -> Seats:
    """Seat a run's stretches on GPUs, by replaying them in order of time.

    A run records nodes and counts. For the rule "buddy", the GPUs that a job holds follow from them, if jobs that start
    together do so in the order of the trace; with the other rules it has no meaning, and the first free ones are
    shown. Fractions of a GPU are shown as one.

    Parameters
    ----------
    run : Run
        What to show.
    buddy : bool, optional
        Whether cells are aligned; by default whether the run's placement was "buddy".

    Raises
    ------
    RunError
        Nothing ever ran.
    """
    from gpuschedlab.cluster.seats import seat  # compiled module: loaded only when cells are drawn

    ((name, run),) = as_runs(run).items()
    cluster, held = cluster_of(run), run.allocations.sort("start", "job", "node")
    if not held.height:
        raise RunError("cells: found a run in which no job ever ran; expected one or more. Run it for longer.")
    if buddy is None:
        buddy = run.info.get("knobs", {}).get("placement") == "buddy"
    start, end = held["start"].to_numpy(), held["end"].to_numpy()
    k, node = held.height, held["node"].to_numpy().astype(np.int64)
    times = np.concatenate([start, end])
    # Ends before starts of the same instant; starts in the order of the trace.
    ranks = np.concatenate([np.ones(k), np.zeros(k)])
    events = np.concatenate([np.arange(k), -1 - np.arange(k)])
    order = events[np.lexsort((np.arange(2 * k), ranks, times))]
    gpus = np.ceil(held["gpus"].to_numpy() - 1e-9).astype(np.int64)
    bits = seat(order, node, gpus, cluster.node_gpus.astype(np.int64), bool(buddy))
    names = tuple(f"{cluster.gpu_types[t]} node {n}" for n, t in enumerate(cluster.node_type))
    jobs = run.jobs
    columns = (jobs["submit"].to_numpy(), jobs["gpus"].to_numpy(), jobs["job_id"].str.tail(8).to_numpy())
    return Seats(
        name, names, cluster.node_gpus, np.unique(times), held["job"].to_numpy(), node, start, end, bits, *columns
    )


def free_cells(held: np.ndarray, width: int) -> list[tuple[int, int]]:
    """Split the free GPUs of a node into the largest aligned power-of-two cells: (first GPU, GPUs) of each.

    Parameters
    ----------
    held : (W,) bool array
        Whether each GPU is held.
    width : int
        GPUs of the node, at most W.

    Examples
    --------
    >>> free_cells(np.array([True, False, False, False, False, False, False, False]), 8)
    [(1, 1), (2, 2), (4, 4)]
    """
    parts, at = [], 0
    while at < width:
        size = 1
        if held[at]:
            at += 1
            continue
        while at % (2 * size) == 0 and at + 2 * size <= width and not held[at : at + 2 * size].any():
            size *= 2
        parts.append((at, size))
        at += size
    return parts


def _runs_of(bits: int) -> list[tuple[int, int]]:
    """Neighbouring bits that are set: (first, one past the last) of each stretch.

    Examples
    --------
    >>> _runs_of(0b1100110)
    [(1, 3), (5, 7)]
    """
    flags = [0, *(bits >> gpu & 1 for gpu in range(bits.bit_length())), 0]
    return [tuple(ends) for ends in np.flatnonzero(np.diff(flags)).reshape(-1, 2).tolist()]


def _held(seated: Seats, alive: np.ndarray) -> np.ndarray:
    """(N, W) whether each GPU is held."""
    wide = int(seated.width.max())
    mask = np.zeros(len(seated.width), np.uint64)
    np.bitwise_or.at(mask, seated.node[alive], seated.bits[alive])
    return (mask[:, None] >> np.arange(wide, dtype=np.uint64) & np.uint64(1)).astype(bool)


def cells(seated: Seats, moment: int) -> Cells:
    """Cells just after the moment-th instant at which something started or ended (0 to len(moments) - 1)."""
    time = float(seated.moments[int(np.clip(moment, 0, len(seated.moments) - 1))])
    alive = np.flatnonzero((seated.start <= time) & (seated.end > time))
    held = _held(seated, alive)
    free = [(n, *c) for n, row in enumerate(held) for c in free_cells(row, int(seated.width[n]))]
    rows = [(seated.node[i], low, high, seated.job[i]) for i in alive for low, high in _runs_of(int(seated.bits[i]))]
    rows += [(n, at, at + size, -1) for n, at, size in free]
    node, low, high, job = np.array(rows, np.int64).reshape(-1, 4).T
    size = np.where(job >= 0, size_bucket(seated.demand[job]), -1)
    label = np.where(job >= 0, seated.label[job], (high - low).astype(str))
    began = seated.job[alive[seated.start[alive] == time]]
    # A job that runs later but not now waits; after its last stretch a job is done.
    known = np.arange(len(seated.submit))
    later = np.isin(known, seated.job[seated.start > time]) & ~np.isin(known, seated.job[alive])
    waits = (seated.submit <= time) & later
    sizes = [c[2] for c in free]
    return Cells(
        *(time, seated.nodes, int(seated.width.max()), node, low, high, job, size, label, np.isin(job, began)),
        *(sum(sizes), max(sizes, default=0), seated.demand[waits], _event(seated, time, held)),
    )


def _event(seated: Seats, time: float, held: np.ndarray) -> str:
    """What started and ended at an instant, and what that did to the free cells of a node."""
    before = _held(seated, np.flatnonzero((seated.start < time) & (seated.end >= time)))
    parts = []
    for verb, when in (("ended", seated.end), ("started", seated.start)):
        jobs = np.unique(seated.job[when == time])
        if len(jobs):
            names = ", ".join(f"{seated.label[j]} ({seated.demand[j]:g} GPUs)" for j in jobs[:3])
            parts.append(f"{names}{' and others' if len(jobs) > 3 else ''} {verb}")
    changed = np.flatnonzero((before != held).any(axis=1))
    if len(changed):
        n = int(changed[0])
        sizes = ([str(size) for _, size in free_cells(row[n], int(seated.width[n]))] for row in (before, held))
        was, now = (" + ".join(each) or "none" for each in sizes)
        parts.append(f"free cells of {seated.nodes[n]}: {was} \u2192 {now}")
    return "; ".join(parts)


def _bars(numbers: Cells, which: np.ndarray) -> dict:
    jobs = numbers.job[which] >= 0
    texts = np.where(jobs, "job ", "free cell of ").astype(object) + numbers.label[which]
    return {
        "base": numbers.low[which],
        "x": (numbers.high - numbers.low)[which],
        "y": numbers.node[which] + 0.5,
        "width": np.full(len(which), 0.8),
        "text": np.where(jobs, numbers.label[which], numbers.label[which].astype(object) + " free"),
        "hovertext": texts + np.where(jobs, "", " GPUs").astype(object),
    }


plot_cells = plotter(cells)
