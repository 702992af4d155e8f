"""From long frames to the arrays of a speed table, and back."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import polars as pl

from gpuschedlab._knob import check_kind, tuple_of
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.checks import check_rows, index_of, need_columns, typed
from gpuschedlab.speeds.codes import ANY, code_shapes, config_codes
from gpuschedlab.speeds.pairs import PAIRS, join_pairs, pair_matrix

ARRAYS = {("first", "code", "row", "seg_first"): np.int64, ("rate", "seg_end", *PAIRS): np.float64, ("relative",): bool}
"""Fields of a `Speeds` by the type of their numbers."""


def arrays_from_frame(
    frame: pl.DataFrame,
    gpu_types: Iterable[str] | None,
    relative: bool,
    pairs: dict[str, dict[tuple[str, str], float] | None],
) -> dict:
    """Turn a long frame into the fields of `Speeds`; see `Speeds.from_frame`."""
    frame = _checked(frame)
    found = frame["gpu_type"].unique(maintain_order=True).to_list()
    types = tuple(found)
    if gpu_types is not None:
        types = tuple_of(gpu_types, str, SpeedError, "Speeds.gpu_types", "names of GPU types")
    check_kind(relative, bool | np.bool_, SpeedError, "Speeds.relative", "True or False")
    if missing := [t for t in found if t not in types]:
        raise SpeedError(f"Speeds: found GPU type {missing[0]!r}; expected one of gpu_types={types}. Add it there.")
    models = tuple(frame["model"].unique().sort())
    kind = index_of(frame["gpu_type"], types).to_numpy()
    model = index_of(frame["model"], models).to_numpy()
    code, shapes = _codes(frame, kind)
    progress = frame["progress"].to_numpy()
    order = np.lexsort((progress, code, model))
    model = model[order]
    code = code[order]
    progress = progress[order]
    new = np.ones(len(order), bool)
    new[1:] = (model[1:] != model[:-1]) | (code[1:] != code[:-1])
    row = np.flatnonzero(new)
    first = np.searchsorted(model[row], np.arange(len(models) + 1))
    lengths = np.diff(np.append(row, len(order)))
    seg_first = np.concatenate([[0], np.cumsum(lengths[first[:-1]])])
    seg_end = np.concatenate([progress[row[e] : row[e] + lengths[e]] for e in first[:-1]])
    _check_segments(models, model[row], row, lengths, progress, seg_first, seg_end)
    return {
        "models": models,
        "gpu_types": types,
        "first": first,
        "code": code[row],
        "row": row,
        "rate": frame["rate"].to_numpy()[order],
        "seg_first": seg_first,
        "seg_end": seg_end,
        "relative": np.full(len(models), relative),
        "shapes": shapes,
        **{name: pair_matrix(models, name, factors) for name, factors in pairs.items()},
    }


def join_speeds(a, b) -> dict:
    """Fields of the `Speeds` that holds the models of both; see `Speeds.join`."""
    if both := set(a.models) & set(b.models):
        raise SpeedError(f"Speeds.join: found {min(both)!r} in both; expected different models. Rename one.")
    if a.rounding != b.rounding:
        raise SpeedError(
            f"Speeds.join: found rounding={a.rounding:g} and {b.rounding:g} s; expected the same of both. Set it in one: "
            "dataclasses.replace(speeds, rounding=...)."
        )
    types = a.gpu_types + tuple(t for t in b.gpu_types if t not in a.gpu_types)
    code_b, shapes_b = retyped(b, np.array([types.index(t) for t in b.gpu_types], np.int64))
    order = np.lexsort((code_b, np.repeat(np.arange(len(b.models)), np.diff(b.first))))
    code_b = code_b[order]
    row_b = b.row[order] + len(a.rate)
    second = {"code": code_b, "row": row_b} | {name: getattr(b, name) for name in ("rate", "seg_end", "relative")}
    second |= {name: getattr(a, name)[-1] + getattr(b, name)[1:] for name in ("first", "seg_first")}
    return {
        "models": a.models + b.models,
        "gpu_types": types,
        **{name: np.concatenate([getattr(a, name), values]) for name, values in second.items()},
        "curves": a.curves.join(a.curves, b.curves) if a.curves and b.curves else a.curves or b.curves,
        "rounding": a.rounding,
        "shapes": {**a.shapes, **shapes_b},
        **join_pairs(a, b),
    }


def retyped(speeds, index: np.ndarray) -> tuple[np.ndarray, dict]:
    """Codes of all entries, and the shapes, when type t is called index[t] instead."""
    code = speeds.code.copy()
    plain = code >= 0
    code[plain] += (index[code[plain] >> 40] - (code[plain] >> 40)) << 40
    if not speeds.shapes:
        return code, {}
    old = list(speeds.shapes)
    kinds = index[np.array([speeds.shapes[c][0] for c in old])]
    new, shapes = _shape_codes(kinds, pl.Series([speeds.shapes[c][1] for c in old]))
    translate = dict(zip(old, new.tolist(), strict=True))
    code[~plain] = [translate[c] for c in code[~plain].tolist()]
    return code, shapes


def decode(code: np.ndarray, shapes: dict[int, tuple[int, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, list]:
    """Type, nodes, GPUs (ANY: any number) and placement of configurations (E,) by their codes; the reverse of `_codes`."""
    kinds = code >> 40
    nodes = code >> 20 & ANY
    gpus = code & ANY
    places = [None] * len(code)
    for e in np.flatnonzero(code < 0):
        kinds[e], places[e] = shapes[int(code[e])]
        counts = [int(c) for c in places[e].split(",")]
        nodes[e] = len(counts)
        gpus[e] = sum(counts)
    return kinds, nodes, gpus, places


def listed(speeds, kinds, nodes, gpus, places) -> pl.DataFrame:
    """One row a configuration, as `Speeds.configurations`, from its codes (`decode`)."""
    columns = {
        "model": np.repeat(np.array(speeds.models, dtype=object), np.diff(speeds.first)).astype(str),
        "gpu_type": np.array(speeds.gpu_types, dtype=object)[kinds].astype(str),
        "n_nodes": nodes,
        "n_gpus": gpus,
        "placement": pl.Series(places, dtype=pl.Utf8),
        "rate": speeds.rate[speeds.row],
    }
    return pl.DataFrame(columns).with_columns(pl.col("n_nodes", "n_gpus").replace(ANY, None))


def summarise(speeds, kinds) -> pl.DataFrame:
    """One row a model, as `Speeds.summary`, from the types of its entries (`decode`)."""
    segments = np.diff(speeds.seg_first)
    own = [slice(*span) for span in pairwise(speeds.first)]
    rates = [speeds.rate[speeds.row[span][:, None] + np.arange(s)] for span, s in zip(own, segments, strict=True)]
    kinds_of_models = [dict.fromkeys(kinds[span].tolist()) for span in own]
    return pl.DataFrame(
        {
            "model": speeds.models,
            "configurations": np.diff(speeds.first),
            "segments": segments,
            "total": speeds.total,
            "relative": speeds.relative,
            "slowest": [float(r.min()) for r in rates],
            "fastest": [float(r.max()) for r in rates],
            "gpu_type": [", ".join(speeds.gpu_types[k] for k in of_model) for of_model in kinds_of_models],
        }
    )


def _checked(frame):
    """Frame with all columns in canonical types, or SpeedError."""
    defaults = {"n_nodes": None, "progress": float("inf"), "placement": None}
    need_columns(frame, "Speeds", ("model", "gpu_type", "n_gpus", "rate"), *defaults)
    if frame.is_empty():
        raise SpeedError("Speeds: found no rows; expected at least one configuration of one model.")
    kinds = {
        "text": (pl.Utf8, "model", "gpu_type", "placement"),
        "whole numbers": (pl.Int64, "n_nodes", "n_gpus"),
        "numbers": (pl.Float64, "rate", "progress"),
    }
    frame = typed(frame, "Speeds", kinds, defaults)
    count_ok = pl.col("n_nodes", "n_gpus").is_between(1, ANY - 1).fill_null(True)
    rules = {
        "rate": (pl.col("rate").is_finite() & (pl.col("rate") > 0), "a number > 0"),
        "progress": (~pl.col("progress").is_nan() & (pl.col("progress") > 0), "a number > 0, or inf"),
        "model": (pl.col("model").is_not_null(), "a name"),
        "gpu_type": (pl.col("gpu_type").is_not_null(), "a name"),
        "n_gpus": (pl.all_horizontal(count_ok), "1 to 1048574 nodes and GPUs"),
        "n_nodes": (pl.col("n_gpus").is_not_null() | pl.col("n_nodes").is_null(), "null where n_gpus is null"),
    }
    check_rows(frame, rules, "Speeds: model {model!r} on {gpu_type!r} with {n_gpus} GPUs".format_map)
    return frame


def _codes(frame, kind):
    """Codes (rows,) of the frame's configurations, and the shapes among them."""
    nodes, gpus = (frame[c].fill_null(ANY).to_numpy() for c in ("n_nodes", "n_gpus"))
    code = config_codes(kind, nodes, gpus)
    placed = frame["placement"].is_not_null().to_numpy()
    if not placed.any():
        return code, {}
    code[placed], shapes = _shape_codes(kind[placed], frame["placement"].filter(placed))
    return code, shapes


def _shape_codes(kind, placement):
    """Codes of placements such as 431 or 16,8 on types, and {code: (type, placement)}."""
    table = pl.DataFrame({"kind": kind, "text": placement})
    unique = table.unique(maintain_order=True)
    if len(wrong := unique.filter(~pl.col("text").str.contains(r"^([1-9]+|[1-9]\d*(,[1-9]\d*)+)$"))):
        raise SpeedError(
            f"Speeds: found placement {wrong['text'][0]!r}; expected GPUs on each node, as in 431 or 16,8."
        )
    commas = pl.col("text").str.contains(",", literal=True)
    text = pl.col("text")
    words = pl.when(commas).then(text.str.split(",")).otherwise(text.str.split(""))
    not_empty = pl.element().filter(pl.element() != "")
    parts = unique.select(words.list.eval(not_empty.cast(pl.Int64))).to_series()
    lengths = parts.list.len().to_numpy()
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = code_shapes(unique["kind"].to_numpy(), starts, parts.explode().to_numpy())
    shapes: dict[int, tuple[int, str]] = {}
    for c, t, counts in zip(codes.tolist(), unique["kind"].to_list(), parts.to_list(), strict=True):
        smallest = min(counts[i:] + counts[:i] for i in range(len(counts)))
        value = (t, ",".join(map(str, smallest)))
        if shapes.setdefault(c, value) != value:
            raise SpeedError(f"Speeds: placements {value[1]} and {shapes[c][1]} have the same code; leave one out.")
    joined = table.join(unique.with_columns(code=codes), on=["kind", "text"], how="left", maintain_order="left")
    return joined["code"].to_numpy(), shapes


def _check_segments(models, owner, row, lengths, progress, seg_first, seg_end):
    """Raise SpeedError unless all configurations of a model have the same progress segments."""
    wanted = np.diff(seg_first)[owner]
    bad = lengths != wanted
    if not bad.any():
        offset = np.arange(len(progress)) - np.repeat(row, lengths)
        same = progress == seg_end[np.repeat(seg_first[owner], lengths) + offset]
        # A configuration given twice looks like one with twice the segments, none of them longer than the last.
        same[1:] &= (offset[1:] == 0) | (progress[1:] > progress[:-1])
        bad = ~np.logical_and.reduceat(same, row)
    if bad.any():
        e = np.flatnonzero(bad)[0]
        ends = progress[row[e] : row[e] + lengths[e]]
        raise SpeedError(
            f"Speeds: model {models[owner[e]]!r} has a configuration with {lengths[e]} progress rows up to "
            f"{ends[-1]:g}; expected the {wanted[e]} of its first configuration. Give all of a model's "
            f"configurations the same progress, and none (no rotated placement) twice; {bad.sum() - 1} more."
        )
