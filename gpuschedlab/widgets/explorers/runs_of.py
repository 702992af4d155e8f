"""Runs of an Explorer: settings in words, traces, clusters and policies by name, kept runs, code; and its state as a link."""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from gpuschedlab._knob import KnobInfo, knob_word, parse_knob
from gpuschedlab.errors import RunError
from gpuschedlab.knobs import knobs_of, word_of
from gpuschedlab.parse import knob_in_words
from gpuschedlab.sim.entry import scenario_of
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sim.scenario import Scenario
from gpuschedlab.weeks import Kept
from gpuschedlab.widgets import sources
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.controls import quiet
from gpuschedlab.widgets.parts.first_screen import View


class Setting(NamedTuple):
    """One configuration: names of trace, cluster and policy, the seed, the nodes (None: as given), and the policy."""

    trace: str
    seed: int
    cluster: str
    nodes: int | None
    name: str
    policy: object

    def moved(self, given) -> list[tuple[KnobInfo, object]]:
        """Return a list of the knobs that differ from those of the `given` policy, each a pair of `KnobInfo` and value."""
        infos = knobs_of(self.policy).values() if type(given) is type(self.policy) else ()
        return [(i, i.value_of(self.policy)) for i in infos if i.value_of(self.policy) != i.value_of(given)]

    def unusual(self) -> list[tuple[KnobInfo, object]]:
        """Return a list of the knobs that differ from their defaults, each a pair of `KnobInfo` and value."""
        infos = knobs_of(self.policy).values()
        return [(i, i.value_of(self.policy)) for i in infos if i.value_of(self.policy) != i.default]

    def called(self, given, cluster: str = "") -> str:
        """Name in a sentence: of the policy, with the knobs that were moved, in words, and the cluster, if said."""
        setting_notes = [knob_in_words(*moved_knob) for moved_knob in self.moved(given)][:3]
        setting_notes += [f"on {cluster}"] * bool(cluster)
        return self.name + (f" ({', '.join(setting_notes)})" if setting_notes else "")

    def says(self, role: str) -> str:
        """HTML of the policy's rule: the first part of its docstring's first sentence, and how this one differs from its like."""
        rule_sentence = (type(self.policy).__doc__ or "").strip().partition("\n")[0].partition(";")[0].rstrip(".")
        rule_clauses = [rule_sentence[:1].lower() + rule_sentence[1:]]
        if self.name != type(self.policy).__name__:
            rule_clauses += [knob_in_words(*unusual_knob) for unusual_knob in self.unusual()][:3]
        return f'<b class="{role}">{escape(self.name)}</b>: {escape(", ".join(rule_clauses))}.'


class OtherSeeds(Kept):
    """Runs of an explorer's settings with other seeds: contenders are settings.

    Parameters
    ----------
    owner : Runs
        Knows traces and clusters by name.
    """

    empty = True  # an explorer shows a trace from an empty cluster on
    noun = "weeks"

    def __init__(self, owner: "Runs"):
        super().__init__(scenarios=20)
        self.owner = owner

    def source(self, contender: Setting, seed: int) -> tuple:
        """Return a pair: trace, cluster, nodes and seed of a setting, and a function that makes its scenario in pieces."""
        seed_key = (contender.trace, contender.cluster, contender.nodes, seed)
        return seed_key, lambda seed: self.owner.scenario_in_pieces(contender._replace(seed=seed))

    def policy(self, contender: Setting) -> tuple:
        """Return the pair of a setting's policy and None, as its knowledge is the scenario's."""
        return contender.policy, None


PICKERS = {"trace": str, "cluster": str, "seed": int, "nodes": int}
"""Controls with a value of their own, in the order in which they are set, and what that is."""


class Runs:
    """Part of an Explorer: the objects that its settings name, and their runs."""

    def _take(self, trace, cluster, policies, seed, parts) -> int:
        """Name the arguments, or policies that need nothing but a trace; return the first seed, an integer."""
        from gpuschedlab.policies import Fifo, Lucid, Sjf, Srtf, Themis, Tiresias

        recipe = trace if isinstance(trace, Recipe) else None
        if recipe is not None:
            trace = recipe(seed or 0)
            policies = policies or cluster or recipe.policies or None
            cluster = None
        if isinstance(trace, Scenario):
            scenario, policies = scenario_of(trace, cluster, policies, **parts)
            trace = scenario.trace
            cluster = scenario.cluster
            parts = scenario.parts | {"warm": None}  # a screen shows the jobs of a trace, from an empty cluster on
        if recipe is not None:
            trace = {word_of(recipe): sources.TraceOf(recipe)}
        trace, cluster, self.reports = sources.named_logs(trace, cluster)
        self.traces = sources.named_traces(trace)
        self.clusters = sources.named_clusters(cluster)
        # With which others are compared: FIFO's queue has no end on a busy cluster, so that no ratio holds.
        usual = {"Easy": Fifo(backfill="easy")} | {kind.__name__: kind for kind in (Srtf, Sjf, Tiresias, Themis, Lucid)}
        self.policies = sources.named_policies(policies, usual)
        self.other_seeds = OtherSeeds(self)
        first_seed = parts.pop("seed", 0)
        self._parts = {
            part_name: value for part_name, value in parts.items() if value is not getattr(Scenario, part_name, None)
        }
        return first_seed if seed is None else seed

    def _setting(self, policy_name: str, policy=None) -> Setting:
        panel = self.panel
        nodes = panel.nodes.value if panel.resizable else None
        return Setting(
            panel.trace.value,
            panel.seed.value,
            panel.cluster.value,
            nodes,
            policy_name,
            policy or self.policies[policy_name],
        )

    def trace_of(self, setting: Setting):
        """Return the trace of a configuration, a frame: as given, or made from its seed and kept."""
        source = self.traces[setting.trace]
        if not callable(source):
            return source
        return self.cache.get(("trace", setting.trace, setting.seed), lambda: source(setting.seed)).value

    def cluster_of(self, setting: Setting):
        """Return the `Cluster` of a configuration, with as many nodes as the slider says."""
        cluster = self.clusters[setting.cluster]
        if setting.nodes is None:
            return cluster
        return replace(cluster, groups=(replace(cluster.groups[0], nodes=setting.nodes),))

    def scenario_of(self, setting: Setting) -> Scenario:
        """Return the `Scenario` of a configuration, kept."""
        scenario_key = ("scenario", *setting[:4])
        scenario_parts = {"seed": setting.seed} | self._parts
        return self.cache.get(
            scenario_key, lambda: Scenario(self.trace_of(setting), self.cluster_of(setting), **scenario_parts)
        ).value

    def scenario_in_pieces(self, setting: Setting) -> Iterator[None]:
        """Make the scenario of another seed, yield None at each pause, and return it; the trace is not kept."""
        source = self.traces[setting.trace]
        trace = (yield from source.pieces(setting.seed)) if hasattr(source, "pieces") else source(setting.seed)
        yield
        return Scenario(trace, self.cluster_of(setting), **{"seed": setting.seed} | self._parts)

    def run_of(self, setting: Setting):
        """Return the `Run` of a configuration, kept."""
        return self.cache.get(setting, lambda: self.scenario_of(setting).run(setting.policy)).value

    @property
    def run(self):
        """`Run` of the present configuration."""
        return self.run_of(self.setting)

    def take(self, name: str, log):
        """Add a log (`gpuschedlab.intake`), or put it in the place of the one that had its name, and show it."""
        replaced = {name} & self.reports.keys()
        kept_clusters = {
            cluster_name: cluster for cluster_name, cluster in self.clusters.items() if cluster_name not in replaced
        }
        traces, self.clusters, reports = sources.named_logs({name: log}, kept_clusters)
        self.traces = self.traces | sources.named_traces(traces)
        self.reports = self.reports | reports
        self.cache = Cache(self.cache.limit, self.cache.size)
        self._stories = {}  # what had its name was another trace
        self.other_seeds = OtherSeeds(self)
        self.panel.choose(name)

    @property
    def code(self) -> str:
        """Python text of a few lines that make the present run again."""
        return self._code()

    def _code(self, folder: Path | None = None) -> str:
        present_setting = self.setting
        return sources.run_code(
            self.traces[present_setting.trace],
            self.cluster_of(present_setting),
            present_setting.policy,
            present_setting.seed,
            self._parts,
            folder,
        )

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
            numbered = (Path("runs") / f"{self._file_name()}-{folder_number}" for folder_number in count(1))
            folder = next(path for path in numbered if not path.exists())
        return self._export(Path(folder), Path(folder))

    def download(self):
        """Send the present run to the browser as one file: the files that `export` writes, zipped."""
        packed = sources.zipped(lambda folder: self._export(folder, Path(".")))
        self.board.download(f"{self._file_name()}.zip", packed)

    def _export(self, folder: Path, named: Path) -> Path:
        present_setting = self.setting
        return sources.export(self.run_of(present_setting), self.trace_of(present_setting), folder, self._code(named))

    def _file_name(self) -> str:
        """Name of the present policy as part of a file's."""
        return re.sub(r"\W+", "-", self.setting.name.lower())

    def _address(self) -> str:
        """Write the present state as the text of a query: all that differs from the beginning, always policies and nodes."""
        panel = self.panel
        view = self.view
        present_setting = self.sides[0].key
        link_fields = {"policy": present_setting.name} | {
            i.name: knob_word(value) for i, value in present_setting.moved(self.policies[present_setting.name])
        }
        if panel.against.value in self.policies:
            link_fields["against"] = panel.against.value
        choice = {"trace": len(self.traces) > 1, "cluster": len(self.clusters) > 1, "seed": not panel.seed.disabled}
        link_fields |= {
            link_field: str(getattr(panel, link_field).value) for link_field in PICKERS if choice.get(link_field, True)
        }
        link_fields |= {"by": view.by} if view.by != "run" else {}
        if view.job is not None:
            link_fields["job"] = str(self.run.jobs["job_id"][view.job])
        link_fields |= {
            link_field: f"{span[0]:g}_{span[1]:g}"
            for link_field in ("time", "size")
            if (span := getattr(view, link_field))
        }
        return urlencode(link_fields | ({"more": "1"} if self.opened else {}), quote_via=quote, safe=":,_")

    def at(self, link: str):
        """Show a state that was copied from an explorer (*copy link*): ``"policy=Srtf&against=Fifo&nodes=70&job=06364"``.

        Raises
        ------
        LabError
            There is no such policy, knob, trace or job.
        """
        link_fields = dict(parse_qsl(link.removeprefix("#")))
        panel = self.panel
        linked_policies = [
            link_fields.pop("policy", panel.policy.value),
            link_fields.pop("against", panel.against.value),
        ]
        if unknown_policies := [
            policy_name
            for policy_name in linked_policies
            if policy_name not in self.policies and policy_name != panel.against.value
        ]:
            raise RunError(
                f"explorer: found policy {unknown_policies[0]!r}; expected one of {', '.join(self.policies)}."
            )
        begin_policy = self.policies[linked_policies[0]]
        knobs = {
            i.name: parse_knob(i, link_fields.pop(i.name))
            for i in knobs_of(begin_policy).values()
            if i.name in link_fields
        }
        with quiet(self):
            for link_field, kind in PICKERS.items():
                if link_field in link_fields and (link_field != "nodes" or panel.resizable):
                    getattr(panel, link_field).value = kind(link_fields[link_field])
            panel.policy.value, panel.against.value = linked_policies
            panel.knobs.show(begin_policy.with_knobs(**knobs))
        self.open("more" in link_fields)
        spans = {
            link_field: tuple(map(float, link_fields[link_field].split("_")))
            for link_field in ("time", "size")
            if link_field in link_fields
        }
        self.view = View(link_fields.get("by", "run"), **spans)
        if unknown_fields := link_fields.keys() - {*PICKERS, "more", "by", "time", "size", "job"}:
            raise RunError(
                f"explorer: found {', '.join(sorted(unknown_fields))}; expected a policy, its knobs, {', '.join(PICKERS)}, job, time "
                "or size."
            )
        self.refresh()
        if job := link_fields.get("job"):
            linked_jobs = [i for i, job_name in enumerate(self.run.jobs["job_id"]) if str(job_name) == job]
            if not linked_jobs:
                raise RunError(f"explorer: found job {job!r}; expected the job_id of one of the trace's.")
            self.view = self.view._replace(job=linked_jobs[0])
            self.refresh()
        return self
