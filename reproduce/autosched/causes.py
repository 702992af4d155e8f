"""An arena of causal estimators: thirty systems and thirty operated logs, five draws each, of which the true effects are known.

Systems (`scenes.arena`) are linear, curved, or rise and fall, in a knob of a few values or of any, with dead knobs, interactions, heavy
tails and carry-over; logs are played under an operator's rule that follows the load, and their truth is played, too: a fork of the
simulation at every interval, with the lowest and the highest value. Two in sixteen have a hidden common cause (of logs: the log
holds the load of a day ago), two no overlap: a rule without noise. Of those no estimator can be right; to refuse is.

Each estimator is judged by its bias, by how often its 95 % interval holds the truth, and by refusal: answers are right, refused,
missed, or wrong and sure (`scenes.believed.verdict`). "default" is the project's own: `CausalModel.effect` and `Log.estimate()`.
What the default does was chosen on numbers from 100 to 144. On 0 to 29 its intervals, then 6 % wider, held 98.7 % of 157 answers: too
wide, so that those numbers count as looked at. It is judged on 200 to 229, which nothing was chosen on.

Logs take most of the time, and are kept by the code that plays them; answers by all code.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from reproduce.autosched.operated import play
from reproduce.published.kept import meaning, measure_all

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
NUMBERS = tuple(range(200, 230))
DRAWS = tuple(range(5))
MINUTES = 14.0
KINDS = ("system", "log")
FLAWS = ("", "hidden", "no overlap")
NEEDED = {"holds": (0.92, 0.98), "wrong_and_sure": 0.03, "answered": 0.5}
"""Of the default, where the question can be answered."""
sys.path.insert(0, str(NOTEBOOKS))


def played_by() -> str:
    """Hash of the code that draws and plays the logs, and forks them: not of what is asked of them."""
    from gpuschedlab import autosched
    from gpuschedlab.sweep.identity import digest

    room = Path(autosched.__file__).parent / "logbook"
    log = ast.parse((room / "log.py").read_text())
    played = [
        node
        for node in ast.walk(log)
        if isinstance(node, ast.FunctionDef) and node.name not in ("estimate", "read_log")
    ]
    for node in played:
        node.body = [
            line for line in node.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        ]
    parts = [meaning(path) for path in (NOTEBOOKS / "scenes/arena.py", room / "play.py")]
    return digest([*parts, *sorted(ast.dump(node) for node in played)])


def measure(data_dir, kind: str, number: int, draw: int, code: str, log: dict | None = None) -> dict:
    """What each estimator says of a system or a log, and the verdict on it."""
    from scenes.arena import Operated, system
    from scenes.believed import answers, verdict

    from gpuschedlab.autosched import Log

    if kind == "log":
        log = log or KEPT[number, draw]
        of = Log(pl.DataFrame(log["frame"], infer_schema_length=None), log["knob"], log["closed"])
        case = Operated(of, *(log[name] for name in ("truth", "half", "flaw", "kind")))
    else:
        case = system(number, draw)
    row = {
        "kind": kind,
        "number": number,
        "draw": draw,
        "truth": float(case.truth),
        "flaw": case.flaw,
        "about": case.kind,
    }
    row |= {"played": getattr(case, "half", 0.0), "deviation": case.outcome.std()}
    said = {name: answer._asdict() | {"verdict": verdict(case, answer)} for name, answer in answers(case).items()}
    return row | {"answers": {name: {k: _plain(v) for k, v in answer.items()} for name, answer in said.items()}}


KEPT: dict[tuple[int, int], dict] = {}
"""Logs that are played, by number and draw."""


def _plain(value):
    """What JSON holds: None for a number that there is not."""
    return value if isinstance(value, str) else None if np.isnan(value) else round(float(value), 6)


def judge(rows: list[dict]) -> list[dict]:
    """A row for each kind, flaw and estimator: shares of its verdicts, its bias and error in deviations of the outcome, its strength."""
    found = []
    for kind, flaw in product((*KINDS, "both"), FLAWS):
        group = [row for row in rows if kind in (row["kind"], "both") and row["flaw"] == flaw]
        for name in dict.fromkeys(name for row in group for name in row["answers"]):
            asked = [(row, row["answers"][name]) for row in group if name in row["answers"]]
            verdicts = Counter(answer["verdict"] for _, answer in asked)
            given = [(row, answer) for row, answer in asked if answer["verdict"] != "refused"]
            case = {
                "kind": kind,
                "flaw": flaw or "none",
                "estimator": name,
                "cases": len(asked),
                "answered": len(given) / len(asked),
            }
            off = np.array([(answer["value"] - row["truth"]) / row["deviation"] for row, answer in given])
            case |= {
                "bias": float(off.mean()) if len(off) else None,
                "error": float(np.median(abs(off))) if len(off) else None,
            }
            ends = [(row, answer) for row, answer in given if answer["low"] is not None]
            holds = [_holds(row, answer) for row, answer in ends]
            case |= {"intervals": len(holds), "holds": float(np.mean(holds)) if holds else None}
            case["wrong_and_sure"] = verdicts["wrong and sure"] / max(1, len(given))
            strengths = [answer["strength"] for _, answer in given if answer["strength"] is not None]
            found.append(case | {"strength": float(np.median(strengths)) if strengths else None})
    return found


def _holds(row: dict, answer: dict) -> bool:
    """Whether an interval, and that of a truth that was played, hold the truth."""
    half = np.hypot((answer["high"] - answer["low"]) / 2, row["played"])
    return bool(abs(answer["value"] - row["truth"]) <= half)


def good(judged: list[dict]) -> bool:
    """Whether the default is as it should be, over systems and logs that can be answered."""
    own = next((r for r in judged if (r["kind"], r["flaw"], r["estimator"]) == ("both", "none", "default")), None)
    if own is None or own["holds"] is None:
        return False
    low, high = NEEDED["holds"]
    sure = own["wrong_and_sure"] < NEEDED["wrong_and_sure"]
    return low <= own["holds"] <= high and sure and own["answered"] >= NEEDED["answered"]


def run(data_dir=None, traces=KINDS, seeds=NUMBERS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Play and ask what is not kept yet, for so many minutes each.

    Returns
    -------
    dict
        `rows` a kind, flaw and estimator; `left` (draws that are not measured yet); `ok`: none is, and the default is as it should be.
    """
    about = {"data_dir": None, "workers": workers, "seconds": 60 * minutes, "files": ()}
    draws = [*product(seeds, DRAWS)]
    code = played_by()
    left = 0
    if "log" in traces:
        logs = measure_all("operated", play, cases=[(*draw, code) for draw in draws], **about)
        KEPT.update({draw: log for draw, log in zip(draws, logs) if log is not None})
        left = len(draws) - len(KEPT)
    cases = [(kind, *draw, code) for draw in draws for kind in traces if kind == "system" or draw in KEPT]
    answers = measure_all("causes", measure, cases=cases, **about)
    rows = [row for row in answers if row is not None]
    left = left + answers.count(None)
    judged = judge(rows)
    return {"rows": judged, "left": left, "ok": not left and good(judged)}
