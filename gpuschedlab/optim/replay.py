"""Drive a stream of similar programs through one session: what a solver keeps from round to round, and what it costs."""

import time
from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple

from gpuschedlab.optim.program import Change, Program, Solution
from gpuschedlab.optim.solve import Session


class Step(NamedTuple):
    """One round of a stream.

    Parameters
    ----------
    solution : Solution
    seconds : float
        CPU of taking up the program and of solving, without what made it.
    """

    solution: Solution
    seconds: float


def replay(
    stream: Iterable[Program | Change] | Generator[Program | Change, Solution, None],
    solver: str = "highs",
    *,
    clock: Callable[[], float] = time.process_time,
    **options,
) -> list[Step]:
    """Solve the programs of a stream one after the other with one solver, which keeps what it can.

    Parameters
    ----------
    stream : iterable of Program or Change
        A generator gets each solution from its ``yield``, so that the next program may depend on it.
    solver : str
        As in `Session`.
    clock : callable
        What `Step.seconds` are read from.
    **options
        As in `Session`.

    Returns
    -------
    list of Step
        One a program.

    Raises
    ------
    SolverError, MissingExtra
        As of `Session`.

    Examples
    --------
    >>> def rounds():
    ...     found = yield Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True)
    ...     yield Change(row_upper=[2 * found.objective])
    >>> [step.solution.objective for step in replay(rounds(), method="simplex")]
    [2.0, 8.0]
    """
    session, steps, stream = Session(solver, **options), [], iter(stream)
    send = getattr(stream, "send", None)
    try:
        program = next(stream)
        while True:
            begin = clock()
            session.update(program)
            found = session.solve()
            steps.append(Step(found, clock() - begin))
            program = send(found) if send else next(stream)
    except StopIteration:
        return steps
