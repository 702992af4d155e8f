"""The scheduler controller: a closed loop that forecasts, tunes and switches a running scheduler (6.5.3)."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import check_samples
from gpuschedlab.autosched.decision import LEVEL, Decision, gain_interval
from gpuschedlab.autosched.pruning import smallest
from gpuschedlab.autosched.tuner.measure import Probe, check_goals, objective_of, reward
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Scenario, Simulation

HOUR = 3600.0
DAY = 86_400.0
THRESHOLD = 1.02
"""Gain, measured again on other likely futures, above which the scheduler is switched."""
FINALISTS = 6
FUTURES = 8
"""Best configurations of a search that are measured again, and the likely futures that they are measured on."""
PRUNE = 0.005
SURE = LEVEL
"""Part of a finalist's value that leaving some of its changes out may cost; coverage of the interval that must lie above 1."""
KEPT = 4
"""Best configurations of a wide search that are measured first in the checks after it."""


class Controller:
    """Plays a trace and tunes its scheduler on the way: widely once a day and at a burst, by a check every hour (thesis, 6.5.2 and 6.5.3).

    Likely futures take turns to be searched on. One rule switches: the best of a search, and the operator's hints that gained in
    it, each less the changes that it does as well without, are measured again beside the configuration in force, on the other
    futures, not aggregated, each as long as its mean gain exceeds the threshold; of those whose gain is sure to be above 1, the one
    that gains most is put in force.

    Parameters
    ----------
    simulation : Simulation
        The running scheduler.
    forecaster : callable
        `(simulation, rng, rank) -> Forecast`: the trace to tune on (generated, past or true); of rank 1 and more, another
        likely one. If it learns on the way, its `learn(simulation)` is called at each decision that a resumed loop repeats.
    space : Space
    tuner : Tuner
    model : CausalModel, optional
    aggregator : Aggregator, optional
    hints : iterable of Policy
        Configurations that are measured at every decision, such as history's best: `best_fixed(scenario.past, space).leaders()`.
    futures, threshold : int, float
        Other likely futures, that the best are measured again on (0: the forecaster knows but one), and the gain on them that switches.
    prune : float, optional
        A finalist is pruned to the smallest subset of its changes whose value on the future searched on is within this part of
        the whole's. None: never.
    sure : float, optional
        Coverage of the interval of a gain over the futures, whose lower end must be above 1 (of two futures or more). None: not asked.
    interval, wide, check : float
        Seconds between tunings, between wide searches, and between looks for a burst (0: never).
    burst : float
        Arrivals in `check` seconds count as a burst if they exceed the mean of the last day by this many standard
        deviations (of at least one job); in the first twelve such spans, and a quarter of `wide` after a wide search, nothing is.
    budget : int, optional
        Configurations simulated in a decision at most, those measured again among them: fewer finalists are measured again where the
        search leaves room for fewer. Its own rounds must leave room for one. None: no limit.
    look : float, optional
        Seconds after which a measurement ends (`Probe`), such as those up to the next decision. None: when all jobs have ended.
    believed : callable, optional
        `(scenario) -> Scenario`: the scenario in which configurations are measured on a forecast, such as `Twin.at`. Default: with the
        mechanisms of the running scheduler.
    journal : Journal, optional
        Keeps each decision as it is taken.
    rng : int
        Seed; every tuning draws from its own stream, so that a resumed loop repeats the earlier one.

    Differs from the paper in
    -------------------------
    The thesis searches alike at every interval, and gives no rule for detecting a burst, nor how often the causal graph is
    tuned online (6.5.2): here it is learnt again once a day, as the predictor is. The best of many measurements on one forecast is
    partly luck: hence the second measurement on several futures, with which the threshold can be lower than 1.1; `prune` and `sure`;
    and the hints.
    """

    def __init__(
        self, simulation: Simulation, forecaster: Callable, space: Space, tuner: Tuner | None = None, *, model=None,
        aggregator=None, hints=(), futures: int = FUTURES, threshold: float = THRESHOLD, prune: float | None = PRUNE,
        sure: float | None = SURE, interval: float = HOUR, wide: float = DAY, check: float = 300.0, burst: float = 4.0,
        budget: int | None = None, look: float | None = None, believed: Callable | None = None, journal=None, rng: int = 0,
    ):  # fmt: skip
        sound = threshold >= 1 and 0 < interval < np.inf and wide > 0 and 0 <= check < np.inf and burst > 0 <= futures
        sound &= (prune is None or 0 <= prune < np.inf) and (sure is None or 0 < sure < 1)
        sound &= (budget is None or budget > 0) and (look is None or look > 0)
        sound &= isinstance(rng, int | np.integer) and rng >= 0 and (aggregator is None or callable(aggregator))
        if not sound:
            raise EstimatorError(
                f"Controller: found threshold={threshold}, interval={interval}, wide={wide}, check={check}, burst={burst}, "
                f"futures={futures}, prune={prune}, sure={sure}, budget={budget}, look={look}, aggregator={aggregator!r}, rng={rng!r}; "
                "expected a threshold from 1, seconds above 0 (check: or 0), a burst above 0, futures from 0, prune from 0 and sure "
                "between 0 and 1 or None, a budget from 1 and a look above 0 or None, an Aggregator or None, and a whole number from 0 "
                "as the seed."
            )
        check_goals(space.policy)
        self.simulation = simulation
        self.forecaster = forecaster
        self.space = space
        self.tuner = tuner or Tuner()
        self.model = None  # no graph is learnt for a search that does not ask it
        if self.tuner.causal:
            self.model = model
        self.aggregator = aggregator
        self.futures = futures
        self.threshold = threshold
        self.prune = prune
        self.sure = sure
        self.interval = interval
        self.wide = wide
        self.check = check
        self.burst = burst
        self.budget = budget
        self.look = look
        self.believed = believed
        self.journal = journal
        self.rng = rng
        self.scenario = Scenario.of(simulation)
        self.submit = simulation.trace["submit"].to_numpy()
        self.decisions = []
        self.given = self.hints = tuple(hints)
        self.last = -np.inf
        self.searched = -np.inf
        self.renewed = simulation.now
        self.latest = self.probed = None  # forecast, and the probe of what was searched on

    def __repr__(self):
        switches = sum(decision.switched for decision in self.decisions)
        decision_counts = f"{len(self.decisions)} decisions, {switches} switches"
        return f"Controller({self.simulation.policy.name} at {self.simulation.now / HOUR:g} h; {decision_counts})"

    def steps(self, until: float) -> Iterator[Decision]:
        """Play on to an instant (s; inf: until nothing is left), and yield each `Decision` as it is taken."""
        simulation = self.simulation
        beat = self.check or self.interval
        while simulation.now < until and (until < np.inf or not (simulation.finished or simulation.still)):
            cause = self.due()
            if cause:
                yield self.decide(cause)
            beats = np.floor(simulation.now / beat + 1e-9)
            simulation.advance(min(until, (beats + 1) * beat))
        if until == np.inf and not simulation.finished:  # nothing progresses any more
            simulation.advance(until)

    def run(self, until: float) -> list[Decision]:
        """Play on to an instant (s), and return the list of all decisions so far, each a `Decision`."""
        for _ in self.steps(until):
            pass
        return self.decisions

    def due(self) -> str:
        """Say as a string why to tune now: "day", "burst", "hour", or "" for not at all."""
        instant = self.simulation.now
        since_search = instant - self.searched
        if since_search >= self.wide - 1e-6:
            return "day"
        if self.check and since_search >= self.wide / 4 - 1e-6 and self._bursts(instant):
            return "burst"
        if instant - self.last >= self.interval - 1e-6:
            return "hour"
        return ""

    def _bursts(self, instant: float) -> bool:
        """Whether many more jobs came in the last `check` seconds than usual."""
        spans = np.arange(round(DAY / self.check) + 1)
        edges = instant - self.check * spans[::-1]
        arrival_counts = np.diff(np.searchsorted(self.submit, edges, side="right"))
        usual_counts = arrival_counts[:-1][edges[1:-1] > 0]
        if len(usual_counts) < 12:
            return False
        deviation = max(usual_counts.std(), 1.0)
        return arrival_counts[-1] > usual_counts.mean() + self.burst * deviation

    def decide(self, cause: str = "") -> Decision:
        """Forecast, tune, switch if the gain is above the threshold, and return the `Decision`.

        By default the cause is the one that is due.
        """
        *_, decision = self.trying(cause)
        return decision

    def trying(self, cause: str = "") -> Iterator[Tuning | Decision]:
        """Yield the search, a `Tuning`, as it grows, and last the `Decision`, which is then in force."""
        begin_seconds = time.perf_counter()
        simulation = self.simulation
        cause = cause or self.due() or "hour"
        self._renew()
        rng = np.random.default_rng([self.rng, round(simulation.now)])
        forecast, jobs = self.forecast(rng)
        wide = cause != "hour"
        tuning = Tuning(self.space, objective_of(self.space.policy))
        settled = None
        hints = self._affordable(wide)
        if jobs:
            probe = self.probe(forecast)
            self.probed = probe
            steps = self.tuner.steps(
                probe, self.space, simulation.policy, hints=hints, model=self.model, rng=rng, wide=wide
            )
            for tuning in steps:
                yield tuning
            settled = self._settle(tuning, probe, rng)
            if wide:
                hints = tuple(dict.fromkeys((*self.given, *tuning.leaders(KEPT))))
        nothing = (simulation.policy, 1.0, "no jobs in the forecast", 0, {}, [])
        policy, gain, reason, measured_again, gains_again, probes = settled or nothing
        switched = policy != simulation.policy
        seconds = time.perf_counter() - begin_seconds
        decision = Decision(
            simulation.now,
            cause,
            policy,
            switched,
            gain,
            reason,
            tuning,
            jobs,
            forecast.trace.height,
            seconds,
            tuning.measured + measured_again,
            hints,
            again=gains_again,
        )
        if switched:
            decision = replace(decision, before=simulation.policy, probes=tuple(probes), state=simulation.copy())
        self._take(decision)
        if self.journal is not None:
            self.journal.append(decision)
        yield decision

    def _affordable(self, wide: bool) -> tuple:
        """Tuple of the hints that leave a budget room for a search's rounds and for measuring a finalist again.

        Without a budget these are all hints.
        """
        if self.budget is None:
            return self.hints
        rounds = self.tuner.check
        if wide:
            rounds = self.tuner.iterations
        futures_again = 2 * max(self.futures, 1)  # what is in force, and the finalist
        budget_left = max(self.budget - rounds - 2 - futures_again, 0)
        return self.hints[:budget_left]

    def _settle(self, tuning: Tuning, probe: Probe, rng) -> tuple:
        """Return a tuple by the rule: policy to put in force, its gain, the reason, number measured again, gains, futures."""
        policy = self.simulation.policy
        best = tuning.best
        reward_in_force = next(trial.reward for trial in tuning.trials if trial.policy == policy)
        gain = best.reward / reward_in_force
        reason = f"{tuning.measured} configurations measured; the best gain is {gain:.3f}x"
        questions = tuning.asked
        if questions.rounds:
            reason = f"model asked in {len(questions.rounds)} rounds, {questions.saved} rejected unmeasured; {reason}"
        if gain <= self.threshold:
            return policy, gain, f"{reason}, not above the threshold {self.threshold:g}x", 0, {}, []
        ranks = [rank for rank in range(1 + self.futures) if rank != self.turn] or [0]
        finalists, measured = self._finalists(tuning, probe, reward_in_force)
        if self.budget is not None:
            finalists_affordable = (self.budget - tuning.measured - measured) // len(ranks)
            finalists = finalists[: max(finalists_affordable - 1, 0)]  # what is in force is measured again, too
        if not finalists:
            return policy, gain, f"{reason}, and what is as good changes nothing", measured, {}, []
        logs: dict = {finalist: [] for finalist in finalists}
        gains = {}
        racing = [*logs]
        probes = []
        for rank in ranks:
            probe = self.probe(self.forecaster(self.simulation, rng, rank))
            value = probe(policy).value
            for finalist in racing:
                gain_here = reward(probe.objective, probe(finalist).value, value)
                logs[finalist].append(np.log(gain_here))
                gains[finalist] = float(np.exp(np.mean(logs[finalist])))
            measured = measured + probe.measured
            probes = [*probes, probe]
            racing = [finalist for finalist in racing if gains[finalist] > self.threshold]
            if not racing:
                break
        sure = [finalist for finalist in racing if self._surely(logs[finalist])]
        best = max(sure or racing or gains, key=gains.get)
        reason += f", measured again {gains[best]:.3f}x; threshold {self.threshold:g}x"
        if racing and self.sure is not None and len(ranks) > 1:
            low = gain_interval(logs[best], self.sure)[0]
            reason += f", lower {100 * self.sure:g} % end {low:.3f}x, "
            if not sure:
                reason += "not "
            reason += "above 1"
        if sure:
            policy = best
        return policy, gains[best], reason, measured, logs, probes

    def _finalists(self, tuning: Tuning, probe: Probe, reward_in_force: float) -> tuple[list, int]:
        """Return a tuple: list of configurations to measure again, each pruned, and number of measurements that pruning took.

        `reward_in_force` is that of the configuration in force.
        """
        policy = self.simulation.policy
        default_value = tuning.trials[0].measurement.value
        ranked = [trial.policy for trial in tuning.ranking if trial.reward > reward_in_force]
        finalists = [finalist for i, finalist in enumerate(ranked) if i < FINALISTS or finalist in self.given]
        if self.prune is None:
            return finalists, 0
        rewards = {trial.policy: trial.reward for trial in tuning.ranking}
        measured = probe.measured

        def gain(candidate) -> float:
            if candidate not in rewards:
                rewards[candidate] = reward(probe.objective, probe(candidate).value, default_value)
            return float(np.log(rewards[candidate] / reward_in_force))

        pruned = dict.fromkeys(smallest(policy, finalist, gain, np.log1p(self.prune)) for finalist in finalists)
        return [finalist for finalist in pruned if finalist != policy], probe.measured - measured

    def _surely(self, logs: list[float]) -> bool:
        """Whether the interval of a gain lies above 1; of fewer than two futures there is none to ask."""
        if self.sure is None or len(logs) < 2:
            return True
        low, _ = gain_interval(logs, self.sure)
        return low > 1

    def _take(self, decision: Decision) -> Decision:
        """Put a decision in force, and return this `Decision`."""
        if decision.switched:
            self.simulation.switch(decision.policy)
        self.last = decision.now
        self.hints = decision.hints
        if decision.cause != "hour":
            self.searched = decision.now
        self.decisions.append(decision)
        return decision

    def resume(self, records: list[dict]) -> None:
        """Replay the decisions of a journal: simulate up to each, switch where it switched, update the model.

        EstimatorError if they do not ascend in time, or their measurements lack variables of the model: another version wrote them.
        """
        for record in records:
            if record["now"] <= self.last:
                raise EstimatorError(
                    f"Controller.resume: found a decision at {record['now']:g} s after one at {self.last:g} s; expected each "
                    "later than the one before. Resume once, from the beginning."
                )
            self.simulation.advance(record["now"])
            self._renew()
            if hasattr(self.forecaster, "learn"):
                self.forecaster.learn(self.simulation)
            self._take(Decision.of(record, self.space))
            if self.model is not None and record["samples"]:
                samples = pl.DataFrame(record["samples"])
                mend = "Another version wrote the journal: begin a new one."
                check_samples(samples, self.model.graph.layers, 1, "Controller.resume", mend)
                self.model.update(samples, self.tuner.batch)

    def _renew(self) -> None:
        """Once a day, learn the causal graph again."""
        if self.model is not None and self.simulation.now - self.renewed >= DAY - 1e-6:
            self.model.renew()
            self.renewed = self.simulation.now

    @property
    def turn(self) -> int:
        """Rank, an index, of the future that is searched on now: they take turns."""
        return len(self.decisions) % (1 + self.futures)

    def forecast(self, rng):
        """Return a tuple: a `Forecast`, aggregated if there is an aggregator, and its number of jobs before aggregation."""
        forecast = self.forecaster(self.simulation, rng, self.turn)
        self.latest = forecast
        jobs = forecast.trace.height
        if self.aggregator is not None:
            forecast = self.aggregator(forecast)
        return forecast, jobs

    def probe(self, forecast) -> Probe:
        """Return the `Probe` that measures configurations on a forecast, from the state of the running scheduler."""
        scenario = self.scenario
        if self.believed is not None:
            scenario = self.believed(scenario.replace(trace=forecast.trace))
            forecast = replace(forecast, trace=scenario.trace)
        return Probe(scenario, self.simulation.policy, forecast=forecast, look=self.look)
