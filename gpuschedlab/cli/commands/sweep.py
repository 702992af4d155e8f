"""`gpuschedlab sweep`: run policies over knobs, traces, clusters and seeds; a stopped sweep resumes where it was."""

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpuschedlab.cli.parser import add_json, policies_help, whole
from gpuschedlab.cli.recipe_words import CLUSTER, add_scenario, named_in, recipe_in
from gpuschedlab.cli.text import as_json, intake_line, metrics_table
from gpuschedlab.errors import PolicyError, RunError
from gpuschedlab.parse import contenders_of, word_of

SHOWN = ("jct_mean", "jct_p99", "queueing_mean", "makespan", "utilisation", "preemptions", "unfair_fraction")


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    parser.add_argument("policies", nargs="+", metavar="POLICY", help="policies to sweep")
    group = parser.add_argument_group("what is varied")
    group.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KNOB=V/V/...",
        help="values of a knob, of each policy that has it and of the recipe: 0.2/0.5/0.8, 5steps over its whole range, or all of its "
        "choices; once for each knob",
    )
    group.add_argument("--seeds", type=whole, default=1, metavar="N", help="seeds, from --seed on (default 1)")
    group.add_argument("--traces", nargs="+", metavar="TRACE", help="several, in the place of --trace")
    group.add_argument(
        "--clusters", nargs="+", metavar="CLUSTER", help="several, in the place of --cluster; --load is of the first"
    )
    add_scenario(parser)
    group = parser.add_argument_group("answer")
    group.add_argument("--out", default="runs/sweep", metavar="FOLDER", help="where cells are kept (runs/sweep)")
    group.add_argument("--keep-runs", action="store_true", help="keep each cell's whole run, too")
    group.add_argument("--workers", type=whole, metavar="N", help="processes (default: as many as cores)")
    group.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler, tcp://HOST:PORT")
    group.add_argument(
        "--plot",
        action="append",
        default=[],
        metavar="FILE=WHAT",
        help="a figure, .html, .png or .svg: KNOB (lines), KNOB,KNOB (map), or two metrics (front); :METRIC at the end chooses what is "
        "shown over knobs (default jct_mean)",
    )
    add_json(group)


def sweep(args) -> int:
    """Run the cells that are left, print the means over seeds, and return the exit code; Ctrl-C (130) keeps finished cells."""
    from gpuschedlab.sweep import Sweep
    from gpuschedlab.sweep import sweep as run_all

    plots = [_plot_word(plot_word) for plot_word in args.plot]
    policies, recipes = _varied(args)
    scenarios, logs = (recipes, {}) if recipes else _scenarios(args)
    seeds = range(args.seed, args.seed + args.seeds)
    # Dask has its own count of workers.
    run_options = {
        "workers": None if args.dask else args.workers or os.cpu_count(),
        "keep_runs": args.keep_runs,
        "strict": False,
    }
    try:
        with _backend(args):
            printed_sweep = run_all(scenarios, policies, args.out, seeds=seeds, **run_options)
    except KeyboardInterrupt:
        cell_counts = Sweep.read(args.out).summary() if (Path(args.out) / "sweep.json").exists() else {}
        print(
            f"gpuschedlab: interrupted; {cell_counts.get('finished', 0)} of {sum(cell_counts.values())} rows are kept in {args.out}. "
            "The same command resumes from there.",
            file=sys.stderr,
        )
        return 130
    intake_lines = "".join(intake_line({"intake": report}) for report in logs.values())
    print(_json(printed_sweep, logs) if args.json else _table(printed_sweep) + intake_lines, flush=True)
    for path, plot_axes in plots:
        from gpuschedlab.plots import plot_sweep
        from gpuschedlab.report import save_figure

        picture = save_figure(plot_sweep(printed_sweep, *plot_axes), path)
        print(f"figure: {picture}", file=sys.stderr if args.json else sys.stdout)
    printed_sweep.raise_if_failed()  # `main` prints what failed, and ends with 1
    return 0


def _scenarios(args) -> tuple[dict, dict]:
    """Return a tuple of two dicts: every trace on every cluster, as functions of a seed, and the reports of logs.

    If no cluster is named, a log is on its own.
    """
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.traces import presets

    traces = args.traces or [args.trace]
    scenario_makers = {}
    logs = {}
    if args.history is args.estimator is None and not all(trace_word in presets() for trace_word in traces):
        args = _with(args, estimator="oracle")  # of some traces there is no history: policies know the same of all
    for trace in traces:
        clusters = args.clusters or [args.cluster]
        recipe = recipe_in(_with(args, trace=trace, cluster=clusters[0]))
        gpus = recipe.machines.total_gpus
        for cluster_word in clusters:
            swept_recipe = replace(recipe, cluster=cluster_word or recipe.cluster).with_knobs(gpus=gpus)
            # A log is read once.
            vars(swept_recipe).update(
                {field_name: log for field_name, log in vars(recipe).items() if field_name == "log"}
            )
            usual = CLUSTER if swept_recipe.machines == Cluster.parse(CLUSTER) else str(swept_recipe.machines)
            scenario_makers[trace, swept_recipe.cluster or usual] = swept_recipe.scenario
        logs |= dict.fromkeys([trace] * bool(recipe.came_in), recipe.came_in.get("intake"))
    return scenario_makers, logs


def _with(args, **changes) -> argparse.Namespace:
    """Return a `Namespace` of arguments with some changed."""
    return argparse.Namespace(**vars(args) | changes)


def _varied(args) -> tuple[dict[str, list], dict]:
    """Return two dicts as a tuple: policies and recipes by their words, every varied knob in all its values.

    Policies have their own estimators if they have one.
    """
    from gpuschedlab.knobs import knobs_of
    from gpuschedlab.sweep import grid

    varied_knobs = {}
    for option_word in args.vary:
        knob_name, equals, values_text = option_word.partition("=")
        if not (equals and values_text) or knob_name in varied_knobs:
            raise PolicyError(
                f"--vary {option_word!r}: expected KNOB=V/V/..., KNOB=5steps or KNOB=all, each knob once."
            )
        varied_knobs[knob_name] = values_text
    varied_policies = {}
    used = set()

    def all_of(varied_thing) -> list:
        infos = knobs_of(varied_thing)
        varied_values = {
            knob_of_option: _values(infos[knob_of_option], values_text)
            for knob_of_option, values_text in varied_knobs.items()
            if knob_of_option in infos
        }
        used.update(varied_values)
        return grid(varied_thing, **varied_values) if varied_values else [varied_thing]

    for policy_word, (policy, own_estimator) in contenders_of(args.policies).items():
        varied_policies[policy_word] = [
            varied_policy if own_estimator is None else (varied_policy, own_estimator)
            for varied_policy in all_of(policy)
        ]
    recipes = _recipes(recipe_in(args), all_of) if named_in(args) else {}
    if unused := sorted(set(varied_knobs) - used):
        raise PolicyError(f"--vary: none of {', '.join(args.policies)} has a knob {unused[0]!r}.")
    return varied_policies, recipes


def _recipes(recipe, all_of: Callable) -> dict:
    """Dict of a recipe with all values of the knobs that are varied, by its words."""
    from gpuschedlab.scenarios import Instead

    if isinstance(recipe, Instead):
        return {
            word: replace(recipe, recipe=varied_recipe)
            for word, varied_recipe in _recipes(recipe.recipe, all_of).items()
        }
    return {word_of(varied_recipe): varied_recipe for varied_recipe in all_of(recipe)}


def _values(info, values_text: str):
    """Return the values of a knob as `grid` takes them: a list, a number of steps (int), or "all"."""
    from gpuschedlab.knobs import parse_knob

    if values_text == "all":
        return "all"
    if steps := re.fullmatch(r"(\d+)steps", values_text):
        return int(steps[1])
    return [parse_knob(info, value_word) for value_word in values_text.split("/")]


def _backend(args):
    """Return a context manager, the backend of the cells: on a Dask cluster, or on this machine."""
    from gpuschedlab._extras import need

    stack = contextlib.ExitStack()
    if not args.dask:
        return stack
    try:
        client = stack.enter_context(need("distributed", "sweeps on a cluster").Client(args.dask, timeout=20))
    except OSError as error:
        raise RunError(
            f"--dask {args.dask}: {error}; expected a scheduler there: dask scheduler --port 8786."
        ) from None
    stack.enter_context(need("joblib", "sweeps").parallel_config(backend="dask", client=client))
    return stack


def _table(printed_sweep) -> str:
    """Text of a table: means over seeds, a line for each choice."""
    import polars as pl

    if printed_sweep.frame.is_empty():
        return "no cell has finished"
    means = printed_sweep.table(SHOWN)
    differ = [column_name for column_name in ("scenario", "cluster") if means[column_name].n_unique() > 1]
    row_names = [_name(row, printed_sweep.knobs, differ) for row in means.iter_rows(named=True)]
    seeds = printed_sweep.frame["seed"].n_unique()
    note = f"{printed_sweep.frame.height} rows in {printed_sweep.folder}" + (
        f", means of {seeds} seeds" if seeds > 1 else ""
    )
    return f"{metrics_table(means.select(pl.Series('policy', row_names), *SHOWN))}\n\n{note}"


def _name(row: dict, knobs, differ: list[str]) -> str:
    from gpuschedlab.knobs import knob_word

    knob_words = [f"{knob}={knob_word(row[knob])}" for knob in knobs if row[knob] is not None]
    scenarios = [f"on {row[column_name]}" for column_name in differ]
    return " ".join([row["policy"], *knob_words, *scenarios])


def _json(printed_sweep, logs: dict) -> str:
    sweep_rows = {"errors": printed_sweep.failed, "rows": printed_sweep.frame.to_dicts()}
    answer = {"folder": str(printed_sweep.folder)} | printed_sweep.summary() | sweep_rows
    if logs:
        answer["intake"] = logs
    return as_json(answer)


def _plot_word(plot_option: str) -> tuple[str, tuple]:
    """Return a tuple: path of a file, and the arguments of `plot_sweep`."""
    from gpuschedlab.metrics import METRICS

    path, equals, plotted_names = plot_option.rpartition("=")
    axes, _, metric = plotted_names.partition(":")
    axis_names = axes.split(",")
    if not (equals and path and axes) or len(axis_names) > 2:
        raise RunError(f"--plot {plot_option!r}: expected FILE=KNOB, =KNOB,KNOB or =METRIC,METRIC.")
    if all(axis_name in METRICS for axis_name in axis_names) and len(axis_names) == 2:
        return path, (None, None, tuple(axis_names))
    return path, (axis_names[0], axis_names[1] if len(axis_names) == 2 else None, metric or "jct_mean")
