"""The GPUs of each node at an instant: the jobs that hold them, and the free cells."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.plots.distributions import SIZE_LABELS, size_bucket
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, bar, bars, marks, node_axis, spoken
from gpuschedlab.plots.plotter import plotter

TEXT = style.INSIDE | {"insidetextfont": {"size": 11}}


class _Cells(NamedTuple):
    """Cells of neighbouring GPUs, drawn as bars.

    node : (c,) node; low, high : (c,) first GPU, and one past the last; label : (c,) text.
    """

    node: np.ndarray
    low: np.ndarray
    high: np.ndarray
    label: np.ndarray

    def some(self, which: np.ndarray) -> "_Cells":
        """Return the `_Cells` of a mask (c,)."""
        return _Cells(self.node[which], self.low[which], self.high[which], self.label[which])

    def as_bars(self, before: str = "job ", after: str = "", beside: str = "") -> dict:
        """Return a dict of bars with words around their labels: before and after under the mouse, beside in the bar."""
        cell_labels = self.label.astype(object)
        return {
            "base": self.low,
            "x": self.high - self.low,
            "y": self.node + 0.5,
            "width": np.full(len(self.node), 0.8),
            "text": cell_labels + beside,
            "hovertext": before + cell_labels + after,
        }


class Seats(NamedTuple):
    """All stretches of a run, seated on GPUs.

    nodes : (N,) names; width : (N,) GPUs; moments : (m,) instants at which something
    started or ended, s; job, node : (k,) row in `Run.jobs` and node; start, end : (k,) s; bits : (k,) uint64, one bit
    per GPU. submit, demand : (J,) s and GPUs of all jobs; label : (J,) end of their names.
    """

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


def seats(run, buddy: bool | None = None) -> Seats:
    """Return `Seats`: a run's stretches seated on GPUs, by replaying them in order of time.

    A run records nodes and counts. For the rule "buddy", the GPUs that a job holds follow from them, if jobs that start
    together do so in the order of the trace; with the other rules it has no meaning, and the first free ones are
    shown. Fractions of a GPU are shown as one.

    Parameters
    ----------
    run : Run
        The run to show.
    buddy : bool, optional
        Whether cells are aligned; by default whether the run's placement was "buddy".

    Raises
    ------
    RunError
        Nothing ever ran.
    """
    from gpuschedlab.cluster.seats import seat  # compiled module: loaded only when cells are drawn

    (run,) = as_runs(run).values()
    cluster = cluster_of(run)
    held_stretches = run.allocations.sort("start", "job", "node")
    if not held_stretches.height:
        raise RunError("cells: found a run in which no job ever ran; expected one or more. Run it for longer.")
    if buddy is None:
        buddy = run.info.get("knobs", {}).get("placement") == "buddy"
    stretch_start = held_stretches["start"].to_numpy()
    stretch_end = held_stretches["end"].to_numpy()
    stretch = np.arange(held_stretches.height)
    node = held_stretches["node"].to_numpy().astype(np.int64)
    times = np.concatenate([stretch_end, stretch_start])
    # Ends before starts of the same instant; starts in the order of the trace.
    order = np.concatenate([-1 - stretch, stretch])[np.argsort(times, kind="stable")]
    gpus = np.ceil(held_stretches["gpus"].to_numpy() - 1e-9)
    bits = seat(order, node, gpus.astype(np.int64), cluster.node_gpus.astype(np.int64), bool(buddy))
    node_names = tuple(
        f"{cluster.gpu_types[type_number]} node {node_number}"
        for node_number, type_number in enumerate(cluster.node_type)
    )
    jobs = run.jobs
    ends_of_names = jobs["job_id"].str.tail(8)
    return Seats(
        nodes=node_names,
        width=cluster.node_gpus,
        moments=np.unique(times),
        job=held_stretches["job"].to_numpy(),
        node=node,
        start=stretch_start,
        end=stretch_end,
        bits=bits,
        submit=jobs["submit"].to_numpy(),
        demand=jobs["gpus"].to_numpy(),
        label=ends_of_names.to_numpy(),
    )


def free_cells(held: np.ndarray, width: int) -> list[tuple[int, int]]:
    """Return a list of a node's largest aligned power-of-two free cells, as tuples (first GPU, GPUs), from the GPUs held (W,).

    `width` is the number of its GPUs.
    """
    free_parts = []
    first_gpu = 0
    while first_gpu < width:
        cell_size = 1
        while (
            first_gpu % (2 * cell_size) == 0
            and first_gpu + 2 * cell_size <= width
            and not held[first_gpu : first_gpu + 2 * cell_size].any()
        ):
            cell_size *= 2
        if not held[first_gpu]:
            free_parts.append((first_gpu, cell_size))
        first_gpu += cell_size
    return free_parts


def _runs_of(bits: int) -> list[tuple[int, int]]:
    """Return a list of each stretch of neighbouring bits that are set, a tuple (first, one past the last)."""
    flags = [bits >> gpu & 1 for gpu in range(bits.bit_length())]
    changes = np.flatnonzero(np.diff([0, *flags, 0]))
    return [tuple(ends) for ends in changes.reshape(-1, 2).tolist()]


def _held(seated: Seats, alive: np.ndarray) -> np.ndarray:
    """Mask (N, W) of the GPUs that are held."""
    mask = np.zeros(len(seated.width), np.uint64)
    np.bitwise_or.at(mask, seated.node[alive], seated.bits[alive])
    gpus = np.arange(seated.width.max(), dtype=np.uint64)
    flags = mask[:, None] >> gpus & np.uint64(1)
    return flags.astype(bool)


def cells(seated: Seats, moment: int) -> Drawing:
    """Return a `Drawing` of the cells just after the moment-th instant at which a job started or ended.

    Moments are 0 to len(moments) - 1.

    A row per node, a column per GPU; free cells white, jobs by size, new ones marked. The title names the events.
    """
    moment_number = int(np.clip(moment, 0, len(seated.moments) - 1))
    time = float(seated.moments[moment_number])
    alive = np.flatnonzero((seated.start <= time) & (seated.end > time))
    held_gpus = _held(seated, alive)
    free = [
        (node_number, *free_cell)
        for node_number, row in enumerate(held_gpus)
        for free_cell in free_cells(row, int(seated.width[node_number]))
    ]
    cell_rows = [
        (seated.node[i], low, high, seated.job[i]) for i in alive for low, high in _runs_of(int(seated.bits[i]))
    ]
    cell_rows += [(node_number, first_gpu, first_gpu + cell_size, -1) for node_number, first_gpu, cell_size in free]
    node, low, high, job = np.array(cell_rows, np.int64).reshape(-1, 4).T
    bucket_of_cell = np.where(job >= 0, size_bucket(seated.demand[job]), -1)
    label = np.where(job >= 0, seated.label[job], (high - low).astype(str))
    drawn = _Cells(node, low, high, label)

    white = {"color": "#FFFFFF", "line": {"color": style.INK, "width": 1.5}}
    hover = "%{hovertext}<extra></extra>"
    blank = drawn.some(job < 0).as_bars("free cell of ", " GPUs", " free")
    traces = [(blank, bars(white, hover, name="free cell, in GPUs") | TEXT)]
    for bucket, size_label in enumerate(SIZE_LABELS):
        of_size = bucket_of_cell == bucket
        in_legend = {"showlegend": bool(of_size.any()) or bucket < 4}
        size_look = bars(bar(bucket, style.RAMP[bucket]), hover, name=f"{size_label} GPUs") | TEXT
        traces.append((drawn.some(of_size).as_bars() | in_legend, size_look))
    fresh = np.isin(job, seated.job[alive[seated.start[alive] == time]])
    points = {"x": (low + high)[fresh] / 2, "y": node[fresh] + 0.12}
    traces.append((points, marks(style.STOP | {"symbol": "triangle-down", "size": 11}, name="just started")))
    live = {"title_text": _title(seated, time, alive, held_gpus, [free_cell[2] for free_cell in free])}
    most_gpus = int(seated.width.max())
    live |= {"xaxis_range": [0, most_gpus]} | node_axis(seated.nodes)
    x = axis("GPU of the node", dtick=1, showgrid=False)
    y = axis("", showgrid=False, ticks="")
    return Drawing.of(traces, live, barmode="overlay", legend_title_text="job size", x=x, y=y)


def _title(seated: Seats, time: float, alive: np.ndarray, held_gpus: np.ndarray, free: list[int]) -> str:
    """Title text: free cells and demands of waiting jobs, GPUs, in order of submission; below them the events."""
    # A job that runs later but not now waits; after its last stretch a job is done.
    all_jobs = np.arange(len(seated.submit))
    later = np.isin(all_jobs, seated.job[seated.start > time]) & ~np.isin(all_jobs, seated.job[alive])
    waits = seated.demand[(seated.submit <= time) & later]
    waiting = " ".join(f"{waiting_gpus:g}" for waiting_gpus in waits[:12]) + (" \u2026" if len(waits) > 12 else "")
    return (
        f"After {spoken(time)}: {sum(free)} GPUs free, the largest cell has {max(free, default=0)}; "
        f"waiting: {waiting or 'none'}<br><sup>{_event(seated, time, held_gpus)}</sup>"
    )


def _event(seated: Seats, time: float, held_gpus: np.ndarray) -> str:
    """Text on the jobs that started and ended at an instant, and on the change in the free cells of a node."""
    held_before = _held(seated, np.flatnonzero((seated.start < time) & (seated.end >= time)))
    event_clauses = []
    for verb, when in (("ended", seated.end), ("started", seated.start)):
        jobs = np.unique(seated.job[when == time])
        if len(jobs):
            job_texts = ", ".join(f"{seated.label[j]} ({seated.demand[j]:g} GPUs)" for j in jobs[:3])
            event_clauses.append(f"{job_texts}{' and others' if len(jobs) > 3 else ''} {verb}")
    changed = np.flatnonzero((held_before != held_gpus).any(axis=1))
    if len(changed):
        changed_node = int(changed[0])
        width = int(seated.width[changed_node])
        was = _sizes_of_free(held_before[changed_node], width)
        became = _sizes_of_free(held_gpus[changed_node], width)
        event_clauses.append(f"free cells of {seated.nodes[changed_node]}: {was} \u2192 {became}")
    return "; ".join(event_clauses)


def _sizes_of_free(held_gpus: np.ndarray, width: int) -> str:
    """Text of the sizes of a node's free cells as a sum, "none" if all its GPUs are held."""
    cell_sizes = [str(cell_size) for _, cell_size in free_cells(held_gpus, width)]
    return " + ".join(cell_sizes) or "none"


plot_cells = plotter(cells)
