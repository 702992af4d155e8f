"""The simulator as an operator's log shows it: each mechanism with its value, its interval, and how far the log moved it."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.attempts import attempts_of, load_at_start
from gpuschedlab.autosched.mechanisms.canaries import Canaries, ask
from gpuschedlab.autosched.mechanisms.costs import Costs, costs_of, period_of
from gpuschedlab.autosched.mechanisms.misfits import (
    Misfit,
    of_failures,
    of_lost,
    of_nodes,
    of_predictions,
    of_restarts,
)
from gpuschedlab.autosched.mechanisms.playing import numbers_of, with_checkpoints, with_slow_nodes
from gpuschedlab.autosched.mechanisms.predictions import predictions_of
from gpuschedlab.autosched.mechanisms.rates import failures_by_node
from gpuschedlab.autosched.mechanisms.readings import (
    DAY,
    MTTR,
    Mechanism,
    checkpoint_mechanism,
    failure_of,
    first_start_mechanism,
    placement_of,
    repair_of,
    restart_of,
    slow_nodes_mechanism,
    widened,
)
from gpuschedlab.autosched.mechanisms.resumption import Delay
from gpuschedlab.autosched.mechanisms.slowdowns import powered, slowdowns
from gpuschedlab.autosched.mechanisms.work.pace import Pace, lengths, work_of
from gpuschedlab.autosched.mechanisms.work.residuals import Residuals, residuals_of
from gpuschedlab.autosched.mechanisms.work.slow_nodes import effects_of, level_of, on_any
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators import Noisy
from gpuschedlab.sim import Run, Scenario
from gpuschedlab.table_display import Table

OPEN = {"restart": (0.0, 3600.0), "placement": (0.25, 3.0)}
"""Values that are tried of a mechanism on which a choice may depend, where the log leaves more open."""
POWERS = 5
"""Powers of the slowdown, within the open range, at which the error of predictions is computed."""


@dataclass(frozen=True, eq=False, repr=False)
class Twin:
    """Findings of `twin` in a log.

    Parameters
    ----------
    base : Scenario
        As it was believed.
    mechanisms : dict of str to Mechanism
    work : polars.DataFrame
        Seconds by `job_id`.
    costs : Costs
        Costs of starts and failures, and slow nodes.
    slow_nodes : tuple of int or None
        Numbers of the slow nodes in the cluster of `base`; None: the log's names of nodes do not tell.
    misfits : tuple of Misfit
        The part that the mechanisms leave unexplained.
    """

    base: Scenario
    mechanisms: dict[str, Mechanism]
    work: pl.DataFrame
    costs: Costs
    slow_nodes: tuple[int, ...] | None
    misfits: tuple[Misfit, ...]

    @property
    def delay(self) -> Delay | None:
        """`Delay` of a start after the first by size, the cost of any start included; None if too few restarts completed."""
        return self.costs.delay

    @cached_property
    def scenario(self) -> Scenario:
        """`Scenario`: the base with the mechanisms that were seen, and the log's jobs with the work that the twin infers."""
        return self.at()

    @property
    def frame(self) -> pl.DataFrame:
        """Frame of one row per mechanism, with the fields of `Mechanism`."""
        return pl.DataFrame(list(self.mechanisms.values()), orient="row", schema=Mechanism._fields)

    @property
    def sentence(self) -> str:
        """Text on each mechanism with its interval, or that it was not seen, and why; and on the part left unexplained."""
        mechanisms = "; ".join(mechanism.words for mechanism in self.mechanisms.values())
        misfits = "; ".join(misfit.words for misfit in self.misfits)
        if not self.misfits:
            return f"The log shows: {mechanisms}."
        return f"The log shows: {mechanisms}. What they do not explain: {misfits}."

    @property
    def surprises(self) -> tuple[str, ...]:
        """Tuple of the names of mechanisms whose interval leaves out the believed value, and of misfits: "restart by restart"."""
        surprise_names = [mechanism.name for mechanism in self.mechanisms.values() if mechanism.refutes]
        surprise_names += [f"{misfit.mechanism} by {misfit.by}" for misfit in self.misfits]
        return tuple(surprise_names)

    def __repr__(self):
        return f"Twin({self.sentence})"

    def _repr_html_(self):
        return Table(self.frame, caption=self.sentence)._repr_html_()

    def at(self, scenario: Scenario | None = None, **values: float) -> Scenario:
        """Return a `Scenario` with the mechanisms.

        Parameters
        ----------
        scenario : Scenario, optional
            Another one, such as days to come; default: the base.
        **values
            Of mechanisms instead of the estimates: `restart` (s, of a job of the median size that was restarted), `placement` (power
            of the slowdown), `failure` (1/day of a busy node), `repair` (s), `prediction` (`Noisy.error`), `first_start` (s of every
            start), `checkpoint` (s between two; 0: nothing is lost; inf: all since the start), `slow_nodes` (speed over that of the
            others).

        Raises
        ------
        EstimatorError
            There is no such mechanism.
        """
        unknown_mechanisms = [mechanism_name for mechanism_name in values if mechanism_name not in self.mechanisms]
        if unknown_mechanisms:
            raise EstimatorError(
                f"Twin.at: found {unknown_mechanisms[0]!r}; expected some of {', '.join(self.mechanisms)}."
            )
        scenario = scenario or self.base
        value = {mechanism.name: mechanism.value for mechanism in self.mechanisms.values() if mechanism.seen} | values
        changes = {"trace": self._settled(scenario.trace, value)}
        if scenario.history is not None:
            changes["history"] = self._settled(scenario.history, value)
        if "checkpoint" in value:
            changes["delays"] = with_checkpoints(scenario.delays, value["checkpoint"])
        if "placement" in value and scenario.speeds is not None:
            changes["speeds"] = powered(scenario.speeds, value["placement"])
        if "prediction" in value:
            changes["estimator"] = Noisy(error=value["prediction"], rng=scenario.seed)
        if value.get("failure"):
            until = float(scenario.trace["submit"].max()) + 3 * DAY
            nodes = replace(scenario.cluster, events=())
            changes["cluster"] = nodes.with_failures(
                DAY / value["failure"], value.get("repair", MTTR), until, scenario.seed
            )
        scenario = scenario.replace(**changes)
        if "slow_nodes" in value and self.slow_nodes:
            scenario = with_slow_nodes(scenario, self.slow_nodes, value["slow_nodes"])
        return scenario

    def _settled(self, jobs: pl.DataFrame, value: dict) -> pl.DataFrame:
        """Return the frame of jobs with the work that the twin infers, and the delays of each one's starts."""
        work = jobs.select("job_id").join(self.work, on="job_id", how="left", maintain_order="left")["work"]
        jobs = jobs.with_columns(duration=pl.coalesce(work, "duration"))
        if "first_start" in value:
            jobs = jobs.with_columns(switch=pl.lit(float(value["first_start"])))
        if "restart" not in value:
            return jobs
        if self.delay is None:
            return jobs.with_columns(restart=pl.lit(float(value["restart"])))
        start_cost = 0.0
        if self.costs.start.seen:
            start_cost = self.costs.start.value
        restart = np.maximum(self.delay.of(jobs["gpus"].to_numpy()) - start_cost, 0.0)
        estimate = self.mechanisms["restart"].value
        if estimate > 1e-9:
            restart = restart * (value["restart"] / estimate)
        else:
            restart = np.full(len(restart), float(value["restart"]))
        return jobs.with_columns(restart=pl.Series(restart))

    def ask(self, **options) -> Canaries:
        """Return `Canaries` of known work that would show the placement; options: `begin`, `every`, `seconds`, `gpus` of each."""
        return ask(self.base, **options)

    def flips(self, policies: dict, metric: str = "jct_mean") -> tuple[pl.DataFrame, str]:
        """Say whether the choice among policies stays the same in the range that the log leaves open of restarts and placement.

        The answer is a tuple of a frame and a sentence.

        Parameters
        ----------
        policies : dict of str to Policy
        metric : str
            Of `Run.summary()`; less is better.

        Returns
        -------
        polars.DataFrame, str
            A row for the estimates and for each end of an interval: `mechanism, value, best`, and `better`, the metric of the best policy
            at the estimates over that of the best there; and a sentence.
        """
        cases = [("estimates", {})]
        for mechanism_name, (least_open, most_open) in OPEN.items():
            mechanism = self.mechanisms[mechanism_name]
            low = mechanism.low
            high = mechanism.high
            if not mechanism.seen:
                low = max(least_open, low)
                high = min(most_open, high)
            cases += [(mechanism_name, {mechanism_name: low}), (mechanism_name, {mechanism_name: high})]
        choice_rows = []
        best = None
        for mechanism_name, value in cases:
            scenario = self.at(**value)
            metrics = {policy: scenario.run(policies[policy]).summary()[metric] for policy in policies}
            best_here = min(metrics, key=metrics.get)
            best = best or best_here
            choice_rows.append(
                (mechanism_name, value.get(mechanism_name), best_here, metrics[best] / metrics[best_here])
            )
        frame = pl.DataFrame(choice_rows, schema=["mechanism", "value", "best", "better"], orient="row")
        flips = [f"with {n} {v:.3g}, {b} is {r:.2f}x as good" for n, v, b, r in choice_rows if b != best]
        sentence = f"{best!r} is best at the estimates"
        if flips:
            return frame, f"{sentence}; the log leaves open what flips that: {', '.join(flips)}."
        return frame, f"{sentence}, and at each end of what the log leaves open."


def twin(log: Run | pl.DataFrame, scenario: Scenario, *, canaries: Canaries | None = None) -> Twin:
    """Estimate the mechanisms of a cluster from the attempts in its log, put them into a scenario, and return the `Twin`.

    Outcomes in a log are confounded by the load that its operator followed. Mechanisms are not, and with them the simulator answers
    the effect of a knob. Restart: no restarted attempt completes before its delay is over, on top of what every start costs. Placement:
    at the true power of the believed slowdown the work of a job does not depend on where it first ran. Failures: Poisson in busy
    node-time. Repair: until a waiting job takes the node. Predictions: against the work that the twin infers. First start: no job
    completes before it is over. Checkpoint: no job completes before the work that a failure lost is done again. Slow nodes: jobs hold
    their GPUs for longer on them. A mechanism that cannot be seen stays as believed, and says so; the part that these mechanisms leave
    unexplained is named, and widens the interval that it concerns.

    Parameters
    ----------
    log : Run or polars.DataFrame
        A run, or the trace of `gpuschedlab.intake(..., attempts="each")`: `job_id, submit, started, gpus, duration, state`, a row per
        attempt; `nodes, nodelist, model, user, name` and `predicted` (s) are used if they are there.
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
    slow = slowdowns(attempts, scenario.speeds)
    load = load_at_start(attempts, scenario.cluster.total_gpus)
    jobs = _residuals(attempts, load)
    costs = costs_of(jobs, scenario, slow)
    pace = costs.pace(attempts, scenario.delays)
    placement = placement_of(residuals_of(attempts, load), slow, pace, scenario, canaries)
    if placement.value != 1.0:
        costs = costs_of(jobs, scenario, placement.value * slow)
    return _twin_of(jobs, scenario, costs, placement, slow)


def _residuals(log: pl.DataFrame, load: np.ndarray) -> Residuals:
    """Return `Residuals`: jobs of a log, whose work is compared with its prediction if that says more than their tasks do."""
    plain = residuals_of(log, load)
    predicted = log.filter(attempt=0)["predicted"].to_numpy()
    if not (predicted > 0).all():
        return plain
    helped = residuals_of(log, load, np.log(predicted))
    pace = Pace(np.zeros(log.height), np.zeros(log.height))
    if helped.at(pace).var() < plain.at(pace).var():
        return helped
    return plain


def _twin_of(jobs: Residuals, scenario: Scenario, costs: Costs, placement: Mechanism, slow: np.ndarray) -> Twin:
    """`Twin` of the costs of starts and failures, and of the placement.

    `slow` is the logarithm of the believed speed of placements.
    """
    log = jobs.log
    pace = costs.pace(log, scenario.delays)
    placed = pace._replace(slow=pace.slow + placement.value * slow)
    scattered = of_restarts(costs.delay)
    restart = widened(restart_of(log, costs, scenario), scattered)
    predictions = predictions_of(log, [placed, *_open_paces(pace, slow, costs, placement)], costs)
    lost = of_lost(costs.checkpoint)
    by_node = []
    misfits = [*scattered, *lost, *of_predictions(predictions.jobs)]
    slow_numbers = ()
    if log["at"].count():
        by_node = of_failures(failures_by_node(log), DAY)
        residual = jobs.at(placed)
        misfits += [misfit for misfit in by_node if misfit.words]
        misfits += of_nodes(effects_of(jobs, residual), level_of(jobs))
        held_nodes = log["at"].explode().drop_nulls()
        slow_numbers = numbers_of(costs.nodes.names, held_nodes.unique().to_list(), scenario.cluster)
    of_prediction = [misfit for misfit in misfits if misfit.mechanism == "prediction"]
    mechanisms = (
        restart,
        placement,
        widened(failure_of(log, scenario.cluster), by_node),
        repair_of(log),
        widened(predictions.mechanism, of_prediction),
        first_start_mechanism(costs.start, scenario),
        checkpoint_mechanism(costs.checkpoint, period_of(scenario.delays), lost),
        slow_nodes_mechanism(costs.nodes, _share_on(costs.nodes.names, log), slow_numbers is not None),
    )
    ended = log.group_by("job", maintain_order=True).agg(pl.col("job_id").first(), pl.col("why").last())
    work = ended.with_columns(work=work_of(log, placed)).filter(why="done")
    work = work.select("job_id", "work").unique("job_id", keep="last")
    return Twin(
        scenario, {mechanism.name: mechanism for mechanism in mechanisms}, work, costs, slow_numbers, tuple(misfits)
    )


def _share_on(nodes: tuple[str, ...], log: pl.DataFrame) -> float:
    """Share of the GPU-time in a log that attempts held on some nodes."""
    gpu_time = lengths(log) * log["gpus"].to_numpy()
    return float(gpu_time[on_any(log, nodes)].sum() / gpu_time.sum())


def _open_paces(pace: Pace, slow: np.ndarray, costs: Costs, placement: Mechanism) -> list[Pace]:
    """List of the paces at the ends of the open range of placement, of restarts and of slow nodes, each a `Pace`."""
    least_power, most_power = OPEN["placement"]
    powers = np.linspace(max(least_power, placement.low), min(most_power, placement.high), POWERS)
    paces = [pace._replace(slow=pace.slow + power * slow) for power in powers]
    plain = pace.slow + placement.value * slow
    if costs.delay is not None:
        value, low, high = costs.delay.at(float(np.median(costs.delay.sizes)))
        paces += [Pace(pace.delay * range_end / value, plain, pace.period) for range_end in (low, high)]
    if costs.nodes.seen:
        slow_node_powers = np.log([costs.nodes.low, costs.nodes.high]) / np.log(costs.nodes.speed)
        paces += [pace._replace(slow=pace.slow * range_end + placement.value * slow) for range_end in slow_node_powers]
    return paces
