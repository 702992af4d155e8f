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
    """Turn a long frame into a dict of the fields of `Speeds`; see `Speeds.from_frame`."""
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
    """Return a dict of the fields of the `Speeds` that holds the models of both; see `Speeds.join`."""
    if both := set(a.models) & set(b.models):
        raise SpeedError(f"Speeds.join: found {min(both)!r} in both; expected different models. Rename one.")
    if a.rounding != b.rounding:
        raise SpeedError(
            f"Speeds.join: found rounding={a.rounding:g} and {b.rounding:g} s; expected the same of both. Set it in one: "
            "dataclasses.replace(speeds, rounding=...)."
        )
    types = a.gpu_types + tuple(gpu_type for gpu_type in b.gpu_types if gpu_type not in a.gpu_types)
    code_b, shapes_b = retyped(b, np.array([types.index(gpu_type) for gpu_type in b.gpu_types], np.int64))
    entry_order = np.lexsort((code_b, np.repeat(np.arange(len(b.models)), np.diff(b.first))))
    code_b = code_b[entry_order]
    row_b = b.row[entry_order] + len(a.rate)
    second = {"code": code_b, "row": row_b} | {
        speed_array: getattr(b, speed_array) for speed_array in ("rate", "seg_end", "relative")
    }
    second |= {
        speed_array: getattr(a, speed_array)[-1] + getattr(b, speed_array)[1:] for speed_array in ("first", "seg_first")
    }
    return {
        "models": a.models + b.models,
        "gpu_types": types,
        **{
            speed_array: np.concatenate([getattr(a, speed_array), speed_field])
            for speed_array, speed_field in second.items()
        },
        "curves": a.curves.join(a.curves, b.curves) if a.curves and b.curves else a.curves or b.curves,
        "rounding": a.rounding,
        "shapes": {**a.shapes, **shapes_b},
        **join_pairs(a, b),
    }


def retyped(speeds, index: np.ndarray) -> tuple[np.ndarray, dict]:
    """Return a pair when type t is called index[t] instead: an array of the codes of all entries, and a dict of the shapes."""
    code = speeds.code.copy()
    plain = code >= 0
    code[plain] += (index[code[plain] >> 40] - (code[plain] >> 40)) << 40
    if not speeds.shapes:
        return code, {}
    old_codes = list(speeds.shapes)
    new_types = index[np.array([speeds.shapes[shape][0] for shape in old_codes])]
    new_codes, shapes = _shape_codes(new_types, pl.Series([speeds.shapes[shape][1] for shape in old_codes]))
    translate = dict(zip(old_codes, new_codes.tolist(), strict=True))
    code[~plain] = [translate[shape] for shape in code[~plain].tolist()]
    return code, shapes


def decode(code: np.ndarray, shapes: dict[int, tuple[int, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, list]:
    """Return a tuple (type, nodes, GPUs, placement), three arrays (E,) and a list, of configurations by their codes.

    GPUs are ANY for any number. This is the reverse of `_codes`.
    """
    type_of_entry = code >> 40
    nodes = code >> 20 & ANY
    gpus = code & ANY
    places = [None] * len(code)
    for entry in np.flatnonzero(code < 0):
        type_of_entry[entry], places[entry] = shapes[int(code[entry])]
        gpus_of_nodes = [int(gpus_on_node) for gpus_on_node in places[entry].split(",")]
        nodes[entry] = len(gpus_of_nodes)
        gpus[entry] = sum(gpus_of_nodes)
    return type_of_entry, nodes, gpus, places


def listed(speeds, kinds, nodes, gpus, places) -> pl.DataFrame:
    """Return a frame with one row a configuration, as `Speeds.configurations`, from its codes (`decode`)."""
    configuration_columns = {
        "model": np.repeat(np.array(speeds.models, dtype=object), np.diff(speeds.first)).astype(str),
        "gpu_type": np.array(speeds.gpu_types, dtype=object)[kinds].astype(str),
        "n_nodes": nodes,
        "n_gpus": gpus,
        "placement": pl.Series(places, dtype=pl.Utf8),
        "rate": speeds.rate[speeds.row],
    }
    return pl.DataFrame(configuration_columns).with_columns(pl.col("n_nodes", "n_gpus").replace(ANY, None))


def summarise(speeds, kinds) -> pl.DataFrame:
    """Return a frame with one row a model, as `Speeds.summary`, from the types of its entries (`decode`)."""
    segments = np.diff(speeds.seg_first)
    entries_of_models = [slice(*span) for span in pairwise(speeds.first)]
    rates = [
        speeds.rate[speeds.row[span][:, None] + np.arange(segment_count)]
        for span, segment_count in zip(entries_of_models, segments, strict=True)
    ]
    kinds_of_models = [dict.fromkeys(kinds[span].tolist()) for span in entries_of_models]
    return pl.DataFrame(
        {
            "model": speeds.models,
            "configurations": np.diff(speeds.first),
            "segments": segments,
            "total": speeds.total,
            "relative": speeds.relative,
            "slowest": [float(model_rates.min()) for model_rates in rates],
            "fastest": [float(model_rates.max()) for model_rates in rates],
            "gpu_type": [
                ", ".join(speeds.gpu_types[type_number] for type_number in of_model) for of_model in kinds_of_models
            ],
        }
    )


def _checked(frame):
    """Return the frame with all columns in canonical types, or raise SpeedError."""
    defaults = {"n_nodes": None, "progress": float("inf"), "placement": None}
    need_columns(frame, "Speeds", ("model", "gpu_type", "n_gpus", "rate"), *defaults)
    if frame.is_empty():
        raise SpeedError("Speeds: found no rows; expected at least one configuration of one model.")
    column_types = {
        "text": (pl.Utf8, "model", "gpu_type", "placement"),
        "whole numbers": (pl.Int64, "n_nodes", "n_gpus"),
        "numbers": (pl.Float64, "rate", "progress"),
    }
    frame = typed(frame, "Speeds", column_types, defaults)
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


def _codes(frame, type_of_row):
    """Return an array (rows,) of the codes of the frame's configurations, and a dict of the shapes among them."""
    nodes, gpus = (frame[column_name].fill_null(ANY).to_numpy() for column_name in ("n_nodes", "n_gpus"))
    code = config_codes(type_of_row, nodes, gpus)
    placed = frame["placement"].is_not_null().to_numpy()
    if not placed.any():
        return code, {}
    code[placed], shapes = _shape_codes(type_of_row[placed], frame["placement"].filter(placed))
    return code, shapes


def _shape_codes(type_of_row, placement):
    """Return an array of codes of placements such as 431 or 16,8 on types, and a dict {code: (type, placement)}."""
    placements = pl.DataFrame({"kind": type_of_row, "text": placement})
    unique = placements.unique(maintain_order=True)
    if len(wrong_placements := unique.filter(~pl.col("text").str.contains(r"^([1-9]+|[1-9]\d*(,[1-9]\d*)+)$"))):
        raise SpeedError(
            f"Speeds: found placement {wrong_placements['text'][0]!r}; expected GPUs on each node, as in 431 or 16,8."
        )
    commas = pl.col("text").str.contains(",", literal=True)
    placement_text = pl.col("text")
    placement_parts = pl.when(commas).then(placement_text.str.split(",")).otherwise(placement_text.str.split(""))
    not_empty = pl.element().filter(pl.element() != "")
    gpu_counts = unique.select(placement_parts.list.eval(not_empty.cast(pl.Int64))).to_series()
    lengths = gpu_counts.list.len().to_numpy()
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = code_shapes(unique["kind"].to_numpy(), starts, gpu_counts.explode().to_numpy())
    shapes: dict[int, tuple[int, str]] = {}
    for shape, type_number, gpus_of_nodes in zip(
        codes.tolist(), unique["kind"].to_list(), gpu_counts.to_list(), strict=True
    ):
        smallest = min(gpus_of_nodes[turn:] + gpus_of_nodes[:turn] for turn in range(len(gpus_of_nodes)))
        type_and_placement = (type_number, ",".join(map(str, smallest)))
        if shapes.setdefault(shape, type_and_placement) != type_and_placement:
            raise SpeedError(
                f"Speeds: placements {type_and_placement[1]} and {shapes[shape][1]} have the same code; leave one out."
            )
    joined = placements.join(unique.with_columns(code=codes), on=["kind", "text"], how="left", maintain_order="left")
    return joined["code"].to_numpy(), shapes


def _check_segments(models, owner, rate_row, lengths, progress, seg_first, seg_end):
    """Raise SpeedError unless all configurations of a model have the same progress segments."""
    wanted = np.diff(seg_first)[owner]
    bad = lengths != wanted
    if not bad.any():
        offset = np.arange(len(progress)) - np.repeat(rate_row, lengths)
        same = progress == seg_end[np.repeat(seg_first[owner], lengths) + offset]
        # A configuration given twice looks like one with twice the segments, none of them longer than the last.
        same[1:] &= (offset[1:] == 0) | (progress[1:] > progress[:-1])
        bad = ~np.logical_and.reduceat(same, rate_row)
    if bad.any():
        bad_entry = np.flatnonzero(bad)[0]
        ends = progress[rate_row[bad_entry] : rate_row[bad_entry] + lengths[bad_entry]]
        raise SpeedError(
            f"Speeds: model {models[owner[bad_entry]]!r} has a configuration with {lengths[bad_entry]} progress rows up to "
            f"{ends[-1]:g}; expected the {wanted[bad_entry]} of its first configuration. Give all of a model's "
            f"configurations the same progress, and none (no rotated placement) twice; {bad.sum() - 1} more."
        )
