"""Write the page: the workload, the table, the figures, and how to read each."""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from gpuschedlab._files import whole
from gpuschedlab.comparison import Comparison
from gpuschedlab.errors import RunError
from gpuschedlab.plots import (
    busy_window,
    fairness_cdf,
    gantt,
    interruptions,
    jct_cdf,
    load_over_time,
    slowdown_by_size,
    web,
)
from gpuschedlab.plots.kinds.style import Drawing, as_runs, colours_of
from gpuschedlab.plots.web.encode import encoded, plain
from gpuschedlab.report.html_tables import comparison_table, run_table, seeds_table, trace_sentence, versions_sentence
from gpuschedlab.sim.run import left_of

STRETCHES = 4500  # bars of all Gantts together: they are most of the page's own size
WINDOW = 12 * 3600.0  # s, of the Gantts


HEIGHTS = {"jct": 430, "load": 520, "gantt": 620, "slowdown": 430, "fairness": 400, "interruptions": 360}
"""Pixels of the figures of each section of `page.html`."""


def _drawings(runs: dict, window: tuple[float, float], censored: bool) -> dict[str, list[Drawing]]:
    """Return a dict of lists, the figures (`Drawing`) of each section, by its anchor: one, or one per run."""
    share = min(1500, max(100, STRETCHES // len(runs)))
    return {
        "jct": [jct_cdf(runs, 300, censored).draw()],
        "load": [_with_logarithmic_queues(load_over_time(runs, 250))],
        "gantt": [gantt(run, *window, limit=share, name=policy_name).draw() for policy_name, run in runs.items()],
        "slowdown": [slowdown_by_size(runs, censored).draw()],
        "fairness": [fairness_cdf(runs, 300, censored).draw()],
        "interruptions": [interruptions(runs).draw()],
    }


def _with_logarithmic_queues(drawing: Drawing) -> Drawing:
    """Return the `Drawing` with queues on a logarithmic axis: on a linear one the longest would flatten all others."""
    queue_traces = list(drawing.data)
    for trace_number, queue in enumerate(queue_traces):
        if trace_number % 2 == 0:
            queue_traces[trace_number] = queue | {"y": np.where(queue["y"] > 0, queue["y"], np.nan)}
    axis = drawing.layout["yaxis"] | {"type": "log", "dtick": 1}
    axis.pop("rangemode")
    return drawing._replace(data=queue_traces, layout=drawing.layout | {"yaxis": axis})


def _html(anchor: str, drawings: list[Drawing], policy_names: list[str]) -> str:
    """Return HTML of the figure of a section of the page, with a choice of the run if it has one for each."""
    choice = ""
    if len(drawings) > 1:
        options = "".join(f"<option>{escape(policy_name)}</option>" for policy_name in policy_names)
        choose = f'<label for="{anchor}-choice">Policy</label><select id="{anchor}-choice">{options}</select>'
        choice = f'<p class="screen">{choose}</p>'
    # JSON that may stand in a script element.
    figures_json = json.dumps([encoded(plain(drawing)) for drawing in drawings], allow_nan=False).replace(
        "<", "\\u003c"
    )
    plot = f'data-figures="{anchor}-data" data-choice="{anchor}-choice" data-height="{HEIGHTS[anchor]}"'
    return (
        f'{choice}<div class="gpuschedlab-frame"><div class="plot" {plot} aria-labelledby="{anchor}-reading"></div></div>'
        f'<script type="application/json" id="{anchor}-data">{figures_json}</script>'
    )


def _named_colours(compared: Comparison, censored: bool) -> str:
    """Return the style of the names in the first sentence, in the colours of their lines; "" if no policy has run."""
    colours = colours_of(compared.runs)
    roles = zip(("now", "ref"), compared.pair(censored=censored))
    return " ".join(f"b.{role} {{ color: {colours[policy_name]}; }}" for role, policy_name in roles)


def _page(compared: Comparison, title: str, window, censored: bool, command: str, seeds: list[dict] | None) -> str:
    """HTML of the page; parameters as in `write_report`."""
    runs = compared.runs
    if window is None:
        window = busy_window(runs, WINDOW)
    here = files("gpuschedlab.report")
    again = ""
    if command:
        again = f'<section id="again"><h2>The command</h2><pre>{escape(command)}</pre></section>'
    seeds_section = ""
    if seeds:
        seeds_section = seeds_table(seeds)
    return Template((here / "page.html").read_text()).substitute(
        {
            anchor: _html(anchor, section_drawings, list(runs))
            for anchor, section_drawings in _drawings(runs, window, censored).items()
        },
        title=escape(title),
        style=f"{(here / 'page.css').read_text()}{web.css()}{_named_colours(compared, censored)}",
        outcome=compared.html(censored=censored),
        trace=trace_sentence(runs, censored),
        left="".join(f"<p>{escape(rest_line)}</p>" for rest_line in left_of(runs)),
        comparison=comparison_table(runs, censored),
        seeds=seeds_section,
        hours=f"{(window[1] - window[0]) / 3600:.3g}",
        runs=run_table(runs),
        again=again,
        versions=versions_sentence(runs),
        library=web.library(small=False),
        script=(here / "page.js").read_text(),
    )


def write_report(
    runs: dict,
    path: str | Path = "report.html",
    title: str | None = None,
    window: tuple[float, float] | None = None,
    censored: bool = False,
    command: str = "",
    seeds: list[dict] | None = None,
) -> Path:
    """Write one self-contained interactive page that compares runs, and return its path.

    Parameters
    ----------
    runs : dict of str to Run, or Comparison
        Runs of one trace on one cluster, by the name of their policy. The sentences of a comparison stand at the head of the page.
    path : str or Path
        The file.
    title : str, optional
        Heading of the page.
    window : tuple of float, optional
        Start and end (s) of the Gantt; the half day with the longest queues without.
    censored : bool
        As in `metrics.measured`.
    command : str
        Code that makes the page again, for its end.
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
    compared = runs
    if not isinstance(runs, Comparison):
        compared = Comparison(as_runs(runs))
    runs = as_runs(compared.runs)
    path = Path(path)
    usual_title = f"{len(runs)} policy compared"
    if len(runs) > 1:
        usual_title = f"{len(runs)} policies compared"
    title = title or usual_title
    report_html = _page(compared, title, window, censored, command, seeds)
    try:
        with whole(path) as part_file:
            part_file.write_text(report_html, encoding="utf-8")
    except OSError as error:
        earlier = ""
        if path.exists():
            earlier = " The earlier file is kept."
        raise RunError(
            f"report: found {error.strerror or error} on writing {len(report_html) / 1e6:.1f} MB to {path}; expected a "
            f"folder with room for them.{earlier} Free some space or give another path."
        ) from error
    return path
