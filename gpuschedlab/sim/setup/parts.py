"""Parts of a scenario: some of its jobs on a clock of their own, whose arrays are cut out of those of the whole."""

import dataclasses
import math

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.metrics.columns import Columns
from gpuschedlab.sim.setup.eligibility import eligibility_of
from gpuschedlab.sim.setup.prepared import Prepared, allowed_types, estimates_of, known_types, limits_of
from gpuschedlab.traces.deadlines import LATEST
from gpuschedlab.traces.schema import canonical_order
from gpuschedlab.traces.validated import remember

CODED = ("user", "vc")
"""Fields of jobs that number the texts of a column in order of name, -1: none."""


def part_of(scenario, first: int, count: int, pace: float):
    """Return the `Scenario` of some jobs in a row, on a clock that begins with the first of them.

    It runs as a scenario made of `trace[first : first + count]` would, submissions counted from the first of them and multiplied by
    `pace`, and costs a tenth of it: rows that were checked are not checked again. It begins with an empty cluster, and the estimator
    has learnt already.

    Raises
    ------
    TraceError
        There are no such rows, or the pace is not above 0.
    """
    if not 0 <= first < first + count <= scenario.trace.height or not 0 < pace < math.inf:
        raise TraceError(
            f"Scenario.part: found rows {first} to {first + count} at a pace of {pace}; expected one or more rows of the "
            f"{scenario.trace.height} jobs, and a pace above 0."
        )
    prepared = scenario.prepared
    warm_jobs = scenario.played.height - scenario.trace.height
    rows_of_part = slice(warm_jobs + first, warm_jobs + first + count)
    trace = scenario.trace[first : first + count]
    submit = trace["submit"].to_numpy()
    shifted = (submit - submit[0]) * pace
    trace = trace.replace_column(trace.get_column_index("submit"), pl.Series("submit", shifted))
    alone = {"trace": trace, "history": None, "warm": None, "estimator": scenario.knowledge}
    if shifted[-1] > LATEST or not np.array_equal(np.diff(shifted) > 0, np.diff(submit) > 0):
        return dataclasses.replace(scenario, **alone)  # it is refused, or sorted in another way
    part_scenario = object.__new__(type(scenario))
    vars(part_scenario).update(vars(scenario) | alone | {"_common": {}})
    remember(trace, canonical_order(trace.columns))
    part_scenario._common["knowledge"] = scenario.knowledge
    part_scenario._common["prepared"] = _prepared_part(prepared, part_scenario, rows_of_part)
    return part_scenario


def _prepared_part(whole_scenario: Prepared, part, rows: slice) -> Prepared:
    """Return the `Prepared` of a part, its arrays cut out of those of the whole.

    Fields that depend on the clock, or on which jobs there are, are made anew.
    """
    trace = part.trace.clone()
    job = {field_name: job_field[rows] for field_name, job_field in whole_scenario.job.items()}
    part_bodies = {field_name: job_field[rows] for field_name, job_field in whole_scenario.body.items()}
    job["submit"] = trace["submit"].to_numpy()
    if "deadline" in trace.columns:
        job["deadline"] = job["submit"] + trace["deadline"].fill_null(math.inf).to_numpy()
    limits = limits_of(trace, part.limits)
    job["estimate"] = np.minimum(estimates_of(part, trace), limits)
    for field_name in CODED:
        job[field_name] = _renumbered(job[field_name])
    type_map = whole_scenario.constant["type_map"]
    types, part_bodies["knows"] = known_types(whole_scenario.speeds, job, part_bodies, type_map)
    turns = eligibility_of(trace, whole_scenario.cluster, part.types)
    types = allowed_types(types, part_bodies, turns)
    elastic = 0
    if whole_scenario.speeds is not None:
        models = job["model"][job["model"] >= 0]
        elastic = int((~whole_scenario.speeds.relative[models]).sum())
    return dataclasses.replace(
        whole_scenario,
        trace=Columns(trace),
        job=job,
        body=part_bodies,
        constant=whole_scenario.constant | {"known": types},
        elastic=elastic,
        turns=turns,
        cache={},
    )


def _renumbered(codes: np.ndarray) -> np.ndarray:
    """Return an array of codes (n,) of a part of the jobs, as if no other had a name: from 0 up, without gaps, -1 for none."""
    used_codes = np.unique(codes[codes >= 0])
    renumbered = np.searchsorted(used_codes, codes).astype(np.int32)
    renumbered[codes < 0] = -1
    return renumbered


def with_durations(scenario, durations: np.ndarray):
    """Return a `Scenario` whose jobs run for other durations (n, s), in order of submission, and that is not prepared anew.

    It is for rigid jobs, and for estimators that do not know durations. Frames of its runs show the durations of its trace.
    """
    prepared = scenario.prepared
    job_bodies = prepared.body | {"work": np.ascontiguousarray(durations, float)}
    twin = object.__new__(type(scenario))
    common = scenario._common | {"prepared": dataclasses.replace(prepared, body=job_bodies)}
    vars(twin).update(vars(scenario) | {"_common": common})
    return twin
