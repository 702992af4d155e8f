"""Tune a site's own knobs on the first part of its log, and judge on the rest what was announced."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.metrics.intervals import difference_interval
from gpuschedlab.metrics.sentence import span
from gpuschedlab.papers.clusters.playing.eligible import eligible, play
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.starts.known_log import known_at
from gpuschedlab.papers.clusters.starts.log_questions import completed_as
from gpuschedlab.papers.clusters.tuning.settings import CONSTANTS, Axis, Setting, axes_of, distance, own_setting
from gpuschedlab.papers.clusters.way_back import WayBack, conf_of, way_back
from gpuschedlab.papers.clusters.whatif import WARM_UP, never_started, waits
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.table_display import Table

ROUNDS = 60
PART = 0.5
KEPT = 0.02
BEST = 10
"""Settings that are played at most; part of the log that is searched on; part of the gain that taking back one change may cost; and how
many of the best are played on the rest, for the best known afterwards."""
FEWEST = 50
"""Jobs that each part must have."""


@dataclass(frozen=True)
class Gain:
    """Mean wait (s) of the same jobs before and after a change, and the interval of the difference; nan where jobs are too few.

    `never`: jobs that start before it and never after it; they are in no mean.
    """

    jobs: int
    before: float
    after: float
    low: float
    high: float
    never: int = 0

    @property
    def difference(self) -> float:
        """How much longer jobs wait (s)."""
        return self.after - self.before


@dataclass(frozen=True, repr=False)
class SiteTuning:
    """A site's best setting on the first part of its log, and what came of it on the rest.

    Parameters
    ----------
    site : Site
    setting : Setting
        The best that was found; the site's own where nothing gains.
    cut : float
        Instant (s) at which the rest begins.
    announced, realised : Gain
        On the first part, on which it was searched, and on the rest.
    miss : float
        Simulated minus recorded mean wait (s) of the rest under the site's own setting; nan if the log has no recorded starts.
    constant : str
        Name of the one of `CONSTANTS` that was best on the first part.
    constant_waits : tuple of float
        Its mean waits (s) on the first part and on the rest.
    afterwards : float
        The least mean wait (s) on the rest of the `BEST` best settings and of the one that was found, known afterwards.
    tried : int
        Settings that the search played.
    """

    site: Site
    setting: Setting
    cut: float
    announced: Gain
    realised: Gain
    miss: float
    constant: str
    constant_waits: tuple[float, float]
    afterwards: float
    tried: int

    @property
    def changed(self) -> bool:
        """Whether another setting than the site's own was found."""
        return self.setting != own_setting(self.site)

    @cached_property
    def back(self) -> WayBack:
        """`WayBack`: lines of slurm.conf and commands of sacctmgr that put the setting in force."""
        changes: dict[str, object] = {"policy": self.setting.rule}
        if self.setting.limits != self.site.description.limits:
            changes["within"] = self.setting.limits
        return way_back(self.site, changes)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval (low, high) (s) of the realised difference, wider by the replay's own miss on both sides, as a tuple."""
        miss = abs(self.miss) if np.isfinite(self.miss) else 0.0
        return self.realised.low - miss, self.realised.high + miss

    @property
    def sentence(self) -> str:
        """Sentences on the announced and the realised change of the mean wait, with its interval, as a string.

        Where nothing gains it says so.
        """
        if not self.changed:
            return (
                f"Of {self.tried} settings that slurm.conf can say none gains on the first {self.announced.jobs:,} jobs: "
                f"leave it as it is. They wait {_span(self.announced.before)} on average."
            )
        low, high = self.interval
        tuned_waits = (
            f"Announced on the first {self.announced.jobs:,} jobs: a mean wait of {_span(self.announced.after)} in the place of "
            f"{_span(self.announced.before)}. On the {self.realised.jobs:,} jobs of the rest: {_span(self.realised.after)} in the place of "
            f"{_span(self.realised.before)}"
        )
        if self.realised.never:
            tuned_waits = f"{tuned_waits} ({self.realised.never:,} more never start)"
        if not np.isfinite(low + high):
            return f"{tuned_waits}; no interval: the rest is too short."
        misses = f", the replay's own miss of {_span(abs(self.miss))} among it" if np.isfinite(self.miss) else ""
        side = "less" if high < 0 else "more" if low > 0 else "no clear change"
        return f"{tuned_waits}, a change of {_span(low, '+')} to {_span(high, '+')}{misses}: {side}."

    @property
    def table(self) -> pl.DataFrame:
        """Frame of the mean wait (s) on the first part and on the rest, a row per setting.

        The settings: as configured, tuned, and those with which they are compared.
        """
        setting_rows = [
            ("as configured", self.announced.before, self.realised.before),
            ("tuned", self.announced.after, self.realised.after),
            (f"{self.constant}, the best on the first part without a search", *self.constant_waits),
            (f"best of the {BEST} best and this one, known afterwards", None, self.afterwards),
        ]
        return pl.DataFrame(
            setting_rows, schema={"setting": pl.String, "announced": float, "realised": float}, orient="row"
        )

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        units = {"announced": "s", "realised": "s"}
        return Table(self.table, units=units, caption=self.sentence)._repr_html_()


def _span(seconds: float, sign: str = "") -> str:
    """A time in words; with its sign where asked."""
    span_text = span(abs(seconds))
    if not sign:
        return span_text
    return f"{'-' if seconds < 0 else '+'}{span_text}"


class Parts:
    """The first part of a site's log and the rest, on which settings are played, each once.

    Parameters
    ----------
    site : Site
        Names a slurm.conf.
    part : float
        Part of the jobs that is searched on.

    Raises
    ------
    TraceError
        A part has too few jobs.
    """

    def __init__(self, site: Site, part: float = PART):
        self.site = site
        self.own = own_setting(site)
        self.scenario = site.recorded()
        submit = eligible(self.scenario.trace)["submit"].sort()
        self.cut = cut_of(site, part)
        in_first_part = pl.col("submit") < self.cut
        self.first = self.scenario.replace(trace=self.scenario.trace.filter(in_first_part))
        self.warm = float(submit[0])
        if self.cut - self.warm >= 2 * WARM_UP:
            self.warm += WARM_UP
        early = (submit >= self.warm) & (submit < self.cut)
        late = submit >= self.cut
        jobs_of_parts = [int(early.sum()), int(late.sum())]
        if min(jobs_of_parts) < FEWEST:
            raise TraceError(
                f"tune --site {site.file}: found {jobs_of_parts[0]} jobs to search on and {jobs_of_parts[1]} to judge by; "
                f"expected {FEWEST} or more of each. Give a longer log."
            )
        self._early: dict[Setting, pl.DataFrame] = {}
        self._rest: dict[Setting, pl.DataFrame] = {}

    def policy(self, setting: Setting) -> Policy:
        """Return the `Policy` of a setting, within its limits, as the site plays its own."""
        site = replace(self.site)
        site.__dict__["log"] = self.site.log
        site.__dict__["description"] = replace(self.site.description, limits=setting.limits)
        return site.within(setting.rule)

    def early(self, setting: Setting) -> float:
        """Mean wait (s) on the first part; inf where fewer jobs start than under the site's own setting."""
        return _mean(self.early_jobs(setting), self.early_jobs(self.own))

    def early_jobs(self, setting: Setting) -> pl.DataFrame:
        """Return a frame of the jobs of the first part that count, with their waits."""
        if setting not in self._early:
            self._early[setting] = self._jobs(self.first, self.policy(setting), self.warm)
        return self._early[setting]

    def rest(self, setting: Setting) -> pl.DataFrame:
        """Return a frame of the jobs of the rest, with their waits; the whole log is played."""
        if setting not in self._rest:
            self._rest[setting] = self._jobs(self.scenario, self.policy(setting), self.cut)
        return self._rest[setting]

    def both(self, setting: Setting) -> tuple[float, float]:
        """Return a tuple: mean waits (s) of a setting on the first part and on the rest; inf if fewer jobs start."""
        return self.early(setting), _mean(self.rest(setting), self.rest(self.own))

    @staticmethod
    def _jobs(scenario: Scenario, policy: Policy, begin: float) -> pl.DataFrame:
        jobs = play(scenario, policy).jobs.filter(pl.col("submit") >= begin)
        return waits(jobs).sort("submit", "job_id", maintain_order=True)


def cut_of(site: Site, part: float = PART) -> float:
    """Return the instant (s, a float) by which so large a part of a log's jobs had become eligible."""
    submit = eligible(site.log.trace)["submit"].sort()
    return float(submit[min(int(part * len(submit)), len(submit) - 1)])


def completed_by(site: Site, cut: float) -> Site:
    """Return the `Site` with the limits, windows, hours and tiers that its log showed by an instant (s); nothing later is looked at.

    A log without recorded starts shows none.
    """
    if "started" not in site.log.trace.columns:
        return site
    return completed_as(known_at(site, cut).site.completed, site)


def _mean(jobs: pl.DataFrame, own: pl.DataFrame) -> float:
    """Mean wait (s) of jobs; inf where fewer of them start than of the jobs of another run."""
    if jobs["wait"].null_count() > own["wait"].null_count():
        return np.inf
    return float(jobs["wait"].mean())


def gain_of(before: pl.DataFrame, after: pl.DataFrame) -> Gain:
    """Return the `Gain`: mean waits of the jobs that start in both runs, and the interval of their difference."""
    both = before.join(after, on="job_id", maintain_order="left", suffix="_after").drop_nulls(["wait", "wait_after"])
    waits_before = both["wait"].to_numpy()
    waits_after = both["wait_after"].to_numpy()
    low, high = difference_interval(waits_before, waits_after)
    return Gain(
        both.height, float(waits_before.mean()), float(waits_after.mean()), low, high, never_started(before, after)
    )


def searched(parts: Parts, axes: list[Axis], rounds: int, rng: np.random.Generator) -> Iterator[Setting]:
    """Yield each `Setting` played on the first part: from the site's own, one knob after the other takes its best value.

    Knobs come in an order that is drawn, again and again while any gains, until so many settings were played.
    """
    best = own_setting(parts.site)
    played_settings = {best}
    yield best
    gains = True
    while gains:
        gains = False
        for axis_place in rng.permutation(len(axes)):
            for setting in axes[axis_place].values(best):
                if setting in played_settings or len(played_settings) >= rounds:
                    continue
                played_settings.add(setting)
                yield setting
                if parts.early(setting) < parts.early(best):
                    best = setting
                    gains = True


def simplest(parts: Parts, best: Setting, axes: list[Axis]) -> Setting:
    """Return the best `Setting` with each change taken back that hardly gains: the whole keeps all but `KEPT` of its gain.

    Settings between both are played beside those of the search.
    """
    own_site_setting = own_setting(parts.site)
    worth = parts.early(own_site_setting) - parts.early(best)
    if worth <= 0:
        return own_site_setting
    for axis in axes:
        for setting in axis.values(best):
            nearer = distance(setting, own_site_setting) < distance(best, own_site_setting)
            if nearer and parts.early(setting) <= parts.early(own_site_setting) - (1 - KEPT) * worth:
                best = setting
    return best


def tune_site(
    site: Site,
    rounds: int = ROUNDS,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    as_written: bool = True,
) -> SiteTuning:
    """Search a site's own knobs and limits on the log's first half, judge the best on the rest, and return a `SiteTuning`.

    Only values that slurm.conf and sacctmgr can say are tried. The mean wait of jobs is made small; those of the first three days do
    not count where that half has six days.

    Parameters
    ----------
    site : Site
        Its TOML names a slurm.conf.
    rounds : int
        Settings that the search plays on the first half at most; the site's own is one of them.
    seed : int
        Of the order in which knobs are tried.
    progress : callable, optional
        Called after each setting with how many were played.
    as_written : bool
        Whether the site is played as its files say; otherwise with the limits, windows, hours and tiers that its log showed by the end
        of the first half as well.

    Raises
    ------
    TraceError
        The site names no slurm.conf, it has queues with quotas, or its log is too short.

    Examples
    --------
    >>> found = tune_site(Site.sample(), rounds=3)
    >>> found.tried, found.announced.after <= found.announced.before
    (3, True)
    """
    conf_of(site)
    if site.quotas:
        raise TraceError(f"tune --site {site.file}: found queues with quotas; expected a site that Slurm's rule plays.")
    if not as_written:
        site = completed_by(site, cut_of(site))
    parts = Parts(site)
    axes = axes_of(site)
    tried = []
    for setting in searched(parts, axes, rounds, np.random.default_rng(seed)):
        parts.early(setting)
        tried.append(setting)
        if progress is not None:
            progress(len(tried))
    own_site_setting = tried[0]
    best = simplest(parts, min(tried, key=parts.early), axes)
    ranked = sorted(tried, key=parts.early)[:BEST]
    before = parts.rest(own_site_setting)
    constants = {
        constant_name: replace(own_site_setting, rule=replace(own_site_setting.rule, **constant_knobs))
        for constant_name, constant_knobs in CONSTANTS.items()
    }
    constant = min(constants, key=lambda constant_name: parts.early(constants[constant_name]))
    both_of_all = [parts.both(setting) for setting in (*ranked, best)]
    return SiteTuning(
        site,
        best,
        parts.cut,
        announced=gain_of(parts.early_jobs(own_site_setting), parts.early_jobs(best)),
        realised=gain_of(before, parts.rest(best)),
        miss=missed(before, parts.scenario.trace),
        constant=constant,
        constant_waits=parts.both(constants[constant]),
        afterwards=min(late for _, late in both_of_all),
        tried=len(tried),
    )


def missed(played: pl.DataFrame, trace: pl.DataFrame) -> float:
    """Return the simulated minus the recorded mean wait (s) of the jobs that were played; nan if the log has no recorded starts."""
    if "started" not in trace.columns:
        return np.nan
    log = eligible(trace).select("job_id", recorded=pl.col("started") - pl.col("submit"))
    both = played.join(log, on="job_id", maintain_order="left").drop_nulls(["wait", "recorded"])
    return float((both["wait"] - both["recorded"]).mean()) if both.height else np.nan
