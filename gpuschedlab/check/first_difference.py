"""Where two runs differ."""

import polars as pl


def different(a, b, when: str, drop: tuple[str, ...] = ()) -> str | None:
    """Say where two runs differ: jobs, then allocations, then timeline."""
    for name in ("jobs", "allocations", "timeline"):
        one, other = (getattr(run, name).drop(drop, strict=False) for run in (a, b))
        if one.equals(other):
            continue
        if one.shape != other.shape:
            return f".{name} has {one.shape} rows and columns, and {other.shape} {when}; expected the same"
        row = next(i for i in range(one.height) if not one[i].equals(other[i]))
        column = next(c for c in one.columns if not one[row, [c]].equals(other[row, [c]]))
        was, became = one[row, column], other[row, column]
        return f".{name} row {row}: {column} is {was}, and {became} {when}; expected the same"


def different_until(t: float, a, b, when: str) -> str | None:
    """Say where the allocations of two runs differ before time t (s)."""
    one, other = (
        run.allocations.filter(pl.col("start") < t)
        .with_columns(pl.col("end").clip(upper_bound=t))
        .group_by("job", "node", "start", maintain_order=True)
        .agg(pl.col("gpus").sum(), pl.col("end").max())
        .sort("start", "job", "node")
        for run in (a, b)
    )
    for row in range(max(one.height, other.height)):
        left, right = (frame.row(row, named=True) if row < frame.height else None for frame in (one, other))
        if left != right:
            return f"before t={t:g} s, an allocation is {left}, and {right} {when}; expected the same past. It sees the future"
