"""Tuners compared on one trace, each tuning at whole hours and never at a burst."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.controller import HOUR
from gpuschedlab.autosched.decision import Decision
from gpuschedlab.autosched.methods import METHODS, attach, best_fixed
from gpuschedlab.autosched.tuner.offline import gather, train
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.times import mean_of
from gpuschedlab.sim.entry import scenario_of


class Contest:
    """Simulates a trace under several tuners at once, each with its own simulation.

    Parameters
    ----------
    scenario : Scenario
        Its history is on the clock of its trace (submission before 0); models are learnt from it. Its seed is that of all
        draws. Or trace and cluster, and further parts by name (`scenario_of`).
    policy : Policy
        Policy that all methods but "fixed" start with.
    others : tuple of str
        Tuners besides AutoSched: "default", "fixed" (`best_fixed` on this very trace), "once" (AutoSched's first switch, and no other
        after it), "search" (AutoSched's very search without the model), or methods of `METHODS`.
    tuner, instants, configurations, known : optional
        AutoSched's tuner, a `causal` one (default: that of `METHODS`); size of the offline phase (`gather`), or its number in an
        equal contest, as `known`: samples, hints, "fixed".

    Raises
    ------
    EstimatorError, TraceError
        There is no such tuner, AutoSched's is not causal, or the history does not fit (`attach`).
    """

    def __init__(
        self, scenario, policy, *more, others=("default", "fixed", "once", "selftune", "search"), tuner: Tuner | None = None,
        instants=10, configurations=20, known: tuple | None = None, **parts,
    ):  # fmt: skip
        tuner = tuner or METHODS["autosched"].tuner
        methods = ("default", "fixed", "once", *(m for m in METHODS if m != "autosched"))
        if isinstance(others, str) or any(n not in methods for n in others):
            raise EstimatorError(f"Contest: found others={others!r}; expected a tuple of some of {', '.join(methods)}.")
        if not tuner.causal:
            raise EstimatorError(f"Contest: found {tuner}; expected a causal tuner, such as Tuner.thesis().")
        scenario, policy = scenario_of(scenario, policy, *more, **parts)
        self.space = Space(scenario.fitted(policy))
        seed = scenario.seed
        find = partial(best_fixed, space=self.space, rounds=60, searches=1)
        if known is None:
            samples = gather(scenario.past, self.space, instants=instants, configurations=configurations)
            leaders = find(scenario.past).leaders()
            best = None
            if "fixed" in others:
                best = find(scenario).best.policy
            known = samples, leaders, best
        self.known = known
        self.samples, past, fixed = known
        self.loops = {}
        self.simulations = {}
        for method in (*others, "autosched"):
            first_policy = self.space.policy
            if method == "fixed":
                first_policy = fixed
            simulation = scenario.simulation(first_policy)
            self.simulations[method] = simulation
            if method in METHODS:
                tuners = {"autosched": tuner, "search": replace(tuner, causal=False)}
                own_tuner = tuners.get(method, METHODS[method].tuner)
                model = None
                if own_tuner.causal:
                    model = train(self.samples, self.space, rng=seed)  # each learns on its own
                history = scenario.history
                loop = attach(method, simulation, tuner=own_tuner, model=model, history=history, hints=past, seed=seed)
                self.loops[method] = loop
        self.loop = self.loops["autosched"]
        self.model = self.loop.model
        self.decisions = self.loop.decisions
        self.now = 0.0
        self.end = float(scenario.trace["submit"].max())
        self.tuning = None
        self.averages = {"time": [], **{n: [] for n in self.simulations}}

    @property
    def graph(self) -> CausalGraph:
        """`CausalGraph` of AutoSched's model."""
        return self.model.graph

    @property
    def forecast(self):
        """AutoSched's latest `Forecast`, before aggregation; None before its first decision."""
        return self.loop.latest

    @property
    def policy(self):
        """AutoSched's `Policy` in force."""
        return self.loop.simulation.policy

    def __repr__(self):
        return f"Contest({', '.join(self.simulations)}; {self.space.policy.name}, {self.now / HOUR:g} h of {self.end / HOUR:.0f})"

    def _tuned(self, loop) -> Iterator[Tuning | Decision]:
        """Let a loop decide; yield the search, a `Tuning`, and the `Decision` if it is AutoSched's."""
        for step in loop.trying():
            if loop is not self.loop:
                continue
            self.tuning = step
            if isinstance(step, Decision):
                self.tuning = step.tuning
            yield step

    def hour(self) -> Iterator[Tuning | Decision]:
        """Play one hour under all; yield AutoSched's search (`Tuning`) as it grows, its `Decision`, and pauses between others.

        If it is stopped before its end, the next call continues: a tuner that has decided does not decide again.
        """
        for loop in self.loops.values():
            if loop.last < self.now:
                yield from self._tuned(loop)
            yield self.tuning
        switch_times = [decision.now for decision in self.decisions if decision.switched]
        if "once" in self.simulations and switch_times == [self.now]:
            self.simulations["once"].switch(self.policy)
        for simulation in self.simulations.values():
            simulation.advance(self.now + HOUR)
            yield self.tuning
        self.now += HOUR
        self.averages["time"].append(self.now)
        for method, simulation in self.simulations.items():
            jobs = simulation.snapshot().jobs
            spent = (jobs["end"] - jobs["submit"])[jobs["done"]]
            self.averages[method].append(mean_of(spent))
