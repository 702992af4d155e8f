"""`gpuschedlab tune`: tune a policy while it runs (AutoSched), and compare with leaving it alone."""

import difflib
import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from gpuschedlab.autosched.decision_rows import HOUR, Rows, header
from gpuschedlab.cli.parser import add_json, policies_help, positive, whole
from gpuschedlab.cli.progress import Progress
from gpuschedlab.cli.recipe_words import CLUSTER, DAY, add_scenario, one_in, recipe_in
from gpuschedlab.cli.text import as_json, grid, intake_line, intake_of
from gpuschedlab.errors import EstimatorError
from gpuschedlab.parse import contenders_of
from gpuschedlab.traces.generator.presets import presets

COMPARED = ("default", "selftune", "search", "autosched")
BELIEVED = "believed"
ON_A_LOG = ("search", BELIEVED, "default", "selftune")
"""Methods where the trace shows no mechanisms, and where it does: there search on the simulator that has them comes first, the winner of
`BENCH=cause`, and beside it the same search on the simulator as the options say."""
SAME = (
    "policy", "on", "trace", "days", "jobs", "load", "seed", "history", "cluster", "mtbf", "mttr", "speeds", "restart", "switch",
    "checkpoint", "estimator", "rounds", "threshold", "horizon",
)  # fmt: skip
"""Options that a resumed run must share."""
CASE = {"days": 3.0, "jobs": 2000, "load": 1.1, "history": "7", "cluster": "32x8", "restart": 60.0}
"""Used where none of these is given: more work than the cluster can do at once, so that knobs matter."""
INSTANTS = 16
"""Instants of the history at which the offline phase measures configurations."""


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    parser.add_argument("--policy", default="tiresias", metavar="POLICY", help="policy to tune (default tiresias)")
    parser.add_argument(
        "--site",
        metavar="SITE.toml",
        help="instead: search a site's own knobs and limits on the first half of its log, judge on the rest, and print lines of its "
        "slurm.conf (with --rounds, --seed and --json alone)",
    )
    parser.description += (
        "\n\nWithout options of the trace and the cluster: three generated days of a busy cluster (2,000 jobs, load 1.1, 32x8 "
        "GPUs, 60 s a restart),\nafter a history of seven. Of a log with attempts (slurm:sacct.txt, of sacct -D) restart delay, "
        "placement, failures and prediction\nerror are estimated first, and printed; what the log does not show stays as options say."
    )
    parser.add_argument("--hours", type=positive, metavar="H", help="length of the trace (instead of --days)")
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="default (never tuned), fixed (best configuration on this very trace), search (by search alone; of a log with attempts on "
        "the mechanisms that it shows), believed (the same on mechanisms as the options say), autosched (its causal model asked in every "
        f"round), thesis (as printed), selftune, optimal (default: {' '.join(COMPARED)}; of a log with attempts {' '.join(ON_A_LOG)})",
    )
    add_scenario(parser)
    group = parser.add_argument_group("tuning")
    group.add_argument("--rounds", type=whole, metavar="T", help="rounds of a wide search (default: the method's)")
    group.add_argument(
        "--threshold", type=positive, metavar="X", help="gain above which to switch (default: the method's)"
    )
    group.add_argument("--horizon", type=positive, metavar="H", help="hours of the forecast (default: the method's)")
    group = parser.add_argument_group("answer")
    group.add_argument("--out", default="runs/tune", metavar="FOLDER", help="where decisions are kept (runs/tune)")
    group.add_argument("--resume", action="store_true", help="resume a stopped run with the same options")
    add_json(group)


def tune(args) -> int:
    """Run the loops, print decisions as they are taken and the comparison; Ctrl-C keeps what was decided."""
    if args.site:
        return _tune_site(args)
    methods = list(dict.fromkeys(args.methods or (*COMPARED, BELIEVED)))
    _check_methods(methods)
    _check_kept(args, methods)
    _settle(args)
    progress = Progress(sys.stderr if args.json else sys.stdout)
    length = f", {args.days * 24:g} h" if args.days else ""
    load = f", load {args.load:g}" if args.load else ""
    named = args.cluster or (CLUSTER if not args.on and args.trace in presets() else "")
    cluster = f" cluster {named}," if named else ""
    progress.say(f"tuning {args.policy} on {args.on or args.trace}{length}{load},{cluster} seed {args.seed}")
    try:
        loops = _prepared(args, methods, progress)
        methods = loops.methods
        rows = [loops.run(method) for method in methods]
        loops.play_promises()
        for row in rows:
            row |= loops.records_of(row["method"], methods[0])
    except KeyboardInterrupt:
        words = f"decisions are in {args.out}. Add --resume to continue."
        words = words if _journals(args, methods) else "no decision was taken."
        print(f"gpuschedlab: interrupted; {words}", file=sys.stderr)
        return 130
    policy = loops.space.policy
    flips = ""
    if loops.twin:
        with progress.phase("the choice within what the log leaves open"):
            flips = loops.twin.flips(loops.last)[1]
    if args.json:
        calibration = {}
        if loops.twin:
            calibration = {"mechanisms": loops.twin.frame.to_dicts(), "choice": flips}
            calibration["misfits"] = [misfit._asdict() for misfit in loops.twin.misfits]
        found = {"policy": policy.name, "objective": policy.goals[0], "methods": rows} | calibration
        print(as_json(found | intake_of(loops.about)))
    else:
        parts = [_table(rows, policy.goals[0]), *loops.outcome(methods), flips]
        print("\n" + "\n".join(part for part in parts if part) + intake_line(loops.about))
    return 0


def _tune_site(args) -> int:
    """Print what a site's own knobs could gain, beside what came of it, and the lines that put it in force."""
    from gpuschedlab.papers.clusters.command import laid_out, wrapped
    from gpuschedlab.papers.clusters.recipe import Site
    from gpuschedlab.papers.clusters.site_tuning import ROUNDS, tune_site

    progress = Progress(sys.stderr if args.json else sys.stdout)
    rounds = args.rounds or ROUNDS
    site = Site(args.site)
    if "started" in site.log.trace.columns:  # what its files do not name, its log may show
        site = site.completed
    with progress.phase("searching on the first half of the log", rounds, "settings") as advance:
        found = tune_site(site, rounds, args.seed, advance)
    if args.json:
        rest = {"interval": found.interval, "miss": found.miss, "tried": found.tried, "changes": f"{found.back}"}
        print(as_json({"sentence": found.sentence, "rows": found.table.to_dicts()} | rest))
        return 0
    print(f"{wrapped(found.sentence)}\n\nmean wait (s)\n{laid_out(found.table)}")
    if found.changed:
        print(f"\nto put it in force\n{found.back}")
    return 0


def _check_methods(methods: list[str]) -> None:
    """Raise EstimatorError for the first method that there is not; what has long been there needs no import."""
    if set(methods) <= {*COMPARED, BELIEVED, "fixed"}:
        return
    from gpuschedlab.autosched import METHODS

    known = ("default", "fixed", BELIEVED, *METHODS)
    if wrong := [m for m in methods if m not in known]:
        near = difflib.get_close_matches(wrong[0], known, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise EstimatorError(f"--methods {wrong[0]}: expected some of {', '.join(known)}.{hint}")


def _journals(args, methods: list[str]) -> list[Path]:
    """Journals of these methods that there are."""
    return [path for m in methods if (path := Path(args.out) / f"{m}.jsonl").exists()]


def _check_kept(args, methods: list[str]) -> None:
    """Raise EstimatorError where there is nothing to resume."""
    if args.resume and not _journals(args, methods):
        tuned = " or ".join(f"{m}.jsonl" for m in methods if m not in ("default", "fixed"))
        expected = f"expected {tuned}" if tuned else "nothing is kept of methods that do not tune on the way"
        raise EstimatorError(
            f"--resume: found no decisions in {args.out}; {expected}. Leave --resume out to begin anew, or give the folder "
            "of the stopped run: --out FOLDER."
        )


def _settle(args) -> None:
    """Fill in the length in days, and the case where none is given."""
    if args.hours:
        args.days = args.hours * HOUR / DAY
    if args.on is None and args.trace == "venus" and all(getattr(args, name) is None for name in CASE):
        for name, value in CASE.items():
            setattr(args, name, value)


def _prepared(args, methods: list[str], progress: Progress) -> "_Loops":
    """The trace is read, and checked to hold what the methods learn from."""
    with progress.phase("loading the simulator"):
        from gpuschedlab.autosched import METHODS

        policies = contenders_of([args.policy])
    with progress.phase("reading the trace"):
        recipe = recipe_in(args)
        if "warm" in recipe.knobs:  # forecasts are made of what a controller has seen from the beginning on
            recipe = recipe.with_knobs(warm=0.0)
        scenario = recipe(args.seed)
        about = recipe.about(scenario)
        found = None if args.on else _twin(args, scenario, progress)
        believed = scenario
        scenario = found.scenario if found else scenario
        _, policy, scenario = one_in(policies, scenario)
        believed = one_in(policies, believed)[2]
    methods = _offered(args.methods, found)
    progress.say(f"methods: {', '.join(methods)}")
    causal = [m for m in methods if m in METHODS and METHODS[m].tuner.causal]
    if causal and (scenario.history is None or not scenario.history.height):
        raise EstimatorError(
            f"--methods {causal[0]}: found no history to learn from; expected some. Give --history DAYS, which are cut from the "
            "beginning of the trace, or --history FILE; or other --methods, such as default selftune."
        )
    loops = _Loops(args, scenario, policy, progress, about, found)
    loops.methods = methods
    loops.believed = believed
    return loops


def _offered(asked: list[str] | None, twin) -> list[str]:
    """Methods that are played: those asked for, or those of a trace such as this one.

    Raises
    ------
    EstimatorError
        A search on believed mechanisms is asked for where the trace shows none to differ from.
    """
    if asked is None:
        return list(COMPARED if twin is None else ON_A_LOG)
    if BELIEVED in asked and twin is None:
        raise EstimatorError(
            f"--methods {BELIEVED}: found a trace that shows no mechanisms; expected a log with attempts, such as slurm:FILE of sacct -D. "
            "Here every method simulates the mechanisms as the options say: leave it out."
        )
    return list(dict.fromkeys(asked))


def _twin(args, scenario, progress: Progress):
    """Twin of a log that has the attempts of its jobs, whose mechanisms are printed; None of other traces."""
    from gpuschedlab.autosched import twin
    from gpuschedlab.traces.intake.read import taken_of

    if "started" not in scenario.trace.columns:
        progress.say(
            "mechanisms as believed: found no attempts in this trace; expected those of a log, such as slurm:FILE of sacct -D. A generated "
            "trace behaves as it is believed to, so that a calibrated simulator could gain nothing."
        )
        return None
    settings = [word for word in args.set if not word.startswith("attempts=")]
    try:
        found = twin(taken_of(args.trace, [*settings, "attempts=each"])[0].trace, scenario)
    except EstimatorError as error:
        progress.say(f"mechanisms as believed: {error}")
        return None
    lines = [f"mechanism {m.words}" for m in found.mechanisms.values()]
    lines += [f"not explained: {misfit.words}" for misfit in found.misfits]
    progress.say("\n".join(lines))
    return found


class _Loops:
    """The same trace under one method after the other."""

    def __init__(self, args, scenario, policy, progress: Progress, about: dict, twin=None):
        from gpuschedlab import autosched

        self.lab = autosched
        self.args = args
        self.scenario = scenario
        self.about = about
        self.space = autosched.Space(scenario.fitted(policy))
        self.history = scenario.history
        self.progress, self.end = progress, float(scenario.trace["submit"].max())
        self.twin = twin
        self.methods: list[str] = []
        self.believed = scenario
        self.last = {}
        self.runs = {}
        self.switches = []
        self.promises = []
        self._headed = False
        known = 0 if self.history is None else self.history.height
        jobs = f"{scenario.trace.height:,} jobs on {scenario.cluster}; history: {known:,} jobs"
        progress.say(f"{jobs}; knobs: {', '.join(self.space.names)}")

    def as_shown(self, scenario):
        """A scenario with the mechanisms that the log shows; failures are drawn anew, so that none to come is known."""
        shown = self.twin.at(self.as_believed(scenario).replace(seed=scenario.seed + 1))
        trace = shown.trace.with_columns(scenario.trace["duration"])  # as forecast: the log's own is not known yet
        return shown.replace(trace=trace, seed=scenario.seed)

    def as_believed(self, scenario):
        """A scenario with mechanisms as the options say, in the place of those that the log shows."""
        names = ("cluster", "delays", "speeds", "estimator")
        trace = scenario.trace.drop("restart", "switch", strict=False)
        return scenario.replace(trace=trace, **{name: getattr(self.believed, name) for name in names})

    @property
    def _horizon(self) -> dict:
        """Seconds of the forecast, where they are asked for."""
        return {} if self.args.horizon is None else {"horizon": self.args.horizon * HOUR}

    @cached_property
    def _samples(self):
        """Measurements of the offline phase."""
        given = {"instants": INSTANTS} | self._horizon
        with self.progress.phase("offline phase: measuring on the history", INSTANTS, "instants") as advance:
            return self.lab.gather(self.scenario.past, self.space, **given, progress=advance)

    def model(self):
        """A causal model as the offline phase leaves it; a fresh one for each method."""
        samples = self._samples
        with self.progress.phase(f"learning the causal model from {samples.height} measurements"):
            return self.lab.train(samples, self.space, rng=self.scenario.seed)

    @cached_property
    def hints(self) -> tuple:
        """Best configurations of the history, if there is one; the same for each method."""
        return self.leaders(self.scenario)

    def leaders(self, scenario) -> tuple:
        """Best configurations of a scenario's history; none without one."""
        if scenario.history is None or not scenario.history.height:
            return ()
        with self.progress.phase("offline phase: searching the best configuration of the history"):
            return self.lab.best_fixed(scenario.past, self.space, searches=1).leaders()

    def run(self, method: str) -> dict:
        """One row of the comparison."""
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
        if not self.runs and (room := room_in_words(played, self.scenario.speeds, method)):
            self.progress.say(room)
        self.runs[method] = played
        self.switches += [(method, decision) for decision in decisions if decision.switched]
        return {
            "method": method,
            **worth,
            "decisions": len(decisions),
            "switches": sum(d.switched for d in decisions),
            "measured": sum(d.measured for d in decisions),
            "seconds": sum(d.seconds for d in decisions),
            "knobs": simulation.policy.knobs,
        }

    def play_promises(self) -> None:
        """Play on from each switch with it and without it, once all loops are over."""
        from gpuschedlab.autosched.realised_gains import Promise

        if not self.switches:
            return
        with self.progress.phase("what came of each switch", len(self.switches), "switches") as advance:
            for count, (method, decision) in enumerate(self.switches, 1):
                self.promises.append(Promise.of(method, decision))
                advance(count)

    def records_of(self, method: str, base: str) -> dict:
        """Plain values of a method's switches, and of its whole gain over the first method."""
        from gpuschedlab.autosched.realised_gains import gain_of_loop

        record = {"promises": [promise.record() for promise in self.promises if promise.method == method]}
        if method == base:
            return record
        gain = gain_of_loop(self.runs[base], self.runs[method])
        ends = {"ratio": gain.ratio, "low": gain.low, "high": gain.high}
        ends = {name: None if value != value else value for name, value in ends.items()}
        return record | {f"against {base}": ends | {"jobs": gain.jobs, "verdict": gain.verdict}}

    def outcome(self, methods: list[str]) -> list[str]:
        """What is said below the table: the whole gain of each method, each switch, and whether there was anything to gain."""
        from gpuschedlab.autosched.realised_gains import gain_of_loop, loop_in_words, promises_table, room_in_words

        base, *tuned = methods
        gains = [loop_in_words(name, base, gain_of_loop(self.runs[base], self.runs[name])) for name in tuned]
        switches = promises_table(self.promises, self.space.policy.goals[0])
        if switches:
            switches = f"\n{switches}"
        return [*gains, switches, room_in_words(self.runs[base], self.scenario.speeds, base)]

    def _loop(self, method: str, simulation) -> list:
        loop = self._attached(method, simulation)
        if records := loop.journal.records:
            with self.progress.phase(f"{method}: repeating {len(records)} decisions that are kept"):
                loop.resume(records)
            self.progress.say(f"{method}: resumed after {len(loop.journal.records)} decisions")
        if not self._headed:
            self.progress.say("\n" + header())
            self._headed = True
        tuned = {k: v for k, v in simulation.policy.knobs.items() if k in self.space.names}
        rows = Rows(method, tuned)
        with self.progress.phase(method, self.end / HOUR, "h", announced=False) as advance:
            for decision in loop.steps(self.end):
                for row in rows.add(decision):
                    self.progress.say(row)
                if decision.switched:
                    self.progress.say(f"  {decision.sentence}")
                advance(decision.now / HOUR)
        for row in rows.rest():
            self.progress.say(row)
        return loop.decisions

    def _attached(self, method: str, simulation):
        """Loop around a simulation, with its journal."""
        from gpuschedlab.sweep.identity import digest

        args = self.args
        path = Path(self.args.out) / f"{method}.jsonl"
        name = "search" if method == BELIEVED else method
        how = self.lab.METHODS[name]
        most = min(how.tuner.check, args.rounds or 0)  # a check is no longer than a wide search
        model = self.model() if how.tuner.causal else None
        # Files may change, and so may a policy of one's own.
        content = digest([self.scenario, self.space.policy])[:8]
        identity = {"method": method, "what files and classes hold": content}
        identity |= {k: str(getattr(args, k)) for k in SAME}
        belief = {"history": self.history}
        if self.twin:
            belief["believed"] = self.as_shown
        hints = self.hints if how.hinted else ()
        if method == BELIEVED:
            belief = {"history": self.believed.history, "believed": self.as_believed}
            hints = self.leaders(self.believed)
        return self.lab.attach(
            name,
            simulation,
            **belief,
            model=model,
            tuner=how.tuner if args.rounds is None else replace(how.tuner, iterations=args.rounds, check=most),
            hints=hints,
            **self._horizon,
            seed=self.scenario.seed,
            journal=self.lab.Journal(path, identity, resume=args.resume and path.exists()),
            **({} if args.threshold is None else {"threshold": args.threshold}),
        )


def _table(rows: list[dict], objective: str) -> str:
    """The comparison: objectives, decisions, and what they cost."""
    first = next((row for row in rows if row["method"] == "default"), rows[0])
    base = first[objective]
    higher = objective in ("fair", "utilisation")
    ratio = [(r[objective] / base if higher else base / r[objective]) if base else 1.0 for r in rows]
    columns = {
        "method": [r["method"] for r in rows],
        "average JCT (h)": [f"{r['jct'] / HOUR:.3f}" for r in rows],
        "rho <= 1": [f"{r['fair']:.1%}" for r in rows],
        f"against {first['method']}": [f"{x:.3f}x" for x in ratio],
        **{name: [str(r[name]) for r in rows] for name in ("decisions", "switches", "measured")},
        "s taken": [f"{r['seconds']:.1f}" for r in rows],
    }
    return grid([[name, *cells] for name, cells in columns.items()])
