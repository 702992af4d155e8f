"""`gpuschedlab trace`: list, describe, generate, convert or fetch traces."""

import sys
from pathlib import Path

from gpuschedlab.cli.parser import Parser, add_command, add_json, positive
from gpuschedlab.cli.recipe_words import add_settings, add_size, recipe_in
from gpuschedlab.cli.text import as_json, intake_line, intake_of, pairs

GPUS = 560


def add(parser):
    """Add its own commands."""
    trace_commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    add_json(add_command(trace_commands, "list", "presets, formats, and published traces", list_traces))
    trace_command = add_command(trace_commands, "describe", "what is in a trace", describe)
    trace_command.add_argument("trace", metavar="TRACE", help="preset, FILE.parquet, SPEC.toml, or FORMAT:PATH")
    add_settings(trace_command)
    add_json(trace_command)
    trace_command = add_command(trace_commands, "generate", "make a trace like a published one", generate)
    trace_command.add_argument("trace", metavar="PRESET", help="see `gpuschedlab trace list`")
    add_size(trace_command)
    trace_command.add_argument(
        "--gpus", type=positive, default=GPUS, help=f"of the cluster that --load refers to (default {GPUS})"
    )
    trace_command.add_argument("--out", required=True, metavar="FILE.parquet", help="where to")
    trace_command = add_command(
        trace_commands, "convert", "read a trace in another format and store it in our form", convert
    )
    trace_command.add_argument(
        "trace", metavar="FORMAT:PATH", help="see `gpuschedlab trace list`; of your own: csv:FILE, or SPEC.toml"
    )
    add_settings(trace_command)
    trace_command.add_argument(
        "--out", required=True, metavar="FILE", help="where to: FILE.parquet, FILE.csv or FILE.swf"
    )
    trace_command.add_argument(
        "--names", action="store_true", help="keep users, accounts and job names in csv and SWF (default: u1, a1, j1)"
    )
    trace_command.add_argument(
        "--bad", metavar="FILE.parquet", help="put bad rows there and continue (default: stop at them)"
    )
    trace_command = add_command(trace_commands, "fetch", "download a published trace, verified, into the cache", fetch)
    trace_command.add_argument("name", metavar="NAME", help="see `gpuschedlab trace list`")
    trace_command.add_argument("--folder", metavar="FOLDER", help="where to (default: the user's cache)")
    trace_command.add_argument(
        "--unverified", action="store_true", help="take files for which their owner publishes no checksum"
    )


def list_traces(args) -> int:
    """Print presets, formats that can be read, and published traces that can be fetched; return exit code 0."""
    from gpuschedlab.traces import catalog, load_preset, presets
    from gpuschedlab.traces.intake.read import READERS

    shapes = {preset_name: load_preset(preset_name) for preset_name in presets()}
    described = {
        preset_word: f"{preset.jobs:,} jobs of {preset.days:g} days; {preset.origin}"
        for preset_word, preset in shapes.items()
    }
    published = catalog()
    if args.json:
        print(as_json({"presets": described, "formats": list(READERS), "published": published}))
    else:
        print(f"presets, to generate from\n{pairs(described)}\n\nformats, to read\n{' '.join(READERS)}\n")
        print(f"published, to fetch\n{pairs(published)}")
    return 0


def describe(args) -> int:
    """Print figures of a trace, and return exit code 0."""
    from gpuschedlab.traces import describe as figures

    args.history = "0"
    recipe = recipe_in(args)
    trace_figures = figures(recipe.trace())
    recipe_facts = recipe.came_in
    print(
        as_json(trace_figures | intake_of(recipe_facts))
        if args.json
        else pairs(trace_figures) + intake_line(recipe_facts)
    )
    return 0


def generate(args) -> int:
    """Generate a trace and store it; return exit code 0."""
    from gpuschedlab.traces import load_preset, write_parquet

    load_preset(args.trace)
    args.history = "0"
    args.set = []
    trace = recipe_in(args).trace(args.seed)
    write_parquet(trace, args.out)
    days = trace["submit"].max() / 86_400
    print(f"{args.out}: {trace.height:,} jobs over {days:.3g} days")
    return 0


def convert(args) -> int:
    """Read a published trace and store it, report the rows that were left out, and return exit code 0."""
    from gpuschedlab.traces import write_csv, write_parquet, write_swf
    from gpuschedlab.traces.formats.export import lost_in_swf
    from gpuschedlab.traces.intake.read import taken_of

    if args.bad:
        converted_trace, bad = taken_of(args.trace, args.set, on_bad="drop")
        write_parquet(bad, args.bad)
        print(f"{args.bad}: {bad.height:,} bad rows")
    else:
        converted_trace = taken_of(args.trace, args.set)[0]
    form = Path(args.out).suffix
    if form == ".swf":
        write_swf(converted_trace.trace, args.out, names=args.names)
        lost = ", ".join(lost_in_swf(converted_trace.trace))
        print(f"SWF does not hold: {lost or 'nothing of it is lost'}")
    elif form == ".csv":
        write_csv(converted_trace.trace, args.out, names=args.names)
    else:
        write_parquet(converted_trace.trace, args.out, report=converted_trace.report)
    print(f"{args.out}: {converted_trace.trace.height:,} jobs\n{converted_trace.report.line()}")
    return 0


def fetch(args) -> None:
    """Download, verify, and print where the files are."""
    from gpuschedlab.traces import fetch as download

    sha256 = None if args.unverified else "known"
    print(download(args.name, folder=args.folder, sha256=sha256, progress=sys.stderr.isatty()))
