"""Replay: a site's own log by its own rule, beside other rules, and how far the starts are from the recorded ones."""

from dataclasses import dataclass
from functools import cached_property
from math import isnan

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import Estimator, Oracle
from gpuschedlab.metrics.intervals import SHORT, difference_interval
from gpuschedlab.papers.clusters.doubts import doubts
from gpuschedlab.papers.clusters.explains.limited import Limited
from gpuschedlab.papers.clusters.metrics import start_errors, start_errors_by
from gpuschedlab.papers.clusters.playing.eligible import launched_by
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.table_display import Table, cell

LAUNCHES = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Seconds between a decision and the recorded start that are tried."""

TRUE = ", true run times"
GROUPS = ("size", "vc", "account", "hour", "weekday", "quarter")
SIZES = ("1", "2-7", "8", "9-64", "more")


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Result of a replay.

    Parameters
    ----------
    site : Site
    scenario : Scenario
    own : str
        The site's own rule.
    starts : polars.DataFrame
        The log's jobs that have a recorded start, with those by which they are grouped (`GROUPS`) and a column of simulated starts
        (s) for each rule, null for a job that it did not start.
    launch : float
        Seconds more between a decision and a start that bring the site's own rule nearest to the first half of the log.
    launched : polars.Series
        Starts by the site's own rule with them.
    notes : tuple of str
        Misfits of site and log that are known before anything is simulated.
    """

    site: Site
    scenario: Scenario
    own: str
    starts: pl.DataFrame
    launch: float
    launched: pl.Series
    notes: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """Tuple of the names of the rules."""
        start_columns = self.starts.columns
        first_rule = start_columns.index("quarter") + 1
        return tuple(start_columns[first_rule:])

    def errors(self, rule: str) -> dict[str, float]:
        """Return a dict of the `start_errors` of a rule over the whole log."""
        starts = self.starts.select("submit", "started", rule)
        return start_errors(*starts.get_columns())

    @cached_property
    def table(self) -> pl.DataFrame:
        """Frame of one row per rule, nearest first: its `start_errors`, and how much larger its mean error is than the own rule's.

        The latter is `more`, with the interval of this paired difference, `more_low` and `more_high` (nan: too short to tell).
        """
        # Whoever never starts, starts later.
        latest = [self.starts[start_column].max() or 0.0 for start_column in ("started", *self.rules)]
        error = {}
        for rule in self.rules:
            distance = self.starts[rule].fill_null(max(latest)) - self.starts["started"]
            error[rule] = distance.abs().to_numpy()
        rule_rows = []
        for rule in self.rules:
            more = error[rule] - error[self.own]
            low, high = difference_interval(error[self.own], error[rule])
            rule_rows.append(
                {"rule": rule} | self.errors(rule) | {"more": more.mean(), "more_low": low, "more_high": high}
            )
        return pl.DataFrame(rule_rows).sort("mae", maintain_order=True)

    @cached_property
    def later(self) -> dict[str, float]:
        """Dict of `start_errors` of the site's own rule with the fitted launch delay, over the log's second half.

        That half fitted nothing.
        """
        half = self.starts.height // 2
        starts = self.starts.select("submit", "started", launched=self.launched)
        return start_errors(*starts[half:].get_columns())

    def by(self, group: str, rule: str | None = None) -> pl.DataFrame:
        """Return a frame of `start_errors` of a rule (default: the site's own) by one of `GROUPS`: partition (`vc`), size, hour, ..."""
        if group not in GROUPS:
            raise TraceError(f"replay: found the group {group!r}; expected one of {', '.join(GROUPS)}.")
        return start_errors_by(self.starts, group, rule or self.own)

    @property
    def verdict(self) -> str:
        """String of sentences: which rule is nearest, if it is not the site's own, how near the own is, and which are as near."""
        own_errors = self.errors(self.own)
        rules_table = self.table
        nearest = self.own
        if rules_table["mae"][0] < own_errors["mae"]:
            nearest = rules_table["rule"][0]
        near = rules_table.filter((pl.col("more_low") <= 0) & (pl.col("more_high") >= 0))
        short = rules_table.filter(pl.col("more_low").is_nan())["rule"]
        nearer_rule = ""
        if nearest != self.own:
            nearer_rule = f"{nearest} is nearer to the log than {self.own}. "
        alike = [rule for rule in near["rule"] if rule != self.own]
        doubts_of_rules = ""
        if alike:
            doubts_of_rules += f" The log does not tell it from {', '.join(alike)}."
        if len(short):
            doubts_of_rules += f" The log is {SHORT} it from {', '.join(short)}."
        return (
            f"{nearer_rule}{self.own}: mean wait {own_errors['simulated']:.0f} s, recorded {own_errors['recorded']:.0f} s; "
            f"half of the starts within {own_errors['median']:.0f} s, 9 of 10 within {own_errors['p90']:.0f} s. "
            f"Differences below {abs(own_errors['bias']):.0f} s of mean wait are within "
            f"what the model misses.{doubts_of_rules}"
        )

    def summary(self) -> dict:
        """Return a dict of the site's own rule and its errors, by name."""
        return {"rule": self.own, "launch": self.launch} | self.errors(self.own)

    def __repr__(self) -> str:
        return repr(self.shown())

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()

    def shown(self) -> Table:
        """Return the first figures as a `Table` that a person reads: how far each rule's starts are from those of the log."""
        shown_names = {"mae": "mean distance", "bias": "waits longer by", "more": f"farther than {self.own}"}
        shown_names |= {"median": "half within", "p90": "9 of 10 within"}
        interval = []
        for low, high in self.table.select("more_low", "more_high").iter_rows():
            if isnan(low):
                interval.append(SHORT)
            else:
                interval.append(f"{cell(low, 's')} to {cell(high, 's')}")
        shown_errors = self.table.select("rule", "mae", "median", "p90", "bias", "more")
        shown_errors = shown_errors.with_columns(pl.Series("interval", interval, pl.String))
        units = dict.fromkeys(shown_names, "s")
        return Table(shown_errors, names=shown_names, units=units, caption=self.verdict)


def rules(site: Site) -> dict[str, tuple[Policy, Estimator | None]]:
    """Return a dict by name of the rules that a log is replayed by: tuples of a `Policy` and its run times, an `Estimator`.

    The estimator is None if the rule knows the run times that the site knew.
    """
    policies = site.policies
    own_name = own_rule(site)
    limited = site.within(policies["EASY"])
    if not isinstance(site.own, Limited) and isinstance(limited, Limited):
        policies = policies | {"EASY within limits": limited}
    if own_name not in policies:
        policies = {own_name: site.own} | policies
    rules_of_site = {rule_name: (policy, None) for rule_name, policy in policies.items()}
    return rules_of_site | {own_name + TRUE: (site.own, Oracle())}


def own_rule(site: Site) -> str:
    """Return the name of the site's own rule; "as configured" if it is none of the named ones."""
    return next((rule_name for rule_name, policy in site.policies.items() if policy == site.own), "as configured")


def replay(site: Site) -> Calibration:
    """Simulate a site's log by its own rule and by others, and return the `Calibration`: a comparison with the recorded starts.

    The simulation knows requested times, never `started`. The first half of the log fits the delay of a launch.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> log = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = log.write_text("job_id,submit,gpus,duration,requested_time,started\\na,0,2,60,90,0\\nb,1,2,60,90,62\\n")
    >>> replay(Site(f"csv:{log}", "1x2")).verdict
    'EASY: mean wait 30 s, recorded 30 s; half of the starts within 1 s, 9 of 10 within 2 s. ...'
    """
    scenario = site.recorded()
    trace = scenario.trace
    if "started" not in trace.columns or trace["started"].null_count() == trace.height:
        raise TraceError(f"replay {site.file}: found no recorded starts; expected a log with the column started.")
    rules_of_site = rules(site)
    own_name = own_rule(site)
    own_policy, _ = rules_of_site[own_name]
    starts_by = {}
    for rule_name, (policy, estimator) in rules_of_site.items():
        informed = scenario
        if estimator is not None:
            informed = scenario.replace(estimator=estimator)
        starts_by[rule_name] = launched_by(informed, policy)
    recorded = trace["started"].is_not_null()
    starts = grouped(trace).with_columns(**starts_by).filter(recorded)
    delays = LAUNCHES
    if isinstance(own_policy, Limited):  # its rounds take long
        delays = LAUNCHES[:4:3]
    half = max(1, starts.height // 2)
    launched = {}
    miss = {}
    for delay in delays:
        launched[delay] = launched_by(scenario, own_policy, delay).filter(recorded)
        distance = (launched[delay] - starts["started"]).head(half).abs()
        miss[delay] = distance.mean() or 0.0
    launch = min(miss, key=miss.get)
    never = {rule_name: starts[rule_name].null_count() for rule_name in starts_by}
    idle = (f"{idle_jobs} jobs never start by {rule_name}" for rule_name, idle_jobs in never.items() if idle_jobs)
    return Calibration(site, scenario, own_name, starts, launch, launched[launch], (*doubts(site, scenario), *idle))


def grouped(trace: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of jobs with the values by which they are grouped.

    These are size class, partition, account, hour, weekday, and fourth of the log.
    """
    gpus = pl.col("gpus")
    trace_columns = trace.columns
    *classes, largest = SIZES
    size = pl.lit(largest)
    of_class = dict(zip(classes, (gpus < 2, gpus < 8, gpus == 8, gpus <= 64), strict=True))
    for size_class in reversed(classes):
        size = pl.when(of_class[size_class]).then(pl.lit(size_class)).otherwise(size)
    clock = pl.lit(None, pl.Datetime("us"))
    if "clock" in trace_columns:
        clock = pl.col("clock")
    owners = {owner_column: pl.lit(None, pl.String) for owner_column in ("vc", "account")}
    owners |= {owner_column: pl.col(owner_column) for owner_column in owners if owner_column in trace_columns}
    quarter = pl.int_range(pl.len()) * 4 // pl.len() + 1
    return trace.select(
        "job_id",
        *("submit", "gpus", "started"),
        size=size,
        **owners,
        hour=clock.dt.strftime("%H"),
        weekday=clock.dt.strftime("%u %a"),
        quarter=quarter.cast(pl.String),
    )
