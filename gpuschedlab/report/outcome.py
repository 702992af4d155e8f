"""What came out, in two sentences."""

from html import escape

from gpuschedlab.metrics import METRICS, compare
from gpuschedlab.plots.kinds.style import spoken
from gpuschedlab.report.html_tables import written

WEIGHED = ("jct_mean", "jct_p99", "unfair_fraction")
"""Metrics that the second sentence looks at besides the first: lower is better for each."""


def outcome(runs: dict, censored: bool = False) -> str:
    """Two sentences: which policy has the shortest average JCT and how far the others are, and what it costs elsewhere."""
    frame = compare(runs, list(WEIGHED), censored=censored).drop_nulls("jct_mean") if runs else None
    if frame is None or frame.is_empty():
        return ""
    rows = frame.sort("jct_mean").rows(named=True)
    best, worst = rows[0], rows[-1]
    name, least, most = escape(best["policy"]), spoken(best["jct_mean"]), spoken(worst["jct_mean"])
    if len(rows) == 1:
        return f"{name}: the average JCT is {least}, and the p99 JCT {spoken(best['jct_p99'])}."
    ratio = worst["jct_mean"] / best["jct_mean"] if best["jct_mean"] else 1.0
    longest = f"the longest is {most} ({escape(worst['policy'])}), {ratio:.2f} times as long"
    return f"{name} has the shortest average JCT, {least}; {longest}. {_elsewhere(best, rows)}"


def _elsewhere(best: dict, rows: list[dict]) -> str:
    """What other policies do better than the one with the shortest average."""
    lost, won = [], []
    for name in WEIGHED[1:]:
        known = [row for row in rows if row[name] is not None]
        if not known or best[name] is None:
            continue
        first = min(known, key=lambda row: row[name])
        if first[name] < best[name]:
            least, here = (written(name, row[name]) for row in (first, best))
            lost.append(f"{METRICS[name].label} is lowest under {escape(first['policy'])} ({least}, here {here})")
        elif any(row[name] > best[name] for row in known):
            won.append(METRICS[name].label)
    if lost:
        return f"But {' and '.join(lost)}."
    if won:
        return f"It also has the lowest {' and '.join(won)}."
    return "In the other metrics of the table the policies differ little."
