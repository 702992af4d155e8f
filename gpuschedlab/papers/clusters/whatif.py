"""What if: a site with something changed, over the same weeks of its own log, and whether the replay is good enough to say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.metrics.intervals import DAY, FEWEST, Blocks
from gpuschedlab.papers.clusters.recipe import TIMEOUT, Site
from gpuschedlab.papers.clusters.replay import Calibration
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.setup.prepared import limits_of
from gpuschedlab.traces.logs.options import nearest

WARM_UP = 3 * DAY
CHANGES = ("more", "cluster", "policy", "estimator", "delays", "limits")
BOUND = 10.0
"""Seconds below which a run does not make a slowdown larger (Feitelson et al., JSSPP 1997)."""

BELOW = "below what the replay misses"


@dataclass(frozen=True)
class WhatIf:
    """What a change would have done.

    Parameters
    ----------
    table : polars.DataFrame
        One row for each figure: `before`, `after`, `difference`, its 95 % interval `low` and `high`, `bias` of the replay (null
        without one), `verdict`. Figures: mean wait (s: all time in which a job does not run), bounded slowdown, share of jobs that waited
        over an hour.
    unit : str
        What intervals draw anew.
    blocks : int
        How many there were.
    unknown : float
        GPU-hours of jobs that the log shows stopped at a limit below the new one: for how long they would have run nobody knows.
    """

    table: pl.DataFrame
    unit: str
    blocks: int
    unknown: float = 0.0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, verdict: str = "{}") -> list[str]:
        """A line for each figure, its verdict in such a form, and what the intervals and the GPU-hours are of."""
        lines = [
            f"{f}: {before:,.4g} to {after:,.4g}, {difference:+,.4g} [{low:+,.4g}, {high:+,.4g}]: {verdict.format(said)}"
            for f, before, after, difference, low, high, _, said in self.table.iter_rows()
        ]
        lines += [f"95 % intervals of paired differences by {self.blocks} {self.unit}; arrivals as recorded"]
        if self.unknown:
            lines += [
                f"{self.unknown:,.0f} GPU-hours are of jobs stopped at their limits: taken to end there all the same"
            ]
        return lines

    def summary(self) -> dict[str, float]:
        """Differences by figure."""
        return dict(self.table.select("figure", "difference").iter_rows())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self.table.columns)
        rows = ""
        for row in self.table.iter_rows():
            words = [f"{value:,.4g}" if isinstance(value, float) else f"{value}" for value in row]
            rows += f"<tr{' style=color:gray' if row[-1] == BELOW else ''}><td>{'</td><td>'.join(words)}</td></tr>"
        return f"<table><tr>{head}</tr>{rows}</table><p>{self.blocks} {self.unit}</p>"


def whatif(
    site: Site, changes: Mapping[str, object], weeks: int | None = None, calibration: Calibration | None = None
) -> WhatIf:
    """Simulate a site as it is and with something changed, week by week, and compare.

    Each week is played after three days of warm-up, on both sides alike; days where there are fewer than eight weeks, and the log as
    a whole, without a warm-up, where there are fewer than five days.

    Parameters
    ----------
    site : Site
    changes : mapping
        By name: `more` (nodes), `cluster` ("20x8:a100"), `policy` (a `Policy`, or the name of one of `site.policies`), `estimator`,
        `delays`, `limits` (s, or as of a `Scenario`).
    weeks : int, optional
        The last so many weeks (or days) alone.
    calibration : Calibration, optional
        What `replay(site)` found: its bias stands beside each figure, and a smaller difference is marked.

    Raises
    ------
    TraceError
        A change is not known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> log = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = log.write_text("job_id,submit,gpus,duration,requested_time\\na,0,2,60,90\\nb,0,2,60,90\\n")
    >>> whatif(Site(f"csv:{log}", "1x2"), {"more": 1}).table["difference"].to_list()[0]
    -30.0
    """
    if unknown := next((name for name in changes if name not in CHANGES), None):
        raise TraceError(
            f"whatif: found the change {unknown!r}; expected one of {', '.join(CHANGES)}.{nearest(unknown, CHANGES)}"
        )
    other = replace(site, **{k: v for k, v in changes.items() if k in ("more", "cluster")})
    own = site.own
    wanted = changes.get("policy", own)
    if isinstance(wanted, str) and wanted not in site.policies:
        raise TraceError(
            f"whatif: found the policy {wanted!r}; expected a Policy, or one of {', '.join(site.policies)}."
        )
    wanted = site.policies[wanted] if isinstance(wanted, str) else wanted
    parts = {k: v for k, v in changes.items() if k in ("estimator", "delays", "limits")}
    scenario, changed = site(), other().replace(**parts)
    before, after = played(((scenario, own), (changed, wanted)), weeks)
    unknown = stopped(scenario.trace, limits_of(changed.trace, changed.limits)) if "limits" in parts else 0.0
    return replace(compared(before, after, calibration), unknown=unknown)


def stopped(trace: pl.DataFrame, limits: np.ndarray) -> float:
    """GPU-hours of jobs that were stopped at their limits, by state or else by requested time, and that other limits (n,) let run on."""
    if "state" in trace.columns:
        by_limit = pl.col("state").cast(pl.String).str.contains(TIMEOUT)
    else:
        by_limit = pl.col("duration") >= (pl.col("requested_time") if "requested_time" in trace.columns else np.inf)
    jobs = trace.filter(by_limit & (pl.col("duration") < pl.Series(limits)))
    return float((jobs["gpus"] * jobs["duration"]).sum()) / 3600


def played(sides: tuple[tuple[Scenario, Policy], ...], weeks: int | None = None) -> tuple[pl.DataFrame, ...]:
    """For each side the jobs of all blocks: `job_id`, `submit`, `wait` and `duration` (s), `block` and `unit`."""
    submit = sides[0][0].trace["submit"].to_numpy()
    found: tuple[list, ...] = tuple([] for _ in sides)
    for block, unit, first, start, end in list(spans(submit))[-(weeks or 0) :]:
        shift = pl.col("submit") - max(first, float(submit.min()))
        for rows, (scenario, policy) in zip(found, sides, strict=True):
            part = scenario.trace.filter(pl.col("submit") >= first, pl.col("submit") < end).with_columns(shift)
            # not running: before the start, launching, suspended
            wait = pl.col("end") - pl.col("submit") - pl.col("duration")
            cluster = since(scenario.cluster, max(first, float(submit.min())))
            jobs = scenario.replace(trace=part, cluster=cluster).run(policy).jobs.with_columns(wait=wait)
            jobs = jobs.filter(pl.col("submit") >= start - max(first, float(submit.min())))
            rows.append(jobs.select("job_id", "submit", "wait", "duration", block=pl.lit(block), unit=pl.lit(unit)))
    return tuple(pl.concat(rows) for rows in found)


def since(cluster: Cluster, origin: float) -> Cluster:
    """The cluster on a clock that begins at an instant (s): what is over by then is left out of its outages and windows."""
    names, events = ("start", "end", "announced"), []
    for e in (e for e in cluster.events if e.end > origin):
        moved = {name: max(getattr(e, name) - origin, 0.0) for name in names if hasattr(e, name)}
        events.append(replace(e, **moved))
    return replace(cluster, events=tuple(events))


def spans(submit: np.ndarray) -> Iterator[tuple[int, str, float, float, float]]:
    """Number and unit of each block, and its instants: where its warm-up, and where it itself begins and ends."""
    zero, last = float(submit.min()) + WARM_UP, float(submit.max())
    for unit, (span, fewest) in FEWEST.items():
        if (many := int((last - zero) // span)) >= fewest:
            for i in range(many):
                if ((submit >= zero + i * span) & (submit < zero + (i + 1) * span)).any():
                    yield i, unit, zero + i * span - WARM_UP, zero + i * span, zero + (i + 1) * span
            return
    yield 0, "", -np.inf, -np.inf, np.inf


def figures(wait: np.ndarray, duration: np.ndarray) -> dict[str, np.ndarray]:
    """Figures of each job, of which means are compared."""
    slowdown = np.maximum(1.0, (wait + duration) / np.maximum(duration, BOUND))
    return {"mean wait": wait, "bounded slowdown": slowdown, "waited over an hour": (wait > 3600).astype(float)}


def compared(before: pl.DataFrame, after: pl.DataFrame, calibration: Calibration | None = None) -> WhatIf:
    """Paired differences of the same jobs of the same blocks, with intervals that draw the blocks anew."""
    both = before.join(
        after.select("job_id", "block", other="wait"), on=["job_id", "block"], maintain_order="left"
    ).drop_nulls(["wait", "other"])
    blocks = Blocks(np.unique(both["block"].to_numpy(), return_inverse=True)[1], both["unit"][0])
    if not blocks.unit:  # the log as a whole
        blocks = Blocks.of_log(both["submit"].to_numpy())
    one, two = (figures(both[side].to_numpy(), both["duration"].to_numpy()) for side in ("wait", "other"))
    missed = biases(calibration) if calibration else {}
    rows = []
    for name in one:
        difference, bias = float((two[name] - one[name]).mean()), missed.get(name)
        low, high = blocks.interval(two[name] - one[name])
        verdict = (
            "no interval" if np.isnan(low) else "undecided" if low <= 0 <= high else "lower" if high < 0 else "higher"
        )
        verdict = BELOW if bias is not None and abs(difference) < abs(bias) else verdict
        rows.append((name, one[name].mean(), two[name].mean(), difference, low, high, bias, verdict))
    columns = ("figure", "before", "after", "difference", "low", "high", "bias", "verdict")
    kinds = {name: pl.String if name in ("figure", "verdict") else pl.Float64 for name in columns}
    return WhatIf(pl.DataFrame(rows, schema=kinds, orient="row"), blocks.unit, int(blocks.of.max()) + 1)


def biases(calibration: Calibration) -> dict[str, float]:
    """By how much the replay misses each figure: simulated - recorded."""
    jobs = calibration.starts.join(
        calibration.scenario.trace.select("job_id", "duration"), on="job_id", maintain_order="left"
    ).drop_nulls(calibration.own)
    waits = ((jobs[start] - jobs["submit"]).to_numpy() for start in ("started", calibration.own))
    recorded, simulated = (figures(wait, jobs["duration"].to_numpy()) for wait in waits)
    return {name: float((simulated[name] - recorded[name]).mean()) for name in recorded}
