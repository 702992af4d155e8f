"""The Explorer: what would this policy, with these knobs, have done with this trace on this cluster?"""

import re
from dataclasses import replace
from html import escape
from itertools import count
from pathlib import Path
from typing import NamedTuple

from gpuschedlab import plots
from gpuschedlab.knobs import word_of
from gpuschedlab.sim.entry import scenario_of
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sim.scenario import Scenario
from gpuschedlab.widgets import sources
from gpuschedlab.widgets.explorers.difference import difference, measure, table
from gpuschedlab.widgets.explorers.explorer_panel import Panel
from gpuschedlab.widgets.explorers.gantt_player import Player
from gpuschedlab.widgets.explorers.own_log import OwnLog
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer


class Setting(NamedTuple):
    """One configuration: names of trace, cluster and policy, the seed, the nodes (None: as given), and the policy."""

    trace: str
    seed: int
    cluster: str
    nodes: int | None
    name: str
    policy: object


class Explorer(BaseExplorer):
    """Pick trace, cluster and policy, move its knobs, and compare with a pinned configuration.

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
        Name of the policy that is pinned first; by default the first one, and the second one is chosen.
    seed : int, optional
        Where the seed begins, by default the scenario's or 0: another seed is another trace, where traces are functions of it.
    cache : Cache, optional
        Where runs are kept.
    upload : bool
        Whether a log of one's own can be sent from the browser.
    figures : iterable of callable
        Figures of one's own: functions of the runs by name (`{"now: Srtf": run, ...}`) that return the numbers of one
        figure: `plots.Lines`, or whatever else `plots.draw` takes.
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
        **parts,
    ):
        super().__init__(cache)
        self._own = {getattr(make, "__name__", f"figure {i + 1}"): make for i, make in enumerate(figures)}
        above = map(plots.Place, ("jct", "load", "slowdown"))
        self.places = (*above, plots.Place("gantt", 430), *map(plots.Place, self._own))
        recipe = trace if isinstance(trace, Recipe) else None
        if recipe is not None:
            trace, policies = recipe(seed or 0), policies or cluster or recipe.policies or None
            cluster = None
        if isinstance(trace, Scenario):
            scenario, policies = scenario_of(trace, cluster, policies, **parts)
            trace, cluster, parts = scenario.trace, scenario.cluster, scenario.parts
        if recipe is not None:
            trace = {word_of(recipe): sources.TraceOf(recipe)}
        trace, cluster, self.reports = sources.named_logs(trace, cluster)
        self.traces, self.clusters = sources.named_traces(trace), sources.named_clusters(cluster)
        self.policies = sources.named_policies(policies, default_policies())
        own = parts.pop("seed", 0)
        self._parts = {name: value for name, value in parts.items() if value is not getattr(Scenario, name, None)}
        names = list(self.policies)
        self.player = Player(self._redraw_gantt)
        self.door = OwnLog(self) if upload else None
        self.panel = Panel(self, names[min(1, len(names) - 1)], own if seed is None else seed)
        self.pinned = self._setting(pinned or names[0])
        self._open()

    # What the controls say ---------------------------------------------------------------------------------

    @property
    def knobs(self):
        """Controls of the present policy, by knob."""
        return self.panel.knobs

    @property
    def setting(self) -> Setting:
        """Present configuration."""
        return self._setting(self.panel.policy.value, self.knobs.thing)

    def _setting(self, name: str, policy=None) -> Setting:
        p = self.panel
        nodes = p.nodes.value if p.resizable else None
        return Setting(p.trace.value, p.seed.value, p.cluster.value, nodes, name, policy or self.policies[name])

    def trace_of(self, setting: Setting):
        """Trace of a configuration: as given, or made from its seed and kept."""
        source = self.traces[setting.trace]
        if not callable(source):
            return source
        return self.cache.get(("trace", setting.trace, setting.seed), lambda: source(setting.seed)).value

    def cluster_of(self, setting: Setting):
        """Cluster of a configuration, with as many nodes as the slider says."""
        cluster = self.clusters[setting.cluster]
        if setting.nodes is None:
            return cluster
        return replace(cluster, groups=(replace(cluster.groups[0], nodes=setting.nodes),))

    def scenario_of(self, setting: Setting) -> Scenario:
        """Scenario of a configuration, kept."""

        def make():
            return Scenario(self.trace_of(setting), self.cluster_of(setting), seed=setting.seed, **self._parts)

        return self.cache.get(("scenario", *setting[:4]), make).value

    def run_of(self, setting: Setting):
        """Run of a configuration, kept."""
        return self.cache.get(setting, lambda: self.scenario_of(setting).run(setting.policy)).value

    @property
    def run(self):
        """Run of the present configuration."""
        return self.run_of(self.setting)

    # Compute and draw --------------------------------------------------------------------------------------

    def _compute(self):
        now, pinned = self.setting, self.pinned
        if pinned:  # on the trace that is shown: times on different traces do not compare
            own = pinned.trace != now.trace and now.trace in self.clusters
            pinned = pinned._replace(cluster=now.cluster, nodes=now.nodes) if own else pinned
            pinned = pinned._replace(trace=now.trace, seed=now.seed)
        runs = {f"now: {self._name(now, pinned)}": self.run_of(now)}
        if pinned:
            runs[f"pinned: {self._name(pinned, now)}"] = self.run_of(pinned)
        shown = zip((now, pinned), runs.values(), strict=False)
        measures = [self.cache.get(("measure", s), lambda r=r: measure(r)).value for s, r in shown]
        self.runs, self.seconds = runs, float(next(iter(runs.values())).info["seconds"])
        return now, runs, measures

    def _name(self, setting: Setting, other: Setting | None) -> str:
        """Name of a configuration: policy, and what else tells it from the other."""
        resized = other and (setting.cluster, setting.nodes) != (other.cluster, other.nodes)
        return setting.name + (f" on {self.cluster_of(setting)}" if resized else "")

    def _numbers(self, answer) -> dict:
        now, runs, _ = answer
        window = plots.busy_window(runs, self.player.seconds) if self.board is None else None
        self.player.fit(self.cluster_of(now), max(float(r.info["now"]) for r in runs.values()), window)
        return {
            "jct": plots.jct_cdf(runs),
            "load": plots.load_over_time(runs, 500),
            "slowdown": plots.slowdown_by_size(runs),
            "gantt": self._gantt(),
            **{name: make(runs) for name, make in self._own.items()},
        }

    def _show(self, answer):
        super()._show(answer)
        _, runs, measures = answer
        compared = table(difference(*measures), *runs, *([None] if len(runs) == 1 else []))
        self.panel.show(compared, self.knobs.note, self.reports.get(answer[0].trace))

    def _words(self, answer) -> str:
        now, runs, _ = answer
        jobs = next(iter(runs.values())).jobs.height
        took = f"simulated in {1000 * self.seconds:.0f} ms"
        return f"{escape(now.name)}: {jobs:,} jobs on {escape(str(self.cluster_of(now)))}, {took}"

    def _gantt(self):
        names = list(self.runs)
        name = names[min(self.panel.charted.index or 0, len(names) - 1)]
        return plots.gantt(self.runs[name], **self.player.view, name=name)

    def _redraw_gantt(self):
        """Redraw the Gantt alone: it moved in time, or to other nodes."""
        self._redraw("gantt", self._gantt)

    def take(self, name: str, log):
        """Add a log (`gpuschedlab.intake`), or put it in the place of what had its name, and show it."""
        replaced = {name} & self.reports.keys()
        others = {other: cluster for other, cluster in self.clusters.items() if other not in replaced}
        traces, self.clusters, reports = sources.named_logs({name: log}, others)
        self.traces, self.reports = self.traces | sources.named_traces(traces), self.reports | reports
        self.cache = Cache(self.cache.limit, self.cache.size)  # runs of what had its name are of another trace
        self.panel.choose(name)

    # Buttons -----------------------------------------------------------------------------------------------

    def pin(self):
        """Keep the present policy and cluster to compare with."""
        self.pinned = self.setting
        self.refresh()

    def unpin(self):
        """Compare with nothing."""
        self.pinned = None
        self.refresh()

    @property
    def code(self) -> str:
        """The few lines of Python that make the present run again."""
        return self._code()

    def _code(self, folder: Path | None = None) -> str:
        now = self.setting
        cluster = self.cluster_of(now)
        return sources.run_code(self.traces[now.trace], cluster, now.policy, now.seed, self._parts, folder)

    def export(self, folder=None) -> Path:
        """Store the present run: parquet files, the trace, and the Python that makes it again.

        Parameters
        ----------
        folder : str or Path, optional
            By default one under ``runs``, named after the policy and numbered.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        RunError
            It cannot be written.
        """
        if folder is None:
            numbered = (Path("runs") / f"{self._file_name()}-{number}" for number in count(1))
            folder = next(path for path in numbered if not path.exists())
        return self._export(Path(folder), Path(folder))

    def download(self):
        """Send the present run to the browser as one file: what `export` writes, zipped."""
        packed = sources.zipped(lambda folder: self._export(folder, Path(".")))
        self.board.download(f"{self._file_name()}.zip", packed)

    def _export(self, folder: Path, named: Path) -> Path:
        now = self.setting
        return sources.export(self.run_of(now), self.trace_of(now), folder, self._code(named))

    def _file_name(self) -> str:
        """Name of the present policy as part of a file's."""
        return re.sub(r"\W+", "-", self.setting.name.lower())

    # Layout ------------------------------------------------------------------------------------------------

    def _sliders(self) -> list:
        return [*self.knobs.sliders, self.panel.nodes]

    def _note(self) -> str:
        return f"{super()._note()}{self.panel.report.value}{self.panel.table.value}"

    def _controls(self) -> list:
        return self.panel.rows

    def _below(self) -> list:
        return [self.panel.code]

    def close(self):
        """Free all widgets, here and in the browser."""
        self.player.close()
        super().close()


def default_policies() -> list:
    """Policies that need nothing but a trace."""
    from gpuschedlab.policies import Fifo, Lucid, Sjf, Srtf, Themis, Tiresias

    return [Fifo, Srtf, Sjf, Tiresias, Themis, Lucid]
