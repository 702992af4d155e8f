"""The Explorer: what would this policy, with these knobs, have done with this trace on this cluster?"""

from dataclasses import replace
from functools import partial
from html import escape

from gpuschedlab import plots
from gpuschedlab.comparison import OF_LOG
from gpuschedlab.metrics.like_weeks import MOST
from gpuschedlab.metrics.log_weeks import log_in_words, weeks_of
from gpuschedlab.weeks import pieces
from gpuschedlab.widgets import sources
from gpuschedlab.widgets.explorers.explorer_panel import Panel
from gpuschedlab.widgets.explorers.own_log import OwnLog
from gpuschedlab.widgets.explorers.runs_of import Runs, Setting
from gpuschedlab.widgets.parts.explorer_state import Controls, Page
from gpuschedlab.widgets.parts.first_screen import Screen
from gpuschedlab.widgets.parts.pair_explorer import PairExplorer, Pairing, Side

FIRST = (
    *(plots.Place(name, 560, least=240) for name in ("jobs", "change")),
    *(plots.Place(name, words=True) for name in ("story", "table")),
)
"""The first screen."""
HOUR = 3600.0
WINDOW = 6 * 3600.0
ROWS = 16
"""Length of a Gantt where no time is framed, s, and its nodes."""


class Explorer(Runs, PairExplorer):
    """Pick a policy, move its knobs, and see in one sentence and two figures who gains and who pays against another.

    A click on a dot, or the arrow keys, tell the story of a job; a drag in a figure keeps some of the jobs; *more* has the trace, the
    cluster, all knobs, further figures, the code and the download.

    Parameters
    ----------
    trace : Scenario or Recipe; or polars.DataFrame, Intake, callable, or dict of them by name; optional
        Traces, or functions of a seed that make one; by default a generated week (`widgets.Generated`). After a scenario
        come the policies; so after a recipe, whose own are the default. Its other parts are those of the first seed. A log
        (`gpuschedlab.intake`) comes with its own cluster, if it has one, and with its report.
    cluster : Cluster or dict of str to Cluster, optional
        By default 70 nodes of 8 GPUs. A cluster with the name of a trace is chosen together with it.
    policies : list or dict, optional
        Policies or policy classes; by default those of `policies.ALL` that need nothing but a trace.
    pinned : str, optional
        Name of the policy that is compared with; by default the first one, and the second one is chosen.
    seed : int, optional
        First seed, by default the scenario's or 0: another seed is another trace, if traces are functions of it.
    cache : Cache, optional
        Cache of runs.
    upload : bool
        Whether a log of one's own can be sent from the browser.
    figures : iterable of callable
        Figures of one's own, seen with *more*: functions of the runs by name (`{"Srtf": run, ...}`) that return the
        numbers of one figure: `plots.Lines`, or whatever else `plots.draw` takes.
    guess : bool
        Whether the reader guesses first, where one looks on: the answer is seen after that.
    **parts
        Of the scenarios, if they are not given: `history, speeds, estimator, delays, until`.

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
        self.places = (*FIRST, *(plots.Place(figure_name, height, more=True) for figure_name, height in rare.items()))
        self._pinned = None
        self.guess = guess
        first_seed = self._take(trace, cluster, policies, seed, parts)
        policy_names = list(self.policies)
        self.door = OwnLog(self) if upload else None
        self.panel = Panel(self, policy_names[min(1, len(policy_names) - 1)], pinned or policy_names[0], first_seed)
        self._open()

    @property
    def knobs(self):
        """Controls of the present policy, a `KnobControls`."""
        return self.panel.knobs

    @property
    def setting(self) -> Setting:
        """`Setting` of the present configuration."""
        return self._setting(self.panel.policy.value, self.knobs.thing)

    @property
    def pinned(self) -> Setting:
        """`Setting` of the reference, on the trace that is shown: a policy as it comes, or a kept run."""
        pinned_name = self.panel.against.value
        present_setting = self.setting
        if self._pinned is None or pinned_name in self.policies:
            return present_setting._replace(name=pinned_name, policy=self.policies[pinned_name])
        pinned_setting = self._pinned
        # A cluster goes with its trace.
        if pinned_setting.trace != present_setting.trace and present_setting.trace in self.clusters:
            pinned_setting = pinned_setting._replace(cluster=present_setting.cluster, nodes=present_setting.nodes)
        return pinned_setting._replace(trace=present_setting.trace, seed=present_setting.seed)

    def _controls(self) -> Controls:
        controls = super()._controls()
        return replace(
            controls,
            state=lambda: (self.setting, self.pinned),
            row=self.panel.row,
            more=self.panel.rest,
            below=[self.panel.says],
            sliders=lambda: [*self.knobs.sliders, self.panel.nodes],
        )

    def _compute(self, state):
        present_setting, pinned_setting = state
        side_names = [self._name(present_setting, pinned_setting), self._name(pinned_setting, present_setting)]
        short = (
            ["now", "before"]
            if present_setting.name == pinned_setting.name
            else [present_setting.name, pinned_setting.name]
        )

        def side(side_name, short, side_setting):
            return Side(
                side_name,
                short,
                side_setting,
                self.run_of(side_setting),
                lambda job: self.scenario_of(side_setting).run(side_setting.policy, log=job),
            )

        screen_sides = tuple(map(side, side_names, short, (present_setting, pinned_setting)))
        self.runs = {compared_side.name: compared_side.run for compared_side in screen_sides}
        self.seconds = float(screen_sides[0].run.info["seconds"])
        return self._compare(Pairing(screen_sides, self._place_of_trace(), self._weeks_of_trace, self._with_guess))

    def _name(self, setting: Setting, other_setting: Setting) -> str:
        """Name of a configuration in a sentence, with its cluster if the other's is not the same."""
        resized = (setting.cluster, setting.nodes) != (other_setting.cluster, other_setting.nodes)
        return setting.called(self.policies.get(setting.name), str(self.cluster_of(setting)) if resized else "")

    def _place_of_trace(self) -> str:
        """Say in a few words whose facts the head says."""
        trace = self.panel.trace.value
        return sources.place_of_trace(self.traces[trace], trace in self.reports)

    def _weeks_of_trace(self):
        """Return a tuple: a function that plays both sides in other weeks, or None, and whether it needs no click."""
        present_setting, pinned_setting = (side.key for side in self.sides)
        source = self.traces[present_setting.trace]
        if not sources.has_others(source) or present_setting == pinned_setting or not self.screen.whole.jobs:
            return None, False
        kept_seeds = self.other_seeds
        kept_seeds.noun = getattr(source, "noun", "traces")
        screen_sides = self.sides
        setting_pair = {side.name: side.key for side in screen_sides}
        learns = "history" in self._parts  # which takes a second a week

        def play(most_weeks: int):
            for side in screen_sides:
                kept_seeds.keep(side.key, present_setting.seed, side.run)
            return pieces(kept_seeds, setting_pair, present_setting.seed, most_weeks, thorough=most_weeks > MOST)

        return play, not learns

    def _page(self, screen: Screen) -> Page:
        rare = {figure_name: partial(self._rare, figure_name) for figure_name in ("jct", "load", "gantt", *self._own)}
        figures = self._pair()
        if self.opened:
            figures |= {figure_name: make() for figure_name, make in rare.items()}
        return Page(
            figures,
            comparisons=(screen.difference,),
            words=log_in_words(weeks_of(*screen.runs)) if self._place() == OF_LOG else "",
            rare=rare,
            note=self._note_of_panel,
            address=self._address,
            after=self._after,
        )

    def _rare(self, figure_name: str):
        """Return the numbers of a figure that is seen with *more*, a `Lines`, `Drawing` or `Gantt`."""
        if figure_name == "gantt":
            return self._gantt()
        figure_makers = {"jct": plots.jct_cdf, "load": lambda runs: plots.load_over_time(runs, 500)} | self._own
        return figure_makers[figure_name](self.runs)

    def _after(self):
        """Play other weeks, and report both policies."""
        self._begin_weeks()
        present_setting, pinned_setting = (side.key for side in self.sides)
        settings_html = present_setting.says("now") + (
            f" {pinned_setting.says('ref')}" if present_setting.name != pinned_setting.name else ""
        )
        settings_html += f" {self.run.jobs.height:,} jobs on {escape(str(self.cluster_of(present_setting)))}."
        self.panel.show(settings_html, self.knobs.note, self.reports.get(present_setting.trace))

    def _with_guess(self, record: dict) -> dict:
        """Return a record, a dict, with the reader's guess, if a guess is asked for."""
        if self.guess:  # first
            whole_comparison = self.screen.whole
            group = whole_comparison.later.group
            true = {"group": group.words if group else "", "nobody": not len(whole_comparison.later.rows)}
            record["guess"] = {"now": whole_comparison.now, "before": whole_comparison.before} | true
        return record

    def _asked(self, page_request: str, value):
        if page_request == "link":
            self.at(value)
        elif page_request == "guessed":
            self.guess = False
            self._begin_weeks()
        else:
            super()._asked(page_request, value)

    def _gantt(self):
        """Return the `Gantt` of jobs on some nodes in the time that is framed, or in the busiest hours."""
        run_names = list(self.runs)
        node_count = self.cluster_of(self.setting).total_nodes
        first_node = self.panel.first_node.value
        charted_run = run_names[min(self.panel.charted.index or 0, len(run_names) - 1)]
        time = [HOUR * framed_hour for framed_hour in self.view.time or ()] or plots.busy_window(self.runs, WINDOW)
        return plots.gantt(self.runs[charted_run], *time, [*range(node_count)][first_node:][:ROWS], name=charted_run)

    def pin(self):
        """Keep the present policy, knobs and cluster to compare with."""
        pinned_setting = self._pinned = self.setting
        self.panel.hold(
            self._name(pinned_setting, pinned_setting)
            + " as it was" * (pinned_setting.policy == self.policies[pinned_setting.name])
        )
        self.refresh()

    def _note_of_panel(self, still: bool) -> str:
        """Sentence of a page without a kernel below its head."""
        return f"{self._pair_note(still)}<p>{self.panel.says.value}</p>{self.panel.report.value}"
