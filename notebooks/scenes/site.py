"""Notebook 15: weights tuned on one week and judged on the next, and quotas with and without reclaiming."""

import polars as pl

from gpuschedlab import Table
from gpuschedlab.knobs import knobs_of
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.kueue import Kueue
from gpuschedlab.papers.clusters.recipe import Site

KNOBS = ("weight_age", "weight_fairshare", "weight_size", "depth")
"""What is tuned of a site's own rule."""


def tuned_on_the_first_week(site: Site) -> Table:
    """Average JCT of both weeks under the site's rule as configured, and as the first week tunes it."""
    from gpuschedlab.autosched import Space, best_fixed

    week = pl.col("submit") // (7 * 86_400)
    first, second = (site().replace(trace=site.trace.filter(week == i)) for i in (0, 1))
    tuned = best_fixed(first, Space(site.own, KNOBS), rounds=40, searches=1).best.policy
    words = {knob: info.words for knob, info in knobs_of(site.own).items()}
    rows = []
    for name, rule in {"as configured": site.own, "tuned": tuned}.items():
        jct = [part.run(rule).summary()["jct_mean"] for part in (first, second)]
        row = {"rule": name, "first week": jct[0], "second week": jct[1]}
        rows.append(row | {words[knob]: round(getattr(rule, knob)) for knob in KNOBS})
    units = {"first week": "s", "second week": "s"}
    return Table(pl.DataFrame(rows), units=units, caption="Average JCT of each week.")


def quotas(site: Site) -> Table:
    """How long each account's jobs wait, and how many were evicted, if each owns an equal part of the GPUs."""
    cluster = site().cluster
    rows = []
    accounts = site.trace["account"].drop_nulls().unique().sort().to_list()
    own = ((cluster.gpu_types[0], cluster.total_gpus / len(accounts)),)
    for reclaim in ("Never", "Any"):
        queues = tuple(Queue(name, "all", own, reclaim=reclaim) for name in accounts)
        jobs = site().run(Kueue(queues, column="account")).jobs
        jobs = jobs.join(site.trace.select("job_id", "account"), on="job_id")
        wait = pl.col("end") - pl.col("submit") - pl.col("duration")
        accounts_jobs = jobs.group_by("account").agg(wait=wait.mean(), evicted=pl.sum("preemptions"))
        rows.append(accounts_jobs.sort("account").with_columns(reclaim=pl.lit(reclaim)))
    return Table(pl.concat(rows), names={"wait": "mean wait", "evicted": "jobs evicted"}, units={"wait": "s"})
