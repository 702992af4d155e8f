"""What made logs explain of their waiting, and how often a what-if of 8 nodes more is right where it has a verdict.

The logs are played by a simulator of their own (`made_logs.py`), of seeds that nothing was chosen on, with one mechanism each that the
site's files do not name. A verdict is right if its interval holds the true change of the mean wait, and the wait that it predicts is
within a factor of 2, or 120 s, of the true one.
"""

import tempfile
from time import process_time

import numpy as np

from gpuschedlab.papers.clusters.whatif import whatif
from papers.clusters import made_logs

KINDS = tuple(kind for kind in made_logs.KINDS if kind != "depsE")
MORE = 8


def run(data_dir=None, traces=KINDS, seeds=(5000, 5001, 5002, 5003, 5004)) -> dict:
    """Rows by kind of log; `ok`: 95 of 100 verdicts are right, and each log by EASY alone has one."""
    rows = [row_of(kind, [measured(kind, seed) for seed in seeds]) for kind in traces]
    given, right = (sum(row[name] for row in rows) for name in ("verdicts", "right"))
    all_told = all(row["verdicts"] == row["logs"] for row in rows if row["kind"] == "plain")
    return {"rows": rows, "ok": right >= 0.95 * given and all_told}


def measured(kind: str, seed: int) -> dict:
    """One log: what is unexplained, the order test, and the what-if beside the truth."""
    made = made_logs.make(kind, seed)
    now, then = made_logs.sim(made), made_logs.sim(made, MORE)
    with tempfile.TemporaryDirectory() as folder:
        site = made_logs.site_of(made, now, folder)
        begun = process_time()
        why = site.explanation
        seconds = process_time() - begun
        asked = None if why.missing else whatif(site, {"more": MORE}).table.row(0, named=True)
    both = np.isfinite(now[0]) & np.isfinite(then[0])
    counts = both & (made["sub"] >= 3 * 86_400)
    before, after = ((played[0] - made["sub"])[counts].mean() for played in (now, then))
    right = asked is not None and (np.isnan(asked["low"]) or asked["low"] <= after - before <= asked["high"])
    near = right and (abs(asked["after"] - after) <= 120 or after / 2 <= asked["after"] <= 2 * after)
    found = {"unexplained": why.unexplained, "passed": why.passed, "verdict": asked is not None, "right": bool(near)}
    return found | {"short": asked is not None and bool(np.isnan(asked["low"])), "cpu": seconds}


def row_of(kind: str, logs: list[dict]) -> dict:
    """Row of the logs of one kind."""
    unexplained, passed = ([log[name] for log in logs] for name in ("unexplained", "passed"))
    found = {"kind": kind, "logs": len(logs), "unexplained": float(np.median(unexplained)), "least": min(unexplained)}
    found |= {"most": max(unexplained), "passed": float(np.median(passed)), "most passed": max(passed)}
    found |= {"verdicts": sum(log["verdict"] for log in logs), "right": sum(log["right"] for log in logs)}
    return found | {"too short": sum(log["short"] for log in logs), "cpu": max(log["cpu"] for log in logs)}
