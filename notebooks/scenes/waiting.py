"""Notebook 01: what arrives at the same load, and what the rules of placement make of the same jobs."""

from dataclasses import replace

import polars as pl

import gpuschedlab as lab
from gpuschedlab.cluster import RULES
from gpuschedlab.speeds import default_speeds
from gpuschedlab.widgets import SmallCluster


def weeks(days: int, gpus: int, seed: int) -> dict:
    """Three traces of one cluster, each of the same load on average."""
    sizes = {"days": days, "load": 0.9, "cluster_gpus": gpus}
    return {name: lab.generate(name, **sizes, rng=seed) for name in ("venus", "philly", "pai")}


def in_numbers(traces: dict, days: int, gpus: int) -> lab.Table:
    """Jobs, durations and load of each trace, and how long its jobs wait under FIFO with greedy backfill."""
    seconds, held, rows = pl.col("duration"), pl.col("gpus"), []
    cluster, fifo = lab.Cluster.homogeneous(gpus // 8, 8), lab.Fifo(backfill="greedy")
    for name, trace in traces.items():
        columns = {
            "jobs": pl.len(),
            "median duration (min)": (seconds.median() / 60).round(1),
            "mean duration (h)": (seconds.mean() / 3600).round(1),
            "jobs of one GPU (%)": (100 * (held <= 1).mean()).round(0),
            "load (%)": (100 * (held * seconds).sum() / (gpus * days * 86_400)).round(0),
        }
        run = lab.simulate(trace.filter(held <= cluster.total_gpus), cluster, fifo)
        wait = pl.lit(round(run.summary()["queueing_mean"] / 3600, 2)).alias("mean wait (h)")
        rows.append(trace.select(pl.lit(name).alias("trace"), **columns).with_columns(wait))
    return lab.Table(pl.concat(rows))


def placed(small: SmallCluster, seed: int) -> tuple[dict, dict]:
    """Runs of the same jobs under every rule: where a job on twice the nodes runs at .4 of its speed, and where that is free."""
    fifos = {rule: lab.Fifo(backfill="greedy", placement=rule, patience=3600) for rule in RULES}
    scenarios = [replace(small, spread_speed=speed)(seed) for speed in (0.4, 1.0)]
    dear, free = ({rule: one.run(fifo) for rule, fifo in fifos.items()} for one in scenarios)
    return dear, free


def mixed(nodes: int, seed: int) -> dict:
    """Runs of two generated days under every rule, with the measured slowdowns of eleven models."""
    cluster = lab.Cluster.homogeneous(nodes, 8)
    days = lab.generate("venus", days=2, load=0.9, cluster_gpus=cluster.total_gpus, rng=seed)
    scenario = lab.Scenario(days, cluster, speeds=default_speeds)
    return {r: scenario.run(lab.Fifo(backfill="greedy", placement=r, patience=3600)) for r in RULES}
