"""The story of a job: its waits in a sentence or two."""

import numpy as np
import polars as pl

from gpuschedlab.metrics.sentence import span
from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.sim.explain import explanation
from gpuschedlab.sim.explain.wording import phrase
from gpuschedlab.sim.explain.wording import span as extent


def story(run, job: str | int) -> str:
    """Tell why a job waited; see `Run.story`."""
    row = explanation.row_of(run.jobs["job_id"], str(job))
    mine = run.jobs.row(row, named=True)
    first = run.info.get("log", {}).get("first") or "jobs that go before it"
    start, end = max(explanation.waits_of(run, row).tolist(), key=lambda wait: wait[1] - wait[0])
    needs = extent((mine["gpus"],) * 2, "GPU")
    if end - start < 0.5:
        return f"No wait: {needs} {'was' if mine['gpus'] == 1 else 'were'} free for it at once."
    stops = mine["preemptions"]
    often = f", stopped {'once' if stops == 1 else f'{stops} times'}" if stops else ""
    steps, borders = (pl.DataFrame(), []) if run.decisions is None else explanation.steps_of(run, row)
    waits = f"Waits {span(mine['queueing'])}"
    longest = f"In its longest wait ({span(end - start)})"
    if steps.is_empty():
        line = run.timeline.filter(pl.col("time").is_between(start, end, closed="left"))
        free = (line["capacity"] - line["used"]).to_numpy()
        if not len(free):
            return f"{waits}{often}."
        return f"{waits}{often}. {longest} {_free(free.min(), free.max(), ' GPUs')} free; it needs {mine['gpus']:g}."
    reasons = steps[borders[:-1]].with_columns(end=steps["end"].gather(np.array(borders[1:]) - 1))
    reasons = reasons.with_columns(s=pl.col("end") - pl.col("start"))
    within = reasons.filter((pl.col("start") < end) & (pl.col("end") > start))
    main = within.sort("s", descending=True).row(0, named=True)
    part = steps.filter((pl.col("start") >= main["start"]) & (pl.col("start") < main["end"]))
    total = cluster_of(run).total_gpus
    least_most = (part["free"].min(), part["free"].max())
    if main["reason"] == "behind":
        return waits + _behind(run, reasons.filter(pl.col("reason") == "behind"), main, _free(*least_most)) + "."
    often += f" for {first}" * (stops > 0)
    if main["reason"] not in ("room", "nodes"):
        return f"{waits}{often}. {longest}: {phrase(explanation.Context(run, row).group(part))}."
    ahead = part["ahead"].drop_nulls()
    hold = (
        f" {'these' if stops else first} hold {extent((ahead.min(), ahead.max()))} of {total} GPUs and"
        if ahead.sum()
        else ""
    )
    scattered = ", too scattered for the placement rule" if part["free"].max() >= mine["gpus"] else ""
    return f"{waits}{often}. {longest}{hold} {_free(*least_most, '' if hold else ' GPUs')} free{scattered}; it needs {mine['gpus']:g}."


def _free(least: float, most: float, what: str = "") -> str:
    return f"{extent((least, most))}{what.removesuffix('s') if most == 1 else what} {'is' if most == least == 1 else 'are'}"


def _behind(run, reasons: pl.DataFrame, main: dict, free: str) -> str:
    """Which jobs it waits behind, as none may pass."""
    needs = run.jobs["gpus"][explanation.row_of(run.jobs["job_id"], main["blocker"])]
    jobs = reasons["blocker"].n_unique()
    which = f"job {main['blocker']}"
    needs = f"it needs {extent((needs,) * 2, 'GPU')} when {free} free"
    if jobs == 1:
        return f" behind {which}, which none may pass; {needs}"
    return f", behind {jobs} jobs in turn, which none may pass; longest ({span(main['s'])}) behind {which}: {needs}"
