"""`gpuschedlab warm`: compile the engine, the policies and what else is compiled ahead, so that first uses are quick."""

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

from gpuschedlab.cli.parser import add_json, policies_help
from gpuschedlab.cli.progress import Progress
from gpuschedlab.cli.text import as_json, pairs
from gpuschedlab.errors import MissingExtra


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    help_of_policies = "policies to compile for (default: all, and what no policy needs)"
    parser.add_argument("policies", nargs="*", metavar="POLICY", help=help_of_policies)
    add_json(parser)


def warm(args) -> int:
    """Compile the engine and the parts that policies need, in two processes if there are two cores; return exit code 0.

    Report the time taken. If no policy is named, also compile all else that is (`small_uses`).
    """
    from gpuschedlab.cli.small_uses import small_uses
    from gpuschedlab.parse import policy_of
    from gpuschedlab.policies import ALL

    policy_words = args.policies or list(ALL)
    for policy_word in policy_words:
        policy_of(policy_word)  # an unknown one is reported before anything is compiled
    uses = {} if args.policies else small_uses()
    part_count = len(policy_words) + 3 + len(uses)
    with (
        Progress(sys.stderr).phase("compiling ahead", part_count, "parts done") as advance,
        _beside(policy_words, bool(uses)),
    ):
        seconds = compile_ahead(policy_words, uses, advance)
    if args.json:
        print(as_json(seconds))
    else:
        print(pairs({part_name: f"{time:.1f} s" for part_name, time in seconds.items()}))
    return 0


def compile_ahead(
    words: Iterable[str],
    uses: dict[str, Callable[[], None]] | None = None,
    each: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Compile the engine, the generator, and code of policies, figures and estimates; return a dict of the seconds of each part.

    `uses` are functions that are run after these, by the names of their parts; `each` is called with the number of parts that are done.
    """
    seconds = {}
    part_begin = time.perf_counter()

    def done(part_name: str):
        nonlocal part_begin
        seconds[part_name] = time.perf_counter() - part_begin
        part_begin = time.perf_counter()
        if each is not None:
            each(len(seconds))

    from gpuschedlab import Cluster, Fifo, Runtime, generate, plots, simulate
    from gpuschedlab.parse import policy_of

    trace = generate("venus", days=1, jobs=9, load=0.5, cluster_gpus=16, rng=0)
    trace = trace.with_columns(trace["submit"] / 60, trace["duration"] / 60)  # few rounds: Pollux's take long
    cluster = Cluster.homogeneous(4, 4)
    run = simulate(trace, cluster, Fifo())
    done("engine")
    compiled_parts = {
        policy_word: functools.partial(simulate, trace, cluster, policy_of(policy_word)) for policy_word in words
    }
    compiled_parts["figures"] = lambda: (plots.gantt(run), plots.seats(run))
    compiled_parts["estimates"] = lambda: Runtime().fit(trace)
    compiled_parts |= uses or {}
    for part_name, compile_part in compiled_parts.items():
        try:
            compile_part()
        except MissingExtra as error:
            print(f"gpuschedlab: {part_name} left out: {error}", file=sys.stderr)
        done(part_name)
    return seconds


@contextlib.contextmanager
def _beside(policy_words: list[str], with_uses: bool):
    """Context manager: compile the parts needed last in a second process; either loads the other's. One core: do nothing."""
    if os.cpu_count() == 1:
        yield
        return
    lines = [
        "from gpuschedlab.cli.commands.warm import compile_ahead",
        "from gpuschedlab.cli.small_uses import small_uses",
        "from gpuschedlab.sim.setup.ahead import compile_rest",
        "compile_rest()",
        f"compile_ahead((), small_uses() if {with_uses} else None)",
        f"compile_ahead({policy_words[::-1]!r})",
    ]
    with subprocess.Popen([sys.executable, "-c", "\n".join(lines)], stderr=subprocess.DEVNULL) as second:
        try:
            yield
        finally:
            second.kill()
