"""Notebook 15: weights tuned on one week and judged on the next, and quotas with and without reclaiming."""

import polars as pl

from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.kueue import Kueue
from gpuschedlab.papers.clusters.recipe import Site

KNOBS = ("weight_age", "weight_fairshare", "weight_size", "depth")
"""What is tuned of a site's own rule."""


def tuned_on_the_first_week(site: Site) -> pl.DataFrame:
    """Average JCT of both weeks under the site's rule as configured, and as the first week tunes it."""
    from gpuschedlab.autosched import Space, best_fixed

    week = pl.col("submit") // (7 * 86_400)
    first, second = (site().replace(trace=site.trace.filter(week == i)) for i in (0, 1))
    tuned, rows = best_fixed(first, Space(site.own, KNOBS), rounds=40, searches=1).best.policy, []
    for name, rule in {"as configured": site.own, "tuned": tuned}.items():
        hours = [part.run(rule).summary()["jct_mean"] / 3600 for part in (first, second)]
        row = {"rule": name, "first week (h)": hours[0], "second week (h)": hours[1]}
        rows.append(row | {knob: round(getattr(rule, knob)) for knob in KNOBS})
    return pl.DataFrame(rows)


def quotas(site: Site) -> pl.DataFrame:
    """How long each account's jobs wait, and how many were evicted, if each owns an equal part of the GPUs."""
    cluster, rows = site().cluster, []
    accounts = site.trace["account"].drop_nulls().unique().sort().to_list()
    own = ((cluster.gpu_types[0], cluster.total_gpus / len(accounts)),)
    for reclaim in ("Never", "Any"):
        queues = tuple(Queue(name, "all", own, reclaim=reclaim) for name in accounts)
        jobs = site().run(Kueue(queues, column="account")).jobs
        jobs = jobs.join(site.trace.select("job_id", "account"), on="job_id")
        wait = pl.col("end") - pl.col("submit") - pl.col("duration")
        each = jobs.group_by("account").agg(wait_h=wait.mean() / 3600, evicted=pl.sum("preemptions"))
        rows.append(each.sort("account").with_columns(reclaim=pl.lit(reclaim)))
    return pl.concat(rows)
