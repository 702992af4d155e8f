"""A site of one's own: its log on its cluster, by what its scheduler knew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import polars as pl

from gpuschedlab._data import path as shipped
from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import Window, bare
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators.requested import Requested
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.clusters.explains.explanation import Explanation, explain
from gpuschedlab.papers.clusters.explains.limited import within
from gpuschedlab.papers.clusters.explains.sweep import DAY
from gpuschedlab.papers.clusters.files.conf_lines import way_to_included
from gpuschedlab.papers.clusters.files.configured_rule import backfill_of, slurm_of
from gpuschedlab.papers.clusters.files.description import INF, Description
from gpuschedlab.papers.clusters.files.toml_file import read_site
from gpuschedlab.papers.clusters.playing.eligible import eligible
from gpuschedlab.papers.clusters.playing.site_windows import from_zero, windows_on
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.kueue import Kueue
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.policies.simple import Fifo
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sim.setup.eligibility import with_lists
from gpuschedlab.speeds import Delays
from gpuschedlab.traces.intake.door import intake
from gpuschedlab.traces.intake.read import taken_of
from gpuschedlab.traces.logs.instants import instants, spans
from gpuschedlab.traces.logs.ledger import SEEN, Intake

if TYPE_CHECKING:
    from gpuschedlab.papers.clusters.starts.answer import When

TIMEOUT = "(?i)time_?out"
"""State of jobs in a log that their limit has stopped."""

RULES = {
    "strict FIFO": Fifo(),
    "EASY": Fifo(backfill="easy"),
    "depth 2": Fifo(backfill="plan", depth=2),
    "conservative": Fifo(backfill="plan", depth=INF),
    "greedy": Fifo(backfill="greedy"),
}
"""Rules that a log is replayed by."""


@dataclass(frozen=True)
class Site(Recipe):
    """A site's log, which no seed changes, on its cluster; run times are estimated by requested times, as its scheduler did.

    Where the site has partitions, or its log jobs with state TIMEOUT, jobs are stopped at the times that they requested; delays of
    launches do not count. A job that ran for longer in the log is stopped nowhere: the site let it run, and how long it took is
    known. Windows of the site are known windows of its nodes.

    Parameters
    ----------
    file : str
        SITE.toml (`gpuschedlab.papers.clusters.files.toml_file.read_site`), or a log: FORMAT:PATH, FILE.parquet.
    cluster : str
        NODESxGPUS[:TYPE],...; "": that of the site, or of its log.
    lines : str
        More lines of SITE.toml, such as those of `completed`.

    Attributes
    ----------
    description : Description
        The site on one page: partitions, accounts, QOS, queues, scheduler, windows; `unmodelled` lists keys that nothing stands for.
    log : Intake
    policies : dict of str to Policy
        Rules by name.

    Raises
    ------
    TraceError
        A file is missing or broken, or there is no cluster or no log.

    Examples
    --------
    >>> Site("nowhere.toml")()
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: site nowhere.toml: found no such file; expected ...
    """

    drawn: ClassVar = False

    file: str = "site.toml"
    cluster: str = ""
    more: Annotated[
        int, Knob(-1000, 1000, unit="nodes", help="nodes beyond the site's own, like its first; below 0: fewer")
    ] = 0
    lines: str = ""
    policies = RULES

    @classmethod
    def sample(cls) -> "Site":
        """Return the synthetic `Site` that ships (`data/README.md`): six nodes, two accounts, two weeks.

        Examples
        --------
        >>> Site.sample()().cluster.total_gpus
        48
        """
        return cls(str(shipped("site/site.toml")))

    @cached_property
    def description(self) -> Description:
        """`Description` by the site's TOML; empty for a log alone."""
        if self.file.endswith(".toml") or self.lines:
            return read_site(self.file, self.lines)
        return Description()

    @cached_property
    def log(self) -> Intake:
        """`Intake` of the log: the jobs that came in, and the report on them."""
        if not self.file.endswith(".toml"):
            return taken_of(self.file)[0]
        options = dict(self.description.log)
        path = options.pop("path", None)
        form = options.pop("format", None)
        if not isinstance(path, str):
            raise TraceError(
                f'site {self.file}: found [log] path = {path!r}; expected the log, such as path = "jobs.csv".'
            )
        path = Path(self.file).parent / path
        if form:
            return intake((form, path), **options)
        return intake(path, **options)

    @cached_property
    def explanation(self) -> Explanation:
        """`Explanation` of why the log's jobs waited, by its recorded starts and node lists."""
        node_names = ()
        if not self.cluster:
            node_names = tuple(node_name for node_name, *_ in self.description.nodes)
        return explain(self.recorded(), self.rule, node_names, self.description.limits, (self.zero or 0.0) % DAY)

    @cached_property
    def completed(self) -> "Site":
        """The `Site` with the limits, windows, hours and tiers that its log shows, and its files do not name, as more lines."""
        if not self.explanation.found:
            return self
        toml_lines = [self.lines, *(found_rule.toml for found_rule in self.explanation.found)]
        site = replace(self, lines="\n".join(toml_lines).strip())
        site.__dict__["log"] = self.log  # read once
        return site

    def when(
        self,
        job: str | Sequence[str] = (),
        at: float | str | None = None,
        planned: Mapping[str, object] | None = None,
        plays: int = 40,
        seed: int = 0,
    ) -> "When":
        """Return the `When` of waiting jobs, or a planned one: their starts by the site's own rule, played forward from an instant.

        Nothing that the log says of later than the instant is looked at. Run times are drawn from jobs that had ended, of the same user,
        limit and size, and arrivals are those of an earlier week. Ranges are calibrated on the log's own questions that were answered by
        then; if these are fewer than ten, a range has no per cent. A site is played as its files say: `site.completed` has what its log
        shows as well, also of after the instant.

        Parameters
        ----------
        job : str or sequence of str
            Waiting jobs; without any, all that wait.
        at : float or str, optional
            Instant: s of the log, a span after its first submission ("9 d"), or a date by its clock ("2024-05-01 18:00"); default: the
            log's end.
        planned : mapping, optional
            A job that is not in the log, by columns of a trace, such as `{"gpus": 8, "requested_time": 7200, "user": "ann"}`.
        plays : int
            How often the rule is played forward.
        seed : int
            Of what is drawn; the same seed gives the same answer.

        Raises
        ------
        TraceError
            The instant is outside the log, or a job is not known, does not wait, or could never start.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> log = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
        >>> rows = "a,0,2,60,90,0\\nb,70,2,60,90,70\\nc,80,2,60,90,130\\n"
        >>> _ = log.write_text(f"job_id,submit,gpus,duration,requested_time,started\\n{rows}")
        >>> Site(f"csv:{log}", "1x2").when("c", at=100).table["start"].to_list()
        [130.0]
        """
        from gpuschedlab.papers.clusters.starts.question import Question, answer

        jobs = (job,) if isinstance(job, str) else tuple(job)
        return answer(self, Question(jobs, self.instant_of(at), planned, plays, seed))

    def instant_of(self, at: float | str | None) -> float | None:
        """Return an instant (s of the log, a float) that is given in seconds, or as a date by the log's clock; None stays None.

        Raises
        ------
        TraceError
            It is neither, or the log has no dates.
        """
        if not isinstance(at, str):
            return at
        if (seconds := spans(pl.Series([at]))[0]) is not None:
            return float(seconds)
        (since_1970,) = instants(pl.Series([at]))["early"]
        if since_1970 is None:
            expected = "seconds, a span such as '9 d', or a date such as 2024-05-01 18:00"
            raise TraceError(f"when: found at={at!r}; expected {expected}.")
        if self.zero is None:
            raise TraceError(f"when {self.file}: found at={at!r}; expected seconds, as the log has no dates.")
        return since_1970 - self.zero

    @property
    def launch(self) -> float:
        """Seconds from a decision to the start that the log records."""
        return self.description.delays.get("launch", 0.0)

    @property
    def trace(self) -> pl.DataFrame:
        """Frame of the log's jobs; one that requested no time has the default, or else the limit, of its first partition."""
        return self.with_bounds(self.log.trace)

    def with_bounds(self, trace: pl.DataFrame) -> pl.DataFrame:
        """Return a frame of jobs with the owners for whose limits they count, and their partition's time if they asked for none."""
        bounds = enumerate(self.description.limits)
        trace = trace.with_columns(limit.owners(trace).alias(f"limit{k}") for k, limit in bounds)
        limits = {p.name: p.default_time or p.max_time for p in self.description.partitions}
        if not limits or "vc" not in trace.columns:
            return trace
        requested_time = pl.col("requested_time") if "requested_time" in trace.columns else pl.lit(None, pl.Float64)
        of_partition = pl.col("vc").replace_strict(limits, default=None, return_dtype=pl.Float64)
        return trace.with_columns(requested_time=pl.coalesce(requested_time, of_partition))

    @property
    def limited(self) -> bool:
        """Whether the site stops jobs at their limits."""
        trace = self.log.trace
        if self.description.partitions:
            return True
        if "state" not in trace.columns:
            return False
        timed_out = trace["state"].cast(pl.String).str.contains(TIMEOUT)
        return bool(timed_out.any())

    def windows(self, cluster: Cluster) -> tuple[Window, ...]:
        """Return a tuple of `Window`: the cluster's, none for some users alone, and of named nodes only on the site's own cluster."""
        numbers = self.node_numbers(cluster)
        windows = [from_zero(window, self.zero, self.file) for window in self.description.windows]
        return windows_on(cluster, windows, numbers)

    def node_numbers(self, cluster: Cluster) -> dict[str, int]:
        """Return a dict: place in a cluster of each node that the site's files name; empty if the command names another cluster."""
        if self.cluster:
            return {}
        nodes_of_files = cluster.groups[0].nodes - self.more
        numbers = {}
        for i, (node_name, *_) in enumerate(self.description.nodes):
            if i >= nodes_of_files:  # after the nodes that are added
                numbers[node_name] = i + self.more
            elif i < nodes_of_files + self.more:  # it is not taken away
                numbers[node_name] = i
        return numbers

    def untyped(self, cluster: Cluster) -> pl.Series:
        """Return a Series of lists: GPU types of jobs that ask for none that any node has. If any do, no job is held to types."""
        trace = with_lists(self.log.trace, cluster, "requested")
        if "gpu_types" not in trace.columns:
            return pl.Series([], dtype=pl.List(pl.String))
        types = [bare(kind).lower() for kind in cluster.gpu_types]
        requested = trace["gpu_types"].drop_nulls()
        type_name = pl.element().str.to_lowercase()
        matches = requested.list.eval(type_name.is_in(types)).list.any()
        return requested.filter(matches.not_())

    @property
    def nodes_from(self) -> str:
        """How the nodes are known, in words; "" if they are named by the command, by the site's files or by its log."""
        named = self.cluster or self.description.cluster or self.log.cluster
        if named or self.log.nodes_seen is None:
            return ""
        return SEEN

    @property
    def nodes(self) -> Cluster:
        """`Cluster` of the site's own nodes: those that are named, or else those that the jobs of its log ran on."""
        if self.cluster:
            return Cluster.parse(self.cluster)
        cluster = self.description.cluster or self.log.cluster
        if cluster is None:
            cluster = self.log.nodes_seen
        if cluster is None:
            raise TraceError(
                f'site {self.file}: found no cluster; expected [cluster] nodes = "70x8:v100", or --cluster 70x8.'
                f"{way_to_included(self.description.unmodelled)}"
            )
        return cluster

    @property
    def quotas(self) -> tuple[Queue, ...]:
        """Tuple of each `Queue`, if each has a quota of a GPU type that is there, else (): another queue could start no job."""
        queues = self.description.queues
        types = set(self.nodes.gpu_types)
        if all(types & dict(queue.nominal).keys() for queue in queues):
            return queues
        return ()

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario`: jobs with limits, types and partitions, cluster with windows, delays and requested times.

        A job is submitted when it is eligible, as `replay` plays it; those that wait for others in the log are not released anew.
        """
        scenario = self.recorded(seed)
        if "eligible" not in scenario.trace.columns:
            return scenario
        return scenario.replace(trace=eligible(scenario.trace))

    def recorded(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` in which jobs are submitted when the log says, which may be before they are eligible."""
        return self.played(self.trace, self.with_windows, seed)

    @property
    def with_windows(self) -> Cluster:
        """`Cluster` of the site's nodes, with those that are added and with its windows."""
        cluster = self.nodes
        if cluster.groups[0].nodes + self.more < 1:
            nodes = cluster.groups[0].nodes
            raise TraceError(
                f"site {self.file}: found more = {self.more}; expected at least {1 - nodes}, as its first group has {nodes} nodes."
            )
        if self.more:
            first_group = replace(cluster.groups[0], nodes=cluster.groups[0].nodes + self.more)
            cluster = replace(cluster, groups=(first_group, *cluster.groups[1:]))
        return replace(cluster, events=cluster.events + self.windows(cluster))

    def played(self, trace: pl.DataFrame, cluster: Cluster, seed: int = 0) -> Scenario:
        """Return the `Scenario` of some jobs on a cluster, with the site's delays, limits and types."""
        delays = Delays(switch=self.launch, restart=self.description.delays.get("restart", 0.0))
        over = self.description.scheduler.over + delays.switch + delays.restart
        if self.limited and "limit" not in trace.columns and "requested_time" in trace.columns:
            ran_within = pl.col("duration") <= pl.col("requested_time")
            trace = trace.with_columns(limit=pl.when(ran_within).then("requested_time"))
        types = "requested"
        if len(self.untyped(cluster)):
            types = None
        return Scenario(trace, cluster, estimator=Requested(), delays=delays, types=types, over=over, seed=seed)

    @property
    def zero(self) -> float | None:
        """Seconds since 1970 of the trace's zero, by the log's clock; None if it has no dates."""
        try:
            first_job = self.log.trace.head(1)
        except TraceError:  # a site may be read without its log
            return None
        if "clock" not in first_job.columns:
            return None
        since_1970 = first_job["clock"].dt.epoch("s")
        return since_1970[0] - first_job["submit"][0]

    @property
    def epoch(self) -> float:
        """Seconds of the trace's zero over a multiple of 30 since 1970, by the log's clock."""
        return (self.zero or 0.0) % 30.0

    @property
    def own(self) -> Policy:
        """The site's rule within its limits, a `Policy`."""
        return self.within(self.rule)

    def within(self, policy: Policy) -> Policy:
        """Return a `Policy` within the site's limits, if it can keep to any."""
        if not self.description.limits:
            return policy
        return within(policy, self.description.limits, self.nodes, (self.zero or 0.0) % DAY)

    @property
    def rule(self) -> Policy:
        """`Policy` of the site: quotas if it has queues; else its own backfill, in order of its priorities if it weighs them."""
        if self.quotas:
            return Kueue(self.quotas, placement="pack")
        weighed = self.description.scheduler.weights.counts or self.description.partitions
        if weighed:
            return self.slurm
        return Fifo(**backfill_of(self.description.scheduler))

    @property
    def slurm(self) -> Slurm:
        """`Slurm` rule with the site's weights, shares, priorities and plan."""
        return slurm_of(self.description, self.epoch)
