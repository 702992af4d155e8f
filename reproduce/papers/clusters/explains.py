"""What made logs show of what holds their jobs back, and how often a what-if of more nodes is right where it has a verdict.

The logs are played by a simulator of their own (`made_logs.py`) on 16 nodes of 8 for 4 to 8 weeks, of seeds that nothing was chosen
on, with one mechanism each that the site's files do not name, or two, or none with files that misfit: two nodes drained, passes every
30 s, Slurm's plan. A mechanism is asked for where it holds .2 % of the waiting (of two the limit; by the lines that are right, where it
is not found). `bare` are logs with GPUs a user whose node lists are
left out: they are to say bounds and to name no limit. The what-if is of the site with what was found; it is right if its interval
holds the true change of the mean wait, and the wait that it predicts is within a factor of 2, or 120 s, of the true one. Jobs wait
from when they are eligible, where the log says when that was.
"""

import tempfile
from dataclasses import replace
from itertools import product
from time import process_time

import numpy as np

from gpuschedlab.papers.clusters.explains.sweep import LIMIT, REASONS, WINDOW
from gpuschedlab.papers.clusters.whatif import whatif
from reproduce.papers.clusters import made_logs
from reproduce.published.kept import measure_all

KINDS = (*made_logs.KINDS, "two", *made_logs.MISFITS, "bare")
SEEDS = tuple(range(7200, 7300))
NODES = 16
MORE = 5
HELD = 0.002
MINUTES = 9.0


def run(data_dir=None, traces=KINDS, seeds=SEEDS, asked=2, workers=1, minutes=MINUTES) -> dict:
    """Rows by kind of log, of which the first `asked` are asked what 5 nodes more would do; `left` is measured by the next call.

    `ok`: in 95 of 100 logs a mechanism is found, and its value right; in 2 of 100 something else is named; 95 of 100 verdicts are
    right, and 80 of 100 logs with node lists have one; without lists no log names a limit.
    """
    cases = [(kind, seed, seed in seeds[:asked] and kind != "bare") for seed, kind in product(seeds, traces)]
    answers = measure_all("explains", measure, data_dir, cases, workers, files=(), seconds=60 * minutes)
    logs = [log for log in answers if log is not None]
    rows = [row_of(kind, found) for kind in traces if (found := [log for log in logs if log["kind"] == kind])]
    total = {
        name: sum(row[name] for row in rows) for name in ("logs", "wrong", "asked", "verdicts", "right", "too short")
    }
    every = all(
        min(row["found"], row["exact"]) >= 0.95 * row["held"] and row["wrong"] <= 0.02 * row["logs"] for row in rows
    )
    told = total["right"] >= 0.95 * total["verdicts"] and total["verdicts"] >= 0.8 * total["asked"]
    bounded = all(
        log["least"] <= log["unexplained"] and "node lists" in log["missing"] for log in logs if log["kind"] == "bare"
    )
    left = answers.count(None)
    return {"rows": rows, "total": total, "left": left, "ok": bool(every and told and bounded and not left)}


def made_of(kind: str, seed: int) -> dict:
    """A log of a kind; of partitions on 25 nodes, as jobs of 4 nodes run on those of one partition, or on those that are of both."""
    size = {"N": 25 if kind == "parts" else NODES, "weeks": 4 + seed % 5}
    if kind == "two":
        return made_logs.two(seed, **size)
    if kind in made_logs.MISFITS:
        return made_logs.misfit(kind, seed, **size)
    return made_logs.make("userlim" if kind == "bare" else kind, seed, **size)


def played(kind: str, made: dict, more: int = 0) -> tuple:
    """Starts, ends, when jobs were eligible, and their nodes."""
    return made_logs.planned(made, more) if kind == "plan" else made_logs.sim(made, more, every=made.get("every", 0.0))


def measure(_, kind: str, seed: int, asks: bool) -> dict:
    """One log: what it shows, and the what-if beside the truth."""
    made = made_of(kind, seed)
    now = played(kind, made)
    with tempfile.TemporaryDirectory() as folder:
        site = made_logs.site_of(made, now, folder, lists=kind != "bare", eligible=kind == "depsE")
        begun = process_time()
        why = site.explanation
        found = {"kind": kind, "seed": seed, "cpu": process_time() - begun}
        found |= {"unexplained": why.unexplained, "least": why.least, "passed": why.passed, "missing": why.missing}
        hit, exact, others = made_logs.judged(kind, made, why.found)
        shares = why.shares if hit else replace(site, lines=made_logs.told(kind, made)).explanation.shares
        held = shares[REASONS[LIMIT]] if kind == "two" else sum(shares[REASONS[r]] for r in (LIMIT, WINDOW))
        found |= {"held": held, "found": bool(hit), "exact": bool(exact), "others": others}
        if not asks:
            return found
        missing = site.completed.explanation.missing
        said = None if missing else whatif(site.completed, {"more": MORE}).table.row(0, named=True)
    then = played(kind, made, MORE)
    counts = np.isfinite(now[0]) & np.isfinite(then[0]) & (made["sub"] >= 3 * 86_400)
    before, after = (float((p[0] - (p[2] if kind == "depsE" else made["sub"]))[counts].mean()) for p in (now, then))
    found |= {"missing": missing, "true": [before, after], "verdict": said is not None, "right": False, "short": False}
    if said is None:
        return found
    low = said["low"]
    high = said["high"]
    short = bool(np.isnan(low))
    near = abs(said["after"] - after) <= 120 or after / 2 <= said["after"] <= 2 * after
    found |= {"said": [said["before"], said["after"], *([] if short else [low, high])], "short": short}
    return found | {"right": bool(near and (short or low <= after - before <= high))}


def row_of(kind: str, logs: list[dict]) -> dict:
    """Row of the logs of one kind."""
    planted = kind in made_logs.PLANTED or kind in ("acctlim", "two")
    held = [log for log in logs if planted and (log["held"] >= HELD or kind == "tier")]
    asked = [log for log in logs if "verdict" in log]
    found = {"kind": kind, "logs": len(logs), "held": len(held)}
    found |= {name: sum(log[name] for log in held) for name in ("found", "exact")}
    found |= {"wrong": sum(bool(log["others"]) for log in logs), "asked": len(asked)}
    found |= {"verdicts": sum(log["verdict"] for log in asked), "right": sum(log["right"] for log in asked)}
    found |= {"too short": sum(log["short"] for log in asked)}
    return found | {name: max(log[name] for log in logs) for name in ("unexplained", "passed", "cpu")}
