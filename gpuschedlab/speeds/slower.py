"""Speed tables in which nodes of a GPU type are slower, or faster, than they were."""

from dataclasses import replace

import numpy as np

from gpuschedlab.speeds.build import decode, retyped
from gpuschedlab.speeds.table import Speeds


def scaled_type(speeds: Speeds, gpu_type: str, factor: float, name: str | None = None) -> Speeds:
    """Return `Speeds` that are `factor` times the present ones on a GPU type.

    Parameters
    ----------
    speeds : Speeds
    gpu_type : str
    factor : float
    name : str, optional
        Another type that goes so fast, beside `gpu_type`, which stays as it is; default: `gpu_type` itself goes so fast.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"model": "bert", "gpu_type": "t4", "n_gpus": [1, 2], "rate": [3.0, 5.0]})
    >>> scaled_type(Speeds.from_frame(frame), "t4", 0.5, "old").configurations()["rate"].to_list()
    [3.0, 5.0, 1.5, 2.5]
    """
    if gpu_type not in speeds.gpu_types:
        return speeds
    type_number = speeds.gpu_types.index(gpu_type)
    of_type = decode(speeds.code, speeds.shapes)[0] == type_number
    rate = np.concatenate([speeds.rate, speeds.rate * factor])
    moved = speeds.row + len(speeds.rate)
    if name is None:
        return replace(speeds, rate=rate, row=np.where(of_type, moved, speeds.row))
    model = np.repeat(np.arange(len(speeds.models)), np.diff(speeds.first))
    type_index = np.arange(len(speeds.gpu_types))
    type_index[type_number] = len(speeds.gpu_types)
    code, shapes = retyped(speeds, type_index)
    owner = np.concatenate([model, model[of_type]])
    codes = np.concatenate([speeds.code, code[of_type]])
    entry_order = np.lexsort((codes, owner))
    rate_rows = np.concatenate([speeds.row, moved[of_type]])
    return replace(
        speeds,
        gpu_types=(*speeds.gpu_types, name),
        first=np.searchsorted(owner[entry_order], np.arange(len(speeds.models) + 1)),
        code=codes[entry_order],
        row=rate_rows[entry_order],
        rate=rate,
        shapes={**shapes, **speeds.shapes},
    )
