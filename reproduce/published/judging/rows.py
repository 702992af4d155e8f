"""Rows of a claim as the judge sees them: ours with its runs, the published value, and the noise of one run."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reproduce.published.claims import Claim
from reproduce.published.numbers import Number, as_ours

RUNS = ("seed", "workload", "week", "round")
"""First words of what a row is repeated over. Models, traces, loads and policies are parts of a row, not runs of it."""

ENOUGH_RUNS = 3
"""Runs from which a row has an interval of its own."""

GUESSED_NOISE = 0.05
"""Relative standard deviation of one run, if no row of the same metric has three runs. A guess; verdicts that lean on it say so."""


@dataclass(frozen=True)
class Row:
    """One row of a claim.

    Parameters
    ----------
    name : Number
        Of the row; of the numerator, if the claim is about a ratio.
    ours : float
    runs : tuple of float
        The same of each run, paired.
    published : tuple of float, optional
        Least and largest published value: two numbers if equal runs stand for several rows. None if no page has one.
    noise : float
        Relative standard deviation of one run, for a row of fewer than `ENOUGH_RUNS`.
    """

    name: Number
    ours: float
    runs: tuple[float, ...] = ()
    published: tuple[float, float] | None = None
    noise: float = 0.0

    @property
    def few(self) -> bool:
        """Whether the row has too few runs for an interval of its own."""
        return len(self.runs) < ENOUGH_RUNS


def rows_of(claim: Claim, table: Mapping[Number, float | None], found: Mapping) -> list[Row] | None:
    """Return the rows of a claim, equal runs once; None if one of its numbers was not measured as a whole."""
    pairs = claim.pairs(table)
    if not pairs or not all(_measured(found.get(number)) for pair in pairs for number in pair if number):
        return None
    return _once(_row(claim, table, found, one, other) for one, other in pairs)


def with_noise(rows: Iterable[Row], claim: Claim, noise: Mapping[str, float]) -> list[Row]:
    """Rows with the noise of one run: that of the metric's other rows, otherwise the guess.

    An artifact that is run again has none. If nothing in the rows is random, their workloads are no sample either.
    """
    if claim.exact:
        return [replace(row, runs=(), noise=0.0) for row in rows]
    if claim.agrees:
        return [replace(row, noise=0.0) for row in rows]
    return [replace(row, noise=noise.get(row.name.metric, GUESSED_NOISE)) for row in rows]


def noise_of_metrics(claims: Iterable[Claim], table: Mapping, found: Mapping) -> dict[str, float]:
    """Median over the rows of a metric of the relative standard deviation of one run, of rows with enough runs."""
    deviations = defaultdict(list)
    for claim in claims:
        for row in rows_of(claim, table, found) or ():
            deviation = None if row.few else relative_deviation(row.runs)
            if deviation is not None:
                deviations[row.name.metric].append(deviation)
    return {metric: statistics.median(values) for metric, values in deviations.items()}


def relative_deviation(runs: tuple[float, ...]) -> float | None:
    """Return the standard deviation of the logarithms, or over the mean's size if a run is not positive; None if the mean is 0."""
    if min(runs) > 0:
        return statistics.stdev(map(math.log, runs))
    size = abs(statistics.fmean(runs))
    return statistics.stdev(runs) / size if size else None


def runs_of(value) -> dict[str, float]:
    """What was measured of each run; empty if a row has parts and no runs."""
    return {name: one for name, one in as_ours(value).each.items() if name.partition(" ")[0] in RUNS}


def _measured(value) -> bool:
    return value is not None and not isinstance(value, str) and as_ours(value).whole


def _row(claim: Claim, table: Mapping, found: Mapping, one: Number, other: Number | None) -> Row:
    first = runs_of(found[one])
    second = runs_of(found[other]) if other else {}
    keys = sorted(first.keys() & second.keys()) if other else sorted(first)
    ours = claim.joined(as_ours(found[one]).value, as_ours(found[other]).value if other else None)
    runs = [claim.joined(first[key], second.get(key)) for key in keys]
    published = _published(claim, table, one, other)
    if claim.agrees:
        ours, runs = ours / published, [value / published for value in runs]
        published = 1.0
    return Row(one, ours, tuple(runs), None if published is None else (published, published))


def _published(claim: Claim, table: Mapping, one: Number, other: Number | None) -> float | None:
    missing = table[one] is None or (other is not None and table[other] is None)
    if claim.unpublished or missing:
        return None
    return claim.joined(table[one], table[other] if other else None)


def _once(rows: Iterable[Row]) -> list[Row]:
    """Rows whose runs are equal digit by digit are one row, with all their published values."""
    kept: dict[tuple, Row] = {}
    for row in rows:
        key = (row.ours, row.runs) if len(row.runs) > 1 else row.name
        twin = kept.get(key)
        kept[key] = row if twin is None else replace(twin, published=_joined(twin.published, row.published))
    return list(kept.values())


def _joined(one: tuple | None, other: tuple | None) -> tuple[float, float] | None:
    values = [value for ends in (one, other) if ends for value in ends]
    return (min(values), max(values)) if values else None
