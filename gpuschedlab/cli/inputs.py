"""Scenarios and policies from the options that the commands share: trace, history, cluster, speeds, knowledge."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from gpuschedlab.cli.parser import positive, seconds, whole
from gpuschedlab.errors import EstimatorError, TraceError
from gpuschedlab.parse import estimator_of, with_words, word_of
from gpuschedlab.traces.generator.presets import presets

if TYPE_CHECKING:
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.scenarios import Recipe
    from gpuschedlab.sim import Policy, Scenario
    from gpuschedlab.traces import Intake

WEEK = 7.0
DAY = 86_400.0
JOBS_A_WEEK = 10_000
LOAD = 0.9
CLUSTER = "70x8"


def add_scenario(parser):
    """Add the options of trace, cluster, speeds, delays and knowledge."""
    group = parser.add_argument_group("trace")
    group.add_argument(
        "--trace",
        default="venus",
        metavar="TRACE",
        help="a preset to generate (see `gpuschedlab trace list`), lpt-low, lpt-medium or lpt-high (prompt tuning), "
        "FILE.parquet, FORMAT:PATH of a log (slurm:sacct.txt), a "
        "file of your own, csv:FILE[:COLUMN=NAME,...,units=h], or SPEC.toml (default venus)",
    )
    group.add_argument(
        "--recipe",
        metavar="NAME[:KNOB=VALUE,...]",
        help="a scenario by its recipe, in the place of the options of trace, cluster and jobs: smallcluster, week, ..., or "
        "FILE.py:CLASS",
    )
    add_settings(group)
    add_size(group)
    group.add_argument(
        "--history",
        metavar="DAYS|FILE",
        help="what estimators learn from: days before the trace, generated or cut from its first job on, or a trace file "
        "(default: as many days as the trace has if it is generated, otherwise none)",
    )
    group = parser.add_argument_group("cluster and jobs")
    group.add_argument(
        "--cluster", default=CLUSTER, help=f"NODESxGPUS[:TYPE],... (default {CLUSTER}; of lpt-...: 4x8:a100-80gb)"
    )
    group.add_argument("--mtbf", type=seconds, metavar="S", help="mean s between failures of a node (default: none)")
    group.add_argument("--mttr", type=seconds, default=3600.0, metavar="S", help="mean s of a repair (default 3600)")
    group.add_argument(
        "--speeds",
        choices=("default", "none"),
        default="default",
        help="whether placement, GPU type and sharing change a job's speed by its model (default), or nothing does",
    )
    group.add_argument("--restart", type=seconds, default=0.0, metavar="S", help="s lost at each restart (default 0)")
    group.add_argument("--switch", type=seconds, default=0.0, metavar="S", help="s lost at each start (default 0)")
    group.add_argument("--checkpoint", type=seconds, metavar="S", help="s between checkpoints (default: at preemption)")
    group.add_argument(
        "--estimator",
        metavar="WORD",
        help="what policies know of durations: oracle (the truth), history, runtime, noisy:error=0.3, FILE.py:CLASS "
        "(default: runtime where there is a history, otherwise oracle)",
    )


def add_settings(group):
    """Add the option that sets a recipe's knobs, or says how a log is read."""
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a knob of the recipe, or how a log is read: columns.gpus='a * b', units.duration=h, zone=UTC; once for each",
    )


def add_size(group):
    """Add the options that say how much of a trace."""
    group.add_argument(
        "--days", type=positive, metavar="D", help="its length (default 7; of a file, from its first job on: all)"
    )
    group.add_argument("--jobs", type=whole, metavar="N", help="jobs, about (default 10,000 a week; of a file: all)")
    group.add_argument(
        "--load",
        type=positive,
        metavar="X",
        help="GPU-time requested over that of the cluster (default 0.9; of a file: as is)",
    )
    group.add_argument("--seed", type=int, default=0, help="seed (default 0)")


def read_scenario(args) -> tuple[Scenario, dict[str, str]]:
    """Load or generate what the options name: a scenario, and its `trace`, `history` and `estimator` in words.

    Raises
    ------
    TraceError, ClusterError, EstimatorError
        Something cannot be read or does not fit.
    """
    from gpuschedlab.sim import Scenario

    if recipe := recipe_in(args):
        return _followed(recipe, args)
    cluster = cluster_of(args)
    trace, history, about = trace_of(args, cluster.total_gpus)
    if args.mtbf:
        cluster = cluster.with_failures(args.mtbf, args.mttr, float(trace["submit"].max()) + 30 * DAY, args.seed)
    about["estimator"] = args.estimator or ("oracle" if history is None else "runtime")
    scenario = Scenario(
        trace,
        cluster,
        history=history,
        estimator=estimator_of(about["estimator"]),
        until=getattr(args, "until", None),
        seed=args.seed,
        **pace_of(args),
    )
    return scenario, about


def cluster_of(args) -> Cluster:
    """Cluster that --cluster names; where it names none, that of the log or its spec, if they have one."""
    from gpuschedlab.cluster import Cluster

    named = Cluster.parse(args.cluster)
    if args.cluster != CLUSTER or args.trace in presets():
        return named
    return log_of(args.trace, tuple(args.set)).cluster or named


def pace_of(args) -> dict:
    """Speeds and delays of a scenario."""
    from gpuschedlab.sim import Delays
    from gpuschedlab.speeds import default_speeds

    delays = Delays(restart=args.restart, switch=args.switch, checkpoint=args.checkpoint)
    return {"speeds": default_speeds if args.speeds == "default" else None, "delays": delays}


def recipe_in(args) -> Recipe | None:
    """Recipe that --recipe names, or --trace by a short word such as lpt-medium; none: the scenario is put together.

    Raises
    ------
    TraceError
        No such recipe, or --set without one.
    """
    word = args.recipe
    if word is None and not (args.trace in presets() or ":" in args.trace or Path(args.trace).exists()):
        from gpuschedlab.scenarios import aliases

        word = args.trace if args.trace in aliases() else None
    if word is None:
        if args.set and args.trace in presets():
            raise TraceError(f"--set {args.set[0]}: found no recipe; expected --recipe NAME, such as smallcluster.")
        return None
    pairs = dict(text.partition("=")[::2] for text in args.set)
    from gpuschedlab.scenarios import recipe_of

    recipe = with_words(recipe_of(word), pairs)
    if args.days and "minutes" in recipe.knobs:
        return recipe.with_knobs(minutes=max(1, round(args.days * DAY / 60)))
    return recipe.with_knobs(days=args.days) if args.days and "days" in recipe.knobs else recipe


def _followed(recipe: Recipe, args) -> tuple[Scenario, dict[str, str]]:
    """Scenario of a recipe: it has jobs, speeds, delays and, unless one is named, a cluster and an estimator of its own."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.estimators import Oracle

    names = ("history", "mtbf", "jobs", "load", "restart", "switch", "checkpoint")
    if given := [f"--{name}" for name in names if getattr(args, name)]:
        raise TraceError(
            f"recipe {word_of(recipe)}: found {given[0]}; expected none of {', '.join('--' + name for name in names)}: its "
            "jobs and delays are its own. Its knobs are " + ", ".join(recipe.knobs) + ": --set KNOB=VALUE."
        )
    own = {"estimator": estimator_of(args.estimator)} if args.estimator else {}
    own |= {"cluster": Cluster.parse(args.cluster)} if args.cluster != CLUSTER else {}
    scenario = recipe(args.seed).replace(until=getattr(args, "until", None), **own)
    knows = args.estimator or word_of(scenario.estimator or Oracle())
    summary = (type(recipe).__doc__ or "").strip().splitlines()[0].rstrip(".")
    about = f"{word_of(recipe)} (seed {args.seed}): {summary}"
    return scenario, {"trace": about, "history": "nothing", "estimator": knows}


def trace_of(args, gpus: int) -> tuple[pl.DataFrame, pl.DataFrame | None, dict[str, str]]:
    """Trace, history (or None), and both in words; loads refer to so many GPUs of the cluster."""
    from gpuschedlab.traces.intake.read import read_trace

    before = args.history
    try:
        days = float(before) if before and float(before) >= 0 else None
    except ValueError:  # a file
        days = None
    report = None
    if args.trace in presets():
        span = args.days or WEEK
        days = span if before is None else days or 0.0
        frame = _generated(args, span, days, gpus, args.load or LOAD)
        about = f"a generated trace like {args.trace} (seed {args.seed})"
        first = 0.0
    else:
        found, about = log_of(args.trace, tuple(args.set)), args.trace
        # A stored trace that was no log has nothing to report.
        frame, report = found.trace, found.report if found.report.format != "parquet" else None
        frame = _sized(frame, args, (days or 0.0), gpus)
        first = frame["submit"].min()  # a log may count from long before it
    history, words = None, "nothing"
    if days:
        frame, history = _parted(frame, first, days)
        words = f"{history.height:,} jobs of the {days:g} days before"
    elif before and days is None:
        history = read_trace(before)
        # Its clock is its own: it ends whole days before the trace.
        history = history.with_columns(pl.col("submit") - math.ceil((history["submit"].max() + 1) / DAY) * DAY)
        words = f"{history.height:,} jobs of {before}"
    return frame, history, {"trace": about, "history": words} | ({"intake": report} if report else {})


@lru_cache(maxsize=2)  # seeds of one command share it
def log_of(word: str, settings: tuple[str, ...]) -> Intake:
    """Intake of the log that a word names."""
    from gpuschedlab.traces.intake.read import intake_of

    return intake_of(word, settings)


def _generated(args, span: float, before: float, gpus: int, load: float) -> pl.DataFrame:
    """Generate `before` + `span` days; the last `span` of them have about the jobs and just the load requested."""
    from gpuschedlab.traces import generate

    wanted = args.jobs or max(1, round(JOBS_A_WEEK * span / WEEK))
    jobs = wanted * (span + before) / span
    # Weeks differ, so how many jobs the last days get is known only once they are made.
    for _ in range(2 if before else 1):
        frame = generate(args.trace, days=span + before, jobs=round(jobs), load=load, cluster_gpus=gpus, rng=args.seed)
        later = frame.filter(pl.col("submit") >= before * DAY)
        jobs *= wanted / max(later.height, 1)
    work = float((later["gpus"] * later["duration"]).sum())
    return frame.with_columns(pl.col("duration") * (load * gpus * span * DAY / work)) if work else frame


def _sized(frame: pl.DataFrame, args, before: float, gpus: int) -> pl.DataFrame:
    """Cut a trace from a file to the days and jobs requested after the history, and bring it to the load requested."""
    start = frame["submit"].min() + before * DAY
    if args.days:
        frame = frame.filter(pl.col("submit") < start + args.days * DAY)
    if args.jobs:
        frame = frame.head(int((frame["submit"] < start).sum()) + args.jobs)
    if args.load is None:
        return frame
    from gpuschedlab.traces import scale_load

    return scale_load(frame, load=args.load, cluster_gpus=gpus)


def _parted(frame: pl.DataFrame, first: float, days: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs submitted some days after the first (s) or later, and those before; the instant between is the zero of both."""
    cut = first + days * DAY
    old, new = frame.filter(pl.col("submit") < cut), frame.filter(pl.col("submit") >= cut)
    if old.is_empty() or new.is_empty():
        raise TraceError(
            f"--history: found {old.height:,} jobs before day {days:g} and {new.height:,} after it; expected some "
            "of both. Choose fewer days, or a longer trace."
        )
    return new.with_columns(pl.col("submit") - cut), old.with_columns(pl.col("submit") - cut)


def informed(policies: dict[str, tuple], scenario: Scenario) -> dict[str, tuple]:
    """The same `contenders_of`, once it is clear that their estimators, or the scenario's, have something to learn from.

    Raises
    ------
    EstimatorError
        An estimator has nothing to learn from.
    """
    for _, own in policies.values():
        estimator = own or scenario.estimator
        if scenario.history is None and estimator is not None and estimator.needs_history:
            raise EstimatorError(
                f"estimator {word_of(estimator)}: found no history to learn from; expected --history DAYS|FILE, or @oracle."
            )
    return policies


def one_in(policies: dict[str, tuple], scenario: Scenario) -> tuple[str, Policy, Scenario]:
    """Word, policy and scenario of the only one of some `contenders_of`: the scenario has its estimator."""
    ((word, (policy, own)),) = informed(policies, scenario).items()
    return word, policy, scenario if own is None else scenario.replace(estimator=own)
