"""Write the page: what was run, the table, the figures, and how to read each."""

import os
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from gpuschedlab._extras import need
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
from gpuschedlab.report.tables import comparison_table, run_table, trace_sentence

STRETCHES = 4500  # bars of all Gantts together: they are most of the page's own size
WINDOW = 12 * 3600.0  # s, of the Gantts


class _Figure(NamedTuple):
    """A section of the page: its anchor, heading, how to read it, figures (one a choice), choices, height in pixels."""

    anchor: str
    heading: str
    reading: str
    figures: list
    choices: list[str]
    height: int


def _sections(runs: dict, window: tuple[float, float], censored: bool) -> list[_Figure]:
    """Figures of the page in order."""
    share = max(100, STRETCHES // len(runs))
    gantts = [gantt(run, *window, limit=min(1500, share), name=name) for name, run in runs.items()]
    sections = [
        (
            "jct",
            "Job completion time",
            "Each line says which share of the jobs (up) was done within a time (right) of being submitted. Further left is better; "
            "where lines cross, one policy serves the quick jobs and the other the slow ones. The last percent at the top is the tail.",
            [jct_cdf(runs, 300, censored)],
            430,
        ),
        (
            "load",
            "Queue and utilisation over time",
            "Above, how many jobs wait for GPUs; below, which share of the GPUs that are up is in use. Both are averages over short "
            "spans. A long queue beside idle GPUs means that the free ones are too scattered, or kept back. "
            "Click a policy in the legend to hide it, double-click to see it alone.",
            [load_over_time(runs, 250)],
            520,
        ),
        (
            "gantt",
            "Who ran where",
            "A row is a node, a bar is a job, as high as its share of the node's GPUs; grey is idle. The darker and the more hatched, the "
            "more GPUs the job asked for. A red triangle ends a stretch before its job was done (preempted, moved or failed). "
            f"The {(window[1] - window[0]) / 3600:.3g} hours with the longest queues, for all policies the same. Hover for a job's whole "
            "life, drag to zoom.",
            gantts,
            620,
        ),
        (
            "slowdown",
            "Slowdown by job size",
            "Slowdown is completion time over duration: 1 is a job that ran at once. Left the typical job of each size, right the "
            "unluckiest percent. A line that rises to the right makes large jobs wait for small ones.",
            [slowdown_by_size(runs, censored)],
            430,
        ),
        (
            "fairness",
            "Finish-time fairness",
            "rho compares a job's completion time with what it would take on a fair share of the cluster of its own. Beyond the "
            "dotted line the job would have been better off alone; a steep line left of it is fair.",
            [fairness_cdf(runs, 300, censored)],
            400,
        ),
        (
            "interruptions",
            "Interruptions",
            "How often a job was interrupted on average. Each preemption costs a restart later, and its delay.",
            [interruptions(runs)],
            360,
        ),
    ]
    names = list(runs)
    return [
        _Figure(anchor, heading, reading, [figure(n) for n in numbers], names if len(numbers) > 1 else [], height)
        for anchor, heading, reading, numbers, height in sections
    ]


def _data(section: _Figure) -> str:
    """Figures as JSON that may stand in a script element."""
    parts = []
    for fig in section.figures:
        title = None if not section.choices else {"text": fig.layout.title.text, "font": {"size": 13}}
        fig.update_layout(title=title, height=section.height, margin={"t": 40 if title else 16})
        parts.append(fig.to_json(validate=False))
    return f"[{','.join(parts)}]".replace("<", "\\u003c")


def _html(section: _Figure) -> str:
    """One section of the page."""
    anchor, choice = section.anchor, ""
    if section.choices:
        options = "".join(f"<option>{escape(name)}</option>" for name in section.choices)
        choice = f'<p class="screen"><label for="{anchor}-choice">Policy</label><select id="{anchor}-choice">{options}</select></p>'
    return (
        f'<section id="{anchor}"><h2>{section.heading}</h2><figure aria-labelledby="{anchor}-reading">'
        f'<figcaption id="{anchor}-reading">{escape(section.reading)}</figcaption>{choice}'
        f'<div class="plot" style="height:{section.height}px" data-figures="{anchor}-data" data-choice="{anchor}-choice"></div>'
        f'</figure><script type="application/json" id="{anchor}-data">{_data(section)}</script></section>'
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
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{(here / 'page.css').read_text()}</style></head><body><header><h1>{escape(title)}</h1>",
        f'<p class="soft">{trace_sentence(runs, censored)}</p><nav aria-label="Sections">{links}<a href="#runs">What was run</a></nav></header><main>',
        comparison_table(runs, censored),
        *map(_html, sections),
        f'<section id="runs"><h2>What was run</h2>{run_table(runs)}</section></main>',
        "<footer>Made by gpuschedlab. This page holds all it needs: it can be kept, sent and opened without a network.</footer>",
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
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        kept = " The earlier file is kept." if path.exists() else ""
        raise RunError(
            f"report: found {error.strerror or error} on writing {len(text) / 1e6:.1f} MB to {path}; expected a folder with room "
            f"for them.{kept} Free some space or give another path."
        ) from error
    return path


