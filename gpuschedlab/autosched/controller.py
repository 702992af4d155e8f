"""The scheduler controller: a closed loop that forecasts, tunes and switches a running scheduler (6.5.3)."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import check_samples
from gpuschedlab.autosched.decision import Decision
from gpuschedlab.autosched.tuner.measure import Probe, check_goals, objective_of, reward
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Scenario, Simulation

HOUR, DAY = 3600.0, 86_400.0
THRESHOLD = 1.02
"""Gain, measured again on other likely futures, above which the scheduler is switched."""
FINALISTS, FUTURES = 6, 8
"""Best configurations of a search that are measured again, and the likely futures that they are measured on."""
KEPT = 4
"""Best configurations of a wide search that are measured first in the checks after it."""


class Controller:
    """Plays a trace and tunes its scheduler on the way: widely once a day and at a burst, by a check every hour (thesis, 6.5.2 and 6.5.3).

    Likely futures take turns to be searched on. One rule switches: the best of a search, and the operator's hints that gained in
    it, are measured again beside the configuration in force, on the other futures, not aggregated, each as long as its mean gain
    exceeds the threshold; the one that gains most, above the threshold, is put in force.

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
    interval, wide, check : float
        Seconds between tunings, between wide searches, and between looks for a burst (0: never).
    burst : float
        Arrivals in `check` seconds count as a burst if they exceed the mean of the last day by this many standard
        deviations (of at least one job); in the first twelve such spans, and a quarter of `wide` after a wide search, nothing is.
    journal : Journal, optional
        Keeps each decision as it is taken.
    rng : int
        Seed; every tuning draws from its own stream, so that a resumed loop repeats what was.

    Differs from the paper in
    -------------------------
    The thesis searches alike at every interval, and gives no rule for detecting a burst, nor how often the causal graph is
    tuned online (6.5.2): here it is learnt again once a day, as the predictor is. The best of many measurements on one forecast is
    partly luck: hence the second measurement on several futures, with which the threshold can be lower than 1.1; and the hints.
    """

    def __init__(
        self, simulation: Simulation, forecaster: Callable, space: Space, tuner: Tuner | None = None, *, model=None,
        aggregator=None, hints=(), futures: int = FUTURES, threshold: float = THRESHOLD, interval: float = HOUR,
        wide: float = DAY, check: float = 300.0, burst: float = 4.0, journal=None, rng: int = 0,
    ):  # fmt: skip
        sound = threshold >= 1 and 0 < interval < np.inf and wide > 0 and 0 <= check < np.inf and burst > 0 <= futures
        sound &= isinstance(rng, int | np.integer) and rng >= 0 and (aggregator is None or callable(aggregator))
        if not sound:
            raise EstimatorError(
                f"Controller: found threshold={threshold}, interval={interval}, wide={wide}, check={check}, burst={burst}, "
                f"futures={futures}, aggregator={aggregator!r}, rng={rng!r}; expected a threshold from 1, seconds above 0 (check: or "
                "0), a burst above 0, futures from 0, an Aggregator or None, and a whole number from 0 as the seed."
            )
        check_goals(space.policy)
        self.simulation, self.forecaster, self.space, self.tuner = simulation, forecaster, space, tuner or Tuner()
        self.model, self.aggregator, self.futures, self.threshold = model, aggregator, futures, threshold
        self.interval, self.wide, self.check, self.burst = interval, wide, check, burst
        self.journal, self.rng, self.scenario = journal, rng, Scenario.of(simulation)
        self.submit, self.decisions = simulation.trace["submit"].to_numpy(), []
        self.given = self.hints = tuple(hints)
        self.last, self.searched, self.renewed, self.latest = -np.inf, -np.inf, simulation.now, None

    def __repr__(self):
        held = f"{len(self.decisions)} decisions, {sum(d.switched for d in self.decisions)} switches"
        return f"Controller({self.simulation.policy.name} at {self.simulation.now / HOUR:g} h; {held})"

    def steps(self, until: float) -> Iterator[Decision]:
        """Play on to an instant (s; inf: until nothing is left), yielding each decision as it is taken."""
        simulation, beat = self.simulation, self.check or self.interval
        while simulation.now < until and (until < np.inf or not (simulation.finished or simulation.still)):
            if cause := self.due():
                yield self.decide(cause)
            simulation.advance(min(until, (np.floor(simulation.now / beat + 1e-9) + 1) * beat))
        if until == np.inf and not simulation.finished:  # nothing progresses any more
            simulation.advance(until)

    def run(self, until: float) -> list[Decision]:
        """Play on to an instant (s); all decisions so far."""
        for _ in self.steps(until):
            pass
        return self.decisions

    def due(self) -> str:
        """Why to tune now: "day", "burst", "hour", or "" for not at all."""
        now = self.simulation.now
        if now - self.searched >= self.wide - 1e-6:
            return "day"
        if self.check and now - self.searched >= self.wide / 4 - 1e-6 and self._bursts(now):
            return "burst"
        return "hour" if now - self.last >= self.interval - 1e-6 else ""

    def _bursts(self, now: float) -> bool:
        edges = now - self.check * np.arange(round(DAY / self.check) + 1)[::-1]
        counts = np.diff(np.searchsorted(self.submit, edges, side="right"))
        before = counts[:-1][edges[1:-1] > 0]
        return len(before) >= 12 and counts[-1] > before.mean() + self.burst * max(before.std(), 1.0)

    def decide(self, cause: str = "") -> Decision:
        """Forecast, tune, and switch if the gain is above the threshold; the cause is by default what is due."""
        *_, decision = self.trying(cause)
        return decision

    def trying(self, cause: str = "") -> Iterator[Tuning | Decision]:
        """Yield the search as it grows, and last the decision, which is then in force."""
        begin, simulation, cause = time.perf_counter(), self.simulation, cause or self.due() or "hour"
        self._renew()
        rng = np.random.default_rng([self.rng, round(simulation.now)])
        (forecast, jobs), wide = self.forecast(rng), cause != "hour"
        tuning, settled, hints = Tuning(self.space, objective_of(self.space.policy)), None, self.hints
        if jobs:
            given = {"hints": hints, "model": self.model, "rng": rng, "wide": wide}
            probe = self.probe(forecast)
            for tuning in self.tuner.steps(probe, self.space, simulation.policy, **given):
                yield tuning
            settled = self._settle(tuning, rng)
            if wide:
                hints = tuple(dict.fromkeys((*self.given, *tuning.leaders(KEPT))))
        policy, gain, reason, more, again = settled or (simulation.policy, 1.0, "no jobs in the forecast", 0, {})
        switched, seconds = policy != simulation.policy, time.perf_counter() - begin
        found = (simulation.now, cause, policy, switched, gain, reason, tuning, jobs, forecast.trace.height, seconds)
        kept = (simulation.policy, probe) if switched else ()
        decision = self._take(Decision(*found, tuning.measured + more, hints, *kept, again=again))
        if self.journal is not None:
            self.journal.append(decision)
        yield decision

    def _settle(self, tuning: Tuning, rng) -> tuple:
        """The rule: policy to put in force, its gain, the reason, and how many were measured again, with which gains."""
        policy, best = self.simulation.policy, tuning.best
        before = next(t.reward for t in tuning.trials if t.policy == policy)
        gain = best.reward / before
        reason = f"{tuning.measured} configurations measured; the best gain is {gain:.3f}x"
        if gain <= self.threshold:
            return policy, gain, f"{reason}, not above the threshold {self.threshold:g}x", 0, {}
        ranks = [rank for rank in range(1 + self.futures) if rank != self.turn] or [0]
        ranked = [trial.policy for trial in tuning.ranking if trial.reward > before]
        logs: dict = {other: [] for i, other in enumerate(ranked) if i < FINALISTS or other in self.given}
        gains, racing, measured = {}, [*logs], 0
        for rank in ranks:
            probe = self.probe(self.forecaster(self.simulation, rng, rank))
            value = probe(policy).value
            for other in racing:
                logs[other].append(np.log(reward(probe.objective, probe(other).value, value)))
                gains[other] = float(np.exp(np.mean(logs[other])))
            measured += probe.measured
            racing = [other for other in racing if gains[other] > self.threshold]
            if not racing:
                break
        best = max(gains, key=gains.get)
        reason += f", measured again {gains[best]:.3f}x; threshold {self.threshold:g}x"
        return (best if gains[best] > self.threshold else policy), gains[best], reason, measured, logs

    def _take(self, decision: Decision) -> Decision:
        """Put a decision in force."""
        if decision.switched:
            self.simulation.switch(decision.policy)
        self.last, self.hints = decision.now, decision.hints
        self.searched = decision.now if decision.cause != "hour" else self.searched
        self.decisions.append(decision)
        return decision

    def resume(self, records: list[dict]) -> None:
        """Replay the decisions of a journal: simulate up to each, switch where it switched, update the model.

        EstimatorError if they do not ascend in time, or what they measured lacks variables of the model: another version wrote them.
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
                samples, mend = pl.DataFrame(record["samples"]), "Another version wrote the journal: begin a new one."
                check_samples(samples, self.model.graph.layers, 1, "Controller.resume", mend)
                self.model.update(samples, self.tuner.batch)

    def _renew(self) -> None:
        """Once a day, learn the causal graph again."""
        if self.model is not None and self.simulation.now - self.renewed >= DAY - 1e-6:
            self.model.renew()
            self.renewed = self.simulation.now

    @property
    def turn(self) -> int:
        """Rank of the future that is searched on now: they take turns."""
        return len(self.decisions) % (1 + self.futures)

    def forecast(self, rng):
        """A forecast, aggregated if there is an aggregator, and its number of jobs before aggregation."""
        found = self.latest = self.forecaster(self.simulation, rng, self.turn)
        return (self.aggregator(found) if self.aggregator is not None else found), found.trace.height

    def probe(self, forecast) -> Probe:
        """Probe that measures configurations on a forecast, from the state of the running scheduler."""
        return Probe(self.scenario, self.simulation.policy, forecast=forecast)
