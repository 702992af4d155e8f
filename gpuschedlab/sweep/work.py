"""The computation of one cell, in any worker process."""

import copy
import pickle
import time
import traceback
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gpuschedlab.errors import LabError, RunError, interrupts
from gpuschedlab.sim import Scenario
from gpuschedlab.sweep.identity import code_of_package, digest

HELD = 4
"""Scenarios, with their fitted estimators, that a worker keeps at hand."""

_held: OrderedDict[tuple, object] = OrderedDict()


@dataclass(frozen=True)
class Outcome:
    """Outcome of a cell, by its key."""

    key: str
    metrics: dict | None = None  # by name; None when it failed
    run: object = None  # if runs are kept; nothing in it depends on the time that it took
    seconds: float = 0.0  # wall time of the simulation
    rounds: tuple[float, ...] = ()  # wall time (s) of each, if runs are kept
    error: str = ""  # what went wrong, in one line
    trace: str = ""  # and where
    labels: dict | None = None  # columns of the cell's file about its scenario: cluster, estimator
    books: str | None = None  # what in its run does not add up, "" where all does; None: not looked at


@dataclass(frozen=True)
class Given:
    """Result of a cell in its scenario, which is apart as cells share it."""

    content: str  # digest of the scenario, but for its seed
    seed: int
    policy: object
    estimator: object  # in place of the scenario's; None: none
    measure: dict  # options of `metrics.summary`


def packed(raw: bytes) -> np.ndarray:
    """Return bytes as an array, which joblib and Dask send to each worker once and not with each cell."""
    return np.frombuffer(raw, np.uint8)


def work(key: str, raw: bytes | Given, scenario, code: str, keep_runs: bool, add_up: bool) -> Outcome:
    """Compute a cell, and `add_up` its books, in an `Outcome`; its errors are reported there, not raised."""
    try:
        if code != code_of_package():
            raise RunError(
                "found another version of the package, or of its dependencies, on this worker; expected the same "
                "as where the sweep was started. Install that there."
            )
        with interrupts():
            cell_inputs = pickle.loads(raw) if isinstance(raw, bytes) else raw
            return _computed(key, cell_inputs, _scenario_of(cell_inputs, scenario), keep_runs, add_up)
    except Exception as raised:  # a policy may be anybody's code, and must not take the other cells with it
        message = str(raised) if isinstance(raised, LabError) else f"{type(raised).__name__}: {raised}"
        return Outcome(key, error=message.replace("\n", " "), trace=traceback.format_exc())


def _scenario_of(cell_inputs: Given, source) -> Scenario:
    """Return the `Scenario` of a cell: the part that it shares with those of other seeds is at hand, if it was used lately."""
    scenario = _once((cell_inputs.content,), lambda: _opened(source))
    if cell_inputs.estimator is not None:
        fitted_key = (cell_inputs.content, digest(cell_inputs.estimator))
        scenario = _once(fitted_key, lambda: scenario.replace(estimator=cell_inputs.estimator))
    return scenario if scenario.seed == cell_inputs.seed else scenario.replace(seed=cell_inputs.seed)


def _computed(cell_key: str, cell_inputs: Given, scenario: Scenario, keep_runs: bool, add_up: bool) -> Outcome:
    """Run a cell's policy in its scenario, measure, and return the `Outcome`."""
    from gpuschedlab.metrics import summary

    simulation = scenario.simulation(cell_inputs.policy)
    cell_begin = time.perf_counter()
    run = simulation.run(scenario.until)
    seconds = time.perf_counter() - cell_begin
    metrics = summary(run, **cell_inputs.measure)
    metrics.pop("seconds")
    labels = {"cluster": str(scenario.cluster), "estimator": scenario.estimator_name.lower()}
    books = None
    if add_up:
        from gpuschedlab.check.recount import books_add_up

        books = books_add_up(run, scenario, simulation.policy, most=200) or ""
    if not keep_runs:
        return Outcome(cell_key, metrics, seconds=seconds, labels=labels, books=books)
    # Two runs of a cell must be the same bytes: the time that they took is kept apart.
    untimed = run.rounds.with_columns(pl.lit(None, pl.Float64).alias(info_name) for info_name in ("seconds", "solving"))
    info = {info_name: info_value for info_name, info_value in run.info.items() if info_name != "seconds"}
    rounds = tuple(run.rounds["seconds"].to_list())
    return Outcome(
        cell_key, metrics, replace(run, rounds=untimed, info=info), seconds, rounds, labels=labels, books=books
    )


def _opened(source) -> Scenario:
    """Return a `Scenario` of a worker's own: its fitted estimator is not kept for longer than it."""
    worker_scenario = pickle.loads(source.tobytes()) if isinstance(source, np.ndarray) else source
    return worker_scenario() if callable(worker_scenario) else copy.copy(worker_scenario)


def _once(memory_key: tuple, make):
    """Return the result of `make`, any object, from the last time if that is not long ago."""
    if memory_key not in _held:
        _held[memory_key] = make()
        while len(_held) > 2 * HELD:
            _held.popitem(last=False)
    return _held[memory_key]


def forget():
    """Let go of the scenarios at hand."""
    _held.clear()
