"""The command line: `gpuschedlab COMMAND`, one module a command.

Exit codes: 0 done; 1 something that was asked for failed (a check, a budget, a policy, a full disk); 2 wrong usage or
input, with one line on standard error; 130 interrupted, by Ctrl-C or a request to end (SIGTERM), with the part that was finished
until then kept.
"""

import contextlib
import os
import signal
import sys
import threading
import warnings

from gpuschedlab.cli.parser import make_parser
from gpuschedlab.errors import LabError, RunError, SolverError, interrupts

FAILED = 1
WRONG = 2
INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str, optional
        Words after the program's name; those of the process by default.

    Returns
    -------
    int
        Exit code.

    Examples
    --------
    >>> main(["trace", "describe", "no_such.parquet"])
    2
    """
    return obey(make_parser(), argv)


def obey(parser, argv: list[str] | None = None) -> int:
    """Parse words, call the command that they choose, and make an exit code of its answer or its error."""
    try:
        args = parser.parse_args(argv)
        with _interrupted_by_sigterm(), _warnings_in_one_line(), interrupts():
            code = args.command(args) or 0
        sys.stdout.flush()
        return code
    except LabError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return FAILED if isinstance(error, RunError | SolverError) else WRONG
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe (head, less) has gone: no output is possible
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


@contextlib.contextmanager
def _interrupted_by_sigterm():
    """Context manager: take a request to end, as batch systems send it, for Ctrl-C: results are kept, and workers end, too."""
    if threading.current_thread() is not threading.main_thread():  # Python sets signal handlers in the main thread only
        yield
        return
    handler_before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler_before)


@contextlib.contextmanager
def _warnings_in_one_line():
    """Context manager: print warnings as errors are printed, each once, without the place in the code."""
    format_before = warnings.formatwarning
    printed_warnings = set()

    def line(message, *_) -> str:
        warning_line = f"gpuschedlab: {message}\n"
        is_new_warning = warning_line not in printed_warnings
        printed_warnings.add(warning_line)
        return warning_line * is_new_warning

    warnings.formatwarning = line
    try:
        yield
    finally:
        warnings.formatwarning = format_before


__all__ = ["main"]
