"""The scheduler controller: a closed loop that forecasts, tunes and switches a running scheduler (6.5.3)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import check_samples
from gpuschedlab.autosched.tuner.measure import Probe, check_goal, reward
from gpuschedlab.autosched.tuner.search import Tuner, Tuning
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Scenario, Simulation

HOUR, DAY = 3600.0, 86_400.0
CHALLENGE = 1.05
"""Times the reward of the hint by which another configuration must be better to take its place; less if it gains twice."""
SURE = 1.02
"""Gain on a forecast that is not aggregated above which a configuration is switched to."""


@dataclass(frozen=True)
class Decision:
    """What the controller did at one instant, and why.

    Parameters
    ----------
    now : float
        Instant (s).
    cause : {"hour", "burst"}
        Why it tuned.
    policy : Policy
        In force from now on.
    switched : bool
    gain : float
        Best reward over that of the configuration in force before.
    reason : str
        As text.
    tuning : Tuning or None
        All trials; None where the decision was read from a journal.
    jobs, simulated : int
        Jobs of the forecast, and rows after aggregation.
    seconds : float
        Wall time of forecast and search.
    measured : int
        Configurations simulated.
    hint : Policy or None
        Configuration that is tried first the next time.
    credit : float
        Logarithm of what it has gained, over the forecasts since it was found.
    """

    now: float
    cause: str
    policy: object
    switched: bool
    gain: float
    reason: str
    tuning: Tuning | None = field(repr=False)
    jobs: int
    simulated: int
    seconds: float
    measured: int = 0
    hint: object = None
    credit: float = 0.0

    def record(self) -> dict:
        """What a journal keeps: plain values, enough to replay the decision."""
        found = {n: getattr(self, n) for n in ("now", "cause", "switched", "gain", "reason", "jobs", "simulated")}
        samples = self.tuning.samples.to_dicts() if self.tuning is not None and self.tuning.trials else []
        return found | {
            "hint": self.hint.knobs if self.hint is not None else None,
            "credit": self.credit,
            "seconds": self.seconds,
            "measured": self.measured,
            "knobs": self.policy.knobs,
            "samples": samples,
        }

    @classmethod
    def of(cls, record: dict, policy) -> Decision:
        """Decision from its record; without the trials."""
        kept = {k: v for k, v in record.items() if k not in ("knobs", "hint", "samples")}
        return cls(policy=policy, tuning=None, **kept)


class Controller:
    """Plays a trace and tunes its scheduler on the way: every hour, and when a burst shows.

    Parameters
    ----------
    simulation : Simulation
        The running scheduler; its policy is what it starts with.
    forecaster : callable
        `(simulation, rng) -> Forecast`: the trace to tune on (generated, past or true). If it learns on the way, its
        `learn(simulation)` is called at each decision that a resumed loop repeats.
    space : Space
    tuner : Tuner
    model : CausalModel, optional
    aggregator : Aggregator, optional
    threshold : float
        Gain above which the scheduler is switched.
    interval, check : float
        Seconds between tunings, and between looks for a burst (0: never).
    burst : float
        Arrivals in `check` seconds count as a burst if they exceed the mean of the last day by this many standard
        deviations (of at least one job); in the first twelve such spans nothing is a burst.
    journal : Journal, optional
        Keeps each decision as it is taken.
    rng : int
        Seed; every tuning draws from its own stream, so that a resumed loop repeats what was.

    Differs from the paper in
    -------------------------
    The thesis gives no rule for detecting a burst, nor how often the causal graph is tuned online (6.5.2): here it is
    learnt again once a day, as the predictor is. The threshold applies to the hourly tuning too. The best of several
    measurements on one forecast is partly luck, so a gain counts where it is measured again: the best configuration of
    one search is tried first in the next, and is switched to when those gains multiply to the threshold. Where its gain
    exceeds the threshold it is measured again at once, on a new forecast, not aggregated; of a generated one
    only the durations of jobs in the system are drawn again, and a past or true one is the same. The aggregator favours
    some configurations over others; so what is to be switched to must gain on a forecast without it, too (`SURE`).

    References
    ----------
    AutoSched thesis, sections 6.5.2 and 6.5.3.
    """

    def __init__(
        self,
        simulation: Simulation,
        forecaster: Callable,
        space: Space,
        tuner: Tuner | None = None,
        *,
        model=None,
        aggregator=None,
        threshold: float = 1.1,
        interval: float = HOUR,
        check: float = 300.0,
        burst: float = 4.0,
        journal=None,
        rng: int = 0,
    ):
        if not (threshold >= 1 and 0 < interval < np.inf and 0 <= check < np.inf and burst > 0):
            raise EstimatorError(
                f"Controller: found threshold={threshold}, interval={interval}, check={check}, burst={burst}; expected a "
                "threshold from 1, seconds above 0 (check: or 0), and a burst above 0."
            )
        if aggregator is not None and not callable(aggregator):
            raise EstimatorError(f"Controller: found aggregator={aggregator!r}; expected an Aggregator, or None.")
        if not isinstance(rng, int | np.integer) or rng < 0:
            raise EstimatorError(
                f"Controller: found seed {rng!r}; expected a whole number from 0: each hour draws from it."
            )
        check_goal(space.policy)
        self.simulation, self.forecaster, self.space, self.tuner = simulation, forecaster, space, tuner or Tuner()
        self.model, self.aggregator, self.threshold = model, aggregator, threshold
        self.interval, self.check, self.burst = interval, check, burst
        self.journal, self.rng = journal, rng
        self.scenario = Scenario.of(simulation)
        self.submit = simulation.trace["submit"].to_numpy()
        self.decisions: list[Decision] = []
        self.last, self.hint, self.credit, self.latest = -np.inf, None, 0.0, None
        self.renewed = simulation.now

    def __repr__(self):
        held = f"{len(self.decisions)} decisions, {sum(d.switched for d in self.decisions)} switches"
        return f"Controller({self.simulation.policy.name} at {self.simulation.now / HOUR:g} h; {held})"

    def steps(self, until: float) -> Iterator[Decision]:
        """Play on to an instant (s; inf: until nothing is left), yielding each decision as it is taken."""
        simulation = self.simulation
        while simulation.now < until and (until < np.inf or not simulation.finished):
            cause = self.due()
            if cause:
                yield self.decide(cause)
            beat = self.check or self.interval
            simulation.advance(min(until, (np.floor(simulation.now / beat + 1e-9) + 1) * beat))

    def run(self, until: float) -> list[Decision]:
        """Play on to an instant (s); all decisions so far."""
        for _ in self.steps(until):
            pass
        return self.decisions

    def due(self) -> str:
        """Why to tune now: "hour", "burst", or "" for not at all."""
        now = self.simulation.now
        if now - self.last >= self.interval - 1e-6:
            return "hour"
        return "burst" if self.check and self._bursts(now) else ""

    def _bursts(self, now: float) -> bool:
        edges = now - self.check * np.arange(round(DAY / self.check) + 1)[::-1]
        counts = np.diff(np.searchsorted(self.submit, edges, side="right"))
        before = counts[:-1][edges[1:-1] > 0]
        return len(before) >= 12 and counts[-1] > before.mean() + self.burst * max(before.std(), 1.0)

    def decide(self, cause: str = "hour") -> Decision:
        """Forecast, tune, and switch if the gain is above the threshold."""
        *_, decision = self.trying(cause)
        return decision

    def trying(self, cause: str = "hour") -> Iterator[Tuning | Decision]:
        """Yield the search as it grows, and last the decision, which is then in force."""
        begin, simulation = time.perf_counter(), self.simulation
        self._renew()
        rng = np.random.default_rng([self.rng, round(simulation.now)])
        forecast, jobs = self.forecast(rng)
        tuning = Tuning(self.space, simulation.policy.goal)
        if jobs:
            probe = self.probe(forecast)
            given = {"hints": [self.hint] if self.hint is not None else [], "model": self.model, "rng": rng}
            for tuning in self.tuner.steps(probe, self.space, simulation.policy, **given):
                yield tuning
        decision = self._settle(cause, tuning, jobs, forecast.trace.height, rng, begin)
        self.last = simulation.now
        self.decisions.append(decision)
        if self.journal is not None:
            self.journal.append(decision)
        yield decision

    def resume(self, records: list[dict]) -> None:
        """Replay the decisions of a journal: simulate up to each, switch where it switched, update the model.

        Raises
        ------
        EstimatorError
            They do not ascend in time, or what they measured lacks variables of the model: another version wrote them.
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
            policy = self.space.policy.with_knobs(**record["knobs"])
            if record["switched"]:
                self.simulation.switch(policy)
            if self.model is not None and record["samples"]:
                samples = pl.DataFrame(record["samples"])
                mend = "Another version wrote the journal: begin a new one."
                check_samples(samples, self.model.graph.layers, 1, "Controller.resume", mend)
                self.model.update(samples)
            self.last, self.credit = record["now"], record["credit"]
            self.hint = self.space.policy.with_knobs(**record["hint"]) if record["hint"] else None
            self.decisions.append(Decision.of(record, policy))

    def _renew(self) -> None:
        """Once a day, learn the causal graph again."""
        if self.model is not None and self.simulation.now - self.renewed >= DAY - 1e-6:
            self.model.renew()
            self.renewed = self.simulation.now

    def forecast(self, rng):
        """A forecast, aggregated if there is an aggregator, and its number of jobs before aggregation."""
        found = self.latest = self.forecaster(self.simulation, rng)
        return (self.aggregator(found) if self.aggregator is not None else found), found.trace.height

    def probe(self, forecast) -> Probe:
        """Probe that measures configurations on a forecast, from the state of the running scheduler."""
        return Probe(self.scenario, self.simulation.policy, forecast=forecast)

    def _settle(self, cause: str, tuning: Tuning, jobs: int, simulated: int, rng, begin: float) -> Decision:
        policy, gain, reason = self.simulation.policy, 1.0, "no jobs in the forecast"
        measured, proof = 0, ""
        if tuning.trials:
            measured, proof = self._weigh(tuning, rng)
            gain = tuning.best.reward / self._held(tuning, policy)
            reason = f"{tuning.measured} configurations measured; the best gain is {gain:.3f}x"
        if self.hint is not None:
            reason += f"; {math.exp(self.credit):.3f}x over repeated measurements, threshold {self.threshold:g}x"
        reason += proof
        switched = self.hint is not None and self.credit > math.log(self.threshold)
        if switched:
            policy, self.hint, self.credit = self.hint, None, 0.0
            self.simulation.switch(policy)
        return Decision(
            self.simulation.now,
            cause,
            policy,
            switched,
            gain,
            reason,
            tuning,
            jobs,
            simulated,
            time.perf_counter() - begin,
            tuning.measured + measured,
            self.hint,
            self.credit,
        )

    def _weigh(self, tuning: Tuning, rng) -> tuple[int, str]:
        """Credit the hint with its gain on this forecast, which did not choose it; or take another in its place.

        One that takes its place and gains the threshold at once, or has gained it on aggregated forecasts, is measured on
        a new whole one. How many measurements that took, and the result as text.
        """
        now, held, best = self._held(tuning, self.simulation.policy), self._held(tuning, self.hint), tuning.best
        self.credit += math.log(held / now) if held else 0.0
        stays = held and self.credit > 0 and best.reward <= held * min(CHALLENGE, held / now)
        if not stays:
            self.hint, self.credit = (best.policy if best.reward > now else None), 0.0
        gained = self.credit if stays else math.log(best.reward / now)
        if gained <= math.log(self.threshold) or (stays and self.aggregator is None):
            return 0, ""
        probe = self.probe(self.forecaster(self.simulation, rng))
        mine, other = probe(self.simulation.policy).value, probe(self.hint).value
        gain = reward(probe.objective, other, mine)
        if not stays:
            self.credit = math.log(gain)
            return probe.measured, ""
        if gain <= SURE:
            self.hint, self.credit = None, 0.0
        return probe.measured, f"; {gain:.3f}x on a whole forecast, threshold {SURE:g}x"

    @staticmethod
    def _held(tuning: Tuning, policy) -> float:
        """Reward of a policy in a search; 0 where it was not measured."""
        return next((t.reward for t in tuning.trials if t.policy == policy and t.measurement is not None), 0.0)
