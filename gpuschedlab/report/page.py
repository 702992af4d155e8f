"""Write the page: what was run, the table, the figures, and how to read each."""

from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from gpuschedlab._extras import need
from gpuschedlab._files import whole
from gpuschedlab.errors import RunError
from gpuschedlab.plots import (
    busy_window,
    fairness_cdf,
    figure,
    gantt,
    interruptions,
    jct_cdf,
    load_over_time,
    slowdown_by_size,
)
from gpuschedlab.plots.style import as_runs
from gpuschedlab.report.tables import comparison_table, run_table, trace_sentence, versions_sentence

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
        "Above, how many jobs wait for GPUs; below, which share of the GPUs that are up is in use. Both are averages "
        "over short spans. A long queue beside idle GPUs means that the free ones are too scattered, or reserved. "
        "Click a policy in the legend to hide it, double-click to see it alone.",
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
        _Section(anchor, heading, reading.format(hours=hours), [figure(n) for n in numbers[anchor]], names)
        for anchor, (heading, reading) in READING.items()
        for names in [list(runs) if len(numbers[anchor]) > 1 else []]
    ]


def _data(section: _Section) -> str:
    """Figures as JSON; plotly writes every "<" in it as an escape, so that it may stand in a script element."""
    parts = []
    for fig in section.figures:
        title = None if not section.choices else {"text": fig.layout.title.text, "font": {"size": 13}}
        fig.update_layout(title=title, height=HEIGHT[section.anchor], margin={"t": 44 if title else 34})
        parts.append(fig.to_json(validate=False))
    return f"[{','.join(parts)}]"


def _html(section: _Section) -> str:
    """One section of the page."""
    anchor, choice = section.anchor, ""
    if section.choices:
        options = "".join(f"<option>{escape(name)}</option>" for name in section.choices)
        choose = f'<label for="{anchor}-choice">Policy</label><select id="{anchor}-choice">{options}</select>'
        choice = f'<p class="screen">{choose}</p>'
    plot = f'data-figures="{anchor}-data" data-choice="{anchor}-choice" style="height:{HEIGHT[anchor]}px"'
    return (
        f'<section id="{anchor}"><h2>{section.heading}</h2><figure aria-labelledby="{anchor}-reading">'
        f'<figcaption id="{anchor}-reading">{escape(section.reading)}</figcaption>{choice}'
        f'<div class="plot" {plot}></div></figure>'
        f'<script type="application/json" id="{anchor}-data">{_data(section)}</script></section>'
    )


def page(runs: dict, title: str, window: tuple[float, float] | None = None, censored: bool = False) -> str:
    """Compose the page's HTML; parameters as in `write_report`."""
    runs = as_runs(runs)
    window = busy_window(runs, WINDOW) if window is None else window
    sections = _sections(runs, window, censored)
    here = files("gpuschedlab.report")
    links = "".join(f'<a href="#{s.anchor}">{s.heading}</a>' for s in sections)
    library = need("plotly.offline").get_plotlyjs().replace("</script", "<\\/script")
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title>",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{(here / 'page.css').read_text()}</style></head><body><header><h1>{escape(title)}</h1>",
        f'<p class="soft">{trace_sentence(runs, censored)}</p>',
        f'<nav aria-label="Sections">{links}<a href="#runs">What was run</a></nav></header><main>',
        comparison_table(runs, censored),
        *map(_html, sections),
        f'<section id="runs"><h2>What was run</h2>{run_table(runs)}</section></main>',
        f"<footer>Made by gpuschedlab. {versions_sentence(runs)}This page holds all it needs and opens without a network.</footer>",
        f"<script>{library}</script><script>{(here / 'page.js').read_text()}</script></body></html>",
    ]
    return "\n".join(parts)


def write_report(
    runs: dict,
    path: str | Path = "report.html",
    title: str | None = None,
    window: tuple[float, float] | None = None,
    censored: bool = False,
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
    text = page(runs, title or f"{count} {'policies' if count > 1 else 'policy'} compared", window, censored)
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
