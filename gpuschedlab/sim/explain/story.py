"""The story of a job: its waits in a sentence or two."""

import numpy as np
import polars as pl

from gpuschedlab.metrics.sentence import span
from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.sim.explain import explanation
from gpuschedlab.sim.explain.wording import phrase
from gpuschedlab.sim.explain.wording import span as extent


def story(run, job: str | int) -> str:
    """Tell why a job waited, in a text; see `Run.story`."""
    job_row = explanation.row_of(run.jobs["job_id"], str(job))
    mine = run.jobs.row(job_row, named=True)
    first_words = run.info.get("log", {}).get("first") or "jobs that go before it"
    wait_start, wait_end = max(explanation.waits_of(run, job_row).tolist(), key=_length)
    if wait_end - wait_start < 0.5:
        return f"No wait: {_demand(mine['gpus'])} free for it at once."
    waits = f"Waits {span(mine['queueing'])}"
    stops = _stops(mine["preemptions"])
    longest = f"In its longest wait ({span(wait_end - wait_start)})"
    needs = f"it needs {mine['gpus']:g}"
    steps = pl.DataFrame()
    borders = []
    if run.decisions is not None:
        steps, borders = explanation.steps_of(run, job_row)
    if steps.is_empty():
        instants = run.timeline.filter(pl.col("time").is_between(wait_start, wait_end, closed="left"))
        free = (instants["capacity"] - instants["used"]).to_numpy()
        if not len(free):
            return f"{waits}{stops}."
        return f"{waits}{stops}. {longest} {_free(free.min(), free.max(), 'GPU')} free; {needs}."
    ends = steps["end"].gather(np.array(borders[1:]) - 1)
    reasons = steps[borders[:-1]].with_columns(end=ends)
    reasons = reasons.with_columns(s=pl.col("end") - pl.col("start"))
    within = reasons.filter((pl.col("start") < wait_end) & (pl.col("end") > wait_start))
    main = within.sort("s", descending=True).row(0, named=True)
    longest_part = steps.filter((pl.col("start") >= main["start"]) & (pl.col("start") < main["end"]))
    least_free = longest_part["free"].min()
    most_free = longest_part["free"].max()
    if main["reason"] == "behind":
        blocked = reasons.filter(pl.col("reason") == "behind")
        return waits + _behind(run, blocked, main, _free(least_free, most_free)) + "."
    holders = first_words
    if mine["preemptions"] > 0:
        stops += f" for {first_words}"
        holders = "these"
    if main["reason"] not in ("room", "nodes"):
        return f"{waits}{stops}. {longest}: {phrase(explanation.Context(run, job_row).group(longest_part))}."
    ahead = longest_part["ahead"].drop_nulls()
    free = _free(least_free, most_free, "GPU")
    if ahead.sum():
        total_gpus = cluster_of(run).total_gpus
        longest += f" {holders} hold {extent((ahead.min(), ahead.max()))} of {total_gpus} GPUs and"
        free = _free(least_free, most_free)
    scattered = ""
    if most_free >= mine["gpus"]:
        scattered = ", too scattered for the placement rule"
    return f"{waits}{stops}. {longest} {free} free{scattered}; {needs}."


def _length(wait: list[float]) -> float:
    """How long a wait lasts (s)."""
    wait_start, wait_end = wait
    return wait_end - wait_start


def _demand(gpus: float) -> str:
    """Write a number of GPUs, with the verb that follows, as text."""
    if gpus == 1:
        return f"{extent((gpus, gpus), 'GPU')} was"
    return f"{extent((gpus, gpus), 'GPU')} were"


def _stops(preemptions: int) -> str:
    """Write how often a job was stopped, as text; empty if it never was."""
    if preemptions == 0:
        return ""
    if preemptions == 1:
        return ", stopped once"
    return f", stopped {preemptions} times"


def _free(least_free: float, most_free: float, noun: str = "") -> str:
    """Write a range of free GPUs, with the verb that follows, as text."""
    verb = "are"
    if least_free == most_free == 1:
        verb = "is"
    return f"{extent((least_free, most_free), noun)} {verb}"


def _behind(run, reasons: pl.DataFrame, main: dict, free: str) -> str:
    """Write which jobs it waits behind, as none may pass, as text."""
    needs = run.jobs["gpus"][explanation.row_of(run.jobs["job_id"], main["blocker"])]
    jobs = reasons["blocker"].n_unique()
    which = f"job {main['blocker']}"
    needs = f"it needs {extent((needs,) * 2, 'GPU')} when {free} free"
    if jobs == 1:
        return f" behind {which}, which none may pass; {needs}"
    return f", behind {jobs} jobs in turn, which none may pass; longest ({span(main['s'])}) behind {which}: {needs}"
