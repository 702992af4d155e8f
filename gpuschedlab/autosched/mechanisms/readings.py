"""Mechanisms as a log shows them: each with its value, its interval, and how far the log moved it."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.canaries import Canaries, power_of_canaries
from gpuschedlab.autosched.mechanisms.checkpoints import Checkpoint
from gpuschedlab.autosched.mechanisms.costs import Costs
from gpuschedlab.autosched.mechanisms.misfits import Misfit
from gpuschedlab.autosched.mechanisms.rates import failures, repairs
from gpuschedlab.autosched.mechanisms.slowdowns import FACTOR, POWERS
from gpuschedlab.autosched.mechanisms.work.first_starts import FirstStart
from gpuschedlab.autosched.mechanisms.work.pace import Pace, lengths
from gpuschedlab.autosched.mechanisms.work.residuals import Residuals, power_range
from gpuschedlab.autosched.mechanisms.work.slow_nodes import SlowNodes
from gpuschedlab.sim import Scenario

DAY = 86_400.0
MTTR = 3600.0
FEWEST = 5
MANY = 50
"""Seconds of a repair, as believed; failures and predictions that a mechanism needs; restarts below which a delay is called rough."""
INSTANT = 1.0
"""Delays (s) below which a log in whole seconds shows none."""
SLOW = np.log(0.9)
"""Placements below this speed count as spread."""


class Mechanism(NamedTuple):
    """A mechanism: value (as believed if not `seen`), 95 % interval, rows behind it, part of its range that the log moved.

    `note` says why it was not seen, or how it varies. `believed` is the value that the scenario had, None if it had none.
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    rows: int
    overlap: float
    seen: bool
    note: str = ""
    believed: float | None = None

    @property
    def words(self) -> str:
        """Text of the value and its interval, or that it was not seen, and why."""
        mechanism_name = self.name.replace("_", " ")
        mechanism_note = ""
        if self.note:
            mechanism_note = f" ({self.note})"
        if not self.seen:
            return f"{mechanism_name} not seen{mechanism_note}"
        unit = ""
        if self.unit:
            unit = f" {self.unit}"
        interval_text = f"{_number(self.low)} to {_number(self.high)}"
        return f"{mechanism_name} {_number(self.value)}{unit} ({interval_text}){mechanism_note}"

    @property
    def refutes(self) -> bool:
        """Whether it was seen, and the believed value lies outside of its interval."""
        return self.seen and self.believed is not None and not self.low <= self.believed <= self.high


def _number(value: float) -> str:
    """Three figures of a number as text, written out: 3,310, not 3.31e+03."""
    if not np.isfinite(value):
        return "no end"
    return f"{float(f'{value:.3g}'):,.12g}"


def restart_of(log: pl.DataFrame, costs: Costs, scenario: Scenario) -> Mechanism:
    """Return the `Mechanism` "restart": the delay of a job of the median size, on top of the cost of any start."""
    believed = scenario.delays.restart
    delay = costs.delay
    if delay is None:
        restart_count = log.filter(pl.col("attempt") > 0).height
        unseen = believed, 0.0, np.inf, "s", restart_count, 0.0
        return Mechanism("restart", *unseen, False, "too few restarted jobs completed", believed)
    restarts_seen = int(delay.counts.sum())
    median_size = np.repeat(delay.sizes, delay.counts)[restarts_seen // 2]
    restart_notes = []
    if restarts_seen < MANY:
        restart_notes.append(f"rough: {restarts_seen} restarts")
    if delay.sigma and not delay.scatters:
        restart_notes.append(f"seems to vary: deviation of the logarithm {delay.sigma:.2f}")
    if delay.by_size > 0.5:
        delays_by_size = (f"{delay.at(gpus)[0]:.0f} s on {gpus:g}" for gpus in delay.sizes[[0, -1]])
        restart_notes.append(f"by size: {', '.join(delays_by_size)} GPUs")
    job_sizes = log.filter(attempt=0)["gpus"]
    overlap = float(job_sizes.is_in(delay.sizes).mean())
    value, low, high = delay.at(median_size)
    start_cost = costs.start
    if start_cost.seen:
        value = max(value - start_cost.value, 0.0)
        low = max(low - start_cost.high, 0.0)
        high = max(high - start_cost.low, 0.0)
    if low < INSTANT:
        low = 0.0
    return Mechanism("restart", value, low, high, "s", restarts_seen, overlap, True, "; ".join(restart_notes), believed)


def placement_of(
    jobs: Residuals, slow: np.ndarray, pace: Pace, scenario: Scenario, canaries: Canaries | None
) -> Mechanism:
    """Return the `Mechanism` "placement": the power of the slowdown by placement, that of canaries if there are any."""
    log = jobs.log
    power = 1.0
    low = 0.0
    high = np.inf
    spread_jobs = 0
    placement_note = ""
    if scenario.speeds is None:
        placement_note = "no speeds by placement"
    elif not log["model"].is_in(scenario.speeds.models).any():
        placement_note = "no column model that the speeds know"
    elif canaries is not None:
        power, low, high, spread_jobs = power_of_canaries(log, slow, canaries)
    else:
        power, low, high, spread_jobs = power_range(jobs, slow, pace, POWERS)
    is_seen = bool(0 < high <= FACTOR * low)
    if not is_seen and not placement_note:
        placement_note = (
            f"{spread_jobs} jobs began on more nodes than they needed; their work leaves {low:.2g} to {high:.2g}"
        )
    gpu_time = lengths(log) * log["gpus"].to_numpy()
    overlap = float(gpu_time[slow < SLOW].sum() / gpu_time.sum())
    if not is_seen:
        power = 1.0
    return Mechanism("placement", power, low, high, "", spread_jobs, overlap, is_seen, placement_note, 1.0)


def failure_of(log: pl.DataFrame, cluster) -> Mechanism:
    """Return the `Mechanism` "failure": failures of a busy node a day."""
    *rates, failure_count, busy = failures(log, float(cluster.node_gpus.mean()))
    submit = log["submit"]
    window = max(float(submit.max() - submit.min()), 1.0) * cluster.total_nodes
    is_seen = failure_count >= FEWEST
    failure_note = ""
    if not is_seen:
        failure_note = f"{failure_count} failures"
    failure_rates = (rate * DAY for rate in rates)
    return Mechanism(
        "failure", *failure_rates, "a day of a busy node", failure_count, min(1.0, busy / window), is_seen, failure_note
    )


def repair_of(log: pl.DataFrame) -> Mechanism:
    """Return the `Mechanism` "repair": seconds until a node that failed is back."""
    value, *repair_ends, repair_count = repairs(log)
    is_seen = repair_count >= FEWEST
    repair_note = ""
    if not is_seen:
        value = MTTR
        repair_note = f"{repair_count} waiting jobs took a node that had failed"
    if not log["at"].count():
        repair_note = "no lists of nodes"
    return Mechanism("repair", value, *repair_ends, "s", repair_count, 1.0, is_seen, repair_note)


def first_start_mechanism(start: FirstStart, scenario: Scenario) -> Mechanism:
    """Return the `Mechanism` "first_start": the cost of every start."""
    believed = scenario.delays.switch
    value = start.value
    start_note = ""
    if not start.seen:
        value = believed
        start_note = "few jobs"
        if np.isfinite(start.earliest):
            start_note = f"a job completed {start.earliest:.0f} s after its start"
    return Mechanism(
        "first_start", value, start.low, start.high, "s", start.rows, 1.0, start.seen, start_note, believed
    )


def checkpoint_mechanism(checkpoint: Checkpoint, believed: float, misfits: list[Misfit]) -> Mechanism:
    """Return the `Mechanism` "checkpoint": seconds between checkpoints, to which a failure throws a job back."""
    checkpoint_note = ""
    if not checkpoint.seen:
        checkpoint_note = f"{checkpoint.rows} jobs completed after a failure"
    is_seen = checkpoint.seen and not misfits
    if misfits:
        checkpoint_note = misfits[0].words
    checkpoint_range = checkpoint.value, checkpoint.low, checkpoint.high
    return Mechanism("checkpoint", *checkpoint_range, "s", checkpoint.rows, 1.0, is_seen, checkpoint_note, believed)


def slow_nodes_mechanism(nodes: SlowNodes, overlap: float, known: bool) -> Mechanism:
    """Return the `Mechanism` "slow_nodes": speed of slow nodes over that of the others."""
    if not nodes.seen:
        return Mechanism("slow_nodes", 1.0, 0.0, np.inf, "", nodes.rows, 0.0, False, "nodes are alike", 1.0)
    slow_nodes_note = f"nodes {', '.join(nodes.names)}"
    if not known:
        slow_nodes_note += "; not played: which nodes of the cluster these are is not known"
    unit = "of the speed of the others"
    speed_range = nodes.speed, nodes.low, nodes.high
    return Mechanism("slow_nodes", *speed_range, unit, nodes.rows, overlap, True, slow_nodes_note, 1.0)


def widened(mechanism: Mechanism, misfits: list[Misfit]) -> Mechanism:
    """Return a `Mechanism` whose interval holds the values that its misfits leave open as well."""
    low = mechanism.low
    high = mechanism.high
    for misfit in misfits:
        low = np.nanmin([low, misfit.low])
        high = np.nanmax([high, misfit.high])
    misfit_notes = [mechanism.note, *(misfit.words for misfit in misfits)]
    return mechanism._replace(low=float(low), high=float(high), note="; ".join(filter(None, misfit_notes)))
