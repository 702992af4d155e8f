"""Errors, by the part that raises them: a message names who, the finding, the expectation, and the way out.

Beside them the bounds beyond which input is refused, before it takes the memory of the process.
"""

import sys
from contextlib import contextmanager

MOST_BYTES = 2**30
MOST_ROWS = 20_000_000
MOST_COLUMNS = 10_000
"""Of a file after unpacking; files of JSON have at most a quarter of these bytes, since their objects take as much memory."""
MOST_CELLS = 200_000_000
MOST_CELL = 2**20
"""Values of a table, and bytes of one."""
MOST_GPUS = 1_000_000
"""Of a cluster, and of a job. The largest published job requested 2,048 (Helios)."""


class LabError(Exception):
    """Base of all errors that the package raises on purpose."""


class TraceError(LabError, ValueError):
    """A trace or a source file does not keep the promises of its format."""


class ClusterError(LabError, ValueError):
    """A cluster that cannot exist, or cannot hold the jobs asked of it."""


class PolicyError(LabError, ValueError):
    """A policy declared a wrong knob or gave an impossible answer."""


class SpeedError(LabError, ValueError):
    """A speed table is malformed or lacks a configuration that is in use."""


class EstimatorError(LabError, ValueError):
    """An estimator was used before it was fitted, or on data it cannot read."""


class SolverError(LabError, RuntimeError):
    """A program is malformed, infeasible, or its solver stopped without an answer."""


class Infeasible(SolverError):
    """A program that no point satisfies."""


class OutOfTime(SolverError):
    """A solver had found no point when its work or its time was over; `status` says which: ``stopped`` or ``time limit``."""

    def __init__(self, message: str, status: str = "time limit"):
        super().__init__(message)
        self.status = status


class RunError(LabError, RuntimeError):
    """A run could not be continued, stored or read back."""


class MissingExtra(LabError, ImportError):
    """The packages of an optional part are not installed."""


class SpeedWarning(UserWarning):
    """A speed table says nothing about some jobs, which run for their durations everywhere."""


class ClusterWarning(UserWarning):
    """Jobs ask for something of a cluster that is not kept to."""


class IntakeError(TraceError):
    """A log of which too much would be left out; `report` says the rows that came in."""

    def __init__(self, message: str, report=None):
        super().__init__(message)
        self.report = report


class IntakeWarning(UserWarning):
    """Some of a log's GPU-hours were left out."""


@contextmanager
def interrupts():
    """Context manager: raise the KeyboardInterrupt that an exception came of; compiled code and policies make others of it.

    numpy's treatment of floating point errors is put back: an interrupt that comes while `np.linalg` sets its own leaves
    that in force, and a later NaN of any computation would then be called a singular matrix.
    """
    seen_errors = [sys.exc_info()[1]]  # what is being handled already, such as an interrupt before
    floats = _float_errors()
    try:
        yield
    except KeyboardInterrupt:
        floats()
        raise
    except Exception as error:
        floats()
        errors_to_follow = [error]
        while errors_to_follow:
            raised_error = errors_to_follow.pop()
            if not any(raised_error is linked_error for linked_error in seen_errors):
                if isinstance(raised_error, KeyboardInterrupt):
                    raise raised_error from None
                seen_errors.append(raised_error)
                errors_to_follow += [
                    linked_error
                    for linked_error in (raised_error.__cause__, raised_error.__context__)
                    if linked_error is not None
                ]
        raise


def _float_errors():
    """Return a function that puts back how numpy treats floating point errors now; it does nothing while numpy is not loaded."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return lambda: None
    treatment = numpy.geterr()
    call = numpy.geterrcall()

    def put_back():
        numpy.seterr(**treatment)
        numpy.seterrcall(call)

    return put_back
