"""`gpuschedlab tune`: tune a policy while it runs (AutoSched), and compare with leaving it alone."""

import difflib
import sys
from pathlib import Path

from gpuschedlab.autosched.decision_rows import HOUR
from gpuschedlab.autosched.tuned_loops import BELIEVED, Loops
from gpuschedlab.cli.parser import add_json, policies_help, positive, whole
from gpuschedlab.cli.progress import Progress
from gpuschedlab.cli.recipe_words import CLUSTER, DAY, add_scenario, one_in, recipe_in
from gpuschedlab.cli.text import as_json, grid, intake_line, intake_of
from gpuschedlab.errors import EstimatorError
from gpuschedlab.parse import contenders_of
from gpuschedlab.traces.generator.presets import presets

COMPARED = ("default", "selftune", "search", "autosched")
ON_A_LOG = ("search", BELIEVED, "default", "selftune")
"""Methods where the trace shows no mechanisms, and where it does: there search on the simulator that has them comes first, the winner of
`BENCH=cause`, and beside it the same search on the simulator as the options say."""
CASE = {"days": 3.0, "jobs": 2000, "load": 1.1, "history": "7", "cluster": "32x8", "restart": 60.0}
"""Used where none of these is given: more work than the cluster can do at once, so that knobs matter."""


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
    """Run the loops, print decisions as they are taken and the comparison, and return the exit code: 0, or 130 after Ctrl-C.

    Ctrl-C keeps the decisions that were taken.
    """
    if args.site:
        return _tune_site(args)
    methods = list(dict.fromkeys(args.methods or (*COMPARED, BELIEVED)))
    _check_methods(methods)
    _check_kept(args, methods)
    _settle(args)
    progress = Progress(sys.stderr if args.json else sys.stdout)
    progress.say(_beginning(args))
    try:
        loops = _prepared(args, methods, progress)
        methods = loops.methods
        method_rows = [loops.run(method) for method in methods]
        loops.play_promises()
        for method_row in method_rows:
            method_row |= loops.records_of(method_row["method"])
    except KeyboardInterrupt:
        outcome = "no decision was taken."
        if _journals(args, methods):
            outcome = f"decisions are in {args.out}. Add --resume to continue."
        print(f"gpuschedlab: interrupted; {outcome}", file=sys.stderr)
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
        tuning_answer = {"policy": policy.name, "objective": policy.goals[0], "methods": method_rows} | calibration
        print(as_json(tuning_answer | intake_of(loops.about)))
    else:
        tuning_lines = [_table(method_rows, policy.goals[0], loops.base), *loops.outcome(), flips]
        print("\n" + "\n".join(tuning_line for tuning_line in tuning_lines if tuning_line) + intake_line(loops.about))
    return 0


def _beginning(args) -> str:
    """Text of the first line: the policy, the trace and the methods."""
    first_line = f"tuning {args.policy} on {args.on or args.trace}"
    if args.days:
        first_line += f", {args.days * 24:g} h"
    if args.load:
        first_line += f", load {args.load:g}"
    first_line += ","
    cluster = args.cluster
    if not cluster and not args.on and args.trace in presets():
        cluster = CLUSTER
    if cluster:
        first_line += f" cluster {cluster},"
    return f"{first_line} seed {args.seed}: {', '.join(args.methods or COMPARED)}"


def _tune_site(args) -> int:
    """Print what a site's own knobs could gain, the realised gain, and the lines that put it in force; return exit code 0."""
    from gpuschedlab.papers.clusters.command import laid_out, wrapped
    from gpuschedlab.papers.clusters.recipe import Site
    from gpuschedlab.papers.clusters.tuning.site_tuning import ROUNDS, tune_site

    progress = Progress(sys.stderr if args.json else sys.stdout)
    rounds = args.rounds or ROUNDS
    with progress.phase("searching on the first half of the log", rounds, "settings") as advance:
        tuning = tune_site(Site(args.site), rounds, args.seed, advance, as_written=False)
    if args.json:
        site_answer = {"sentence": tuning.sentence, "rows": tuning.table.to_dicts()}
        site_answer |= {"interval": tuning.interval, "miss": tuning.miss}
        site_answer |= {"tried": tuning.tried, "changes": f"{tuning.back}"}
        print(as_json(site_answer))
        return 0
    print(f"{wrapped(tuning.sentence)}\n\nmean wait (s)\n{laid_out(tuning.table)}")
    if tuning.changed:
        print(f"\nto put it in force\n{tuning.back}")
    return 0


def _check_methods(methods: list[str]) -> None:
    """Raise EstimatorError for the first method that does not exist; the older ones need no import."""
    if set(methods) <= {*COMPARED, BELIEVED, "fixed"}:
        return
    from gpuschedlab.autosched import METHODS

    method_names = ("default", "fixed", *METHODS, BELIEVED)
    unknown_methods = [method for method in methods if method not in method_names]
    if unknown_methods:
        near = difflib.get_close_matches(unknown_methods[0], method_names, 1)
        hint = ""
        if near:
            hint = f" Did you mean {near[0]}?"
        raise EstimatorError(f"--methods {unknown_methods[0]}: expected some of {', '.join(method_names)}.{hint}")


def _journals(args, methods: list[str]) -> list[Path]:
    """Return a list of the paths of these methods' journals that exist."""
    paths = [Path(args.out) / f"{method}.jsonl" for method in methods]
    return [path for path in paths if path.exists()]


def _check_kept(args, methods: list[str]) -> None:
    """Raise EstimatorError if there is nothing to resume."""
    if args.resume and not _journals(args, methods):
        tuned = " or ".join(f"{method}.jsonl" for method in methods if method not in ("default", "fixed"))
        expected_journal = "nothing is kept of methods that do not tune on the way"
        if tuned:
            expected_journal = f"expected {tuned}"
        raise EstimatorError(
            f"--resume: found no decisions in {args.out}; {expected_journal}. Leave --resume out to begin anew, or give the folder "
            "of the stopped run: --out FOLDER."
        )


def _settle(args) -> None:
    """Fill in the length in days, and the case if none is given."""
    if args.hours:
        args.days = args.hours * HOUR / DAY
    if args.on is None and args.trace == "venus" and all(getattr(args, option_name) is None for option_name in CASE):
        for option_name, value in CASE.items():
            setattr(args, option_name, value)


def _prepared(args, methods: list[str], progress: Progress) -> "Loops":
    """Read the trace, check that it holds what the methods learn from, and return the `Loops` of the methods."""
    with progress.phase("loading the simulator"):
        from gpuschedlab.autosched import METHODS

        policies = contenders_of([args.policy])
    with progress.phase("reading the trace"):
        recipe = recipe_in(args)
        if "warm" in recipe.knobs:  # forecasts are made of what a controller has seen from the beginning on
            recipe = recipe.with_knobs(warm=0.0)
        scenario = recipe(args.seed)
        about = recipe.about(scenario)
        twin = None
        if not args.on:
            twin = _twin(args, scenario, progress)
        believed = scenario
        if twin:
            scenario = twin.scenario
        _, policy, scenario = one_in(policies, scenario)
        believed = one_in(policies, believed)[2]
    methods = _offered(args.methods, twin)
    if not args.methods and twin:
        progress.say(f"of a log with attempts: {', '.join(methods)}")
    causal = [method for method in methods if method in METHODS and METHODS[method].tuner.causal]
    if causal and (scenario.history is None or not scenario.history.height):
        raise EstimatorError(
            f"--methods {causal[0]}: found no history to learn from; expected some. Give --history DAYS, which are cut from the "
            "beginning of the trace, or --history FILE; or other --methods, such as default selftune."
        )
    loops = Loops(args, scenario, policy, progress, about, twin)
    loops.methods = methods
    loops.believed = believed
    return loops


def _offered(asked_methods: list[str] | None, twin) -> list[str]:
    """Return a list of the methods that are played: those asked for, or those of a trace such as this one.

    Raises
    ------
    EstimatorError
        A search on believed mechanisms is asked for, and the trace shows none to differ from.
    """
    if asked_methods is None:
        if twin is None:
            return list(COMPARED)
        return list(ON_A_LOG)
    if BELIEVED in asked_methods and twin is None:
        raise EstimatorError(
            f"--methods {BELIEVED}: found a trace that shows no mechanisms; expected a log with attempts, such as slurm:FILE of sacct -D. "
            "Here every method simulates the mechanisms as the options say: leave it out."
        )
    return list(dict.fromkeys(asked_methods))


def _twin(args, scenario, progress: Progress):
    """Return the `Twin` of a log that has the attempts of its jobs, whose mechanisms are printed; None of other traces."""
    from gpuschedlab.autosched import twin
    from gpuschedlab.traces.intake.read import taken_of

    if "started" not in scenario.trace.columns:
        progress.say(
            "mechanisms as believed: found no attempts in this trace; expected those of a log, such as slurm:FILE of sacct -D. A generated "
            "trace behaves as it is believed to, so that a calibrated simulator could gain nothing."
        )
        return None
    settings = [setting for setting in args.set if not setting.startswith("attempts=")]
    try:
        log = taken_of(args.trace, [*settings, "attempts=each"])[0]
        calibrated = twin(log.trace, scenario)
    except EstimatorError as error:
        progress.say(f"mechanisms as believed: {error}")
        return None
    mechanism_lines = [f"mechanism {mechanism.words}" for mechanism in calibrated.mechanisms.values()]
    mechanism_lines += [f"not explained: {misfit.words}" for misfit in calibrated.misfits]
    progress.say("\n".join(mechanism_lines))
    return calibrated


def _table(method_rows: list[dict], objective: str, against: str) -> str:
    """Return the table of the comparison with one of the methods as text: objectives, decisions, and their cost."""
    base_objective = next(method_row[objective] for method_row in method_rows if method_row["method"] == against)
    higher = objective in ("fair", "utilisation")
    gain_ratios = [_ratio(method_row[objective], base_objective, higher) for method_row in method_rows]
    method_columns = {"method": [method_row["method"] for method_row in method_rows]}
    method_columns["average JCT (h)"] = [f"{method_row['jct'] / HOUR:.3f}" for method_row in method_rows]
    method_columns["rho <= 1"] = [f"{method_row['fair']:.1%}" for method_row in method_rows]
    method_columns[f"against {against}"] = [f"{gain_ratio:.3f}x" for gain_ratio in gain_ratios]
    for column_name in ("decisions", "switches", "measured"):
        method_columns[column_name] = [str(method_row[column_name]) for method_row in method_rows]
    method_columns["s taken"] = [f"{method_row['seconds']:.1f}" for method_row in method_rows]
    return grid([[column_name, *cells] for column_name, cells in method_columns.items()])


def _ratio(value: float, base_objective: float, higher: bool) -> float:
    """How many times as good as another a value of an objective is; 1 if that other is 0."""
    if not base_objective:
        return 1.0
    if higher:
        return value / base_objective
    return base_objective / value
