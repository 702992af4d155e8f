"""Words into arguments: the parser of all commands, numbers, and help that shows the policies' knobs.

Only the module of the command that is called is imported, since most of them import numpy and polars.
"""

import argparse
import importlib
import re
import shutil
import textwrap
from functools import cache, partial
from pathlib import Path

from gpuschedlab._faces import home_of, modules_of_papers, names_of, names_of_papers, papers

COMMANDS = ("compare", "run", "explain", "sweep", "suite", "trace", "check", "warm", "versions")
"""Commands in the order in which they are listed; those that are not here come after them."""


@cache
def commands() -> dict[str, tuple[str, str]]:
    """Return a dict by command of its help and its module: modules that begin with "`gpuschedlab NAME`: help.".

    They are those of `commands/`, and of a paper `command.py` and those of a folder `commands` of its own.
    """
    ours = {
        f"{__package__}.commands.{path.stem}": path
        for path in sorted((Path(__file__).parent / "commands").glob("*.py"))
    }
    theirs = {module: home_of(module.rpartition(".")[0]) / "command.py" for module in modules_of_papers("command")}
    for paper in papers():
        for path in sorted((home_of(paper) / "commands").glob("*.py")):
            theirs[f"{paper}.commands.{path.stem}"] = path
    found_commands = {}
    for module, path in (ours | theirs).items():
        if command_title := re.match(r'"""`gpuschedlab (\w+)`: (.*)\.("""|\n)', path.read_text(encoding="utf-8")):
            found_commands[command_title[1]] = command_title[2], module
    return {
        command_name: found_commands[command_name] for command_name in COMMANDS if command_name in found_commands
    } | found_commands


POLICY_WORDS = """\
a POLICY is NAME[:KNOB=VALUE,...][@ESTIMATOR]
  fifo   tiresias:queues=3,thresholds=3250,57600   srtf@oracle   my.py:Mine:share=0.5
  NAME is one of those below, easy (fifo:backfill=easy), or FILE.py:CLASS of your own; ESTIMATOR (oracle, history, runtime,
  requested, noisy:error=0.3, or FILE.py:CLASS) is its own source of durations, in place of --estimator.
"""


EXAMPLES = """\
gpuschedlab compare                               policies on a generated week: a table, and report.html
gpuschedlab compare easy mine.py:Mine --seed 3    a policy of your own beside EASY backfill, on another week
gpuschedlab replay --trace slurm:sacct.txt        why jobs of your own cluster's log waited

"""
"""What a newcomer tries first."""


class Parser(argparse.ArgumentParser):
    """Parser whose wrong usage ends in one line, and whose arguments and epilogue are made only when they are needed."""

    filling = None
    """Module and name of a command: its `add(parser)` adds the arguments, before the first words are parsed; its namesake runs it."""

    closing = None
    """Function that makes the epilogue, when help is requested."""

    opening = ""
    """Text that stands before the usage when help is requested."""

    def parse_known_args(self, args=None, namespace=None):
        """Parse once the arguments are there; return a tuple: the namespace, and a list of the words that are left."""
        if self.filling is not None:
            module, function_name = self.filling
            self.filling = None
            module = importlib.import_module(module)
            module.add(self)
            self.set_defaults(command=getattr(module, function_name, None))
        return super().parse_known_args(args, namespace)

    def error(self, message):
        """Say the error in one line, and how to get help."""
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")

    def format_help(self):
        """Return the help as a string, with the text before and the epilogue."""
        if self.closing is not None:
            self.epilog = self.closing()
        return self.opening + super().format_help()


def make_parser() -> Parser:
    """Return the `Parser` of the whole command line."""
    parser = Parser(prog="gpuschedlab", description="A laboratory for GPU-cluster scheduling of deep-learning work.")
    parser.opening = EXAMPLES
    parser.epilog = "gpuschedlab COMMAND --help has the options of each, and the policies with their knobs."
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for command_name, (help, module) in commands().items():
        add_command(subcommands, command_name, help).filling = module, command_name
    return parser


def add_command(commands, name: str, help: str, command=None) -> Parser:
    """Add a command, a function of the arguments that returns an exit code (None: 0), and return its `Parser`.

    `help` is its line of help.
    """
    style = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".", formatter_class=style)
    parser.set_defaults(command=command)
    return parser


def add_json(parser):
    """Add the option that makes the answer one JSON document on standard output."""
    parser.add_argument("--json", action="store_true", help="answer in JSON on standard output")


def policies_help() -> str:
    """Return the help text of policies, each with its knobs: ranges, units, defaults, and their effects."""
    from gpuschedlab import policies
    from gpuschedlab.cli.knob_sources import declared

    modules = names_of(policies.__name__) | names_of_papers("policies")
    class_of_word = {class_name.lower(): class_name for class_name in modules}
    entries = []
    for policy_word in policies.ALL:
        class_name = class_of_word[policy_word]
        entries.append(knobs_help(policy_word, declared(modules[class_name], class_name)))
    return POLICY_WORDS + "\npolicies and their knobs\n" + "\n".join(entries)


def knobs_help(name: str, cls: type) -> str:
    """Return the help text of one policy with its knobs."""
    from gpuschedlab.knobs import knobs_of

    knobs = knobs_of(cls)
    wide = max(map(len, knobs), default=0) + 4
    screen = shutil.get_terminal_size((120, 24)).columns
    help_lines = [f"{name}: {(cls.__doc__ or '').strip().splitlines()[0]}"]
    for knob, info in knobs.items():
        knob_text = info.describe() + (f": {info.knob.help}" if info.knob.help else "")
        help_lines += textwrap.wrap(f"  {knob:{wide - 2}}{knob_text}", max(screen, 60), subsequent_indent=" " * wide)
    return "\n".join(help_lines)


def _number(kind: type, low: float, expected: str, option_text: str):
    """Return the number of a kind, int or float, that a text holds, from `low` on."""
    try:
        value = kind(option_text.replace(",", "") if kind is int else option_text)
    except ValueError:
        value = None
    if value is None or not low <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"found {option_text!r}; expected {expected}")
    return value


seconds = partial(_number, float, 0.0, "a number of seconds, 0 or more")
positive = partial(_number, float, 1e-9, "a number above 0")
whole = partial(_number, int, 1, "a whole number, at least 1")
