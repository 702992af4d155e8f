"""The rounds of algorithm 3: sample, project, predict, reject, measure, update, and narrow the scope."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuschedlab.autosched.tuner.measure import Probe, context_of, reward, sample
from gpuschedlab.autosched.tuner.samplers import SAMPLERS, LatinHypercube
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Trial, Tuning


class Search:
    """State of one search of `Tuner.steps`: the trial of R^max, axes that the scope holds and their values, and the rewards so far."""

    def __init__(self, tuner, probe: Probe, space: Space, model, rng):
        self.tuner = tuner
        self.probe = probe
        self.space = space
        self.rng = rng
        self.model = model if tuner.causal else None
        self.found = Tuning(space, probe.objective)
        self.names = [axis.name for axis in space.axes]
        self.known = {}
        self.fixed = {}
        self.sampler = None
        self.levels = [axis.levels for axis in space.axes]
        self.top: Trial | None = None
        self.judges = False  # whether the model has a say: from round 1 on

    def rounds(self, current, hints, iterations: int) -> Iterator[None]:
        """Measure the reference, the policy in force and the hints; then go through the rounds."""
        for t, policy in enumerate((self.space.policy, current, *hints), start=-1 - len(hints)):
            u = self.space.encode(policy)
            self.take(t, u, u, policy)
            yield
        self.judges = self.model is not None
        points = []
        alone = self.tuner.alone
        for t in range(1, iterations + 1):
            if t == alone + 1:
                points = self.spread(iterations - alone)
                self.sampler = None if points else self.sampler
            if not points and self.sampler is None:
                # It starts at the best so far; without spread rounds, at what is in force.
                start = self.found.best if self.tuner.spread else self.found.trials[1]
                self.sampler = SAMPLERS[self.tuner.sampler](self.levels, self.rng, start.u, **self.tuner.options)
            asked = points.pop(0) if points else self.sampler.ask()
            self.take(t, asked, *self._judged(asked))
            yield

    def spread(self, iterations: int) -> list[np.ndarray]:
        """Coordinates (k,) all over the box: points of a Latin hypercube."""
        count = int(np.ceil(self.tuner.spread * iterations))
        plan = LatinHypercube(self.levels, self.rng, size=count)
        return [plan.ask() for _ in range(count)]

    def take(self, t: int, asked, u, policy, predicted: float = np.nan) -> None:
        """Lines 7 to 16 for one configuration, whose predicted reward is nan if no model judges."""
        before = self.known.get(policy)
        exploit = self.rng.random() <= self.tuner.epsilon
        if before is not None:
            fate = "known"
            made = before.measurement
            worth = before.reward
        elif self.judges and exploit and predicted <= self.tuner.gamma * (self.top.reward if self.top else -np.inf):
            fate = "rejected"
            made = None
            worth = np.nan
        else:
            fate = "measured"
            made = self.probe(policy)
            reference = self.found.trials[0].measurement if self.found.trials else made
            worth = reward(self.probe.objective, made.value, reference.value)
        best = float(np.nanmax([worth, self.found.trials[-1].best if self.found.trials else worth]))
        trial = Trial(t, np.asarray(asked), u, policy, fate, predicted, worth, made, best)
        self.found.trials.append(trial)
        if self.sampler is not None and made is not None:
            self.sampler.tell(u, worth)
        if made is not None and (t > 0 or self.tuner.start) and (self.top is None or worth > self.top.reward):
            self.top = trial
        if fate == "measured":
            self.known[policy] = trial
            if self.model is not None:
                row = sample(u, self.names, made, self.found.trials[0].measurement, self.probe.objective)
                self.model.update(row, self.tuner.batch)
        self.found.trials[-1] = replace(trial, fixed=tuple(self.names[i] for i in sorted(self.fixed)))

    def _given(self, u) -> np.ndarray:
        """Coordinates (n, k), or (k,) of one, and the context in the model's order: (n, k + c)."""
        u = np.atleast_2d(u)
        context = context_of(self.probe.objective, self.found.trials[0].measurement)
        return np.hstack([u, np.tile([*context.values()], (len(u), 1))])

    def _project(self, asked) -> tuple:
        """Policy that the constraints allow, those of the policy and those of the scope, and its coordinates (k,)."""
        axes = list(self.fixed)
        values = list(self.fixed.values())
        for _ in range(1 + len(self.space)):
            asked = np.array(asked, float)
            asked[axes] = values
            policy, asked = self.space.project(asked)
            if np.allclose(asked[axes], values):
                break
        return policy, asked

    def _judged(self, asked) -> tuple:
        """Coordinates (k,) of a question, projected; its policy, and the reward that the model predicts.

        What-if analysis of the sampled values comes before: axes that are predicted to spoil the best are held there in this round. All
        is predicted at once; the question itself anew, if others are held than in the round before.
        """
        policy, u = self._project(asked)
        if not self.judges:
            return u, policy, np.nan
        if self.tuner.scope == "options" and None not in (self.sampler, self.top):
            rows = np.tile(self.top.u, (2 + len(u), 1))
            np.fill_diagonal(rows, asked)  # a row for each axis; then the best itself, and what is asked
            rows[-1] = u
            seen = self.model.predict(self._given(rows)).mean
            spoils = np.exp(seen[:-2] - seen[-2]) < self.tuner.gamma
            held = {int(i): float(self.top.u[i]) for i in np.flatnonzero(spoils)}
            if held == self.fixed:
                return u, policy, float(np.exp(seen[-1]))
            self.fixed = held
            policy, u = self._project(asked)
        return u, policy, float(np.exp(self.model.predict(self._given(u)).mean[0]))
