"""How much better a tuner did than another in a recording: on the same jobs, with an interval."""

from typing import NamedTuple

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import paired_ratio
from gpuschedlab.widgets.recording.recording import Recording


class Ratio(NamedTuple):
    """Average JCT of one line over that of another on the jobs that ended under both; its 95 % interval; how many these are."""

    times: float
    low: float
    high: float
    jobs: int


def times_as_good(recording: Recording, name: str, reference: str = "default") -> Ratio:
    """How many times as good a tuner is as a reference: their ratio of average JCTs, above 1 for better.

    The interval is that of `gpuschedlab.metrics.paired_ratio`: it says how far the ratio depends on which hours came, not how another
    seed's trace would do.

    Parameters
    ----------
    recording : Recording
    name, reference : str
        Of `recording.lines`.

    Raises
    ------
    RunError
        There is no such line, or no job ended under both.
    """
    if wrong := [line for line in (name, reference) if line not in recording.lines]:
        raise RunError(f"times_as_good: found line {wrong[0]!r}; expected one of {', '.join(recording.lines)}.")
    jobs = recording.jobs
    found = paired_ratio(jobs["submit"], jobs[reference], jobs[name])
    if not found.jobs:
        raise RunError(f"times_as_good: found no job that ended under {name} and {reference}; expected some. Play on.")
    return Ratio(*found[:4])
