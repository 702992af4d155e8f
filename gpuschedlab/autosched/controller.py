"""The scheduler controller: a closed loop that foresees, tunes and switches a running scheduler (6.5.3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.autosched.measure import Probe
from gpuschedlab.autosched.space import Space
from gpuschedlab.autosched.tuner import Tuner, Tuning
from gpuschedlab.sim import Simulation

HOUR = 3600.0


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
        In words.
    tuning : Tuning or None
        All trials; None where the decision was read from a journal.
    jobs, simulated : int
        Jobs of the forecast, and rows after aggregation.
    seconds : float
        Wall time of forecast and search.
    measured : int
        Configurations simulated.
    """

    now: float
    cause: str
    policy: object
    switched: bool
    gain: float
    reason: str
    tuning: Tuning | None
    jobs: int
    simulated: int
    seconds: float
    measured: int = 0

    def record(self) -> dict:
        """What a journal keeps: plain values, enough to live through the decision again."""
        found = {n: getattr(self, n) for n in ("now", "cause", "switched", "gain", "reason", "jobs", "simulated")}
        tried = self.tuning is not None and self.tuning.trials
        samples = self.tuning.samples.to_dicts() if tried else []
        return found | {
            "hints": [self.tuning.best.policy.knobs] if tried else [],
            "seconds": self.seconds,
            "measured": self.measured,
            "knobs": self.policy.knobs,
            "samples": samples,
        }

    @classmethod
    def of(cls, record: dict, policy) -> Decision:
        """Decision from its record; without the trials."""
        kept = {k: v for k, v in record.items() if k not in ("knobs", "hints", "samples")}
        return cls(policy=policy, tuning=None, **kept)


class Controller:
    """Plays a trace and tunes its scheduler on the way: every hour, and when a burst shows.

    Parameters
    ----------
    simulation : Simulation
        The running scheduler; its policy is what it starts with.
    foresee : callable
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
        deviations.
    journal : Journal, optional
        Keeps each decision as it is taken.
    rng : int
        Seed; every tuning draws from its own stream, so that a resumed loop repeats what was.

    Differs from the paper in
    -------------------------
    The thesis gives no rule by which a burst is told; the threshold applies to the hourly tuning too.

    References
    ----------
    AutoSched thesis, sections 6.5.2 and 6.5.3.
    """

    def __init__(
        self,
        simulation: Simulation,
        foresee: Callable,
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
        self.simulation, self.foresee, self.space, self.tuner = simulation, foresee, space, tuner or Tuner()
        self.model, self.aggregator, self.threshold = model, aggregator, threshold
        self.interval, self.check, self.burst = interval, check, burst
        self.journal, self.rng = journal, rng
        self.submit = simulation.trace["submit"].to_numpy()
        self.decisions: list[Decision] = []
        self.last, self.hints = -np.inf, []

    def steps(self, until: float) -> Iterator[Decision]:
        """Play on to an instant (s), yielding each decision as it is taken."""
        simulation = self.simulation
        while simulation.now < until:
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
        edges = now - self.check * np.arange(289)[::-1]
        counts = np.diff(np.searchsorted(self.submit, edges, side="right"))
        before = counts[:-1][edges[1:-1] > 0]
        return len(before) >= 12 and counts[-1] > before.mean() + self.burst * max(before.std(), 1.0)

    def decide(self, cause: str = "hour") -> Decision:
        """Foresee, tune, and switch if it is worth it."""
        *_, decision = self.trying(cause)
        return decision

    def trying(self, cause: str = "hour") -> Iterator[Tuning | Decision]:
        """Yield the search as it grows, and last the decision, which is then in force."""
        begin, simulation = time.perf_counter(), self.simulation
        rng = np.random.default_rng([self.rng, round(simulation.now)])
        forecast = self.foresee(simulation, rng)
        jobs = forecast.trace.height
        if self.aggregator is not None:
            forecast = self.aggregator(forecast)
        tuning = Tuning(self.space, simulation.policy.objective)
        if jobs:
            probe = self.probe(forecast)
            given = {"hints": self.hints, "model": self.model, "rng": rng}
            for tuning in self.tuner.steps(probe, self.space, simulation.policy, **given):
                yield tuning
        decision = self._settle(cause, tuning, jobs, forecast.trace.height, time.perf_counter() - begin)
        self.last, self.hints = simulation.now, [tuning.best.policy] if tuning.trials else []
        self.decisions.append(decision)
        if self.journal is not None:
            self.journal.append(decision)
        yield decision

    def resume(self, records: list[dict]) -> None:
        """Live through decisions that a journal holds: play on to each, switch where it switched, tell the model."""
        for record in records:
            self.simulation.advance(record["now"])
            if hasattr(self.foresee, "learn"):
                self.foresee.learn(self.simulation)
            policy = self.space.policy.with_knobs(**record["knobs"])
            if record["switched"]:
                self.simulation.switch(policy)
            if self.model is not None and record["samples"]:
                self.model.update(pl.DataFrame(record["samples"]))
            self.last, self.hints = record["now"], [self.space.policy.with_knobs(**k) for k in record["hints"]]
            self.decisions.append(Decision.of(record, policy))

    def probe(self, forecast) -> Probe:
        """What measures configurations on a forecast, as the running scheduler would have them."""
        s = self.simulation
        return Probe(forecast, s.cluster, s.policy, speeds=s.speeds, estimator=s.estimator, delays=s.delays)

    def _settle(self, cause: str, tuning: Tuning, jobs: int, simulated: int, seconds: float) -> Decision:
        policy, gain, reason = self.simulation.policy, 1.0, "no jobs in sight"
        if tuning.trials:
            now = next(t for t in tuning.trials if t.policy == policy)
            gain = tuning.best.reward / now.reward
            reason = f"best of {tuning.measured} measured: {gain:.3f} times as good, {self.threshold:g} asked"
        switched = gain > self.threshold
        if switched:
            policy = tuning.best.policy
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
            seconds,
            tuning.measured,
        )
