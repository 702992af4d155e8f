"""Make the presets of the generator from real traces: `PYTHONPATH=.:tests python data/presets/make.py FOLDER [NAME ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import calibrate
from reproduce.published.data import EXTRACTS, load_real
from reproduce.published.generated_traces import LOADS, queueing

#: Where each trace came from, under which licence.
ORIGINS = {
    "philly": "Microsoft Philly, September to December 2017 (Jeon et al., ATC'19; msr-fiddle/philly-traces, CC-BY-4.0), "
    "the 82,247 jobs of the Pollux artifact (petuum/adaptdl, branch osdi21-artifact)",
    "venus": "SenseTime Helios, cluster Venus, April to September 2020 (Hu et al., SC'21; "
    "S-Lab-System-Group/HeliosData, CC-BY-4.0), durations cut off at 48 h",
    "pai": "Alibaba PAI, two months of 2020 (Weng et al., NSDI'22; alibaba/clusterdata cluster-trace-gpu-v2020, "
    "CC-BY-4.0), every twelfth terminated GPU task, fractions of GPUs rounded up, clock assumed",
}
#: Users (assumed: the extracts name none; PAI has more than 1,000).
USERS = {"philly": 300, "venus": 250, "pai": 1_000}


def outcomes(folder: Path, file: str, cluster: str) -> dict[str, dict[str, float]]:
    """Read the shares of a cluster's outcomes from a published summary, among GPU jobs and in GPU time."""
    table = pl.read_csv(folder / "traces" / "inventory" / file)
    row = table.filter(pl.col(table.columns[0]) == cluster).row(0, named=True)
    work = {kind: row[f"{kind}_gpu_time"] for kind in ("complete", "fail", "cancel")}
    names = {"complete": "completed", "fail": "failed", "cancel": "killed"}
    return {
        "jobs": {names[k]: row[f"{k}_rate_gpu"] for k in names},
        "gpu_time": {names[k]: round(work[k] / sum(work.values()), 3) for k in names},
    }


def venus_vcs(folder: Path) -> dict[str, float]:
    """Return Venus' virtual clusters by their share of its GPUs: the extract does not name the users."""
    table = pl.read_csv(folder / "traces" / "inventory" / "helios_venus_vc_gpus_daily.csv")
    mean = table.select(pl.exclude("date", "total").mean()).row(0, named=True)
    total = sum(mean.values())
    shares = {name: round(value / total, 5) for name, value in mean.items()}
    return {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share > 0}


def make(folder: Path, name: str) -> str:
    """Calibrate one extract; returns the JSON text of the preset."""
    known = {
        "philly": lambda: {"outcomes": outcomes(folder, "acme_cluster_summary.csv", "Philly")},
        "venus": lambda: {
            "outcomes": outcomes(folder, "helios_cluster_summary.csv", "Venus"),
            "vcs": venus_vcs(folder),
        },
        "pai": lambda: {},
    }[name]()
    trace, days = load_real(folder, name), EXTRACTS[name].days
    origin, users = ORIGINS[name], USERS[name]
    return calibrate(trace, name=name, origin=origin, days=days, users=users, waits=fifo_waits, **known).to_json()


def fifo_waits(trace: pl.DataFrame, days: float) -> np.ndarray:
    """Return the mean waits (s) of first come, first served at the LOADS of the bench, placed both ways.

    Consolidated, wide jobs wait for whole nodes to be free; packed, for GPUs only.
    """
    return np.array([queueing(trace, days, load, rule) for rule in ("consolidate", "pack") for load in LOADS])


def main(arguments: list[str]) -> int:
    """Write the presets (all, or those named after the folder) into data/presets."""
    if not arguments:
        raise TraceError("presets: found no folder; expected that of the reference data, with traces/.")
    folder, names = Path(arguments[0]), arguments[1:] or list(EXTRACTS)
    for name in names:
        path = Path(__file__).parent / f"{name}.json"
        path.write_text(make(folder, name), encoding="utf-8")
        print(path.name, f"{path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
