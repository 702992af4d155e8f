"""How often the interval of weeks like this one holds the median week, and what the days before a week change; on unseen seeds.

`cells` plays 100 weeks of each preset and load under six policies. Of these weeks so many as `SIZES` says are drawn with replacement, so
that the median of the 100 is the truth of each draw; `held` is the least share over sizes of intervals that hold it, and `held_6` that
of six weeks. `stopped` is the share where weeks are added one by one from the sixth on, as `gpuschedlab compare` does, with the mean
number of `weeks`. `wrong` is the share of answers on another side than the median week, both outside the zone of 3 %. `in_row` is the
share of stretches of 12 seeds in a row, which share the days before, whose interval holds.

`ends` plays ten logs of 2 + 12 weeks on end, whole, and the same 12 weeks one by one, with warm days and without; ratios are of EASY
over Tiresias. `inside` is the work inside the weeks that count, `cost` that of the warm days in CPU time, `fifo` and `easy` in how many
of the logs the queue is said to grow without end.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import polars as pl

from gpuschedlab.metrics.intervals import MedianInterval, median_interval
from gpuschedlab.metrics.like_weeks import FEWEST, MOST, enough
from gpuschedlab.metrics.queue_growth import grows_without_end, queue_of
from gpuschedlab.metrics.who_pays import CLOSE
from reproduce.published.kept import measure_all, source_of

TRACES = ("venus", "philly", "pai")
LOADS = (0.7, 0.9, 1.05)
END_LOADS = (0.8, 0.9)
SEEDS = tuple(range(40_000, 40_100))
"""Of the weeks of a cell; nothing was chosen on them."""
LOGS = tuple(range(70_000, 71_000, 100))
"""Seeds of the first week of each log."""
COUNTED = 12
PAIRS = (
    ("fifo", "srtf"),
    ("easy", "srtf"),
    ("easy", "tiresias"),
    ("easy", "themis"),
    ("tiresias", "gittins"),
    ("tiresias", "themis"),
)
METRICS = ("mean", "p99")
SIZES = (6, 9, 12, 20)
DRAWS = 1_000
MINUTES = 14.0
DAY = 86_400.0
WEEK = 7 * DAY


def policies() -> dict:
    """The six policies."""
    import gpuschedlab as lab

    return {
        "fifo": lab.Fifo(),
        "easy": lab.Fifo(backfill="easy"),
        "srtf": lab.Srtf(),
        "tiresias": lab.Tiresias(),
        "gittins": lab.Tiresias(metric="gittins"),
        "themis": lab.Themis(),
    }


def week_of(preset: str, load: float, warm: float = 14.0):
    """The default recipe of a preset at a load."""
    from gpuschedlab.scenarios import recipe_of

    return recipe_of("week").with_knobs(preset=preset, load=load, warm=warm)


def jct_of(run) -> np.ndarray:
    """Times to finish (s) of the jobs submitted at 0 or later."""
    jobs = run.columns("jobs")
    return (jobs["end"] - jobs["submit"])[jobs["submit"] >= 0]


def measure(_, kind: str, preset: str, load: float, seed: int) -> dict:
    """Figures of one week, or of one log on end."""
    if kind == "week":
        return _one_week(preset, load, seed)
    return _one_log(preset, load, seed)


def _one_week(preset: str, load: float, seed: int) -> dict:
    """By policy, mean and p99 of the times to finish (s)."""
    scenario = week_of(preset, load)(seed)
    row = {"kind": "week", "preset": preset, "load": load, "seed": seed, "policies": {}}
    for name, policy in policies().items():
        jct = jct_of(scenario.run(policy))
        row["policies"][name] = {"mean": float(jct.mean()), "p99": float(np.quantile(jct, 0.99))}
    return row


def _one_log(preset: str, load: float, seed: int) -> dict:
    """By week, the mean JCT (s) of EASY and Tiresias on end, with warm days and without; work inside, CPU seconds, and what grows."""
    chosen = {name: policy for name, policy in policies().items() if name in ("easy", "tiresias")}
    row = {"kind": "end", "preset": preset, "load": load, "seed": seed, "inside": [], "cpu": {}}
    row["end"] = _on_end(preset, load, seed, chosen)
    queues = {"easy": [], "fifo": []}
    for kind, warm in (("warm", 14.0), ("cold", 0.0)):
        means = {name: [] for name in chosen}
        begin = time.process_time()
        for number in range(2, COUNTED + 2):
            scenario = week_of(preset, load, warm)(seed + number)
            for name, policy in chosen.items():
                means[name].append(float(jct_of(scenario.run(policy)).mean()))
        row["cpu"][kind] = time.process_time() - begin
        row[kind] = means
    for number in range(2, COUNTED + 2):
        scenario = week_of(preset, load)(seed + number)
        row["inside"].append(_inside(scenario.played, scenario.cluster.total_gpus))
        for name, weeks in queues.items():
            weeks.append(queue_of(scenario.run(policies()[name])))
    row["grows"] = {name: grows_without_end(weeks) for name, weeks in queues.items()}
    return row


def _on_end(preset: str, load: float, seed: int, chosen: dict) -> dict:
    """Mean JCT (s) of each week but the first two, by policy, where all are played on end."""
    recipe = week_of(preset, load, 0.0)
    weeks = []
    for number in range(COUNTED + 2):
        jobs = recipe.trace(seed + number)
        name = pl.format("{}-{}", pl.lit(number), pl.col("job_id"))
        weeks.append(jobs.with_columns(pl.col("submit") + number * WEEK, job_id=name))
    log = recipe(seed).replace(trace=pl.concat(weeks))
    week = (log.trace["submit"].to_numpy() // WEEK).astype(int)
    jobs = np.bincount(week)
    return {name: (np.bincount(week, jct_of(log.run(p))) / jobs)[2:].tolist() for name, p in chosen.items()}


def _inside(jobs: pl.DataFrame, gpus: int) -> float:
    """GPU-time that jobs would use within the week if none waited, over what is there."""
    submit = jobs["submit"].to_numpy()
    end = np.minimum(submit + jobs["duration"].to_numpy(), WEEK)
    seconds = np.clip(end - np.maximum(submit, 0.0), 0.0, None)
    return float(jobs["gpus"].to_numpy() @ seconds / (gpus * WEEK))


def ratios_of(rows: list[dict], pair: tuple[str, str], metric: str) -> np.ndarray:
    """Ratios of each week, in order of seed."""
    rows = sorted(rows, key=lambda row: row["seed"])
    slower, faster = np.array([[row["policies"][name][metric] for name in pair] for row in rows]).T
    return slower / faster


def is_wrong(interval: MedianInterval, truth: float) -> bool:
    """Whether an interval says another side than the truth, both outside the zone of 3 %."""
    if 1 / CLOSE < interval.median < CLOSE or 1 / CLOSE < truth < CLOSE:
        return False
    return bool((interval.low > 1 > truth) or (interval.high < 1 < truth))


def stopped(draw: np.ndarray) -> tuple[MedianInterval, int]:
    """Interval and number of the weeks after which the rule stops."""
    for size in range(FEWEST, MOST + 1):
        interval = median_interval(draw[:size])
        if enough(interval):
            break
    return interval, size


def cell_of(ratios: np.ndarray, rng) -> dict:
    """Coverage, wrong sides and weeks that are needed, of the ratios of a cell."""
    truth = float(np.median(ratios))
    found = {"median": truth}
    wrong = []
    for size in SIZES:
        intervals = [median_interval(draw) for draw in rng.choice(ratios, (DRAWS, size))]
        found[f"held_{size}"] = float(np.mean([i.low <= truth <= i.high for i in intervals]))
        wrong.append(np.mean([is_wrong(i, truth) for i in intervals]))
    ends = [stopped(draw) for draw in rng.choice(ratios, (DRAWS, MOST))]
    found["stopped"] = float(np.mean([i.low <= truth <= i.high for i, _ in ends]))
    found["weeks"] = float(np.mean([size for _, size in ends]))
    wrong.append(np.mean([is_wrong(i, truth) for i, _ in ends]))
    found["wrong"] = float(max(wrong))
    rows = [median_interval(ratios[k : k + MOST]) for k in range(len(ratios) - MOST + 1)]
    found["in_row"] = float(np.mean([i.low <= truth <= i.high for i in rows])) if rows else np.nan
    return found


def cells_of(rows: list[dict]) -> list[dict]:
    """A row for each preset, load, pair and metric."""
    cells = []
    keys = sorted({(row["preset"], row["load"]) for row in rows}, key=str)
    for (preset, load), pair, metric in product(keys, PAIRS, METRICS):
        mine = [row for row in rows if (row["preset"], row["load"]) == (preset, load)]
        about = {"trace": preset, "load": load, "pair": "/".join(pair), "metric": metric, "of": len(mine)}
        cells.append(about | cell_of(ratios_of(mine, pair, metric), np.random.default_rng(len(cells))))
    return cells


def ends_of(rows: list[dict]) -> list[dict]:
    """A row for each preset and load: median ratios of ten logs on end, with warm days and without."""
    found = []
    for preset, load in sorted({(row["preset"], row["load"]) for row in rows}, key=str):
        mine = [row for row in rows if (row["preset"], row["load"]) == (preset, load)]
        medians = {}
        for kind in ("end", "warm", "cold"):
            medians[kind] = np.array([np.median(np.divide(row[kind]["easy"], row[kind]["tiresias"])) for row in mine])
        one = {"trace": preset, "load": load, "logs": len(mine)}
        one |= {kind: float(values.mean()) for kind, values in medians.items()}
        one["near"] = int((np.abs(medians["warm"] / medians["end"] - 1) <= 0.12).sum())
        one["warm_off"] = one["warm"] / one["end"] - 1
        one["cold_off"] = one["cold"] / one["end"] - 1
        one["inside"] = float(np.mean([row["inside"] for row in mine]))
        one["cost"] = sum(row["cpu"]["warm"] for row in mine) / sum(row["cpu"]["cold"] for row in mine)
        for name in ("fifo", "easy"):
            one[name] = sum(row["grows"][name] for row in mine if "grows" in row)
        found.append(one)
    return found


def is_good(cells: list[dict], ends: list[dict]) -> bool:
    """Whether intervals hold as often as they should, sides are right, and warm days do what they are for."""
    held = [min(cell[f"held_{size}"] for size in SIZES[1:]) for cell in cells]
    good = all(share >= 0.92 for share in held) and all(cell["held_6"] >= 0.91 for cell in cells)
    good = good and all(cell["stopped"] >= 0.90 and cell["wrong"] <= 0.02 for cell in cells)
    return good and all(end["near"] >= 0.8 * end["logs"] and abs(end["warm_off"]) <= 0.06 for end in ends)


def run(
    data_dir=None,
    traces=TRACES,
    loads=LOADS + END_LOADS[:1],
    seeds=SEEDS + LOGS,
    minutes: float = MINUTES,
    workers: int = 1,
) -> dict:
    """Measure what is not kept yet, for so many minutes, and judge all that is.

    Returns
    -------
    dict
        `cells` and `ends`, `left` (cases that are not measured yet), `source`, a hash of the code that measured, and `ok`.
    """
    cases = [("end", preset, load, seed) for seed in LOGS for load in END_LOADS for preset in TRACES]
    cases += [("week", preset, load, seed) for seed in SEEDS for load in LOADS for preset in TRACES]
    cases = [case for case in cases if case[1] in traces and case[2] in loads and case[3] in seeds]
    answers = measure_all("weeks", measure, data_dir, cases, workers, seconds=60 * minutes, files=())
    rows = [answer for answer in answers if answer is not None]
    cells = cells_of([row for row in rows if row["kind"] == "week"])
    ends = ends_of([row for row in rows if row["kind"] == "end"])
    left = len(answers) - len(rows)
    return {
        "cells": cells,
        "ends": ends,
        "left": left,
        "source": source_of(measure, data_dir, ()),
        "ok": not left and is_good(cells, ends),
    }
