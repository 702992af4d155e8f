"""The front page: a day on a small cluster that plays without a kernel, and three lines of code with what they print."""

import contextlib
import io
from base64 import b64encode

import numpy as np
from gallery_pages import raw

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.plots import web
from gpuschedlab.plots.web.picture import png
from gpuschedlab.policies.steps import Case, Step
from gpuschedlab.widgets.parts.step_player import StepPlayer

HOUR = 3600.0
HOURS = tuple(range(2, 25, 2))
NODES, JOBS, LOAD = 4, 150, 1.2
LISTING = {
    "FIFO": "FIFO: the job that was submitted first",
    "SRTF": "SRTF: the job with the least time left, if durations are known",
    "Tiresias": "Tiresias: the job that has had the least GPU-time",
}
"""What each policy starts next, as the board lists it."""
HEAD = ("policy", "jobs waiting", "jobs done", "hours waited by all jobs")

THREE_LINES = """\
import gpuschedlab as lab

week = lab.generate("venus", days=7, jobs=10_000, load=0.9, cluster_gpus=560, rng=0)
runs = lab.compare(week, lab.Cluster.homogeneous(70, 8), [lab.Fifo(), lab.Tiresias(), lab.Themis()])
print(runs.show(["jct_mean", "jct_median", "jct_p99", "utilisation", "preemptions"]))
"""


class Board(StepPlayer):
    """The day under each policy: a slider over policies, and steps over hours; a picture stands there until scripts run."""

    def sentences(self) -> str:
        """Picture of the first policy's whole day, for light and dark pages."""
        case = self.cases[self.at]
        drawn = plots.draw(self.draw(case.steps[-1], case))
        pictures = ""
        for theme in ("light", "dark"):
            content, title = png(drawn, 900, 300, dark=theme == "dark")
            source = f"data:image/png;base64,{b64encode(content).decode()}"
            pictures += f'<img class="only-{theme}" src="{source}" width="900" height="300" alt="{title}">'
        return f'<div data-pictures="{self.identity}">{pictures}</div>'


class Day(plots.Gantt):
    """The jobs on each node so far, on the axis of the whole day."""

    __slots__ = ()

    def draw(self):
        """As a Gantt, without what a mouse would show of each job."""
        drawn = super().draw()
        data = [
            {name: part for name, part in trace.items() if name not in ("customdata", "hovertext")}
            for trace in drawn.data
        ]
        style = [{name: part for name, part in trace.items() if name != "hovertemplate"} for trace in drawn.style]
        return drawn._replace(data=data, style=style, live=drawn.live | {"xaxis_range": [0, HOURS[-1]]})


def board() -> str:
    """HTML of the board in Markdown; the page's own figures.js draws it."""
    player = Board(tuple(LISTING.values()), cases(), what="policy", draw=lambda step, case: step.state, height=300)
    html = player._repr_html_().replace(web.library(), f"<script>{web.script()}</script>")
    return raw(f'<div class="front-board">{html}</div><script src="_static/figures.js" defer></script>')


def cases() -> list[Case]:
    """The same day under each policy, hour by hour."""
    trace = lab.generate("venus", days=1, jobs=JOBS, load=LOAD, cluster_gpus=8 * NODES, rng=0)
    cluster = lab.Cluster.homogeneous(nodes=NODES, gpus_per_node=8)
    runs = {policy.name: policy for policy in (lab.Fifo(), lab.Srtf(), lab.Tiresias())}
    runs = {name: lab.simulate(trace, cluster, policy) for name, policy in zip(LISTING, runs.values(), strict=True)}
    tables = [[(name, *so_far(run, hour * HOUR)) for name, run in runs.items()] for hour in HOURS]
    found = []
    for place, (name, run) in enumerate(runs.items()):
        steps = []
        for hour, rows in zip(HOURS, tables, strict=True):
            drawn = Day(*plots.gantt(run, 0.0, hour * HOUR, name=name))
            _, waiting, done, hours = rows[place]
            read = f"After {hour} h under {name}, {done} jobs of {trace.height} are done and {waiting} wait."
            steps.append(Step(place + 1, read, f"Jobs have waited {hours} h in all.", rows, (place,), drawn))
        found.append(Case(name, HEAD, steps))
    return found


def so_far(run, now: float) -> tuple[str, str, str]:
    """Jobs that wait at an instant (s), jobs that are done, and the hours that all have waited until then."""
    time, waiting = (run.timeline[name].to_numpy() for name in ("time", "waiting"))
    past = time < now
    held = np.diff([*time[past], now])
    done = int((run.jobs["end"] <= now).sum())
    return str(waiting[past][-1]), str(done), f"{float(waiting[past] @ held) / HOUR:,.0f}"


def three_lines() -> str:
    """Three lines of code, and what they print."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(THREE_LINES, "three lines", "exec"), {})
    return f"```python\n{THREE_LINES}```\n\n```text\n{out.getvalue()}```"
