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
        self.model = None
        if tuner.causal:
            self.model = model
        self.found = Tuning(space, probe.objective)
        self.names = [axis.name for axis in space.axes]
        self.known = {}
        self.fixed = {}
        self.sampler = None
        self.levels = [axis.levels for axis in space.axes]
        self.top: Trial | None = None
        self.judges = False  # whether the model has a say: from round 1 on

    def rounds(self, current, hints, iterations: int) -> Iterator[None]:
        """Measure the reference, the policy in force and the hints, then go through the rounds; yield after each."""
        for round_number, policy in enumerate((self.space.policy, current, *hints), start=-1 - len(hints)):
            coordinates = self.space.encode(policy)
            self.take(round_number, coordinates, coordinates, policy)
            yield
        self.judges = self.model is not None
        points = []
        alone = self.tuner.alone
        for round_number in range(1, iterations + 1):
            if round_number == alone + 1:
                points = self.spread(iterations - alone)
                if points:
                    self.sampler = None
            if points:
                point = points.pop(0)
            else:
                if self.sampler is None:
                    self.sampler = self._begun()
                point = self.sampler.ask()
            self.take(round_number, point, *self._judged(point))
            yield

    def _begun(self):
        """Return a sampler of `SAMPLERS` that starts at the best so far; without spread rounds, at the configuration in force."""
        begin_trial = self.found.trials[1]
        if self.tuner.spread:
            begin_trial = self.found.best
        return SAMPLERS[self.tuner.sampler](self.levels, self.rng, begin_trial.u, **self.tuner.options)

    def spread(self, iterations: int) -> list[np.ndarray]:
        """Return a list of coordinates (k,) all over the box: points of a Latin hypercube."""
        count = int(np.ceil(self.tuner.spread * iterations))
        plan = LatinHypercube(self.levels, self.rng, size=max(1, count))
        return [plan.ask() for _ in range(count)]

    def take(self, t: int, asked, u, policy, predicted: float = np.nan) -> None:
        """Lines 7 to 16 for one configuration, whose predicted reward is nan if no model judges."""
        earlier_trial = self.known.get(policy)
        exploit = self.rng.random() <= self.tuner.epsilon
        if earlier_trial is not None:
            fate = "known"
            measurement = earlier_trial.measurement
            worth = earlier_trial.reward
        elif self.judges and exploit and predicted <= self.tuner.gamma * self._best_reward():
            fate = "rejected"
            measurement = None
            worth = np.nan
        else:
            fate = "measured"
            measurement = self.probe(policy)
            worth = self._reward(measurement)
        best = worth
        if self.found.trials:
            best = np.nanmax([worth, self.found.trials[-1].best])
        trial = Trial(t, np.asarray(asked), u, policy, fate, predicted, worth, measurement, float(best))
        self.found.trials.append(trial)
        if measurement is not None:
            if self.sampler is not None:
                self.sampler.tell(u, worth)
            trial_counts = t > 0 or self.tuner.start
            if trial_counts and (self.top is None or worth > self.top.reward):
                self.top = trial
        if fate == "measured":
            self.known[policy] = trial
            if self.model is not None:
                row = sample(u, self.names, measurement, self.found.trials[0].measurement, self.probe.objective)
                self.model.update(row, self.tuner.batch)
        fixed = tuple(self.names[i] for i in sorted(self.fixed))
        self.found.trials[-1] = replace(trial, fixed=fixed)

    def _best_reward(self) -> float:
        """Reward of the best trial that counts; -inf before there is one."""
        if self.top is None:
            return -np.inf
        return self.top.reward

    def _reward(self, measurement) -> float:
        """Reward of a measurement, against the first one, which is the reference."""
        reference = measurement
        if self.found.trials:
            reference = self.found.trials[0].measurement
        return reward(self.probe.objective, measurement.value, reference.value)

    def _given(self, coordinates) -> np.ndarray:
        """Array (n, k + c) of coordinates (n, k), or (k,) of one, and the context in the model's order."""
        coordinates = np.atleast_2d(coordinates)
        context = context_of(self.probe.objective, self.found.trials[0].measurement)
        context_values = np.tile([*context.values()], (len(coordinates), 1))
        return np.hstack([coordinates, context_values])

    def _project(self, point) -> tuple:
        """Return a tuple: policy that the constraints of policy and scope allow, and its coordinates (k,)."""
        axes = list(self.fixed)
        fixed_values = list(self.fixed.values())
        for _ in range(1 + len(self.space)):
            held_point = np.array(point, float)
            held_point[axes] = fixed_values
            policy, point = self.space.project(held_point)
            if np.allclose(point[axes], fixed_values):
                break
        return policy, point

    def _judged(self, asked_point) -> tuple:
        """Return a tuple: coordinates (k,) of a question, projected; its policy; and the reward that the model predicts.

        What-if analysis of the sampled values comes before: axes that are predicted to spoil the best are held there in this round. All
        is predicted at once; the question itself anew, if others are held than in the round before.
        """
        policy, coordinates = self._project(asked_point)
        if not self.judges:
            return coordinates, policy, np.nan
        if self.tuner.scope == "options" and None not in (self.sampler, self.top):
            what_if_points = np.tile(self.top.u, (2 + len(coordinates), 1))
            # A row for each axis; then the best itself, and what is asked.
            np.fill_diagonal(what_if_points, asked_point)
            what_if_points[-1] = coordinates
            predicted = self.model.predict(self._given(what_if_points)).mean
            spoils = np.exp(predicted[:-2] - predicted[-2]) < self.tuner.gamma
            fixed = {int(i): float(self.top.u[i]) for i in np.flatnonzero(spoils)}
            if fixed == self.fixed:
                return coordinates, policy, float(np.exp(predicted[-1]))
            self.fixed = fixed
            policy, coordinates = self._project(asked_point)
        mean = self.model.predict(self._given(coordinates)).mean
        return coordinates, policy, float(np.exp(mean[0]))
