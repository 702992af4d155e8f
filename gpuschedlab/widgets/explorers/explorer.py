"""The Explorer: what would this policy, with these knobs, have done with this trace on this cluster?"""

import re
from html import escape

from gpuschedlab import plots
from gpuschedlab.metrics import MetricTable, compare
from gpuschedlab.sim.run import left_of
from gpuschedlab.widgets.explorers.explorer_panel import Panel
from gpuschedlab.widgets.explorers.first_screen import COLUMNS, Screen, View, measured
from gpuschedlab.widgets.explorers.own_log import OwnLog
from gpuschedlab.widgets.explorers.runs_of import Runs, Setting
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer

FIRST = (
    *(plots.Place(name, 560, least=240) for name in ("jobs", "change")),
    *(plots.Place(name, words=True) for name in ("story", "table")),
)
"""The first screen."""
HOUR, WINDOW, ROWS = 3600.0, 6 * 3600.0, 16
"""Length of a Gantt where no time is framed, s, and its nodes."""


class Explorer(Runs, BaseExplorer):
    """Pick a policy, move its knobs, and see in one sentence and two figures who gains and who pays against another.

    A click on a dot, or the arrow keys, tell the story of a job; a drag in a figure keeps some of the jobs; *more* has the trace, the
    cluster, all knobs, further figures, the code and the download.

    Parameters
    ----------
    trace : Scenario or Recipe; or polars.DataFrame, Intake, callable, or dict of them by name; optional
        Traces, or functions of a seed that make one; by default a generated week (`widgets.Generated`). After a scenario
        come the policies; so after a recipe, whose own are the default. Its other parts are those of the first seed. A log
        (`gpuschedlab.intake`) comes with its own cluster, where it has one, and with its report.
    cluster : Cluster or dict of str to Cluster, optional
        By default 70 nodes of 8 GPUs. A cluster with the name of a trace is chosen together with it.
    policies : list or dict, optional
        Policies or policy classes; by default those of `policies.ALL` that need nothing but a trace.
    pinned : str, optional
        Name of the policy that is compared with; by default the first one, and the second one is chosen.
    seed : int, optional
        Where the seed begins, by default the scenario's or 0: another seed is another trace, where traces are functions of it.
    cache : Cache, optional
        Where runs are kept.
    upload : bool
        Whether a log of one's own can be sent from the browser.
    figures : iterable of callable
        Figures of one's own, seen with *more*: functions of the runs by name (`{"Srtf": run, ...}`) that return the
        numbers of one figure: `plots.Lines`, or whatever else `plots.draw` takes.
    guess : bool
        Whether the reader guesses first, where one looks on: the answer is seen after that.
    **parts
        Of the scenarios, where they are not given: `history, speeds, estimator, delays, until`.

    Raises
    ------
    LabError
        Something does not fit, or the first run fails: in the cell that makes the explorer.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> from gpuschedlab.check.samples import small_trace
    >>> explorer = Explorer(small_trace(), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Tiresias])
    >>> explorer.knobs["queues"].value = 3  # as a hand would move the slider
    >>> explorer.run.info["knobs"]["thresholds"]
    [57600.0, 576000.0]
    """

    def __init__(
        self,
        trace=None,
        cluster=None,
        policies=None,
        *,
        pinned=None,
        seed=None,
        cache=None,
        upload=False,
        figures=(),
        guess=False,
        **parts,
    ):
        super().__init__(cache)
        self._own = {getattr(make, "__name__", f"figure {i + 1}"): make for i, make in enumerate(figures)}
        rare = {"jct": 300, "load": 300, "gantt": 430} | dict.fromkeys(self._own, 300)
        self.places = (*FIRST, *(plots.Place(name, height, more=True) for name, height in rare.items()))
        self.view, self._mark, self._kept, self.guess, self._stories = View(), "", None, guess, {}
        own = self._take(trace, cluster, policies, seed, parts)
        names = list(self.policies)
        self.door = OwnLog(self) if upload else None
        self.panel = Panel(self, names[min(1, len(names) - 1)], pinned or names[0], own)
        self._open()

    @property
    def knobs(self):
        """Controls of the present policy, by knob."""
        return self.panel.knobs

    @property
    def setting(self) -> Setting:
        """Present configuration."""
        return self._setting(self.panel.policy.value, self.knobs.thing)

    @property
    def pinned(self) -> Setting:
        """What is compared with, on the trace that is shown: a policy as it comes, or what was kept."""
        name, now = self.panel.against.value, self.setting
        if self._kept is None or name in self.policies:
            return now._replace(name=name, policy=self.policies[name])
        kept = self._kept
        if kept.trace != now.trace and now.trace in self.clusters:  # a cluster goes with its trace
            kept = kept._replace(cluster=now.cluster, nodes=now.nodes)
        return kept._replace(trace=now.trace, seed=now.seed)

    def _compute(self):
        both = now, before = self.setting, self.pinned
        runs = [self.run_of(each) for each in both]
        found = [
            self.cache.get(("measured", each), lambda run=run: measured(run)).value for each, run in zip(both, runs)
        ]
        names = [self._name(now, before), self._name(before, now)]
        if self.view.job is not None and self.view.job >= runs[0].jobs.height:
            self.view = View(self.view.by)
        self.runs, self.seconds = dict(zip(names, runs)), float(runs[0].info["seconds"])
        short = ["now", "before"] if now.name == before.name else [now.name, before.name]
        return Screen(runs, found, names, short, self.view)

    def _name(self, setting: Setting, other: Setting) -> str:
        """Name of a configuration in a sentence, with its cluster where the other's is not the same."""
        resized = (setting.cluster, setting.nodes) != (other.cluster, other.nodes)
        return setting.called(self.policies.get(setting.name), str(self.cluster_of(setting)) if resized else "")

    def _numbers(self, screen: Screen) -> dict:
        self.screen = screen
        shown = {"jobs": self._record(), "change": screen.compared.changes()}
        rare = ("jct", "load", "gantt", *self._own) if self.panel.opened else ()
        return shown | {name: self._rare(name) for name in rare}

    def _rare(self, name: str):
        """Numbers of a figure that is seen with *more*."""
        if name == "gantt":
            return self._gantt()
        made = {"jct": plots.jct_cdf, "load": lambda runs: plots.load_over_time(runs, 500)} | self._own
        return made[name](self.runs)

    def _show(self, screen: Screen):
        self._draw(self._numbers(screen))
        d = screen.difference
        left = "".join(f" {escape(line.rstrip('.'))}." for line in left_of(self.runs))
        small = " gpuschedlab-long" * (len(re.sub("<[^>]*>", "", d.main)) > 115)
        self.status.value = f'<p class="gpuschedlab-sentence{small}">{d.main}</p><p>{d.rest}{left}</p>'
        now, before = self.setting, self.pinned
        words = now.says("now") + (f" {before.says('ref')}" if now.name != before.name else "")
        words += f" {self.run.jobs.height:,} jobs on {escape(str(self.cluster_of(now)))}."
        self.panel.show(words, self.knobs.note, self.reports.get(now.trace))

    def _why(self) -> dict:
        """Why the job that is looked at waited, now and before: what the log of its waits says, or else the runs' frames."""
        if self.view.job is None:
            return {}
        job, settings = str(self.run.jobs["job_id"][self.view.job]), (self.setting, self.pinned)
        known = [self._stories.get((each, job)) for each in settings]
        why = [words or self.run_of(each).story(job) for words, each in zip(known, settings)]
        return {"id": job, "why": why, "logged": None not in known}

    def log(self):
        """Log the waits of the job that is looked at, and tell its story by that."""
        job = str(self.run.jobs["job_id"][self.view.job])
        for each in {self.setting, self.pinned} - {setting for setting, known in self._stories if known == job}:
            self._stories[each, job] = self.scenario_of(each).run(each.policy, log=job).story(job)
        self._draw({"jobs": self._record()})

    def _record(self):
        """What a page draws the first screen from."""
        found = self.screen.record(self._why()) | {"mark": self._mark}
        if self.guess:  # first
            d, group = self.screen.whole, self.screen.whole.later.group
            true = {"group": group.words if group else "", "nobody": not len(d.later.rows)}
            found["guess"] = {"now": d.now, "before": d.before} | true
        return self.screen.compared.jobs_there(found)

    def _asked(self, what: str, value):
        if what == "more":
            self.panel.open(not self.panel.opened)
            self.refresh()
        elif what == "link":
            self.at(value)
        elif what == "story":
            if value == self.view.job:
                self.log()
        elif what == "guessed":
            self.guess = False
        else:
            self._mark = value.pop("mark", "")
            self.view = self.view._replace(**value)
            self.refresh()

    def _gantt(self):
        """Jobs on some nodes in the time that is framed, or in the busiest hours."""
        names, total, first = list(self.runs), self.cluster_of(self.setting).total_nodes, self.panel.first_node.value
        name = names[min(self.panel.charted.index or 0, len(names) - 1)]
        time = [HOUR * at for at in self.view.time or ()] or plots.busy_window(self.runs, WINDOW)
        return plots.gantt(self.runs[name], *time, [*range(total)][first:][:ROWS], name=name)

    def pin(self):
        """Keep the present policy, knobs and cluster to compare with."""
        self._kept = self.setting
        given = self.setting.policy == self.policies[self.setting.name]
        self.panel.hold(self._name(self._kept, self._kept) + " as it was" * given)
        self.refresh()

    def _sliders(self) -> list:
        return [*self.knobs.sliders, self.panel.nodes]

    def _top(self, strip) -> list:
        return [self.status.add_class("gpuschedlab-said"), strip, self.panel.more, self.error, self.panel.says]

    def _note(self, still: bool = False) -> str:
        table = MetricTable(compare(self.runs, list(COLUMNS)))._repr_html_() if still else ""
        return f"{self.status.value}<p>{self.panel.says.value}</p>{self.panel.report.value}{table}"

    def _controls(self) -> list:
        return self.panel.row
