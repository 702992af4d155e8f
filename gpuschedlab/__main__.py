"""`python -m gpuschedlab` is `gpuschedlab`; a command may be interrupted while it is still being loaded."""

import signal
import sys

from gpuschedlab.errors import interrupts

INTERRUPTED = 130


def run() -> int:
    """Run the command that the words of the process choose, and return its exit code (`gpuschedlab.cli`).

    Interrupted while modules are loaded, or once the command has ended, it says no more than later: one line.
    """
    try:
        with interrupts():
            from gpuschedlab.cli import main

            code = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
        print("gpuschedlab: interrupted.", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is Python's own end
    return code


if __name__ == "__main__":
    sys.exit(run())
