"""The Titan artifact's workloads under its own rules: who ends when it says, and what each slip is worth.

With all slips on, Tiresias, SRTF, Optimus and Themis end every job within `WITHIN` s of its published time.
"""

from dataclasses import replace
from itertools import product

import polars as pl

from gpuschedlab.estimators import Oracle
from gpuschedlab.sim import Run
from reproduce.papers.ymir import titan
from reproduce.papers.ymir.artifact_times import artifact_speeds
from reproduce.papers.ymir.runs import RIGID, as_published
from reproduce.papers.ymir.slips import ALL, INTERVAL, Slips, slipped
from reproduce.published.kept import measure_all

RULES = ("tiresias", "srtf", "optimus", "themis")
"""Policies that end every job as published by the artifact's rules; Pollux, which searches at random, is near on average."""

FOLLOWED = 0.95
"""Share of jobs that have to end as published."""

MENDED = ("youngest", "extra_pass", "refuse", "settings")
"""Fields of `Slips`, in the order in which `mended` turns them off."""


def artifact_run(data_dir, name: str, fm: str, load: float, slips: Slips = ALL) -> Run:
    """Run of a policy of `RULES`, or Pollux, with these slips."""
    parts = {"speeds": artifact_speeds(data_dir, fm)} if slips.settings and name not in RIGID else {}
    given = titan.scenario(data_dir, fm, load, elastic=name not in RIGID, estimator=Oracle(), **parts)
    return given.run(slipped(data_dir, name, fm, slips))


def counted(run: Run, interval: float = INTERVAL) -> pl.DataFrame:
    """Job completion times as the artifact counts them: `job_id, jct` (s), progress of each round in whole seconds.

    A start takes a part of a second, so that each adds up to half a second to what has passed.
    """
    last = pl.col("end") - pl.col("start") - interval
    parts = (pl.min_horizontal(last, 0.0) + interval - pl.col("delay"), pl.max_horizontal(last, 0.0) % interval)
    held = run.allocations.unique(["job", "start"], maintain_order=True)
    added = held.group_by("job", maintain_order=True).agg(added=sum(p.round() - p for p in parts).sum())
    jobs = run.jobs.select("job_id", "jct").with_row_index("job").with_columns(pl.col("job").cast(pl.Int64))
    found = jobs.join(added, on="job", how="left", maintain_order="left", validate="1:1")
    return found.select("job_id", jct=pl.col("jct") + pl.col("added"))


def measure_rules(data_dir, name: str, fm: str, load: float) -> dict:
    """A policy under all rules of the artifact: `as_published`, the share of jobs that end when it says, and `avg_jct` (s)."""
    jobs = counted(artifact_run(data_dir, name, fm, load), slipped(data_dir, name, fm, ALL).interval)
    return {"as_published": as_published(data_dir, jobs, name, fm, load), "avg_jct": float(jobs["jct"].mean())}


def mended(data_dir, name: str, fm: str, load: float) -> dict[str, float]:
    """Average completion times (s): "as is", and after each of `MENDED` is turned off, one after the other; not of Themis."""
    slips = ALL
    found = {}
    for what in ("as is", *MENDED):
        slips = replace(slips, **{what: False}) if what in MENDED else slips
        found[what] = float(artifact_run(data_dir, name, fm, load, slips).jobs["jct"].mean())
    return found


def decomposed(data_dir, name: str, fm: str, load: float) -> dict[str, float]:
    """`jobs_within_2_s` by all rules, and what is left of the average as slips are mended."""
    share = {"jobs_within_2_s": measure_rules(data_dir, name, fm, load)["as_published"]}
    return share | (mended(data_dir, name, fm, load) if name != "themis" else {})


def run(data_dir, traces: tuple = titan.MODELS, loads: tuple = titan.LOADS, policies: tuple = RULES) -> dict:
    """What the artifact's rules explain, and what each slip is worth, of each foundation model (`traces`) and load.

    Returns
    -------
    dict
        `rows`: a dict a case, with those of `decomposed`; `ok`: at least `FOLLOWED` of the jobs of each end as published.
    """
    cases = list(product(policies, traces, loads))
    answers = measure_all("titan", decomposed, data_dir, cases, files=("profiles", "reference"))
    rows = [dict(zip(("policy", "model", "load"), case)) | row for case, row in zip(cases, answers, strict=True)]
    return {"rows": rows, "ok": all(row["jobs_within_2_s"] >= FOLLOWED for row in rows)}
