"""The causal tuner (algorithm 3): sample, project, predict, reject, measure, update, and narrow the scope."""

from __future__ import annotations

import time
from collections import Counter
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

ITERATIONS = 40  # T, section 6.5.2
GAMMA = 0.95  # algorithm 3, line 3
IDLE = 12
"""Rounds in a row that lead to what is known, after which a search ends."""
BETTER = 1.01
"""Times the best by which a measurement must exceed it to count as progress, or a forecast to be worth one."""
NEAR = 0.15
"""Part of an axis around the best within which what-if analysis does not look for better."""


@dataclass(frozen=True)
class Trial:
    """One round of algorithm 3.

    Parameters
    ----------
    round : int
        t; rounds up to 0 are those measured at the start: the reference, and the configuration in force.
    asked, u : (k,) array
        Coordinates as sampled, and as projected.
    policy : Policy
    fate : {"measured", "rejected", "known"}
        "known": projection led to a configuration that was measured before.
    predicted : float
        Reward that the causal model predicted, before it was measured; nan without a model.
    reward : float
        Measured, as a ratio to the reference (above 1: better); nan where rejected.
    measurement : Measurement or None
    best : float
        Best reward so far.
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
    def best(self) -> Trial:
        """Measured trial with the highest reward; the earliest of equals.

        Raises
        ------
        EstimatorError
            Nothing was measured: there were no jobs.
        """
        made = [t for t in self.trials if t.measurement is not None]
        if not made:
            raise EstimatorError("Tuning.best: found no measured trial; expected one. There were no jobs to tune on.")
        return max(made, key=lambda t: t.reward)

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
    """Search a policy's knobs on a forecast, measuring as little as it can.

    Algorithm 3. (1) Sample a configuration; (2) project it on ranges and constraints, and on the scope; (3) predict its
    reward with the causal model, and with probability `epsilon` reject it if that is at most `gamma` times the best;
    (4) measure it; (5) update sampler and model; (6) what-if: an axis that does not matter, or along which even the
    optimistic end of the predicted reward cannot exceed the best, all other axes staying, is fixed from then on.

    Parameters
    ----------
    iterations : int
        Rounds T.
    sampler : str
        One of `SAMPLERS`.
    epsilon : float
        Probability with which a bad prediction leads to rejection.
    gamma : float
        Relax factor.
    margin : float
        What-if analysis: range of the predicted logarithm of the reward within which an axis does not matter.
    proposals, pool : int
        Rounds, at the beginning, that take the model's favourites of so many points of a Latin hypercube: one of each
        combination of categories before a second of any; the hints and the policy in force count as the first of theirs.
    memory : int
        Before them, where there is no hint, its favourite of so many best configurations that it learnt from, if it is
        predicted to be better than the one in force; 0: none.
    patience : int
        With a model: measurements in a row without progress after which the search ends, once the proposals are through.
    reject, scope : bool
        Whether steps 3 and 6 are taken at all (ablations).
    options : dict
        Further arguments of the sampler.

    Differs from the paper in
    -------------------------
    Rewards are ratios to a reference configuration on the same forecast (the policy's defaults), so that what the model
    learnt at one time holds at another. The configuration in force is measured first, too; then hints (without any, one
    of the past, if predicted to be better) and, with a model, those it favours of each other kind; and the sampler
    begins at the best of all: its steps from the configuration in force alone rarely leave the neighbourhood in T
    rounds. A configuration that was measured before is not measured again. Most searches end by `patience`, not by
    steps 3 and 6: after the favourites, if the last of them is no better than the best before, otherwise at the first
    measurement of the sampler's that is no better. The search also ends when what the model favours is no better or
    worse than the rest, when every axis is fixed, or when `IDLE` rounds in a row led to nothing new. Rewards beyond
    what the model knows would reject all others: step 3 takes the predicted reward of the best, where that is less. Step 6
    takes the 90 % point of the prediction away from the best: by the mean, a model that errs by a tenth fixed what
    mattered. `epsilon` has no published value.

    References
    ----------
    AutoSched thesis, section 6.4.3.1, algorithm 3; 6.5.2 for T.
    """

    raises: ClassVar = EstimatorError
    iterations: Annotated[int, Knob(0, 1e6, tuned=(1, 100), help="rounds")] = ITERATIONS
    sampler: Annotated[str, Knob(choices=SAMPLERS.keys(), help="what proposes configurations")] = "bluefin"
    epsilon: Annotated[float, Knob(0, 1, help="probability that a bad prediction leads to rejection")] = 0.93
    gamma: Annotated[float, Knob(1e-9, 1e9, log=True, tuned=(0.1, 10), help="relax factor")] = GAMMA
    margin: Annotated[float, Knob(-1e9, 1e9, tuned=(0, 0.1), help="logarithm of the reward that does not matter")] = (
        0.002
    )
    proposals: Annotated[int, Knob(0, 1e6, tuned=(0, 10), help="rounds of the model's favourites")] = 2
    pool: Annotated[int, Knob(1, 1e6, log=True, tuned=(16, 1024), help="points of which they are chosen")] = 128
    memory: Annotated[int, Knob(0, 1e6, tuned=(0, 256), help="best past configurations that count")] = 64
    patience: Annotated[int, Knob(1, 1e6, tuned=(1, 20), help="measurements without progress that end it")] = 1
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

    def tune(self, probe: Probe, space: Space, current, *, hints=(), model=None, rng=0) -> Tuning:
        """Run the whole search.

        Parameters
        ----------
        probe : Probe
            Measures configurations.
        space : Space
            Its policy is the reference.
        current : Policy
            Configuration in force, where the search begins.
        hints : iterable of Policy
            Configurations measured first, such as the best of the last search.
        model : CausalModel, optional
            Without it nothing is predicted, rejected or fixed.
        rng : int or numpy.random.Generator
        """
        *_, last = self.steps(probe, space, current, hints=hints, model=model, rng=rng)
        return last

    def steps(self, probe: Probe, space: Space, current, *, hints=(), model=None, rng=0) -> Iterator[Tuning]:
        """Yield the search after each round; the same object, one trial longer."""
        search = _Search(self, probe, space, model, np.random.default_rng(rng))
        begin = time.perf_counter()
        for _ in self._rounds(search, current, hints):
            search.found.seconds += time.perf_counter() - begin
            yield search.found
            begin = time.perf_counter()

    def _rounds(self, search: _Search, current, hints) -> Iterator[None]:
        """Go through the rounds: the reference and what is in force, the favourites, the sampler's points."""
        space = search.space
        for round_, policy in enumerate((space.policy, current), start=-1):
            search.take(round_, space.encode(policy), space.encode(policy), policy, judge=False)
            yield
        hints = [space.encode(policy) for policy in hints]
        first = hints or search.remembered()
        favourites = (first + search.favourites(self.proposals, first))[: self.iterations]
        for t in range(1, self.iterations + 1):
            if t > len(favourites):
                if search.vain >= self.patience or search.idle >= IDLE:
                    return
                if search.sampler is None:
                    if self.proposals and search.alike:
                        return
                    search.begin()
                if search.done:
                    return
            asked = favourites[t - 1] if t <= len(favourites) else search.sampler.ask()
            policy, u = space.project(search.hold(asked))
            search.take(t, asked, u, policy, judge=t > len(hints))
            yield


class _Search:
    """State of one search: best so far, what is fixed, what is known."""

    def __init__(self, tuner: Tuner, probe: Probe, space: Space, model, rng):
        self.tuner, self.probe, self.space, self.model, self.rng = tuner, probe, space, model, rng
        self.found = Tuning(space, probe.objective)
        self.known: dict[object, Trial] = {}
        self.fixed: dict[int, float] = {}
        self.sampler, self.idle, self.vain = None, 0, 0

    @property
    def done(self) -> bool:
        return len(self.fixed) == len(self.space)

    @property
    def alike(self) -> bool:
        """Whether it makes no difference what the model favours: all measured rewards are within `BETTER`."""
        rewards = [t.reward for t in self.known.values()]
        return self.model is not None and max(rewards) <= BETTER * min(rewards)

    def begin(self) -> None:
        """Make the sampler, which starts at the best so far (without a model: at what is in force)."""
        start = self.found.best if self.model is not None else self.found.trials[-1]
        levels = [a.levels for a in self.space.axes]
        self.sampler = SAMPLERS[self.tuner.sampler](levels, self.rng, start.u, **self.tuner.options)
        self._narrow()

    @property
    def current(self) -> np.ndarray:
        """Coordinates in force."""
        return self.found.trials[1].u

    def favourites(self, count: int, first) -> list[np.ndarray]:
        """Coordinates that the model predicts to be best, of a pool spread over the box; to follow what is tried `first`.

        One of each kind, which is what the categories are set to, before a second of any, those tried and in force
        counted: a model that errs about a whole kind would otherwise never let the search try the others. None
        without a model.
        """
        if self.model is None or count <= 0:
            return []
        plan = LatinHypercube([a.levels for a in self.space.axes], self.rng, size=self.tuner.pool)
        points = self.space.snap(np.array([plan.ask() for _ in range(self.tuner.pool)]))
        points = points[np.argsort(-self.model.predict(self._given(points)).mean, kind="stable")]
        categories = [i for i, axis in enumerate(self.space.axes) if axis.levels]
        turns, met = [], Counter(tuple(u[categories].tolist()) for u in (self.current, *first))
        for kind in map(tuple, points[:, categories].tolist()):
            turns.append(met[kind])
            met[kind] += 1
        return list(points[np.argsort(turns, kind="stable")[:count]])

    def remembered(self) -> list[np.ndarray]:
        """Coordinates that the model predicts to be best, of the best that it learnt from.

        None without a model, nor where it predicts about the same for those in force: to measure such a twin teaches nothing.
        """
        if self.model is None or not self.tuner.memory:
            return []
        points = self.model.best(self.tuner.memory)
        now, *seen = self.model.predict(self._given([self.current, *points])).mean
        best = int(np.argmax(seen))
        return [points[best]] if seen[best] > now + np.log(BETTER) else []

    def hold(self, asked) -> np.ndarray:
        """Apply the scope: fixed axes keep their values."""
        u = np.array(asked, float)
        for i, value in self.fixed.items():
            u[i] = value
        return u

    def take(self, t: int, asked, u, policy, *, judge: bool = True) -> None:
        """Steps 3 to 6 for one configuration."""
        predicted = self._predict(u)
        before = self.known.get(policy)
        elp = self.rng.random() <= self.tuner.epsilon
        if before is not None:
            fate, made, worth = "known", before.measurement, before.reward
        elif judge and self.tuner.reject and elp and predicted <= self.tuner.gamma * self._bar():
            fate, made, worth = "rejected", None, np.nan
        else:
            fate, made = "measured", self.probe(policy)
            reference = self.found.trials[0].measurement if self.found.trials else made
            worth = reward(self.probe.objective, made.value, reference.value)
        self.idle = self.idle + 1 if fate == "known" else 0
        if fate == "measured" and self.model is not None and t > 0:
            self.vain = 0 if worth > BETTER * self.found.best.reward else self.vain + 1
        best = np.nanmax([worth, self.found.best.reward if self.found.trials else worth])
        trial = Trial(t, np.asarray(asked), u, policy, fate, predicted, worth, made, float(best))
        self.found.trials.append(trial)
        if fate == "measured":
            self.known[policy] = trial
            self._update(trial)
        if made is not None and self.sampler is not None:
            self.sampler.tell(u, worth)
        if fate == "measured" and self.sampler is not None:
            self._narrow()
        fixed = tuple(self.space.axes[i].name for i in sorted(self.fixed))
        self.found.trials[-1] = replace(trial, fixed=fixed)

    def _bar(self) -> float:
        """Reward of the best, or its predicted reward if that is less: then the model predicts too little of all."""
        return float(np.fmin(self.found.best.reward, self.found.best.predicted))

    def _predict(self, u) -> float:
        """Reward that the model predicts; nan without one, and before the reference is measured."""
        if self.model is None or not self.found.trials:
            return np.nan
        return float(np.exp(self.model.predict(self._given(u)).mean[0]))

    def _given(self, u) -> np.ndarray:
        """Coordinates (n, k), or (k,) of one, and the context in the model's order: (n, k + c)."""
        context = context_of(self.probe.objective, self.found.trials[0].measurement)
        u, context = np.atleast_2d(u), list(context.values())
        return np.hstack([u, np.tile(context, (len(u), 1))])

    def _update(self, trial: Trial) -> None:
        """Update the model with a measured trial."""
        if self.model is not None:
            names = [a.name for a in self.space.axes]
            first = self.found.trials[0].measurement
            self.model.update(sample(trial.u, names, trial.measurement, first, self.probe.objective))

    def _narrow(self) -> None:
        """What-if analysis: fix the axes along which nothing better than the best is predicted."""
        if self.model is None or not self.tuner.scope:
            return
        best = self.found.best
        at = self._given(best.u)[0]
        here = float(self.model.predict(at).mean[0])
        free = {axis.name: i for i, axis in enumerate(self.space.axes) if i not in self.fixed}
        if free:
            for name, (values, seen) in self.model.effects(free, at).items():
                i = free[name]
                other = np.abs(values - best.u[i]) > NEAR
                worse = seen.high[other].max(initial=-np.inf) <= here
                if worse or np.ptp(seen.mean) <= self.tuner.margin:
                    self.fixed[i] = float(best.u[i])
