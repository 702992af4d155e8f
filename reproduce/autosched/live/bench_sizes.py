"""The small loop that is watched beside one of the thesis' size, on the same jobs of unseen seeds.

Lines: the small loop as it comes (search), the small loop with a causal model, and the model with 40 rounds an hour on forecasts of 72 h,
which is what the thesis prints. Ratios are of average JCT over another line's: below 1 is better.
"""

from __future__ import annotations

import time

import numpy as np

from gpuschedlab.autosched import LiveTuning, Race
from gpuschedlab.autosched.live.race import DEFAULT, GITTINS, PAST, TUNED
from gpuschedlab.metrics import median_interval
from reproduce.published.kept import measure_all

SIZES = {
    "small": LiveTuning(),
    "small, causal model": LiveTuning(way="causal model"),
    "thesis' size": LiveTuning(way="causal model", evaluations=40, horizon=72.0),
}
SEEDS = tuple(range(1000, 1020))
MINUTES = 14.0
OTHERS = (DEFAULT, GITTINS, PAST)


def measure(data_dir, name: str, seed: int) -> dict:
    """One race: average JCT of each line (s), and CPU seconds an hour."""
    race = Race(tuning=SIZES[name], seed=seed)
    begin = time.process_time()
    race.play()
    seconds = (time.process_time() - begin) / len(race.choices)
    figures = race.figures(np.inf)
    return {"size": name, "seed": seed, "seconds": seconds} | {line: figures[line] for line in (TUNED, *OTHERS)}


def judge(rows: list[dict]) -> list[dict]:
    """Median ratio of each size over each other line with its interval, in how many seeds it is better, and CPU seconds an hour."""
    judged = []
    tuned = {(row["size"], row["seed"]): row[TUNED] for row in rows}
    for name in SIZES:
        of_size = [row for row in rows if row["size"] == name]
        if not of_size:
            continue
        ratios = {other: [row[TUNED] / row[other] for row in of_size] for other in OTHERS}
        smallest = [(row[TUNED], tuned.get(("small", row["seed"]))) for row in of_size]
        if name != "small":
            ratios["small"] = [one / two for one, two in smallest if two]
        for other, values in ratios.items():
            middle = median_interval(values)
            row = {"size": name, "over": other, "median": middle.median, "low": middle.low, "high": middle.high}
            better = sum(value < 1 for value in values)
            seconds = float(np.median([each["seconds"] for each in of_size]))
            judged.append(row | {"better": better, "seeds": len(values), "CPU s an hour": seconds})
    return judged


def run(data_dir=None, traces=tuple(SIZES), seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure the sizes (`traces`) that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `rows`, ratios by size; `cases`, all that was measured; `left`, cases that are not measured yet; `ok`: none is.
    """
    cases = [(name, seed) for seed in seeds for name in traces]
    answers = measure_all("sizes", measure, None, cases, workers=workers, files=(), seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    left = answers.count(None)
    return {"rows": judge(rows), "cases": rows, "left": left, "ok": not left}
