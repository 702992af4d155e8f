"""Solvers in a process of their own, for those that may end it."""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from functools import cache

from gpuschedlab.errors import LabError, SolverError

ONE = threading.Lock()
"""Of the child: one program at a time."""


@cache
def _child() -> subprocess.Popen:
    """The process that solves apart; it imports nothing of the caller's script, as children of multiprocessing do."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from gpuschedlab.optim.solvers.apart import serve; serve()"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def solved_apart(worker, program, x0, engine: str):
    """What `worker.solve(program, x0)` says in a process that is kept from call to call."""
    with ONE:
        child = _child()
        try:
            pickle.dump((worker, program, x0), child.stdin)
            child.stdin.flush()
            answer = pickle.load(child.stdout)
        except BaseException as error:
            child.kill()  # whatever it was: it may be in the middle of an answer
            _child.cache_clear()
            if not isinstance(error, (EOFError, OSError)):
                raise
            message = f"{program.name}: the process of {engine} ended (exit code {child.wait()}); expected an answer."
            raise SolverError(f"{message} Use another solver.") from error
    if isinstance(answer, LabError):
        raise answer
    return answer


def serve() -> None:
    """Solve what comes on the standard input, until it is closed: the child's part."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed must not be taken for an answer
    with contextlib.suppress(EOFError):
        while True:
            worker, program, x0 = pickle.load(sys.stdin.buffer)
            try:
                answer = worker.solve(program, x0)
            except LabError as error:
                answer = error
            pickle.dump(answer, answers)
            answers.flush()
