"""Write the page: what was run, the table, the figures, and how to read each."""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuschedlab._files import whole
from gpuschedlab.errors import RunError
from gpuschedlab.plots import (
    busy_window,
    draw,
    fairness_cdf,
    gantt,
    interruptions,
    jct_cdf,
    load_over_time,
    slowdown_by_size,
    web,
)
from gpuschedlab.plots.style import Drawing, as_runs
from gpuschedlab.plots.web.encode import encoded, plain
from gpuschedlab.report.outcome import outcome
from gpuschedlab.report.seeds import seeds_table
from gpuschedlab.report.tables import comparison_table, run_table, trace_sentence, versions_sentence
from gpuschedlab.sim.run import left_of

STRETCHES = 4500  # bars of all Gantts together: they are most of the page's own size
WINDOW = 12 * 3600.0  # s, of the Gantts


READING = {
    "jct": (
        "Job completion time",
        "Each line shows the share of jobs (up) that ended within a time (right) of their submission. Further left "
        "is better; where lines cross, one policy serves the quick jobs and the other the slow ones. The last percent "
        "at the top is the tail.",
    ),
    "load": (
        "Queue and utilisation over time",
        "Above, how many jobs wait for GPUs (logarithmic; a gap where none waits); below, which share of the GPUs that "
        "are up is in use. Both are averages over short spans. A long queue beside idle GPUs means that the free ones are "
        "too scattered, or kept back. Click a policy in the legend to hide it, double-click to see it alone.",
    ),
    "gantt": (
        "Jobs on each node",
        "A row is a node, a bar is a job, as high as its share of the node's GPUs; grey is idle. The darker and the "
        "more hatched, the more GPUs the job requested. A red triangle ends a stretch before its job was done "
        "(preempted, moved or failed). The {hours:.3g} hours with the longest queues, for all policies the same. "
        "Hover for a job's whole life, drag to zoom.",
    ),
    "slowdown": (
        "Slowdown by job size",
        "Slowdown is completion time over duration: 1 is a job that ran at once. Left the typical job of each size, "
        "right the unluckiest percent. A line that rises to the right makes large jobs wait for small ones.",
    ),
    "fairness": (
        "Finish-time fairness",
        "rho is a job's completion time over that on its own fair share of the cluster. "
        "Beyond the dotted line the job lost by sharing; a steep line left of it is fair.",
    ),
    "interruptions": (
        "Interruptions",
        "How often a job was interrupted on average. Each preemption costs a restart later, and its delay.",
    ),
}
HEIGHT = {"jct": 430, "load": 520, "gantt": 620, "slowdown": 430, "fairness": 400, "interruptions": 360}


class _Section(NamedTuple):
    """A section of the page: anchor, heading, how to read it, figures and, where there are several, their names."""

    anchor: str
    heading: str
    reading: str
    figures: list
    choices: list[str]


def _sections(runs: dict, window: tuple[float, float], censored: bool) -> list[_Section]:
    """Figures of the page in order."""
    share = min(1500, max(100, STRETCHES // len(runs)))
    numbers = {
        "jct": [jct_cdf(runs, 300, censored)],
        "load": [load_over_time(runs, 250)],
        "gantt": [gantt(run, *window, limit=share, name=name) for name, run in runs.items()],
        "slowdown": [slowdown_by_size(runs, censored)],
        "fairness": [fairness_cdf(runs, 300, censored)],
        "interruptions": [interruptions(runs)],
    }
    hours = (window[1] - window[0]) / 3600
    return [
        _Section(anchor, heading, reading.format(hours=hours), [_drawn(anchor, n) for n in numbers[anchor]], names)
        for anchor, (heading, reading) in READING.items()
        for names in [list(runs) if len(numbers[anchor]) > 1 else []]
    ]


def _drawn(anchor: str, numbers) -> Drawing:
    """Drawing of a section; queues are drawn on a logarithmic axis, or the longest would flatten all others."""
    if anchor != "load":
        return draw(numbers)
    drawing = draw(numbers._replace(waiting=np.where(numbers.waiting > 0, numbers.waiting, np.nan)))
    axis = drawing.layout["yaxis"] | {"type": "log", "dtick": 1}
    axis.pop("rangemode")
    return drawing._replace(layout=drawing.layout | {"yaxis": axis})


def _data(section: _Section) -> str:
    """Figures as JSON that may stand in a script element."""
    shown = [encoded(plain(drawing)) for drawing in section.figures]
    return json.dumps(shown, allow_nan=False).replace("<", "\\u003c")


def _html(section: _Section) -> str:
    """One section of the page."""
    anchor, choice = section.anchor, ""
    if section.choices:
        options = "".join(f"<option>{escape(name)}</option>" for name in section.choices)
        choose = f'<label for="{anchor}-choice">Policy</label><select id="{anchor}-choice">{options}</select>'
        choice = f'<p class="screen">{choose}</p>'
    plot = f'data-figures="{anchor}-data" data-choice="{anchor}-choice" data-height="{HEIGHT[anchor]}"'
    return (
        f'<section id="{anchor}"><h2>{section.heading}</h2><p id="{anchor}-reading">{escape(section.reading)}</p>{choice}'
        f'<div class="gpuschedlab-frame"><div class="plot" {plot} aria-labelledby="{anchor}-reading"></div></div>'
        f'<script type="application/json" id="{anchor}-data">{_data(section)}</script></section>'
    )


def page(
    runs: dict,
    title: str,
    window: tuple[float, float] | None = None,
    censored: bool = False,
    command: str = "",
    seeds: list[dict] | None = None,
) -> str:
    """Compose the page's HTML; parameters as in `write_report`."""
    runs = as_runs(runs)
    window = busy_window(runs, WINDOW) if window is None else window
    sections = _sections(runs, window, censored)
    here = files("gpuschedlab.report")
    links = "".join(f'<a href="#{s.anchor}">{s.heading}</a>' for s in sections)
    again = f'<section id="again"><h2>The command</h2><pre>{escape(command)}</pre></section>' if command else ""
    style = f"<style>{(here / 'page.css').read_text()}{web.css()}</style>"
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title>",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"{style}</head><body><header><h1>{escape(title)}</h1>",
        f'<p id="outcome">{outcome(runs, censored)}</p><p class="soft">{trace_sentence(runs, censored)}</p>',
        *(f"<p>{escape(line)}</p>" for line in left_of(runs)),
        f'<nav aria-label="Sections">{links}<a href="#runs">What was run</a></nav></header><main>',
        comparison_table(runs, censored),
        seeds_table(seeds) if seeds else "",
        *map(_html, sections),
        f'<section id="runs"><h2>What was run</h2>{run_table(runs)}</section>{again}</main>',
        f"<footer>Made by gpuschedlab. {versions_sentence(runs)}This page holds all it needs and opens without a network.</footer>",
        f"{web.library(small=False)}<script>{(here / 'page.js').read_text()}</script></body></html>",
    ]
    return "\n".join(parts)


def write_report(
    runs: dict,
    path: str | Path = "report.html",
    title: str | None = None,
    window: tuple[float, float] | None = None,
    censored: bool = False,
    command: str = "",
    seeds: list[dict] | None = None,
) -> Path:
    """Write one self-contained interactive page that compares runs.

    Parameters
    ----------
    runs : dict of str to Run
        Runs of one trace on one cluster, by the name of their policy.
    path : str or Path
        Where to.
    title : str, optional
        Heading of the page.
    window : tuple of float, optional
        Start and end (s) of the Gantt; the half day with the longest queues without.
    censored : bool
        As in `metrics.measured`.
    command : str
        What makes the page again, for its end.
    seeds : list of dict, optional
        Means over seeds with intervals (`report.over_seeds`), for a table of their own.

    Returns
    -------
    Path
        The file, put in place at once when complete: a reader never sees half of it.

    Raises
    ------
    RunError
        It could not be written (no such folder, no space); an earlier file of that name is kept.
    MissingExtra
        plotly is not installed.
    """
    count = len(as_runs(runs))
    text = page(
        runs, title or f"{count} {'policies' if count > 1 else 'policy'} compared", window, censored, command, seeds
    )
    return write_whole(Path(path), text)


def write_whole(path: Path, text: str) -> Path:
    """Write a text file completely or not at all.

    Raises
    ------
    RunError
        It could not be written; an earlier file of that name is kept.
    """
    try:
        with whole(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        kept = " The earlier file is kept." if path.exists() else ""
        raise RunError(
            f"report: found {error.strerror or error} on writing {len(text) / 1e6:.1f} MB to {path}; expected a "
            f"folder with room for them.{kept} Free some space or give another path."
        ) from error
    return path
