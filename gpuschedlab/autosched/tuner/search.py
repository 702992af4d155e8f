"""The causal tuner (algorithm 3): sample, project, predict, reject, measure, update, and narrow the scope."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.autosched.tuner.measure import Measurement, Probe, context_of, reward, sample
from gpuschedlab.autosched.tuner.samplers import SAMPLERS, LatinHypercube
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed

NEAR = 0.15
"""Part of an axis around the best within which what-if analysis does not look for better."""


@dataclass(frozen=True)
class Trial:
    """One round of algorithm 3, up to 0 those measured at the start: the reference, the configuration in force, hints.

    Parameters
    ----------
    asked, u : (k,) array
        Coordinates as sampled, and as projected.
    fate : {"measured", "rejected", "known"}
        "known": projection led to a configuration that was measured before.
    predicted, reward, best : float
        Reward that the causal model predicted (nan without one), the measured one (nan where rejected), and the best so far: ratios
        to the reference, above 1 for better.
    fixed : tuple of str
        Axes that the scope holds from now on.
    """

    round: int
    asked: np.ndarray
    u: np.ndarray
    policy: object
    fate: str
    predicted: float
    reward: float
    measurement: Measurement | None
    best: float
    fixed: tuple[str, ...] = ()


@dataclass
class Tuning:
    """Result of a search: its trials, the best policy and its reward, and its cost."""

    space: Space
    objective: str
    trials: list[Trial] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ranking(self) -> list[Trial]:
        """Measured trials, each configuration once, by reward; the earliest first of equals."""
        return sorted((t for t in self.trials if t.fate == "measured"), key=lambda t: -t.reward)

    @property
    def best(self) -> Trial:
        """Measured trial with the highest reward.

        Raises
        ------
        EstimatorError
            Nothing was measured: there were no jobs.
        """
        if not self.measured:
            raise EstimatorError("Tuning.best: found no measured trial; expected one. There were no jobs to tune on.")
        return self.ranking[0]

    def leaders(self, count: int = 4) -> tuple:
        """Policies of the best trials, best first."""
        return tuple(trial.policy for trial in self.ranking[:count])

    @property
    def measured(self) -> int:
        """Configurations that were simulated."""
        return sum(t.fate == "measured" for t in self.trials)

    @property
    def samples(self) -> pl.DataFrame:
        """Rows for the causal model: coordinates, log ratios of metrics and of the reward to the reference."""
        names = [a.name for a in self.space.axes]
        done = [t for t in self.trials if t.fate == "measured"]
        reference = done[0].measurement
        return pl.DataFrame([sample(t.u, names, t.measurement, reference, self.objective) for t in done])


@dataclass(frozen=True)
class Tuner(Knobbed):
    """Search a policy's knobs on a forecast.

    Algorithm 3. (1) Sample a configuration; (2) project it on ranges and constraints, and on the scope; (3) predict its
    reward with the causal model, and with probability `epsilon` reject it if that is at most `gamma` times the best;
    (4) measure it; (5) update sampler and model; (6) what-if: an axis that does not matter, or along which the predicted
    reward cannot exceed the best, all other axes staying, is fixed from then on. The search ends after its rounds, or
    when every axis is fixed.

    Parameters
    ----------
    iterations : int
        Rounds T of a wide search.
    check : int
        Rounds of a check, which is what the controller does between wide searches.
    sampler : str
        One of `SAMPLERS`.
    epsilon : float
        Probability with which a bad prediction leads to rejection.
    gamma : float
        Relax factor.
    margin : float
        What-if analysis: range of the predicted logarithm of the reward within which an axis does not matter.
    spread : float
        Part of the rounds, at the beginning, that are spread over the whole box rather than sampled: with a model its
        favourites of `pool` points of a Latin hypercube, without one a Latin hypercube of as many.
    pool : int
    doubt : bool
        Whether steps 3 and 6 allow for the model's errors: a reward beyond what the model predicts of the best would reject
        all others, so that step 3 takes the predicted reward of the best where that is less; step 6 takes the 90 % point of
        the prediction, since by the mean a model that errs by a tenth fixed what mattered.
    reject, scope : bool
        Whether steps 3 and 6 are taken at all (ablations).
    options : dict
        Further arguments of the sampler.

    Differs from the paper in
    -------------------------
    Rewards are ratios to a reference configuration on the same forecast (the policy's defaults), so that what the model
    learnt at one time holds at another; the reference and the configuration in force are measured first. T is larger, and
    half of the rounds are spread over the box, since BlueFin's steps rarely leave the neighbourhood in 40 rounds; it then
    begins at the best. Hints come before. A configuration that was measured before is not measured again. `doubt`.
    `epsilon` has no published value. `Tuner.thesis()` is the algorithm as printed.

    References
    ----------
    AutoSched thesis, section 6.4.3.1, algorithm 3; 6.5.2 for T.
    """

    raises: ClassVar = EstimatorError
    iterations: Annotated[int, Knob(0, 1e6, tuned=(1, 400), help="rounds of a wide search")] = 200
    check: Annotated[int, Knob(0, 1e6, tuned=(0, 40), help="rounds of a check")] = 4
    sampler: Annotated[str, Knob(choices=SAMPLERS.keys(), help="what proposes configurations")] = "bluefin"
    epsilon: Annotated[float, Knob(0, 1, help="probability that a bad prediction leads to rejection")] = 0.93
    gamma: Annotated[float, Knob(1e-9, 1e9, log=True, tuned=(0.1, 10), help="relax factor")] = 0.95
    margin: Annotated[float, Knob(-1e9, 1e9, tuned=(0, 0.1), help="logarithm of the reward that does not matter")] = (
        2e-3
    )
    spread: Annotated[float, Knob(0, 1, help="part of the rounds spread over the whole box")] = 0.5
    pool: Annotated[int, Knob(1, 1e6, log=True, tuned=(16, 1024), help="points of which the favourites are")] = 256
    doubt: Annotated[bool, Knob(help="whether steps 3 and 6 allow for the model's errors")] = True
    reject: Annotated[bool, Knob(help="whether bad predictions are rejected (step 3)")] = True
    scope: Annotated[bool, Knob(help="whether axes are fixed (step 6)")] = True
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        if self.options:
            try:
                SAMPLERS[self.sampler]([0], **self.options)
            except TypeError as error:
                raise EstimatorError(f"Tuner: found options {self.options} of {self.sampler}: {error}.") from None

    @classmethod
    def thesis(cls, **options) -> Tuner:
        """Algorithm 3 as printed: 40 rounds at every instant, all BlueFin's from the configuration in force."""
        return cls(**{"iterations": 40, "check": 40, "spread": 0.0, "doubt": False} | options)

    def tune(self, *given, **options) -> Tuning:
        """Run the whole search; arguments as for `steps`."""
        *_, last = self.steps(*given, **options)
        return last

    def steps(
        self, probe: Probe, space: Space, current, *, hints=(), model=None, rng=0, wide: bool = True
    ) -> Iterator[Tuning]:
        """Yield the search after each round, the same object, one trial longer.

        Parameters
        ----------
        probe : Probe or Probes
            Measures configurations.
        space : Space
            Its policy is the reference.
        current : Policy
            Configuration in force.
        hints : iterable of Policy
            Configurations measured first, whatever is predicted, such as the best of the last wide search.
        model : CausalModel, optional
            Without it nothing is predicted, rejected or fixed.
        rng : int or numpy.random.Generator
        wide : bool
            Whether it is a wide search, or a check.
        """
        search, begin = _Search(self, probe, space, model, np.random.default_rng(rng)), time.perf_counter()
        for _ in search.rounds(current, list(hints), self.iterations if wide else self.check):
            search.found.seconds += time.perf_counter() - begin
            yield search.found
            begin = time.perf_counter()


class _Search:
    """State of one search: best so far, what is fixed, what is known."""

    def __init__(self, tuner: Tuner, probe: Probe, space: Space, model, rng):
        self.tuner, self.probe, self.space, self.model, self.rng = tuner, probe, space, model, rng
        self.found, self.names = Tuning(space, probe.objective), [axis.name for axis in space.axes]
        self.known, self.fixed, self.sampler, self.levels = {}, {}, None, [axis.levels for axis in space.axes]

    def rounds(self, current, hints, iterations: int) -> Iterator[None]:
        """Measure the reference, what is in force and the hints; then go through the rounds: spread, then sampled."""
        for t, policy in enumerate((self.space.policy, current, *hints), start=-1 - len(hints)):
            u = self.space.encode(policy)
            self.take(t, u, u, policy, judge=False)
            yield
        points = self.spread(iterations)
        for t in range(1, iterations + 1):
            if not points and self.sampler is None:
                # It starts at the best so far; without spread rounds, at what is in force.
                start = self.found.best if self.tuner.spread else self.found.trials[1]
                self.sampler = SAMPLERS[self.tuner.sampler](self.levels, self.rng, start.u, **self.tuner.options)
                self._narrow()
            if self.sampler is not None and len(self.fixed) == len(self.space):
                return
            asked = points.pop(0) if points else self.sampler.ask()
            held = np.array(asked, float)
            held[list(self.fixed)] = list(self.fixed.values())  # the scope
            policy, u = self.space.project(held)
            self.take(t, asked, u, policy)
            yield

    def spread(self, iterations: int) -> list[np.ndarray]:
        """Coordinates (k,) all over the box: those that the model predicts to be best, most promising first."""
        count = int(np.ceil(self.tuner.spread * iterations))
        size = count if self.model is None else max(count, self.tuner.pool)
        plan = LatinHypercube(self.levels, self.rng, size=size)
        points = [plan.ask() for _ in range(size if count else 0)]
        if self.model is not None and points:
            points = np.array([self.space.project(u)[1] for u in points])
            points = points[np.argsort(-self.model.predict(self._given(points)).mean, kind="stable")]
        return list(points[:count])

    def take(self, t: int, asked, u, policy, *, judge: bool = True) -> None:
        """Steps 3 to 6 for one configuration."""
        predicted, before = self._predict(u), self.known.get(policy)
        exploit = self.rng.random() <= self.tuner.epsilon
        if before is not None:
            fate, made, worth = "known", before.measurement, before.reward
        elif judge and self.tuner.reject and exploit and predicted <= self.tuner.gamma * self._bar():
            fate, made, worth = "rejected", None, np.nan
        else:
            fate, made = "measured", self.probe(policy)
            reference = self.found.trials[0].measurement if self.found.trials else made
            worth = reward(self.probe.objective, made.value, reference.value)
        best = np.nanmax([worth, self.found.best.reward if self.found.trials else worth])
        trial = Trial(t, np.asarray(asked), u, policy, fate, predicted, worth, made, float(best))
        self.found.trials.append(trial)
        if self.sampler is not None and made is not None:
            self.sampler.tell(u, worth)
        if fate == "measured":
            self.known[policy] = trial
            if self.model is not None:
                self.model.update(sample(u, self.names, made, self.found.trials[0].measurement, self.probe.objective))
            self._narrow()
        self.found.trials[-1] = replace(trial, fixed=tuple(self.names[i] for i in sorted(self.fixed)))

    def _bar(self) -> float:
        """Reward of the best; with `doubt`, its predicted reward if that is less."""
        best = self.found.best
        return float(np.fmin(best.reward, best.predicted)) if self.tuner.doubt else best.reward

    def _predict(self, u) -> float:
        """Reward that the model predicts; nan without one, and before the reference is measured."""
        known = self.model is not None and self.found.trials
        return float(np.exp(self.model.predict(self._given(u)).mean[0])) if known else np.nan

    def _given(self, u) -> np.ndarray:
        """Coordinates (n, k), or (k,) of one, and the context in the model's order: (n, k + c)."""
        u, context = np.atleast_2d(u), context_of(self.probe.objective, self.found.trials[0].measurement)
        return np.hstack([u, np.tile([*context.values()], (len(u), 1))])

    def _narrow(self) -> None:
        """What-if analysis: fix the axes along which nothing better than the best is predicted."""
        free = {name: i for i, name in enumerate(self.names) if i not in self.fixed}
        if self.sampler is None or self.model is None or not self.tuner.scope or not free:
            return
        best = self.found.best
        at = self._given(best.u)[0]
        here = float(self.model.predict(at).mean[0])
        for name, (values, seen) in self.model.effects(free, at).items():
            i = free[name]
            most = seen.high if self.tuner.doubt else seen.mean
            worse = most[np.abs(values - best.u[i]) > NEAR].max(initial=-np.inf) <= here
            if worse or np.ptp(seen.mean) <= self.tuner.margin:
                self.fixed[i] = float(best.u[i])
