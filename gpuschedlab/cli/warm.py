"""`gpuschedlab warm`: compile ahead."""

import sys
import time
from collections.abc import Callable

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.progress import Progress
from gpuschedlab.cli.text import as_json, pairs


def add(parser):
    """Add the arguments."""
    add_json(parser)


def warm(args) -> int:
    """Compile everything, and report the time that it took."""
    from gpuschedlab.policies import ALL

    with Progress(sys.stderr).phase("compiling ahead", len(ALL) + 2, "parts") as advance:
        seconds = compile_ahead(each=advance)
    print(as_json(seconds) if args.json else pairs({k: f"{v:.1f} s" for k, v in seconds.items()}))
    return 0


def compile_ahead(words: tuple[str, ...] = (), each: Callable[[int], None] | None = None) -> dict[str, float]:
    """Compile the engine and the keys of some policies, by default of all, and what figures need: seconds by name.

    What is compiled is kept on disk, so that the next process loads it. `each` is called with how many parts are done.
    """
    import polars as pl

    seconds, begin = {}, time.perf_counter()

    def done(name: str):
        nonlocal begin
        seconds[name], begin = time.perf_counter() - begin, time.perf_counter()
        if each is not None:
            each(len(seconds))

    from gpuschedlab import Cluster, plots, simulate
    from gpuschedlab.parse import policy_of
    from gpuschedlab.policies import ALL

    done("engine")
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1, 1], "duration": [9.0, 9.0]})
    for word in words or ALL:
        run = simulate(trace, Cluster.homogeneous(4, 4), policy_of(word))
        done(word)
    if not words:
        plots.gantt(run)
        plots.seats(run)
        done("figures")
    return seconds
