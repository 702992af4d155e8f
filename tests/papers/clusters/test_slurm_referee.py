"""Slurm's own rule beside recorded streams of a real slurmctld, decision by decision, and mean waits of free runs."""

import csv
import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from reproduce.papers.clusters.slurm_judge import Stream, agreed, free_running, judged, numbers, recorded, table

ROOT = Path(__file__).resolve().parents[3]
LEAST = {"array": 0.94, "multifactor": 0.8, "fairshare": 0.8, "qos": 0.9} | {f"limits-{i}": 0.92 for i in range(1, 9)}
LEAST |= {"types-5": 0.92}
"""Least share of the starts of a stream, .97 where nothing is said."""
PHASES = {"fifo": 0, "b11": 5, "b12": 5, "h22": 26, "r31": 5, "r31b": 4, "r31c": 4}
"""Seconds over a multiple of 30 since 1970 of streams whose epoch nobody wrote down: those that fit."""


@cache
def scores():
    """Rows of the table by stream."""
    return {name: row for name, *row in table(recorded())}


@pytest.mark.parametrize("name", sorted({name for name, _ in recorded()}))
def test_starts_are_as_recorded(name):
    jobs, right, placed, *_ = scores()[name]
    assert right >= LEAST.get(name, 0.97) * jobs
    assert placed >= 0.9 * right


def test_without_its_limits_a_stream_is_decided_otherwise():
    stream = recorded()["limits-1", 1]
    assert judged(replace(stream, limits=()))[0] < 0.5 * len(stream.jobs)


def test_the_judge_notices_another_order_and_other_nodes():
    stream = recorded()["busy", 1]
    stream.tiers = {"p": 0}
    stream.priorities = {job["job_id"]: [(0, i)] for i, job in enumerate(stream.jobs)}  # the last goes first
    assert judged(stream)[0] < 0.5 * len(stream.jobs)
    assert agreed(stream, stream) == len(stream.jobs)


def given(data_dir, name: str) -> Stream:
    """A stream that was recorded elsewhere."""
    with open(data_dir / f"inputs/slurm/{name}.csv") as file:
        rows = [{k: v if k == "nodelist" else int(v) for k, v in row.items()} for row in csv.DictReader(file)]
    jobs = [row | {"nodelist": numbers(row["nodelist"])} for row in rows]
    return Stream(name, 8 if name == "h22" else 4, 3000 + PHASES[name], jobs, name == "fifo")


@pytest.mark.data
@pytest.mark.parametrize(
    ("names", "least"), [(("fifo",), 90), (("b11", "b12", "h22"), 290), (("r31", "r31b", "r31c"), 262)]
)
def test_starts_of_other_streams(names, least, data_dir):
    found = np.sum([judged(given(data_dir, name)) for name in names], axis=0)
    assert found[0] >= least
    assert found[1] >= 0.9 * found[0]


@pytest.mark.data
def test_free_runs_wait_as_long_on_the_mean(data_dir):
    streams = [given(data_dir, name) for name in ("b11", "b12", "h22", "r31")]
    off = [abs(np.mean(free_running(stream)) / stream.wait - 1) for stream in streams]
    assert np.mean(off) <= 0.12


def test_the_page_has_the_table():
    page = (ROOT / "docs/systems/slurm-checked.md").read_text(encoding="utf-8")
    for name, (jobs, right, placed, itself, of, first, second) in scores().items():
        row = f"| {name} | {right} of {jobs} | {placed} | {itself} of {of} | {first:.1f}, {second:.1f} |"
        assert row in page, "copy what PYTHONPATH=.:tests python -m reproduce.papers.clusters.slurm_judge prints"


def test_the_recorder_draws_the_recorded_jobs_or_says_why_it_records_nothing(monkeypatch):
    make = runpy.run_path(str(ROOT / "data/slurm/make.py"))
    streams = {stream.name: stream for stream in make["STREAMS"]}
    for (name, _), stream in recorded().items():
        drawn = make["drawn"](streams[name])
        gpus = [job["nodes"] * job["each"] for job in drawn for _ in range(job.get("tasks", 1))]
        assert gpus == [job["gpus"] for job in stream.jobs]
    monkeypatch.setattr(make["os"], "geteuid", lambda: 1000)
    assert make["why_not"]() == "recording a Slurm needs root on Linux"
