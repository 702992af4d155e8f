"""Gain of a fine-tuning task from another of the same foundation model, from measured curves."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.curves import Curves
from gpuschedlab.speeds.profiles import need_columns

SETTING = ("task", "learning_rate", "grad_steps")


class Transfer(NamedTuple):
    """Arguments for `Speeds.from_frame`: factors by pair of models, and the curves behind them (progress in epochs)."""

    merged: dict[tuple[str, str], float]
    transfer: dict[tuple[str, str], float]
    curves: Curves


def transfer_speeds(
    own: pl.DataFrame,
    temporal: pl.DataFrame,
    spatial: pl.DataFrame,
    fm: str,
    targets: pl.DataFrame,
    *,
    samples: Mapping[str, float] | None = None,
) -> Transfer:
    """Turn measured fine-tuning curves of one foundation model into a `Transfer`: speed factors by pair of tasks.

    A factor is E / E', with E the epochs that a task needs to its target alone and E' those with the other task.
    Both end at the first evaluation at or above the target. 0: E' is more than was measured. Models are called
    ``fm@task``.

    Parameters
    ----------
    own : polars.DataFrame
        `fm, task, learning_rate, grad_steps, epoch, value`: each task alone.
    temporal : polars.DataFrame
        `fm, source, target, epoch, value`: the target's curve from the source's result.
    spatial : polars.DataFrame
        `fm, task_a, task_b, task, epoch, value`: each task's curve while the two are trained jointly.
    fm : str
        The foundation model.
    targets : polars.DataFrame
        `task, learning_rate, grad_steps, target`: the curve of `own` that counts, and the value to reach. Tasks
        that are not listed are left out.
    samples : mapping of str to float, optional
        Samples in an epoch of each task. With it, `merged` counts that a joint epoch passes over both tasks'
        samples: E D / (E' (D + D')), and curves count in epochs of the task alone. Without, it is the epochs saved alone, as
        if the other's samples cost nothing.

    Returns
    -------
    Transfer
        `merged[a, b]` is of a while it is trained with b; `transfer[a, b]` is of b after a. Of runs that were
        repeated, the first counts.

    Raises
    ------
    SpeedError
        A column is missing, a task is paired with itself, its own curve is missing or never reaches its target, or its
        samples are not known.

    Notes
    -----
    Differs from the paper in: nothing known. Ymir's merger takes the epochs from an estimator instead.

    References
    ----------
    Gao, PhD thesis, NTU 2025, equations 3.5 to 3.7; data: TitanSched (SoCC'22).

    Examples
    --------
    >>> alone = {"fm": "vit", "task": "b", "learning_rate": 1e-3, "grad_steps": 1}
    >>> own = pl.DataFrame([alone | {"epoch": e, "value": v} for e, v in ((1.0, 0.5), (2.0, 0.7), (3.0, 0.8))])
    >>> own = pl.concat([own, own.with_columns(task=pl.lit("a"))])
    >>> after = pl.DataFrame({"fm": "vit", "source": "a", "target": "b", "epoch": [1.0, 2.0], "value": [0.7, 0.9]})
    >>> joint = pl.DataFrame({"fm": "vit", "task_a": "a", "task_b": "b", "task": "b", "epoch": [1.0], "value": [0.6]})
    >>> goal = own.select("task", "learning_rate", "grad_steps", target=pl.lit(0.75)).unique()
    >>> transfer_speeds(own, after, joint, "vit", goal)[:2]
    ({('vit@b', 'vit@a'): 0.0}, {('vit@a', 'vit@b'): 1.5})
    """
    who = "transfer_speeds"
    need_columns(targets, f"{who}, targets", (*SETTING, "target"))
    need_columns(own, f"{who}, own", ("fm", *SETTING, "epoch", "value"))
    need_columns(temporal, f"{who}, temporal", ("fm", "source", "target", "epoch", "value"))
    need_columns(spatial, f"{who}, spatial", ("fm", "task_a", "task_b", "task", "epoch", "value"))
    _check_partners(who, temporal, "temporal", "source", "target")
    _check_partners(who, spatial, "spatial", "task_a", "task_b")
    goals = targets.select(model="task", goal="target")
    is_first = pl.col("task") == pl.col("task_a")
    partner = pl.when(is_first).then("task_b").otherwise("task_a")
    alone = own.join(targets.select(SETTING), on=SETTING, maintain_order="left")
    runs = {
        "own": alone.with_columns(model="task", other=pl.lit(None, pl.Utf8)),
        "merged": spatial.with_columns(model="task", other=partner),
        "transfer": temporal.with_columns(model="target", other="source"),
    }
    points = {mode: _points(frame.filter(fm=fm), goals) for mode, frame in runs.items()}
    alone = _epochs(points["own"]).select("model", alone="epochs")
    _check_alone(goals, alone, samples)
    saved = {mode: _saved(points[mode], alone) for mode in ("merged", "transfer")}
    if samples is not None:  # progress is in epochs of the task alone, of which a joint epoch is several
        samples_of = {c: pl.col(c).replace_strict(samples, return_dtype=pl.Float64) for c in ("model", "other")}
        share = samples_of["model"] / (samples_of["model"] + samples_of["other"])
        saved["merged"] = saved["merged"].with_columns(pl.col("factor") * share)
        points["merged"] = points["merged"].with_columns(pl.col("epoch") / share)
    merged, transfer = ({(f"{fm}@{a}", f"{fm}@{b}"): f for a, b, f in saved[m].iter_rows()} for m in saved)
    curves = pl.concat(frame.with_columns(mode=pl.lit(mode)) for mode, frame in points.items())
    prefix = pl.lit(f"{fm}@")
    model_names = [(prefix + pl.col(column)).alias(column) for column in ("model", "other")]
    curves = Curves.from_frame(curves.with_columns(model_names).rename({"epoch": "progress", "value": "metric"}))
    return Transfer(merged, {(source, model): f for (model, source), f in transfer.items()}, curves)


def _points(frame: pl.DataFrame, goals: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of curves `model, other, epoch, value, goal` of tasks with a goal, the first run of each: its epochs ascend."""
    falls = (pl.col("epoch").diff() <= 0).fill_null(False)
    run = falls.cum_sum().over("model", "other")
    known_other = pl.col("other").is_null() | pl.col("other").is_in(goals["model"].implode())
    frame = frame.select("model", "other", "epoch", "value", run=run).filter(known_other, run=0).drop("run")
    return frame.join(goals, on="model", maintain_order="left")


def _epochs(points: pl.DataFrame) -> pl.DataFrame:
    """Return a frame: the epoch of the first evaluation at or above the goal of each curve; null if there is none."""
    reached = pl.col("epoch").filter(pl.col("value") >= pl.col("goal")).first()
    return points.group_by("model", "other", maintain_order=True).agg(epochs=reached)


def _saved(points: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """Return a frame `model, other, factor` of each pair: epochs alone over epochs in the pair, 0 if it never gets there."""
    epochs = _epochs(points).join(alone, on="model", maintain_order="left")
    factor = pl.col("alone") / pl.col("epochs")
    return epochs.select("model", "other", factor=factor.fill_null(0.0))


def _check_partners(who: str, frame: pl.DataFrame, name: str, one: str, other: str) -> None:
    """Raise SpeedError if a task is its own partner."""
    same = frame.filter(pl.col(one) == pl.col(other))
    if same.height:
        raise SpeedError(
            f"{who}, {name}: found task {same[one][0]!r} as its own partner; expected two different tasks in {one} and "
            f"{other}. Leave such rows out."
        )


def _check_alone(goals: pl.DataFrame, alone: pl.DataFrame, samples: Mapping[str, float] | None) -> None:
    """Raise SpeedError unless each task reaches its goal alone, and its samples are known if any are."""
    reached = dict(alone.iter_rows())
    for task, goal in goals.iter_rows():
        if task not in reached:
            raise SpeedError(
                f"transfer_speeds: found no curve of task {task!r} with the learning_rate and grad_steps of targets; "
                "expected one. Leave the task out, or name a setting of own."
            )
        if reached[task] is None:
            raise SpeedError(
                f"transfer_speeds: task {task!r} never reaches its target {goal} alone; expected a value that its own "
                "curve reaches. Lower the target."
            )
        if samples is not None and not samples.get(task, 0) > 0:
            raise SpeedError(f"transfer_speeds: found no samples > 0 of task {task!r}; expected those of an epoch.")
