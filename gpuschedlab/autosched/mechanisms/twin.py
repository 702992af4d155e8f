"""The simulator as an operator's log shows it: each mechanism with its value, its interval, and what the log moved of it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.attempts import attempts_of, load_at_start
from gpuschedlab.autosched.mechanisms.canaries import Canaries, ask, power_of_canaries
from gpuschedlab.autosched.mechanisms.rates import failures, prediction_error, repairs
from gpuschedlab.autosched.mechanisms.resumption import Delay, delay_of
from gpuschedlab.autosched.mechanisms.slowdowns import FACTOR, power_of, powered, slowdowns, work_of
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators import Noisy
from gpuschedlab.sim import Run, Scenario
from gpuschedlab.table_display import Table

DAY = 86_400.0
MTTR = 3600.0
FEWEST = 5
MANY = 50
"""Seconds of a repair, as believed; failures and predictions that a mechanism needs; restarts below which a delay is called rough."""
SLOW = np.log(0.9)
"""Placements below this speed count as spread."""
OPEN = {"restart": (0.0, 3600.0), "placement": (0.25, 3.0)}
"""What is tried of a mechanism on which a choice may depend, where the log leaves more open."""
POWERS = 5
"""Powers of the slowdown, within what is open, at which the error of predictions is computed."""


class Mechanism(NamedTuple):
    """A mechanism: value (as believed where not `seen`), 95 % interval, rows behind it, part of its range that the log moved.

    `note` says why it was not seen, or how it varies.
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

    @property
    def words(self) -> str:
        """Value and interval, or that it was not seen, and why."""
        note = f" ({self.note})" if self.note else ""
        unit = f" {self.unit}" if self.unit else ""
        value, low, high = (
            f"{float(f'{x:.3g}'):,.12g}" for x in (self.value, self.low, self.high)
        )  # 3,310, not 3.31e+03
        return f"{self.name}{f' {value}{unit} ({low} to {high})' if self.seen else ' not seen'}{note}"


@dataclass(frozen=True, eq=False, repr=False)
class Twin:
    """What `twin` found in a log: `mechanisms` by name, `work` (s) by `job_id`, and the `base` scenario, as it was believed."""

    base: Scenario
    mechanisms: dict[str, Mechanism]
    work: pl.DataFrame
    delay: Delay | None

    @cached_property
    def scenario(self) -> Scenario:
        """The base with the mechanisms that were seen, and the log's jobs with the work that the twin infers."""
        return self.at()

    @property
    def frame(self) -> pl.DataFrame:
        """One row per mechanism, with the fields of `Mechanism`."""
        return pl.DataFrame(list(self.mechanisms.values()), orient="row", schema=Mechanism._fields)

    @property
    def sentence(self) -> str:
        """Each mechanism with its interval, or that it was not seen, and why."""
        return f"The log shows: {'; '.join(m.words for m in self.mechanisms.values())}."

    def __repr__(self):
        return f"Twin({self.sentence})"

    def _repr_html_(self):
        return Table(self.frame, caption=self.sentence)._repr_html_()

    def at(self, scenario: Scenario | None = None, **values: float) -> Scenario:
        """The mechanisms in a scenario.

        Parameters
        ----------
        scenario : Scenario, optional
            Another one, such as days to come; default: the base.
        **values
            Of mechanisms instead of the estimates: `restart` (s, of a job of the median size that was restarted), `placement` (power
            of the slowdown), `failure` (1/day of a busy node), `repair` (s), `prediction` (`Noisy.error`).

        Raises
        ------
        EstimatorError
            There is no such mechanism.
        """
        if wrong := [name for name in values if name not in self.mechanisms]:
            raise EstimatorError(f"Twin.at: found {wrong[0]!r}; expected some of {', '.join(self.mechanisms)}.")
        scenario = scenario or self.base
        value = {m.name: m.value for m in self.mechanisms.values() if m.seen} | values
        changes = {"trace": self._settled(scenario.trace, value)}
        if scenario.history is not None:
            changes["history"] = self._settled(scenario.history, value)
        if "placement" in value and scenario.speeds is not None:
            changes["speeds"] = powered(scenario.speeds, value["placement"])
        if value.get("failure"):
            until = float(scenario.trace["submit"].max()) + 3 * DAY
            nodes = replace(scenario.cluster, events=())
            changes["cluster"] = nodes.with_failures(
                DAY / value["failure"], value.get("repair", MTTR), until, scenario.seed
            )
        if "prediction" in value:
            changes["estimator"] = Noisy(error=value["prediction"], rng=scenario.seed)
        return scenario.replace(**changes)

    def _settled(self, jobs: pl.DataFrame, value: dict) -> pl.DataFrame:
        """Jobs with the work that the twin infers, and the delay of each one's restart."""
        known = jobs.select("job_id").join(self.work, on="job_id", how="left", maintain_order="left")["work"]
        jobs = jobs.with_columns(duration=pl.coalesce(known, "duration"))
        if "restart" not in value:
            return jobs
        if self.delay is None:
            return jobs.with_columns(restart=pl.lit(float(value["restart"])))
        scale = value["restart"] / max(self.mechanisms["restart"].value, 1e-9)
        return jobs.with_columns(restart=pl.Series(self.delay.of(jobs["gpus"].to_numpy()) * scale))

    def ask(self, **options) -> Canaries:
        """Canaries of known work that would show the placement; options: `begin`, `every`, `seconds` (s), `gpus` of each."""
        return ask(self.base, **options)

    def flips(self, policies: dict, metric: str = "jct_mean") -> tuple[pl.DataFrame, str]:
        """Whether the choice among policies stays the same within what the log leaves open of restarts and placement.

        Parameters
        ----------
        policies : dict of str to Policy
        metric : str
            Of `Run.summary()`; less is better.

        Returns
        -------
        polars.DataFrame, str
            A row for the estimates and for each end of an interval: `mechanism, value, best`, and `better`, the metric of what is best
            at the estimates over that of the best there; and a sentence.
        """
        ends = [("estimates", {})]
        for name, (least, most) in OPEN.items():
            m = self.mechanisms[name]
            low, high = (m.low, m.high) if m.seen else (max(least, m.low), min(most, m.high))
            ends += [(name, {name: low}), (name, {name: high})]
        rows = []
        best = None
        for name, value in ends:
            scenario = self.at(**value)
            found = {word: scenario.run(policy).summary()[metric] for word, policy in policies.items()}
            here = min(found, key=found.get)
            best = best or here
            rows.append((name, value.get(name), here, found[best] / found[here]))
        frame = pl.DataFrame(rows, schema=["mechanism", "value", "best", "better"], orient="row")
        other = [f"with {n} {v:.3g}, {b} is {r:.2f}x as good" for n, v, b, r in rows if b != best]
        words = ", and at each end of what the log leaves open"
        words = f"; the log leaves open what flips that: {', '.join(other)}" if other else words
        return frame, f"{best!r} is best at the estimates{words}."


def twin(log: Run | pl.DataFrame, scenario: Scenario, *, canaries: Canaries | None = None) -> Twin:
    """Estimate the mechanisms of a cluster from the attempts in its log, and put them into a scenario.

    Outcomes in a log are confounded by the load that its operator followed. Mechanisms are not, and with them the simulator answers
    what a knob would do. Restart: no restarted attempt completes before its delay is over. Placement: at the true power of
    the believed slowdown the work of a job does not depend on where it first ran. Failures: Poisson in busy node-time. Repair: until
    a waiting job takes the node. Predictions:
    against the work that the twin infers. What cannot be seen stays as it is believed, and says so.

    Parameters
    ----------
    log : Run or polars.DataFrame
        A run, or the trace of `gpuschedlab.intake(..., attempts="each")`: `job_id, submit, started, gpus, duration, state`, a row per
        attempt; `nodes, model, user, name` and `predicted` (s) are used where they are there.
    scenario : Scenario
        As it is believed: cluster, speeds, and the jobs that are to be simulated.
    canaries : Canaries, optional
        Those of `Twin.ask`, where they were submitted.

    Raises
    ------
    EstimatorError
        The log is merged (attempts of a job are one row), lacks columns, or has no attempt.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> trace = lab.generate("venus", days=1, jobs=100, load=1.0, cluster_gpus=16, rng=0).filter(pl.col("gpus") <= 8)
    >>> scenario = lab.Scenario(trace, lab.Cluster.homogeneous(2, 8))
    >>> twin(scenario.run(lab.Tiresias()), scenario).mechanisms["placement"].words
    'placement not seen (no speeds by placement)'
    """
    attempts = attempts_of(log)
    delay = delay_of(attempts)
    gpus = attempts["gpus"].to_numpy()
    seconds = delay.of(gpus) if delay else np.full(len(gpus), scenario.delays.restart)
    slow = slowdowns(attempts, scenario.speeds)
    placement = _placement(attempts, slow, seconds, scenario, canaries)
    jobs = attempts.group_by("job", maintain_order=True).agg(
        pl.col("job_id", "predicted").first(), pl.col("why").last()
    )
    jobs = jobs.with_columns(work=work_of(attempts, slow, seconds, placement.value))
    restart = _restart(attempts, delay, scenario)
    failure = _failure(attempts, scenario.cluster)
    prediction = _prediction(jobs, attempts, slow, seconds, restart, placement)
    found = restart, placement, failure, _repair(attempts), prediction
    work = jobs.filter(why="done").select("job_id", "work").unique("job_id", keep="last")
    return Twin(scenario, {m.name: m for m in found}, work, delay)


def _restart(log: pl.DataFrame, delay: Delay | None, scenario: Scenario) -> Mechanism:
    """Delay of the restart of a job of the median size."""
    if delay is None:
        rows = log.filter(pl.col("attempt") > 0).height
        believed = scenario.delays.restart, 0.0, np.inf, "s", rows, 0.0
        return Mechanism("restart", *believed, False, "too few restarted jobs completed")
    size = np.repeat(delay.sizes, delay.counts)[delay.counts.sum() // 2]
    notes = [f"rough: {delay.counts.sum()} restarts"] if delay.counts.sum() < MANY else []
    notes += [f"seems to vary: deviation of the logarithm {delay.sigma:.2f}"] if delay.sigma else []
    if delay.by_size > 0.5:
        ends = (f"{delay.at(g)[0]:.0f} s on {g:g}" for g in delay.sizes[[0, -1]])
        notes.append(f"by size: {', '.join(ends)} GPUs")
    overlap = float(log.filter(attempt=0)["gpus"].is_in(delay.sizes).mean())
    return Mechanism("restart", *delay.at(size), "s", int(delay.counts.sum()), overlap, True, "; ".join(notes))


def _placement(log, slow, seconds, scenario: Scenario, canaries: Canaries | None) -> Mechanism:
    """Power of the slowdown by placement, of canaries where there are any."""
    power = 1.0
    low = 0.0
    high = np.inf
    rows = 0
    note = ""
    if scenario.speeds is None:
        note = "no speeds by placement"
    elif not log["model"].is_in(scenario.speeds.models).any():
        note = "no column model that the speeds know"
    elif canaries is not None:
        power, low, high, rows = power_of_canaries(log, slow, canaries)
    else:
        power, low, high, rows = power_of(log, slow, seconds, load_at_start(log, scenario.cluster.total_gpus))
    seen = bool(0 < high <= FACTOR * low)
    if not seen and not note:
        note = f"{rows} jobs began on more nodes than they needed; their work leaves {low:.2g} to {high:.2g}"
    held = ((log["end"] - log["start"]) * log["gpus"]).to_numpy()
    overlap = float(held[slow < SLOW].sum() / held.sum())
    return Mechanism("placement", power if seen else 1.0, low, high, "", rows, overlap, seen, note)


def _failure(log: pl.DataFrame, cluster) -> Mechanism:
    """Failures of a busy node a day."""
    *rates, count, busy = failures(log, float(cluster.node_gpus.mean()))
    window = max(float(log["submit"].max() - log["submit"].min()), 1.0) * cluster.total_nodes
    seen = count >= FEWEST
    values = (x * DAY for x in rates)
    note = "" if seen else f"{count} failures"
    return Mechanism("failure", *values, "a day of a busy node", count, min(1.0, busy / window), seen, note)


def _repair(log: pl.DataFrame) -> Mechanism:
    """Seconds until a node that failed is back."""
    mean, *ends, count = repairs(log)
    seen = count >= FEWEST
    note = "" if seen else f"{count} waiting jobs took a node that had failed"
    note = note if log["at"].count() else "no lists of nodes"
    return Mechanism("repair", mean if seen else MTTR, *ends, "s", count, 1.0, seen, note)


def _prediction(jobs, log, slow, seconds, restart: Mechanism, placement: Mechanism) -> Mechanism:
    """Error of the durations that were predicted: the interval holds those at what is left open of restarts and placement, too."""
    known = jobs.select(((pl.col("predicted") > 0) & (pl.col("why") == "done")).fill_null(False)).to_series().to_numpy()
    if (rows := int(known.sum())) < FEWEST:
        return Mechanism("prediction", 0.0, 0.0, np.inf, "", rows, 0.0, False, "no column predicted")
    least, most = OPEN["placement"]
    powers = placement.value, *np.linspace(max(least, placement.low), min(most, placement.high), POWERS)
    ends = (restart.low / restart.value, restart.high / restart.value) if restart.seen else ()
    cases = [(seconds, power) for power in powers] + [(seconds * end, placement.value) for end in ends]
    predicted = jobs["predicted"].to_numpy()[known]
    values, lows, highs = zip(*(prediction_error(predicted, work_of(log, slow, *case)[known]) for case in cases))
    return Mechanism("prediction", values[0], min(lows), max(highs), "", rows, rows / jobs.height, True)
