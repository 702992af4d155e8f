"""One cell, computed wherever a worker is."""

import copy
import pickle
import time
import traceback
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gpuschedlab.errors import LabError, RunError
from gpuschedlab.sweep.identity import code_of_package

HELD = 4
"""Scenes, and fitted estimators, that a worker keeps at hand."""

_NOTHING = object()
_held: OrderedDict[tuple, object] = OrderedDict()


@dataclass(frozen=True)
class Outcome:
    """What came of a cell.

    Parameters
    ----------
    key : str
        The cell's.
    metrics : dict or None
        By name; None when it failed.
    run : Run or None
        What happened, where it was asked for; nothing in it depends on how long it took.
    seconds : float
        Wall time of the simulation.
    rounds : list of float
        Wall time of each round, where the run was asked for.
    error, trace : str
        What went wrong, in one line, and where.
    """

    key: str
    metrics: dict | None = None
    run: object = None
    seconds: float = 0.0
    rounds: tuple[float, ...] = ()
    error: str = ""
    trace: str = ""


def packed(raw: bytes) -> np.ndarray:
    """Bytes as an array, which joblib and Dask send to each worker once and not with each cell."""
    return np.frombuffer(raw, np.uint8)


def work(key: str, raw: bytes | tuple, scene, code: str, keep_runs: bool) -> Outcome:
    """Compute a cell; what it does wrong is told, not raised.

    Parameters
    ----------
    key : str
        The cell's.
    raw : bytes or tuple
        (scene's key, policy, estimator, estimator's key), pickled if it comes from another process.
    scene : numpy.ndarray or plan.Scene
        The scene, or the bytes of its pickle.
    code : str
        `code_of_package` of who asks.
    keep_runs : bool
        Whether the run is wanted, too.
    """
    try:
        if code != code_of_package():
            raise RunError(
                "found another version of the package, or of what it stands on, on this worker; expected the same "
                "as where the sweep was started. Install that there."
            )
        return _computed(key, *(pickle.loads(raw) if isinstance(raw, bytes) else raw), scene, keep_runs)
    except Exception as raised:  # a policy may be anybody's code, and must not take the other cells with it
        told = str(raised) if isinstance(raised, LabError) else f"{type(raised).__name__}: {raised}"
        return Outcome(key, error=told.replace("\n", " "), trace=traceback.format_exc())


def _computed(key, scene_key, policy, estimator, estimator_key, given, keep_runs) -> Outcome:
    from gpuschedlab.metrics import summary
    from gpuschedlab.sim import simulate

    scene, trace, history = _once(("scene", scene_key), lambda: _opened(given))
    if history is not None:
        if estimator is not None:
            estimator = _once(("estimator", scene_key, estimator_key), lambda: copy.deepcopy(estimator).fit(history))
        policy = policy.fit(history) if hasattr(policy, "fit") else policy
    options = {"speeds": scene.speeds, "delays": scene.delays, "until": scene.until, "rng": scene.seed}
    begin = time.perf_counter()
    run = simulate(trace, scene.cluster, policy, estimator=estimator, **options)
    seconds = time.perf_counter() - begin
    metrics = summary(run, **scene.measure)
    metrics.pop("seconds")
    if not keep_runs:
        return Outcome(key, metrics, seconds=seconds)
    rounds = tuple(run.rounds["seconds"].to_list())
    # Two runs of a cell must be the same bytes: how long they took is told apart.
    info = {name: value for name, value in run.info.items() if name != "seconds"}
    run = replace(
        run,
        rounds=run.rounds.with_columns(seconds=pl.lit(None, pl.Float64), solving=pl.lit(None, pl.Float64)),
        info=info,
    )
    return Outcome(key, metrics, run, seconds, rounds)


def _opened(given) -> tuple:
    """Scene, its trace and its history (or None)."""
    from gpuschedlab.traces import validate

    scene = pickle.loads(given.tobytes()) if isinstance(given, np.ndarray) else given
    made = scene.trace() if callable(scene.trace) else scene.trace
    trace, history = made if isinstance(made, tuple) else (made, None)
    return scene, validate(trace), history


def _once(key: tuple, make):
    """Result of `make`, from the last time if that is not long ago."""
    value = _held.get(key, _NOTHING)
    if value is _NOTHING:
        value = _held[key] = make()
        while len(_held) > 2 * HELD:
            _held.popitem(last=False)
    return value


def forget():
    """Let go of scenes and estimators at hand."""
    _held.clear()


__all__ = ["Outcome", "forget", "packed", "work"]
