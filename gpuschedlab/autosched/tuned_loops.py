"""The loops of `gpuschedlab tune`: the same trace under one method after the other."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path

from gpuschedlab.autosched.decision_rows import HOUR, Rows, header
from gpuschedlab.cli.progress import Progress

BELIEVED = "believed"
"""Method that searches on mechanisms as the options say, beside one that has those of the log."""
SAME = (
    "policy", "on", "trace", "days", "jobs", "load", "seed", "history", "cluster", "mtbf", "mttr", "speeds", "restart", "switch",
    "checkpoint", "estimator", "rounds", "threshold", "horizon",
)  # fmt: skip
"""Options that a resumed run must share."""
INSTANTS = 16
"""Instants of the history at which the offline phase measures configurations."""


class Loops:
    """The same trace under one method after the other."""

    def __init__(self, args, scenario, policy, progress: Progress, about: dict, twin=None):
        from gpuschedlab import autosched

        self.lab = autosched
        self.args = args
        self.scenario = scenario
        self.about = about
        self.space = autosched.Space(scenario.fitted(policy))
        self.history = scenario.history
        self.progress = progress
        self.end = float(scenario.trace["submit"].max())
        self.twin = twin
        self.methods: list[str] = []
        self.believed = scenario
        self.last = {}
        self.runs = {}
        self.switches = []
        self.promises = []
        self._headed = False
        past_jobs = 0
        if self.history is not None:
            past_jobs = self.history.height
        jobs = f"{scenario.trace.height:,} jobs on {scenario.cluster}; history: {past_jobs:,} jobs"
        progress.say(f"{jobs}; knobs: {', '.join(self.space.names)}")

    def as_shown(self, scenario):
        """Return a `Scenario` with the mechanisms that the log shows; failures are drawn anew, so that none to come is known."""
        as_in_log = self.twin.at(self.as_believed(scenario).replace(seed=scenario.seed + 1))
        trace = as_in_log.trace.with_columns(scenario.trace["duration"])  # as forecast: the log's own is not known yet
        return as_in_log.replace(trace=trace, seed=scenario.seed)

    def as_believed(self, scenario):
        """Return a `Scenario` with mechanisms as the options say, in the place of those that the log shows."""
        part_names = ("cluster", "delays", "speeds", "estimator")
        trace = scenario.trace.drop("restart", "switch", strict=False)
        return scenario.replace(
            trace=trace, **{part_name: getattr(self.believed, part_name) for part_name in part_names}
        )

    @property
    def _horizon(self) -> dict:
        """Dict with the seconds of the forecast, if they are asked for; else empty."""
        if self.args.horizon is None:
            return {}
        return {"horizon": self.args.horizon * HOUR}

    @cached_property
    def _samples(self):
        """Frame of the measurements of the offline phase."""
        with self.progress.phase("offline phase: measuring on the history", INSTANTS, "instants") as advance:
            return self.lab.gather(self.scenario.past, self.space, instants=INSTANTS, **self._horizon, progress=advance)

    def model(self):
        """Return a `CausalModel` as the offline phase leaves it; a fresh one for each method."""
        samples = self._samples
        with self.progress.phase(f"learning the causal model from {samples.height} measurements"):
            return self.lab.train(samples, self.space, rng=self.scenario.seed)

    @cached_property
    def hints(self) -> tuple:
        """Tuple of the best configurations of the history, the same for each method; empty without a history."""
        return self.leaders(self.scenario)

    def leaders(self, scenario) -> tuple:
        """Return the best configurations of a scenario's history as a tuple of policies; empty without a history."""
        if scenario.history is None or not scenario.history.height:
            return ()
        with self.progress.phase("offline phase: searching the best configuration of the history"):
            return self.lab.best_fixed(scenario.past, self.space, searches=1).leaders()

    def run(self, method: str) -> dict:
        """Play a method and return its row of the comparison as a dict."""
        policy = self.space.policy
        decisions = []
        if method == "fixed":
            with self.progress.phase("fixed: searching the best configuration on the trace itself"):
                search = self.lab.best_fixed(self.scenario, self.space)
            policy = search.best.policy
            self.progress.say(f"fixed: {search.measured} configurations measured")
        simulation = self.scenario.simulation(policy)
        if method == BELIEVED or method in self.lab.METHODS:
            decisions = self._loop(method, simulation)
        with self.progress.phase(f"{method}: running the trace to its end"):
            worth = self.lab.score(simulation)
        self.last[method] = simulation.policy
        from gpuschedlab.autosched.realised_gains import room_in_words

        played = simulation.result()
        if method == self.base:
            no_room_sentence = room_in_words(played, self.scenario.speeds, method)
            if no_room_sentence:
                self.progress.say(no_room_sentence)
        self.runs[method] = played
        self.switches += [(method, decision) for decision in decisions if decision.switched]
        return {
            "method": method,
            **worth,
            "decisions": len(decisions),
            "switches": sum(loop_decision.switched for loop_decision in decisions),
            "measured": sum(loop_decision.measured for loop_decision in decisions),
            "seconds": sum(loop_decision.seconds for loop_decision in decisions),
            "knobs": simulation.policy.knobs,
        }

    @property
    def base(self) -> str:
        """Name of the method that the others are compared with: the default if it is played, or else the first."""
        if "default" in self.methods:
            return "default"
        return self.methods[0]

    def play_promises(self) -> None:
        """Play on from each switch with it and without it, once all loops are over."""
        from gpuschedlab.autosched.realised_gains import Promise

        if not self.switches:
            return
        with self.progress.phase("what came of each switch", len(self.switches), "switches") as advance:
            for promise_count, (method, decision) in enumerate(self.switches, 1):
                self.promises.append(Promise.of(method, decision))
                advance(promise_count)

    def records_of(self, method: str) -> dict:
        """Return a dict of plain values of a method's switches, and of its whole gain over `base`."""
        from gpuschedlab.autosched.realised_gains import gain_of_loop, without_nan

        record = {"promises": [promise.record() for promise in self.promises if promise.method == method]}
        base_method = self.base
        if method == base_method:
            return record
        gain = gain_of_loop(self.runs[base_method], self.runs[method])
        gain_record = without_nan({"ratio": gain.ratio, "low": gain.low, "high": gain.high})
        gain_record |= {"jobs": gain.jobs, "verdict": gain.verdict}
        return record | {f"against {base_method}": gain_record}

    def outcome(self) -> list[str]:
        """Return a list of lines below the table: the whole gain of each method over `base`, and each switch."""
        from gpuschedlab.autosched.realised_gains import gain_of_loop, loop_in_words, promises_table

        base_method = self.base
        tuned = [method for method in self.methods if method != base_method]
        gains = [
            loop_in_words(tuned_method, base_method, gain_of_loop(self.runs[base_method], self.runs[tuned_method]))
            for tuned_method in tuned
        ]
        switches = promises_table(self.promises, self.space.policy.goals[0])
        if switches:
            switches = f"\n{switches}"
        return [*gains, switches]

    def _loop(self, method: str, simulation) -> list:
        loop = self._attached(method, simulation)
        if records := loop.journal.records:
            with self.progress.phase(f"{method}: repeating {len(records)} decisions that are kept"):
                loop.resume(records)
            self.progress.say(f"{method}: resumed after {len(loop.journal.records)} decisions")
        if not self._headed:
            self.progress.say("\n" + header())
            self._headed = True
        tuned = {
            knob_name: knob_value
            for knob_name, knob_value in simulation.policy.knobs.items()
            if knob_name in self.space.names
        }
        decision_rows = Rows(method, tuned)
        with self.progress.phase(method, self.end / HOUR, "h", announced=False) as advance:
            for decision in loop.steps(self.end):
                for decision_line in decision_rows.add(decision):
                    self.progress.say(decision_line)
                if decision.switched:
                    self.progress.say(f"  {decision.sentence}")
                advance(decision.now / HOUR)
        for decision_line in decision_rows.rest():
            self.progress.say(decision_line)
        return loop.decisions

    def _attached(self, method: str, simulation):
        """Return the `Controller` around a simulation, with its journal."""
        from gpuschedlab.sweep.identity import digest

        args = self.args
        path = Path(self.args.out) / f"{method}.jsonl"
        method_name = method
        if method == BELIEVED:
            method_name = "search"
        tuning_method = self.lab.METHODS[method_name]
        tuner = tuning_method.tuner
        if args.rounds is not None:
            check = min(tuner.check, args.rounds)  # a check is no longer than a wide search
            tuner = replace(tuner, iterations=args.rounds, check=check)
        model = None
        if tuner.causal:
            model = self.model()
        # Files may change, and so may a policy of one's own.
        content = digest([self.scenario, self.space.policy])[:8]
        identity = {"method": method, "what files and classes hold": content}
        identity |= {k: str(getattr(args, k)) for k in SAME}
        belief = {"history": self.history}
        if self.twin:
            belief["believed"] = self.as_shown
        hints = ()
        if tuning_method.hinted:
            hints = self.hints
        if method == BELIEVED:
            belief = {"history": self.believed.history, "believed": self.as_believed}
            hints = self.leaders(self.believed)
        further = {}
        if args.threshold is not None:
            further["threshold"] = args.threshold
        return self.lab.attach(
            method_name,
            simulation,
            **belief,
            model=model,
            tuner=tuner,
            hints=hints,
            **self._horizon,
            seed=self.scenario.seed,
            journal=self.lab.Journal(path, identity, resume=args.resume and path.exists()),
            **further,
        )
