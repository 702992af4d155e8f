"""The Explorer's first screen from recorded states: every policy beside every other, on clusters of several sizes, without a kernel."""

from base64 import b64encode
from html import escape
from itertools import product

import numpy as np
import polars as pl
from gallery_pages import raw

from gpuschedlab.metrics.who_pays import Scope, compared, least_of
from gpuschedlab.plots import web
from gpuschedlab.plots.web.picture import png
from gpuschedlab.widgets import Explorer
from gpuschedlab.widgets.parts.first_screen import Screen, View, measured

PAYING, OTHERS = 2, 20
"""Jobs whose story is told: of each two policies those that pay most, and some of those that wait."""


class Recording:
    """Runs of an Explorer: its policies as they come, on its cluster with so many nodes."""

    def __init__(self, explorer: Explorer, nodes: tuple[int, ...], stories: bool = True):
        self.explorer, self.nodes, self.names = explorer, nodes, list(explorer.policies)
        self.runs = {each: explorer.run_of(self.setting(*each)) for each in product(nodes, self.names)}
        self.measured = {each: measured(run) for each, run in self.runs.items()}
        self.differences = {
            (n, a, b): compared(self.runs[n, a], self.runs[n, b], (a, b), Scope(place=explorer._place()))
            for n in nodes
            for a, b in product(self.names, repeat=2)
        }
        self.stories = {each: self.waits(*each) for each in self.runs} if stories else {}

    def setting(self, nodes: int, name: str):
        """Setting of the Explorer for a state."""
        return self.explorer.setting._replace(nodes=nodes, name=name, policy=self.explorer.policies[name])

    def rows(self, nodes: int) -> list[int]:
        """Jobs whose story is told, by row."""
        found = set()
        for a, b in product(self.names, repeat=2):
            later = self.differences[nodes, a, b].later.rows
            change = (self.measured[nodes, a].jct - self.measured[nodes, b].jct)[later]
            found |= {*later[np.argsort(-change, kind="stable")[:PAYING]].tolist()}
        waits = np.flatnonzero(self.measured[nodes, self.names[0]].queueing > 60.0)
        some = np.random.default_rng(nodes).choice(waits, min(OTHERS, len(waits)), replace=False)
        return sorted(found | {*some.tolist()})

    def waits(self, nodes: int, name: str) -> dict[str, list]:
        """By row of a job why it waited, and when it held GPUs (s)."""
        setting = self.setting(nodes, name)
        run = self.explorer.scenario_of(setting).run(setting.policy, log=True)
        return {str(row): [run.story(run.jobs["job_id"][row]), held(run, row)] for row in self.rows(nodes)}

    def pack(self) -> dict:
        """All that the page needs, as plain data: times to finish are those of the durations, and some more seconds."""
        jobs = self.runs[self.nodes[0], self.names[0]].jobs
        duration = np.rint(jobs["duration"].to_numpy())
        return {
            "place": self.explorer._place(),
            "names": self.names,
            "says": [self.setting(self.nodes[0], name).says("now") for name in self.names],
            "nodes": self.nodes,
            "cluster": {str(n): str(self.explorer.cluster_of(self.setting(n, self.names[0]))) for n in self.nodes},
            "weekday": self.screen(self.nodes[0], self.names[0], self.names[0]).compared.weekday,
            "ids": jobs["job_id"].cast(str).to_list(),
            "gpus": jobs["gpus"].to_list(),
            "submit": np.rint(jobs["submit"].to_numpy()).astype(int).tolist(),
            "duration": duration.astype(int).tolist(),
            "more": {key(*each): whole(found.jct - duration) for each, found in self.measured.items()},
            "table": {key(*each): [*found.table().values()] for each, found in self.measured.items()},
            "pairs": {key(*each): said(found) for each, found in self.differences.items()},
            "stories": {key(*each): found for each, found in self.stories.items()},
        }

    def html(self, nodes: int, name: str, against: str) -> str:
        """The screen, which shows a state first; where no script runs, its sentences and a picture."""
        d, drawn, pictures = (
            self.differences[nodes, name, against],
            self.screen(nodes, name, against).compared.jobs_there(),
            "",
        )
        for theme in ("light", "dark"):
            content, title = png(drawn, 900, 300, dark=theme == "dark")
            source = f"data:image/png;base64,{b64encode(content).decode()}"
            pictures += f'<img class="only-{theme}" src="{source}" width="900" height="300" alt="{escape(title)}">'
        words = f'<div class="gpuschedlab-said"><p class="gpuschedlab-sentence">{d.main}</p><p>{d.rest}</p></div>'
        begin = escape(f"policy={name}&against={against}&nodes={nodes}")
        return (
            f'<div class="gpuschedlab-explorer gpuschedlab-recorded" data-begin="{begin}">'
            f'<div class="gpuschedlab-controls">{words}</div>'
            f'<div class="gpuschedlab-frame"><div class="gpuschedlab-two">{pictures}</div></div>'
            f'<script type="text/plain">{web.packed(self.pack())}</script></div>'
        )

    def screen(self, nodes: int, name: str, against: str) -> Screen:
        """What the Explorer would show of a state."""
        both = [(nodes, name), (nodes, against)]
        return Screen(
            [self.runs[e] for e in both], [self.measured[e] for e in both], [name, against], [name, against], View()
        )


def key(*parts) -> str:
    """Name of a state, or of two policies on one cluster."""
    return "/".join(map(str, parts))


def whole(seconds: np.ndarray) -> list:
    """Whole seconds; None where there are none."""
    return [None if np.isnan(each) else round(each) for each in seconds.tolist()]


def said(d) -> list:
    """Both sentences, the verdict, the ratio with its interval, and by how much an end moves at least that counts (s)."""
    ratio = [d.value, d.low, d.high][: 3 if d.low == d.low and d.kind not in ("same", "self") else 1]
    return [d.main, d.rest, d.kind, [float(f"{each:.4g}") for each in ratio], least_of(d.now, d.before)]


def held(run, row: int) -> list[list[int]]:
    """When a job held GPUs, whole s."""
    spans = run.allocations.filter(pl.col("job") == row).select("start", "end").unique().sort("start").rows()
    return [[round(a), round(b)] for a, b in spans]


def block(recording: Recording, nodes: int, name: str, against: str) -> str:
    """The screen in Markdown; the page's own figures.js draws it."""
    css = (web.HERE.parent.parent / "widgets" / "parts" / "explorer.css").read_text(encoding="utf-8")
    scripts = "".join(f'<script src="_static/{script}.js" defer></script>' for script in ("figures", "recorded"))
    return raw(
        f'<div class="front-board"><style>{web.css()}{css}</style>{recording.html(nodes, name, against)}</div>{scripts}'
    )
