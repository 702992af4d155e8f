"""The contest in which the cause is needed: which part carries the gain, in worlds whose mechanisms are believed to be other than they are.

A world and its lines: `world.py` and `lines.py` beside this file. All lines play the same fresh jobs. The worlds in which the cause is
needed are those in which a search on the exact simulator gains over `NEEDED` on the constant that is best by the belief; `selected
elsewhere` are those in which the constant by the exact simulator gains as much on the constant by the belief on jobs of another seed,
so that they are not selected by the luck of the jobs that are judged. Ratios are of average JCT, below 1 is better; means are of
logarithms, intervals of 95 % by Student's t over worlds. Seeds 0 to 9 were used in building; 500 to 529 were
judged before the twin read slow nodes, checkpoints and what every start costs, 530 and later after it.
"""

from __future__ import annotations

import math

import numpy as np

from gpuschedlab.metrics.intervals import mean_interval
from reproduce.autosched.cause.lines import (
    BELIEF,
    BUDGET,
    CONSTANTS,
    DEFAULT,
    EXACT,
    LINES,
    SEARCHES,
    THESIS,
    TWIN,
    measure,
)
from reproduce.published.kept import measure_all

SEEDS = tuple(range(530, 560))
NEEDED = 0.9
"""JCT over that of the best constant by the belief, below which the cause is needed."""
BOUND = 0.85
BEHIND = 1.02
FEWEST = 12
"""Bounds of the search on the twin over the belief's lines, and over the default in the other worlds; worlds that must be judged."""
NEVER = 50.0
"""Ratio of two lines at most: under some configurations jobs stop making progress."""
MINUTES = 14.0
RATIOS = {
    "search on twin / search on belief": (SEARCHES[TWIN], SEARCHES[BELIEF]),
    "search on twin / constant by belief": (SEARCHES[TWIN], CONSTANTS[BELIEF]),
    "search on twin / search on exact": (SEARCHES[TWIN], SEARCHES[EXACT]),
    "calibration: constant by twin / by belief": (CONSTANTS[TWIN], CONSTANTS[BELIEF]),
    "search: on twin / constant by twin": (SEARCHES[TWIN], CONSTANTS[TWIN]),
    "graph: thesis / search, both on the twin": (THESIS, SEARCHES[TWIN]),
    "search on belief / default": (SEARCHES[BELIEF], DEFAULT),
    "search on twin / default": (SEARCHES[TWIN], DEFAULT),
    "search on exact / default": (SEARCHES[EXACT], DEFAULT),
}
"""What is compared, in words: line, and the line that it is compared with."""


def ratio(row: dict, line: str, other: str) -> float:
    """Average JCT of a line over that of another in a world, bounded by `NEVER` where jobs stop making progress."""
    return bounded(row["lines"][line]["jct"] / row["lines"][other]["jct"])


def bounded(value: float) -> float:
    """Ratio between 1 / `NEVER` and `NEVER`."""
    return float(np.clip(value, 1 / NEVER, NEVER))


def needed(row: dict) -> bool:
    """Whether the cause is needed in a world: exact gains over the best constant by the belief on the same jobs."""
    return ratio(row, SEARCHES[EXACT], CONSTANTS[BELIEF]) < NEEDED


def needed_elsewhere(row: dict) -> bool:
    """Whether it is needed on jobs of another seed, by the constants alone."""
    return bounded(row["elsewhere"][EXACT] / row["elsewhere"][BELIEF]) < NEEDED


def groups_of(rows: list[dict]) -> dict[str, list[dict]]:
    """Worlds by whether the cause is needed."""
    return {
        "needed": [row for row in rows if needed(row)],
        "others": [row for row in rows if not needed(row)],
        "selected elsewhere": [row for row in rows if needed_elsewhere(row)],
        "all": rows,
    }


def mean_ratio(ratios) -> dict:
    """Geometric mean of ratios with its interval, their median, and how many are below 1; ends are nan for fewer than two, all of none."""
    logs = np.log(np.asarray(ratios, float))
    counts = {"better": int((logs < 0).sum()), "worlds": len(logs)}
    if not len(logs):
        return dict.fromkeys(("ratio", "low", "high", "median"), math.nan) | counts
    mean, half = mean_interval(logs)
    ends = {"low": float(np.exp(mean - half)), "high": float(np.exp(mean + half))}
    return {"ratio": float(np.exp(mean))} | ends | {"median": float(np.median(ratios))} | counts


def judge(rows: list[dict]) -> list[dict]:
    """A row for each group of worlds and comparison."""
    judged = []
    for group, worlds in groups_of(rows).items():
        for name, (line, other) in RATIOS.items():
            if worlds:
                case = {"worlds where the cause is": group, "comparison": name}
                judged.append(case | mean_ratio([ratio(row, line, other) for row in worlds]))
    return judged


def table(rows: list[dict]) -> list[dict]:
    """A row for each line: JCT over the default's by group of worlds, announced beside realised, and configurations simulated."""
    groups = groups_of(rows)
    lines = []
    for line in LINES:
        row = {"line": line}
        for group in ("needed", "others"):
            found = mean_ratio([ratio(world, line, DEFAULT) for world in groups[group]])
            row |= {group: found["ratio"], f"{group} low": found["low"], f"{group} high": found["high"]}
        cells = [world["lines"][line] for world in rows]
        for name in ("announced", "realised"):
            gains = [gain for cell in cells for gain in cell.get(name, ())]
            row[name] = float(np.exp(np.mean(np.log(np.clip(gains, 1 / NEVER, NEVER))))) if gains else None
        row["switches"] = sum(cell.get("switches", 0) for cell in cells)
        row["decisions"] = sum(cell.get("decisions", 0) for cell in cells)
        row["measured"] = sum(cell.get("measured", 0) for cell in cells)
        row["most in a decision"] = max(cell.get("most", 0) for cell in cells)
        lines.append(row)
    return lines


def verdict(rows: list[dict]) -> dict:
    """Whether each bound holds, and how many worlds are within 2 % of the search on the exact simulator."""
    groups = groups_of(rows)
    judged = {(row["worlds where the cause is"], row["comparison"]): row for row in judge(rows)}
    over_search = judged.get(("needed", "search on twin / search on belief"))
    over_constant = judged.get(("needed", "search on twin / constant by belief"))
    others = judged.get(("others", "search on twin / default"))
    most = max((cell.get("most", 0) for row in rows for cell in row["lines"].values()), default=0)
    close = [ratio(row, SEARCHES[TWIN], SEARCHES[EXACT]) <= BEHIND for row in groups["needed"]]
    return {
        "worlds": len(groups["needed"]) >= FEWEST,
        "over the search on the belief": bool(
            over_search and over_search["ratio"] <= BOUND and over_search["high"] < 1
        ),
        "over the constant by the belief": bool(over_constant and over_constant["ratio"] <= BOUND),
        "not behind the default": bool(others is None or others["ratio"] <= BEHIND),
        "evaluations": most <= BUDGET,
        "within 2 % of exact": f"{sum(close)} of {len(close)}",
    }


PARTS = {
    "calibration": "calibration: constant by twin / by belief",
    "search after it": "search: on twin / constant by twin",
    "the graph in the place of search": "graph: thesis / search, both on the twin",
}
"""What carries the gain, in words, and the comparison that shows it."""


def sentence(found: dict) -> str:
    """Which part carries the gain where the cause is needed, from what `run` returned."""
    rows = {(row["worlds where the cause is"], row["comparison"]): row for row in found["rows"]}
    whole = rows["needed", "search on twin / constant by belief"]
    worlds = rows["all", "search on twin / constant by belief"]["worlds"]
    parts = ", ".join(f"{words} {spoken(rows['needed', name])}" for words, name in PARTS.items())
    return (
        f"In {whole['worlds']} of {worlds} worlds the cause is needed; there the search on the calibrated twin takes {spoken(whole)} "
        f"of the average JCT of the constant that is best by the belief. By part: {parts}. Over the default's the JCT is "
        f"{spoken(rows['needed', 'search on twin / default'])} on the twin, and {spoken(rows['needed', 'search on exact / default'])} "
        "on the exact simulator."
    )


def spoken(row: dict) -> str:
    """A ratio with its interval."""
    return f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def run(data_dir=None, seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure the worlds that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `lines`, a row each; `rows`, comparisons with their intervals; `verdict`; `left`, worlds that are not measured yet; `ok`: none
        is, and every bound holds.
    """
    answers = measure_all("cause", measure, None, [(seed,) for seed in seeds], workers, files=(), seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    left = answers.count(None)
    if not rows:
        return {"rows": [], "left": left, "ok": False}
    bounds = verdict(rows)
    holds = all(value for value in bounds.values())
    worlds = [
        {"seed": row["seed"], "mechanisms": ", ".join(row["mechanisms"])}
        | {line: ratio(row, line, DEFAULT) for line in LINES if line != DEFAULT}
        for row in rows
    ]
    return {
        "worlds": worlds,
        "lines": table(rows),
        "rows": judge(rows),
        "verdict": bounds,
        "left": left,
        "ok": holds and not left,
    }
