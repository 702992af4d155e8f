"""The words that commands share: options of a recipe, and the recipe, the policies and the estimators that they make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuschedlab.cli.parser import positive, seconds, whole
from gpuschedlab.errors import EstimatorError, TraceError
from gpuschedlab.knobs import texts_of, word_of
from gpuschedlab.traces.generator.presets import presets

if TYPE_CHECKING:
    from gpuschedlab.scenarios import Recipe
    from gpuschedlab.sim import Policy, Scenario

DAY = 86_400.0
CLUSTER = "70x8"
FIELDS = (
    *("days", "jobs", "load", "gpus", "cluster", "mtbf", "mttr", "speeds", "restart", "switch", "checkpoint"),
    "estimator",
)
"""Options that are words for the fields of these names."""


def add_scenario(parser):
    """Add the options of trace, cluster, speeds, delays and knowledge."""
    group = parser.add_argument_group("trace")
    group.add_argument(
        "--trace",
        default="venus",
        metavar="TRACE",
        help="a preset to generate (see `gpuschedlab trace list`), FILE.parquet, FORMAT:PATH of a log (slurm:sacct.txt), a "
        "file of your own, csv:FILE[:COLUMN=NAME,...,units=h], or SPEC.toml (default venus)",
    )
    group.add_argument(
        "--on",
        "--recipe",
        metavar="NAME[:KNOB=VALUE,...]",
        help="what is run, by its recipe, in the place of --trace: week:load=.9,cluster=70x8, smallcluster, ..., or "
        "FILE.py:CLASS; the other options are words for its knobs",
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
        "--cluster", help=f"NODESxGPUS[:TYPE],... (default {CLUSTER}, that of the log, or of the recipe)"
    )
    group.add_argument("--mtbf", type=seconds, metavar="S", help="mean s between failures of a node (default: none)")
    group.add_argument("--mttr", type=seconds, metavar="S", help="mean s of a repair (default 3600)")
    group.add_argument(
        "--speeds",
        choices=("default", "none"),
        help="whether placement, GPU type and sharing change a job's speed by its model (default), or nothing does",
    )
    group.add_argument("--restart", type=seconds, metavar="S", help="s lost at each restart (default 0)")
    group.add_argument("--switch", type=seconds, metavar="S", help="s lost at each start (default 0)")
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


def recipe_in(args) -> Recipe:
    """Return the `Recipe` that options name, or put together: a generated week of a preset, or the file of a trace."""
    from gpuschedlab.parse import with_words
    from gpuschedlab.scenarios import recipe_of, with_values
    from gpuschedlab.scenarios.week import FIGURES

    given_options = {
        option_name: value for option_name in FIELDS if (value := getattr(args, option_name, None)) is not None
    }
    if getattr(args, "history", None) is not None:
        given_options["before"] = args.history
    set_knobs = dict(set_option.partition("=")[::2] for set_option in args.set)
    named_recipe = named_in(args)
    if named_recipe:
        recipe = with_words(recipe_of(named_recipe), set_knobs)
        if "minutes" in recipe.knobs and "days" in given_options:
            given_options["minutes"] = max(1, round(given_options.pop("days") * DAY / 60))
    elif args.trace in presets():
        days = given_options.get("days", float(FIGURES["days"]))
        usual = {"days": days, "jobs": max(1, round(FIGURES["jobs"] * days / FIGURES["days"])), "before": str(days)}
        recipe = with_words(with_values(recipe_of(f"week:preset={args.trace},exact=true"), usual), set_knobs)
    else:
        recipe = replace(recipe_of("ownfile"), file=args.trace, settings=tuple(args.set))
    if unknown_options := [
        option_name
        for option_name in given_options
        if option_name not in {*recipe.knobs, *texts_of(recipe), "cluster", "estimator"}
    ]:
        option = "history" if unknown_options[0] == "before" else unknown_options[0]
        raise TraceError(
            f"recipe {word_of(recipe)}: found --{option}; expected none, as its jobs and delays are its own. Its knobs are "
            f"{', '.join(recipe.knobs)}: --set KNOB=VALUE."
        )
    return with_values(recipe, given_options)


def named_in(args) -> str | None:
    """Word of the recipe that is named, by --on, or by a short word such as lpt-medium in the place of a trace.

    None if there is none.
    """
    recipe_word = getattr(args, "on", None)
    trace = args.trace
    if recipe_word is not None or trace in presets() or ":" in trace or Path(trace).exists():
        return recipe_word
    from gpuschedlab.scenarios import aliases

    return trace if trace in aliases() else None


def informed(policies: dict[str, tuple], scenario: Scenario) -> dict[str, tuple]:
    """Return `policies`, the dict of `contenders_of`, once estimators, or the scenario's, have something to learn from."""
    for _, own_estimator in policies.values():
        estimator = own_estimator or scenario.estimator
        if scenario.history is None and estimator is not None and estimator.needs_history:
            raise EstimatorError(
                f"estimator {word_of(estimator)}: found no history to learn from; expected --history DAYS|FILE, or @oracle."
            )
    return policies


def one_in(policies: dict[str, tuple], scenario: Scenario) -> tuple[str, Policy, Scenario]:
    """Return a tuple: word, `Policy` and `Scenario` of the only one of some `contenders_of`; the scenario has its estimator."""
    ((policy_word, (policy, own_estimator)),) = informed(policies, scenario).items()
    return policy_word, policy, scenario if own_estimator is None else scenario.replace(estimator=own_estimator)
