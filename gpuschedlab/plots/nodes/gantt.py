"""Gantt chart: the jobs on each node over time, in a window."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.usage import cluster_of, timeline_of
from gpuschedlab.plots.distributions import SIZE_LABELS, size_bucket
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, bar, bars
from gpuschedlab.plots.load import busy_window
from gpuschedlab.plots.plotter import plotter

LIFE = ("submit", "start", "queueing", "executed", "overhead", "lost", "preemptions", "restarts", "failures")
"""Columns of a job in its hover text, times in h."""
PARTS = 20  # lanes per GPU where jobs hold fractions of one
OTHERS = 7  # named groups when colouring by a column; the rest is "other"


class Gantt(NamedTuple):
    """Stretches of jobs on the nodes of a window, in pieces that are rectangles.

    name : name of the run; start, end : the window, s; nodes : (R,) names of the nodes, row by row; of : number of nodes
    of the cluster. job : (p,) row in `Run.jobs` of each piece; row : (p,) node row; low, high : (p,) the part that it
    takes of the row, 0 to 1; begin, finish : (p,) its time within the window, s; group : (p,) index into
    groups; groups : names; cut : (p,) the job lost its GPUs before it was done; over : (p,) it shares its
    GPUs with one drawn below; label : (p,) the end of the job's name; about : (p,) its name, size, user, model
    and end; life : (p, 9) the columns `LIFE`, in h and counts;
    shared : (p,) row of the job whose GPUs it shares as a guest, source : (p,) row of the job from whose result it started, -1: none.
    """

    name: str
    start: float
    end: float
    nodes: tuple[str, ...]
    of: int
    job: np.ndarray
    row: np.ndarray
    low: np.ndarray
    high: np.ndarray
    begin: np.ndarray
    finish: np.ndarray
    group: np.ndarray
    groups: tuple[str, ...]
    cut: np.ndarray
    over: np.ndarray
    label: np.ndarray
    about: np.ndarray
    life: np.ndarray
    shared: np.ndarray
    source: np.ndarray

    def draw(self) -> Drawing:
        """Return the `Drawing`: a row per node, a bar per stretch, as high as its share of the node's GPUs; idle GPUs grey."""
        sized = len(self.groups) == len(SIZE_LABELS)
        node_rows = np.arange(len(self.nodes))
        first_hour = self.start / style.HOUR
        last_hour = self.end / style.HOUR
        idle = {"base": np.full(len(node_rows), first_hour), "x": np.full(len(node_rows), last_hour - first_hour)}
        idle |= {"y": node_rows + 0.5, "width": np.full(len(node_rows), 0.9)}
        traces = [(idle, bars({"color": style.IDLE}, name="idle"))]
        for group_number, group in enumerate(self.groups):
            marker = bar(group_number, style.RAMP[group_number]) if sized else bar(group_number)
            group_look = bars(marker, HOVER, constraintext="inside") | style.INSIDE
            group_look["insidetextfont"] = {"size": 11, "color": marker["pattern"]["fgcolor"]}
            pieces = _bars(self, np.flatnonzero(self.group == group_number))
            traces.append((pieces | {"name": group, "showlegend": bool(group)}, group_look))
        cut = np.flatnonzero(self.cut)
        height = self.row + 0.06 + 0.44 * (self.low + self.high)
        stops = {"x": (self.finish[cut] / style.HOUR).astype("f4"), "y": height[cut].astype("f4")}
        traces.append((stops, style.marks(style.STOP | {"symbol": "triangle-left", "size": 7}, name="stopped early")))
        traces += _joins(self, height)
        # A name that the window makes too small is left out.
        layout = {"uniformtext": {"minsize": 8, "mode": "hide"}, "legend_title_text": "job size" if sized else ""}
        few = f", {len(node_rows)} of {self.of} nodes" if len(node_rows) < self.of else ""
        live = {"title_text": f"Jobs on each node: {self.name}{few}", "xaxis_range": [first_hour, last_hour]}
        x = style.time_axis(showgrid=False)
        y = axis("", showgrid=False, ticks="")
        return Drawing.of(traces, live | style.node_axis(self.nodes), barmode="overlay", x=x, y=y, **layout)


def gantt(
    run,
    start: float | None = None,
    end: float | None = None,
    nodes: int | list[int] = 24,
    by: str = "size",
    limit: int = 1500,
    name: str | None = None,
) -> Gantt:
    """Reduce a run's allocations to the rectangles of a window, and return them as `Gantt`.

    Parameters
    ----------
    run : Run
        The run to show.
    start, end : float, optional
        Window, s; by default the day in which the most jobs wait.
    nodes : int or list of int
        How many nodes, from the first, or their numbers.
    by : str
        Meaning of colour and pattern: "size" (GPUs requested) or a column of `Run.jobs` such as "model", "user",
        "vc", "kind".
    limit : int
        Most stretches drawn: rows beyond it are left out, from the bottom.
    name : str, optional
        Name of the run; by default that of its policy.

    Raises
    ------
    RunError
        No such column, no such node, or a window that ends before it starts.
    """
    ((default, run),) = as_runs(run).items()
    cluster = cluster_of(run)
    start, end, chosen_nodes = _window(run, start, end, nodes, cluster.total_nodes)
    row, held_stretches, row_count = _rows(run, start, end, chosen_nodes, limit)
    shown_nodes = chosen_nodes[:row_count]
    node_sizes = cluster.node_gpus[shown_nodes]
    types = cluster.node_type[shown_nodes]
    stretch, low, high, over = _pieces(row, held_stretches, node_sizes)
    held_stretches = held_stretches[stretch]
    row = row[stretch]
    codes, groups = _groups(run.jobs, by)
    job = held_stretches["job"].to_numpy()
    hover, job_end = _hover_texts(run, held_stretches)
    labels = tuple(
        f"{cluster.gpu_types[type_number]} node {node_number}"
        for node_number, type_number in zip(shown_nodes, types, strict=True)
    )
    finished = held_stretches["end"].to_numpy()
    # A job goes on after a stretch where it started or stopped sharing, moved, or was resized.
    begun = run.allocations.select("job", end="start", goes_on=True).unique()
    later = held_stretches.select("job", "end").join(begun, on=["job", "end"], how="left", maintain_order="left")
    no_follower = later["goes_on"].is_null().to_numpy()
    ends_with_job = finished >= job_end - 1e-6
    return Gantt(
        *(name or default, float(start), float(end), labels, cluster.total_nodes, job, row, low, high),
        begin=np.clip(held_stretches["start"].to_numpy(), start, end),
        finish=np.clip(finished, start, end),
        group=codes[job],
        groups=groups,
        cut=(finished < end) & ~ends_with_job & no_follower,
        over=over,
        label=hover["label"].to_numpy(),
        about=hover["about"].to_numpy(),
        life=hover.select(LIFE).to_numpy(),
        shared=_other(held_stretches, "partner", pl.col("guest")),
        source=_other(held_stretches, "source", pl.col("source") != pl.col("job")),
    )


def _other(held_stretches: pl.DataFrame, job_column: str, where: pl.Expr) -> np.ndarray:
    """Array (p,) of the other job's row in a column of the allocations if something holds, else -1, and if the run has none."""
    if job_column not in held_stretches.columns:
        return np.full(held_stretches.height, -1)
    other_job = pl.when(where).then(pl.col(job_column))
    row = other_job.fill_null(-1).cast(pl.Int64)
    return held_stretches.select(row).to_series().to_numpy()


def _window(
    run, window_start: float | None, window_end: float | None, nodes, total: int
) -> tuple[float, float, np.ndarray]:
    """Return a tuple: window's start and end, by default of the busiest day, and numbers of nodes.

    If one end is given, the window is the rest of the run.
    """
    if window_start is None and window_end is None:
        window_start, window_end = busy_window(run)
    time = timeline_of(run)["time"]
    window_start = float(time.min()) if window_start is None else window_start
    window_end = float(time.max()) if window_end is None else window_end
    chosen_nodes = np.arange(min(nodes, total)) if isinstance(nodes, int) else np.asarray(nodes, int)
    if (
        not window_start < window_end
        or not len(chosen_nodes)
        or not 0 <= chosen_nodes.min() <= chosen_nodes.max() < total
    ):
        raise RunError(
            f"gantt: found window {window_start:g} to {window_end:g} s and nodes {nodes}; expected start < end and nodes from 0 to "
            f"{total - 1}."
        )
    return window_start, window_end, chosen_nodes


def _rows(
    run, window_start: float, window_end: float, chosen_nodes: np.ndarray, limit: int
) -> tuple[np.ndarray, pl.DataFrame, int]:
    """Return a tuple: rows of stretches in the window and their frame, by (row, start), and how many rows fit within `limit`."""
    held_stretches = run.allocations.filter((pl.col("start") < window_end) & (pl.col("end") > window_start))
    row_of_node = np.full(cluster_of(run).total_nodes, -1)
    row_of_node[chosen_nodes] = np.arange(len(chosen_nodes))
    held_stretches = held_stretches.with_columns(row=row_of_node[held_stretches["node"]])
    held_stretches = held_stretches.filter(pl.col("row") >= 0).sort("row", "start", "job")
    row = held_stretches["row"].to_numpy()
    # The first row is drawn in any case.
    row_count = len(chosen_nodes) if len(row) <= limit else max(int(row[limit]), 1)
    drawn = int(np.searchsorted(row, row_count))
    return row[:drawn], held_stretches[:drawn], row_count


def _pieces(row: np.ndarray, held_stretches: pl.DataFrame, node_sizes: np.ndarray):
    """Return the rectangles of stretches as four arrays (p,): which stretch, low and high as shares of the row, and over."""
    from gpuschedlab.plots.nodes.packed import pack_lanes  # compiled module: loaded only when a Gantt is drawn

    gpus = held_stretches["gpus"].to_numpy()
    lanes_per_gpu = 1 if np.all(gpus == np.round(gpus)) else PARTS
    width = np.maximum(1, np.ceil(gpus * lanes_per_gpu - 1e-9)).astype(np.int64)
    times = (held_stretches["start"].to_numpy().astype(float), held_stretches["end"].to_numpy().astype(float))
    lanes = node_sizes.astype(np.int64) * lanes_per_gpu
    stretch, low, high, over = pack_lanes(row.astype(np.int64), *times, width, lanes)
    lane_count = lanes[row[stretch]]
    return stretch, low / lane_count, high / lane_count, over


def _groups(jobs: pl.DataFrame, by: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a tuple: group of each job of the run (n,), and the groups' names: sizes in order, others by how common they are."""
    if by == "size":
        return size_bucket(jobs["gpus"].to_numpy()), tuple(f"{label} GPUs" for label in SIZE_LABELS)
    if by not in jobs.columns:
        raise RunError(
            f"gantt: found no column {by!r} to colour by; expected 'size' or one of {', '.join(jobs.columns)}."
        )
    group_of_job = jobs[by].cast(pl.Utf8).fill_null("unknown")
    group_counts = group_of_job.value_counts(sort=True)
    group_counts = group_counts.sort(["count", by], descending=[True, False])
    common = group_counts[by].to_list()[:OTHERS]
    codes = group_of_job.replace_strict(common, range(len(common)), default=OTHERS, return_dtype=pl.Int64).to_numpy()
    # Always the same number of groups, so that a figure keeps its traces when the run changes.
    unused = [""] * (OTHERS - len(common))
    return codes, (*common, *unused, "other")


def _hover_texts(run, held_stretches: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray]:
    """Return a tuple: frame of the hover text of each piece's job, and array of when it ended (nan: never)."""
    jobs = run.jobs
    job = held_stretches["job"].to_numpy()
    jobs_of_pieces = jobs[job]
    gpus = pl.col("gpus").round(2).cast(pl.Utf8)
    details = [pl.format("{} GPUs", gpus.str.strip_suffix(".0"))]
    details += [
        pl.format(f"{job_column} {{}}", pl.col(job_column))
        for job_column in ("model", "user", "vc", "kind")
        if job_column in jobs.columns
    ]
    end_hour = pl.col("end") / style.HOUR
    ended = pl.format("ended at {} h", end_hour.round(2)).fill_null("had not ended")
    job_id = pl.col("job_id").cast(pl.Utf8)
    hours = [(pl.col(job_column) / style.HOUR).cast(pl.Float32) for job_column in LIFE[:6]]
    detailed = pl.concat_str(*details, separator=", ", ignore_nulls=True)
    hover_texts = jobs_of_pieces.select(
        job_id.str.tail(12).alias("label"),
        pl.format("{}</b>: {}<br>{}, ", "job_id", detailed, ended).alias("about"),
        *hours,
        *(pl.col(job_column).cast(pl.Float32) for job_column in LIFE[6:]),
    )
    return hover_texts, jobs_of_pieces["end"].to_numpy()


def _joins(chart: Gantt, height: np.ndarray) -> list[tuple[dict, dict]]:
    """Return a list of two pairs (trace, look): marks on guests of another's GPUs, lines to starts that took another's result."""
    label_of_job = dict(zip(chart.job, chart.label))
    guest = np.flatnonzero(chart.shared >= 0)
    x = []
    y = []
    link_texts = []
    first_pieces = np.unique(chart.job, return_index=True)[1]
    for piece in first_pieces[chart.source[first_pieces] >= 0]:
        done = chart.finish <= chart.begin[piece] + 1e-6
        if len(pieces_before := np.flatnonzero((chart.job == chart.source[piece]) & done)):
            source_piece = pieces_before[chart.finish[pieces_before].argmax()]
            x += [chart.finish[source_piece] / style.HOUR, chart.begin[piece] / style.HOUR, np.nan]
            y += [height[source_piece], height[piece], np.nan]
            link_texts += [f"{chart.label[piece]} starts from the result of {chart.label[source_piece]}"] * 3
    shared_texts = [
        f"{chart.label[guest_piece]} shares the GPUs of {label_of_job.get(chart.shared[guest_piece], 'another job')}"
        for guest_piece in guest
    ]
    white = {"color": "#FFFFFF", "symbol": "diamond", "size": 9, "line": {"color": style.INK, "width": 1.5}}
    line = {"line": {"color": style.INK, "width": 2, "dash": "dot"}, "mode": "lines+markers"}
    hover = "%{text}<extra></extra>"
    links = {"x": np.array(x, "f4"), "y": np.array(y, "f4"), "text": link_texts, "showlegend": bool(x)}
    shares = {
        "x": (chart.begin[guest] / style.HOUR).astype("f4"),
        "y": height[guest].astype("f4"),
        "text": shared_texts,
    }
    return [
        (links, style.marks(white | {"symbol": "circle"}, hover, name="starts from its result") | line),
        (shares | {"showlegend": bool(len(guest))}, style.marks(white, hover, name="shares its GPUs")),
    ]


HOVER = (
    "<b>job %{hovertext}submitted at %{customdata[0]:.2f} h, first started at %{customdata[1]:.2f} h<br>"
    "waited %{customdata[2]:.2f} h, held GPUs %{customdata[3]:.2f} h<br>"
    "(%{customdata[4]:.2f} h in restarts, %{customdata[5]:.2f} h lost)"
    "<br>%{customdata[6]:d} preemptions, %{customdata[7]:d} restarts, %{customdata[8]:d} failures<extra></extra>"
)


def _bars(chart: Gantt, group_pieces: np.ndarray) -> dict:
    """Return a dict of one group's rectangles as horizontal bars, named if there is room, on a figure of usual size."""
    middle = (chart.low + chart.high)[group_pieces] / 2
    # Of two jobs that share GPUs, one is drawn narrower, over the other.
    height = (chart.high - chart.low)[group_pieces] * np.where(chart.over[group_pieces], 0.45, 0.96)
    begin_hour = chart.begin[group_pieces] / style.HOUR
    finish = chart.finish[group_pieces] / style.HOUR
    letters = np.char.str_len(chart.label[group_pieces].astype(str))
    node_count = len(chart.nodes)
    wide = (chart.finish - chart.begin)[group_pieces] > 0.008 * (letters + 1) * (chart.end - chart.start)
    named = wide & (height > max(0.2, min(node_count / 20, 0.6), node_count / 45))
    return {
        "base": begin_hour.astype("f4"),
        "x": (finish - begin_hour).astype("f4"),
        "y": (chart.row[group_pieces] + 0.06 + 0.88 * middle).astype("f4"),
        "width": (0.88 * height).astype("f4"),
        "text": np.where(named, chart.label[group_pieces], ""),
        "hovertext": chart.about[group_pieces],
        "customdata": chart.life[group_pieces],
    }


plot_gantt = plotter(gantt)
