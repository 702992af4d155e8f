"""When will my job start, asked forty times of each of twelve logs: do the ranges hold, and are they narrower than naive ones?

The logs (`start_logs`) have seeds that nothing was chosen on. Half of the instants are drawn from days 14 to 32, and a waiting job is
asked for; the others are submissions while jobs wait. Naive answers are past waits of jobs of the same size class, and those of the
sixty jobs that met the most alike state; both are calibrated on the same answered questions in the same way.
"""

import tempfile
import time
from dataclasses import dataclass
from itertools import product

import numpy as np

from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.starts.answered import LEVELS, Answered, Calibration, Played
from gpuschedlab.papers.clusters.starts.log_questions import forecasts_at
from gpuschedlab.papers.clusters.starts.question import Question, answer, played_forward
from reproduce.papers.clusters.start_logs import DAY, KINDS, site_of
from reproduce.published.kept import measure_all

SEEDS = (9100,)
MINUTES = 60.0
ASKED = 40
WHOLE = 8
"""Each so many questions, the whole answer is measured, with other requests and the replay."""
FIRST = 14 * DAY
LAST = 32 * DAY
NEIGHBOURS = 60
CLASSES = np.array([1, 2, 8, 9, 33])
"""Smallest sizes (GPUs) of the classes of past waits."""
FEW = 15
NAIVE = ("past waits", "alike states")
WAYS = ("played forward", *NAIVE)

HELD = (0.75, 0.85)
HELD_ON_EACH = 0.65
PINBALL = 0.65
WIDTH = 0.7
SECONDS = 10.0


def run(data_dir=None, traces=tuple(KINDS), seeds=SEEDS, workers=1, minutes=MINUTES) -> dict:
    """Rows by log and over all; `ok`: the ranges hold, and pinball, width and seconds are within bounds."""
    cases = list(product(traces, seeds))
    logs = measure_all("when", measure, data_dir, cases, workers, seconds=60 * minutes)
    there = [log for log in logs if log is not None]
    rows = [row_of(log["name"], log["questions"]) for log in there]
    every = [question for log in there for question in log["questions"]]
    total = row_of("all", every)
    best = min(NAIVE, key=lambda way: total[f"pinball, {way}"])
    wide = {way: width_at(every, way) for way in WAYS}
    total |= {"pinball over naive": total["pinball"] / total[f"pinball, {best}"]}
    total |= {"width at 80 % over naive": wide[WAYS[0]] / min(wide[way] for way in NAIVE)}
    bounds = [
        HELD[0] <= total["held"] <= HELD[1],
        min(row["held"] for row in rows) >= HELD_ON_EACH,
        total["pinball over naive"] <= PINBALL,
        total["width at 80 % over naive"] <= WIDTH,
        total["CPU s"] <= SECONDS,
        len(there) == len(logs),
    ]
    return {"rows": [*rows, total], "width at 80 %, h": wide, "left": len(logs) - len(there), "ok": all(bounds)}


@dataclass(frozen=True)
class Log:
    """Jobs of a log as arrays, in order of submission: names, times (s), sizes and requested times; and features of what each met."""

    names: list[str]
    submit: np.ndarray
    start: np.ndarray
    gpus: np.ndarray
    limit: np.ndarray
    states: np.ndarray

    @classmethod
    def of(cls, site: Site) -> "Log":
        """Arrays of a site's log."""
        trace = site.log.trace.sort("submit", "job_id")
        submit, start, gpus, duration, limit = (
            trace[name].to_numpy() for name in ("submit", "started", "gpus", "duration", "requested_time")
        )
        total = site.nodes.total_gpus
        rows = []
        for at, own, asked in zip(submit, gpus, limit, strict=True):
            waits = (submit < at) & (start >= at)
            runs = (start < at) & (start + duration > at)
            backlog = np.log1p((gpus[waits] * limit[waits]).sum() / total)
            used = gpus[runs].sum() / total
            rows.append([backlog, np.log1p(waits.sum()), used, np.log2(own), np.log(asked) / 2])
        return cls(trace["job_id"].to_list(), submit, start, gpus, limit, np.array(rows))

    def past_waits(self, job: int, at: float) -> np.ndarray:
        """Waits (s) from an instant on of jobs of the same size class that started in the last four weeks and waited at least as long."""
        size = np.searchsorted(CLASSES, self.gpus, "right")
        past = (self.start < at) & (self.submit > at - 28 * DAY)
        waits = (self.start - self.submit) - (at - self.submit[job])
        rest = waits[past & (size == size[job])]
        rest = rest[rest >= 0]
        if len(rest) < FEW:
            rest = waits[past]
            rest = rest[rest >= 0]
        return rest if len(rest) >= 5 else np.array([0.0, 3600, 6 * 3600, DAY])

    def alike_states(self, job: int, at: float) -> np.ndarray:
        """Waits (s) from an instant on of the jobs that met the most alike state and waited at least as long."""
        past = np.flatnonzero((self.start < at) & (self.submit < at))
        scale = self.states[past].std(axis=0) + 1e-6
        distance = (((self.states[past] - self.states[job]) / scale) ** 2).sum(axis=1)
        near = past[np.argsort(distance, kind="stable")[: 5 * NEIGHBOURS]]
        waits = (self.start - self.submit)[near] - (at - self.submit[job])
        waits = waits[waits >= 0][:NEIGHBOURS]
        return waits if len(waits) >= 5 else self.past_waits(job, at)

    def naive(self, way: str, job: int, at: float) -> Played:
        """Naive answer to a question."""
        return Played(self.past_waits(job, at) if way == NAIVE[0] else self.alike_states(job, at))


def questions_of(log: Log, rng: np.random.Generator) -> list[tuple[float, int]]:
    """Return instants and rows of jobs that wait then, or are submitted while others wait."""
    found = []
    while len(found) < ASKED:
        at = rng.uniform(FIRST, LAST)
        waiting = np.flatnonzero((log.submit <= at) & (log.start >= at))
        if len(found) % 2:
            job = int(np.searchsorted(log.submit, at))
            at = float(log.submit[job])
            others = (log.submit < at) & (log.start > at)
            if others.any() or rng.random() < 0.03:
                found.append((at, job))
        elif len(waiting):
            found.append((float(at), int(rng.choice(waiting))))
    return found


def measure(data_dir, name: str, seed: int) -> dict:
    """Return the questions of one log with all answers, and what came."""
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as folder:
        site = site_of(kind, data_dir, seed + [*KINDS].index(name), folder)
        log = Log.of(site)
        rng = np.random.default_rng(seed)
        place = {job: row for row, job in enumerate(log.names)}
        answers = []
        for number, (at, job) in enumerate(sorted(questions_of(log, rng))):
            question = Question((log.names[job],), at)
            begin = time.process_time()
            asked = played_forward(site, question)
            seconds = time.process_time() - begin
            whole = None
            if number % WHOLE == 0:
                begin = time.process_time()
                answer(site, question)
                whole = time.process_time() - begin
            entry = {"at": at, "wait": float(log.start[job] - at), "seconds": seconds, "whole": whole}
            entry |= {"answers": asked.calibration.answers, "raw": asked.waits[0].quantiles.tolist()}
            entry[WAYS[0]] = asked.calibration.quantiles(asked.waits[0]).tolist()
            for way in NAIVE:
                calibration = naive_calibration(site, log, place, way, at)
                entry[way] = calibration.quantiles(log.naive(way, job, at)).tolist()
            answers.append(entry)
    waits = log.start - log.submit
    return {"name": name, "jobs": len(waits), "mean wait": float(waits.mean()), "questions": answers}


def naive_calibration(site: Site, log: Log, place: dict[str, int], way: str, at: float) -> Calibration:
    """Calibrate a naive answer on the same questions as the one that plays forward."""
    questions = []
    for forecast in forecasts_at(site, at):
        job = place[forecast.job]
        known = bool(log.start[job] < at)
        wait = (log.start[job] if known else at) - forecast.instant
        questions.append(Answered(log.naive(way, job, forecast.instant), float(wait), known))
    return Calibration(tuple(questions))


def pinball(quantiles: np.ndarray, wait: float) -> float:
    """Mean pinball loss (s) over the levels."""
    off = wait - np.asarray(quantiles)
    return float(np.maximum(LEVELS * off, (LEVELS - 1) * off).mean())


def holds(question: dict, way: str) -> bool:
    """Whether the 80 % range of an answer holds what came."""
    low, *_, high = question[way]
    return low - 1 <= question["wait"] <= high + 1


def row_of(log: str, questions: list[dict]) -> dict:
    """Figures of some questions; times in minutes, widths in hours."""
    way = WAYS[0]
    middle = [abs(question[way][2] - question["wait"]) for question in questions]
    row = {"log": log, "asked": len(questions), "held": np.mean([holds(question, way) for question in questions])}
    row |= {"held as played": np.mean([holds(question, "raw") for question in questions])}
    row |= {"median error, min": np.median(middle) / 60}
    row |= {"width, h": np.mean([question[way][-1] - question[way][0] for question in questions]) / 3600}
    row |= {"pinball": np.mean([pinball(question[way], question["wait"]) for question in questions]) / 60}
    row |= {"pinball as played": np.mean([pinball(question["raw"], question["wait"]) for question in questions]) / 60}
    for naive in NAIVE:
        row[f"pinball, {naive}"] = np.mean([pinball(question[naive], question["wait"]) for question in questions]) / 60
        row[f"held, {naive}"] = np.mean([holds(question, naive) for question in questions])
    row |= {"CPU s": np.mean([question["seconds"] for question in questions])}
    whole = [question["whole"] for question in questions if question["whole"] is not None]
    row |= {"CPU s, whole answer again": np.mean(whole)}
    return {name: value if isinstance(value, str | int) else float(value) for name, value in row.items()}


def width_at(questions: list[dict], way: str, share: float = 0.8) -> float:
    """Mean width (h) of the ranges of all questions, made wider or narrower by one factor so that they hold such a share."""
    waits = np.array([question["wait"] for question in questions])
    table = np.log(np.array([question[way] for question in questions]) + 60)
    middle = table[:, 2]
    below = np.maximum(middle - table[:, 0], 1e-3)
    above = np.maximum(table[:, -1] - middle, 1e-3)
    off = np.log(waits + 60) - middle
    factor = np.quantile(np.where(off > 0, off / above, -off / below), share)
    low = np.maximum(np.exp(middle - factor * below) - 60, 0)
    high = np.exp(middle + factor * above) - 60
    return float((high - low).mean() / 3600)
