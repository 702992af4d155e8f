"""Generated traces against the real ones: distributions, arrivals, and how long their jobs queue.

Each preset is generated over the stretch that it was calibrated on, several times; what is compared are medians over the seeds.
None of the seeds is one that the calibration saw.
"""

from __future__ import annotations

import itertools
import time
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import ks_2samp

from gpuschedlab.errors import LabError
from gpuschedlab.traces import generate, load_preset
from gpuschedlab.traces.trace_statistics import autocorrelation, fano, hourly
from reproduce.published.data import EXTRACTS, load_real

SEEDS = tuple(range(15))
LOADS = (0.7, 0.9)
GPUS_PER_NODE = 8
#: Upper ends of the buckets of GPU counts; those with fewer real jobs than LEAST are not compared.
BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LEAST = 500


class Bound(NamedTuple):
    """What may be how far off: `kind` is how the deviation is counted."""

    limit: float
    kind: str


#: Deviation allowed, by measure.
BOUNDS = {
    "duration_ks": Bound(0.05, "distance"),
    "bucket_ks": Bound(0.1, "distance"),
    "gpu_share": Bound(0.01, "difference"),
    "arrivals": Bound(0.03, "relative"),
    "fano": Bound(0.3, "relative"),
    "acf_24h": Bound(0.1, "difference"),
    "queueing_0.7": Bound(2.0, "factor"),
    "queueing_0.9": Bound(2.0, "factor"),
}


def run(data_dir=None, seeds=SEEDS) -> dict:
    """Compare every preset with its trace.

    Returns
    -------
    dict
        `ok`, and `rows`: preset, measure, real, generated (median over seeds), deviation, limit, ok.

    Raises
    ------
    LabError
        Without a folder.
    """
    if data_dir is None:
        raise LabError(
            "bench traces: found no folder of real traces; expected one with traces/. Name it with GPUSCHEDLAB_DATA_DIR."
        )
    begin = time.perf_counter()
    rows = [row for name in EXTRACTS for row in compare(name, load_real(data_dir, name), seeds)]
    return {
        "ok": all(row["ok"] for row in rows),
        "rows": rows,
        "seeds": list(seeds),
        "wall_seconds": time.perf_counter() - begin,
    }


def compare(name: str, real: pl.DataFrame, seeds=SEEDS) -> list[dict]:
    """Compare one preset with the trace that it was calibrated on."""
    figures = load_preset(name)
    days = EXTRACTS[name].days
    made = [generate(name, days=days, start=figures.start, rng=seed) for seed in seeds]
    rows = [_row(name, "duration_ks", 0.0, [_ks_distance(_log(one), _log(real)) for one in made])]
    for low, high in _buckets(real):
        inside = pl.col("gpus").is_between(low, high, closed="right")
        part = real.filter(inside)
        if part.height >= LEAST:
            found = [_ks_distance(_log(one.filter(inside)), _log(part)) for one in made]
            rows.append(_row(name, "bucket_ks", 0.0, found, f"gpus in ({low}, {high}]"))
    shares = [_share_difference(one, real) for one in made]
    rows.append(_row(name, "gpu_share", 0.0, shares))
    synthetic = [arrivals(one, days) for one in made]
    of_real = arrivals(real, days)
    rows += [_row(name, key, of_real[key], [one[key] for one in synthetic]) for key in of_real]
    for load, rule in itertools.product(LOADS, (None, "pack")):
        found = [queueing(one, days, load, rule) for one in made]
        rows.append(_row(name, f"queueing_{load:g}", queueing(real, days, load, rule), found, rule or ""))
    return rows


def _row(preset: str, measure: str, real: float, made: list[float], where: str = "") -> dict:
    bound = BOUNDS[measure]
    median = float(np.median(made))
    if bound.kind == "factor":
        off = max(median, 1e-9) / max(real, 1e-9)
        off = max(off, 1 / off)
    else:
        off = abs(median - real) / (abs(real) if bound.kind == "relative" else 1.0)
    return {
        "preset": preset,
        "measure": measure,
        "where": where,
        "real": float(real),
        "generated": median,
        "low": float(np.min(made)),
        "high": float(np.max(made)),
        "deviation": float(off),
        "limit": bound.limit,
        "ok": bool(off <= bound.limit),
    }


def _buckets(real: pl.DataFrame) -> list[tuple[float, float]]:
    ends = [*BUCKETS, max(real["gpus"].max(), BUCKETS[-1] + 1)]
    return list(zip([0, *ends[:-1]], ends))


def _log(frame: pl.DataFrame) -> np.ndarray:
    return np.log(frame["duration"].to_numpy())


def _ks_distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples."""
    return float(ks_2samp(one, other, method="asymp").statistic)


def _share_difference(made: pl.DataFrame, real: pl.DataFrame) -> float:
    """Return the largest difference of the shares of a GPU count among the jobs."""
    values = np.union1d(made["gpus"].unique().to_numpy(), real["gpus"].unique().to_numpy())
    shares = []
    for frame in (made, real):
        gpus = np.sort(frame["gpus"].to_numpy())
        number = np.searchsorted(gpus, values, side="right") - np.searchsorted(gpus, values, side="left")
        shares.append(number / frame.height)
    return float(np.max(np.abs(shares[0] - shares[1])))


def arrivals(frame: pl.DataFrame, days: float) -> dict[str, float]:
    """Measure arrivals: jobs an hour, Fano factor and autocorrelation of hourly counts."""
    counts = hourly(frame["submit"].to_numpy(), round(days * 24))
    return {"arrivals": counts.mean(), "fano": fano(counts), "acf_24h": autocorrelation(counts, 24)}


def queueing(frame: pl.DataFrame, days: float, load: float, placement: str | None = None) -> float:
    """Return the mean queueing time (s) of first come, first served on a cluster that the trace loads so far.

    The cluster has nodes of 8 GPUs, as many as bring the trace's GPU time to the load. Jobs are placed as `Fifo` does
    unless `placement` says otherwise.
    """
    from gpuschedlab import Cluster, simulate
    from gpuschedlab.policies import Fifo

    gpus = (frame["gpus"] * frame["duration"]).sum() / (days * 86_400) / load
    nodes = max(round(gpus / GPUS_PER_NODE), int(np.ceil(frame["gpus"].max() / GPUS_PER_NODE)))
    cluster = Cluster.homogeneous(nodes=nodes, gpus_per_node=GPUS_PER_NODE)
    jobs = frame.select("job_id", "submit", "gpus", "duration")
    policy = Fifo() if placement is None else Fifo(placement=placement)
    return float(simulate(jobs, cluster, policy).jobs["queueing"].mean())
