"""The progress of each job, added up anew: it agrees with the engine on random runs of every policy, and finds a tampered run out."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from dice import Dice, parts
from random_runs import POLICIES, problem_of

from gpuschedlab import (
    Cluster,
    Delays,
    Nodes,
    Outage,
    Scenario,
    Speeds,
    Srtf,
)
from gpuschedlab.check.recount import books_add_up, progress_adds_up


@pytest.fixture(autouse=True)
def added_up():
    """The tests here add the books up themselves."""


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_progress_adds_up_in_random_runs(name, pytestconfig):
    """A few seeds of each policy; `--runs 2000` divides so many among them all."""
    count = max(2, pytestconfig.getoption("--runs") // len(POLICIES))
    found = {seed: problem_of(name, seed) for seed in range(2 * count)}
    while None not in found.values() and len(found) < 60:
        found[len(found)] = problem_of(name, len(found))
    assert {seed: problem for seed, problem in found.items() if problem not in (None, "left out")} == {}
    assert None in found.values()


@pytest.mark.parametrize(("name", "seed"), [("dice", 10), ("dice", 57), ("srtf", 65)])
def test_progress_adds_up_where_it_once_did_not(name, seed):
    """Ends that rounding had put off when jobs were looked at, failed or were preempted; no node that is up."""
    assert problem_of(name, seed, plain=True) is None


# --- a sound run, and what becomes of it when something in it is changed

SRTF = Srtf()
CLUSTER = Cluster((Nodes("slow", 2, 4), Nodes("fast", 1, 4)), (Outage(0, 150.0, 400.0), Outage(2, 210.0, 260.0)))


def table() -> Speeds:
    """One model on 1 to 4 GPUs of two types, in two phases."""
    rows = [
        {"model": "m", "gpu_type": kind, "n_gpus": g, "progress": end, "rate": speed * g / (1 if end < 1e9 else 2)}
        for kind, speed in (("slow", 1.0), ("fast", 2.0))
        for g in (1, 2, 4)
        for end in (60.0, np.inf)
    ]
    return Speeds.from_frame(pl.DataFrame(rows), sharing={("m", "m"): 0.75})


def ordered() -> Scenario:
    n = 16
    jobs = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(n)],
            "submit": [11.0 * i for i in range(n)],
            "gpus": [(1.0, 2.0, 4.0)[i % 3] for i in range(n)],
            "duration": [300.0 - 17 * i for i in range(n)],
            "model": ["m" if i % 4 else None for i in range(n)],
            "target": [400.0 - 20 * i for i in range(n)],
        }
    )
    return Scenario(jobs, CLUSTER, speeds=table(), delays=Delays(restart=7.0, switch=2.0, checkpoint=40.0))


@pytest.fixture(scope="module")
def sound():
    """Runs of an order that preempts and of rounds at random, each with its scenario and policy."""
    jobs, cluster, more = parts(3)
    cases = {"ordered": (ordered(), SRTF), "rounds": (Scenario(jobs, cluster, **more), Dice(3))}
    return {name: (scenario.run(policy), scenario, policy) for name, (scenario, policy) in cases.items()}


def test_a_sound_run_adds_up(sound):
    assert [books_add_up(*case) for case in sound.values()] == [None, None]
    jobs = sound["ordered"][0].jobs
    assert min(jobs[c].sum() for c in ("preemptions", "restarts", "failures", "lost", "overhead")) > 0
    held = sound["rounds"][0].allocations
    assert min(held[c].sum() for c in ("guest", "merged", "profiling")) > 0
    assert held["source"].drop_nulls().len() > 0


index = pl.int_range(pl.len())


def at(where: pl.Expr) -> pl.Expr:
    """The first row for which something holds."""
    return index == index.filter(where).first()


def changed(column: str, value, where: pl.Expr) -> dict:
    return {column: pl.when(at(where)).then(value).otherwise(pl.col(column))}


restarted = (pl.col("delay") == 9) & (pl.col("end") - pl.col("start") > 20)
alone = pl.col("partner").is_null() & ~pl.col("profiling") & (pl.col("end") - pl.col("start") > 5)
progress = pl.col("end") - pl.col("start") > 20

TAMPERINGS = {
    "moved end": ("ordered", "jobs", changed("end", pl.col("end") + 5, index == 3), "job j03 .* done with its work at"),
    "later end": ("ordered", "allocations", changed("end", pl.col("end") + 5, progress), "done with its work|twice"),
    "lost stretch": ("ordered", "allocations", None, "done with its work at|with a delay of 9 s; expected 2 s"),
    "doubled GPUs": (
        "ordered",
        "allocations",
        changed("gpus", 2 * pl.col("gpus"), progress),
        "done|attained|lacks|it requested",
    ),
    "other type": (
        "ordered",
        "allocations",
        changed("gpu_type", pl.lit("fast"), (pl.col("gpu_type") == "slow") & (pl.col("job") == 1)),
        "job j01 is done with its work at",
    ),
    "missing delay": ("ordered", "allocations", changed("delay", 0.0, restarted), "a delay of 0 s; expected 9 s"),
    "missing start": (
        "ordered",
        "allocations",
        changed("delay", None, restarted),
        "goes on at .* expected a start|done",
    ),
    "one more restart": (
        "ordered",
        "jobs",
        changed("restarts", pl.col("restarts") + 1, index == 2),
        "job j02: restarts",
    ),
    "one preemption less": (
        "ordered",
        "jobs",
        changed("preemptions", pl.col("preemptions") - 1, pl.col("preemptions") > 0),
        "preemptions is",
    ),
    "a failure hidden": ("ordered", "jobs", changed("failures", 0, pl.col("failures") > 0), "failures is 0"),
    "less lost": ("ordered", "jobs", changed("lost", pl.col("lost") - 1, pl.col("lost") > 0), "lost is"),
    "less overhead": ("ordered", "jobs", changed("overhead", pl.col("overhead") - 1, index == 5), "job j05: overhead"),
    "moved start": ("ordered", "jobs", changed("start", pl.col("start") + 1, index == 4), "job j04: start is"),
    "longer work": ("ordered", "jobs", changed("duration", pl.col("duration") + 1, index == 4), "job j04 is done"),
    "no guest": ("rounds", "allocations", changed("guest", False, pl.col("guest")), "and one guest"),
    "no partner": ("rounds", "allocations", changed("partner", None, pl.col("guest")), "shares? GPUs"),
    "packed, not merged": ("rounds", "allocations", changed("merged", False, pl.col("merged")), "share GPUs"),
    "never merged": ("rounds", "allocations", {"merged": pl.lit(False)}, "done with its work at"),
    "no source": (
        "rounds",
        "allocations",
        {"source": pl.lit(None, pl.Int64)},
        "done with its work at|source is|lost is",
    ),
    "profiled instead": (
        "rounds",
        "allocations",
        changed("profiling", True, alone),
        "done with its work at|profiled is|lost is",
    ),
    "less shared": ("rounds", "jobs", changed("shared", pl.col("shared") / 2, pl.col("shared") > 0), "shared is"),
    "less attained": ("rounds", "jobs", changed("attained", pl.col("attained") - 1, index == 7), "job 07: attained"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampered_run_is_found_out(sound, name):
    case, frame, columns, words = TAMPERINGS[name]
    run, scenario, policy = sound[case]
    held = getattr(run, frame)
    held = held.filter(~at(progress)) if columns is None else held.with_columns(**columns)
    assert not held.equals(getattr(run, frame))
    tampered = replace(run, **{frame: held})
    assert books_add_up(tampered, scenario, policy) is not None
    assert re.search(words, progress_adds_up(tampered, scenario, ((0.0, policy),)) or "nothing")


@pytest.mark.parametrize("sooner", [0.0, 1.0])
def test_partners_share_for_the_same_time_in_any_number_of_stretches(sound, sooner):
    """A profile that ends divides the stretch of its job alone; what the partner holds a second too short is found."""
    run, scenario, policy = sound["rounds"]
    held = run.allocations
    first = held.row(by_predicate=at(pl.col("guest") & ~pl.col("profiling") & progress), named=True)
    cells = (pl.col("job") == first["job"]) & (pl.col("start") == first["start"])
    middle = (first["start"] + first["end"]) / 2
    halves = (
        held.filter(cells).with_columns(end=pl.lit(middle)),
        held.filter(cells).with_columns(pl.col("end") - sooner, start=pl.lit(middle), delay=pl.lit(None, pl.Float64)),
    )
    divided = replace(run, allocations=pl.concat([held.filter(~cells), *halves]))
    problem = progress_adds_up(divided, scenario, ((0.0, policy),))
    assert "share GPUs from" in problem if sooner else problem is None
