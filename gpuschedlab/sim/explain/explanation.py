"""Why a job waited, in words, from a run's log of decisions."""

from dataclasses import dataclass
from difflib import get_close_matches
from html import escape
from itertools import pairwise

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError, TraceError
from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.sim.explain.wording import hours, lasting, phrase, span

RANGES = ("free", "missing", "place", "ahead", "later", "leased")
CANDIDATES = 20_000
"""Names of jobs among which one like an unknown name is looked for."""


@dataclass(frozen=True)
class Explanation:
    """Why a job waited."""

    job_id: str
    about: str  # what it asked for, the policy, and how long it waited in all
    # A row for each instant at which something changed: `start, end` (s), `reason, began, gated, place, key, free,
    # missing, ahead, later, leased, until, note` as in `Run.decisions`, `blocker` (job_id of the job that it waits
    # behind) and `text`
    steps: pl.DataFrame
    # the same with steps of one reason and one blocker put together: `start, end, reason, blocker, missing` (the
    # least), `text`
    reasons: pl.DataFrame

    def summary(self) -> dict[str, float]:
        """Seconds waited in all (`waited`), and for each reason."""
        spent = {"waited": float((self.steps["end"] - self.steps["start"]).sum())}
        for start, end, reason in self.reasons.select("start", "end", "reason").iter_rows():
            spent[reason] = spent.get(reason, 0.0) + end - start
        return spent

    def text(self, every: bool = False) -> str:
        """Lines of text, one for each reason, or for each instant at which something changed (`every`)."""
        rows = self.steps if every else self.reasons
        spans = [f"{hours(a)}, for {lasting(b - a)}" for a, b in rows.select("start", "end").iter_rows()]
        wide = max(map(len, spans), default=0)
        lines = [f"  {span:>{wide}}  {text}" for span, text in zip(spans, rows["text"], strict=True)]
        return "\n".join([self.about, *lines])

    def __str__(self):
        return self.text()

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{hours(a)}</td><td>{lasting(b - a)}</td><td style='text-align:left'>{escape(text)}</td></tr>"
            for a, b, text in self.reasons.select("start", "end", "text").iter_rows()
        )
        head = "<tr><th>from</th><th>for</th><th style='text-align:left'>why it waited</th></tr>"
        return f"<p>{escape(self.about)}</p><table>{head}{rows}</table>"


def explain(run, job: str | int) -> Explanation:
    """Explain the waits of a job of a run; see `Run.explain`."""
    if run.decisions is None:
        raise RunError(
            "explain: found a run without a log of decisions; expected one. Run the policy again with "
            "scenario.run(policy, log=True), or gpuschedlab run POLICY --log --out FOLDER."
        )
    row = row_of(run.jobs["job_id"], str(job))
    steps, borders = steps_of(run, row)
    context = Context(run, row)
    rows = []
    texts = [phrase(context.group(steps[i : i + 1])) for i in range(steps.height)]
    steps = steps.with_columns(text=pl.Series(texts, dtype=pl.Utf8))
    for group in (steps[a:b] for a, b in pairwise(borders)):
        start, reason, blocker = group.select("start", "reason", "blocker").row(0)
        rows.append((start, group["end"][-1], reason, blocker, group["missing"].min(), phrase(context.group(group))))
    schema = steps.select("start", "end", "reason", "blocker", "missing", "text").schema
    reasons = pl.DataFrame(rows, schema=schema, orient="row")
    return Explanation(str(run.jobs["job_id"][row]), context.about(steps), steps, reasons)


def row_of(names: pl.Series, job: str) -> int:
    """Row of a job by its name, among the names of all."""
    names = names.cast(pl.Utf8)
    found = (names == job).arg_true()
    if len(found):
        return int(found[0])
    near = get_close_matches(job, names.head(CANDIDATES).to_list(), 1)
    advice = f"did you mean {near[0]}?" if near else "run.jobs['job_id'] lists them."
    span = f", such as {names[0]}" if len(names) else ""
    raise TraceError(f"explain: found no job {job!r}; expected one of the {len(names):,} of the run{span}: {advice}")


def waits_of(run, row: int) -> np.ndarray:
    """(k, 2) start and end (s) of a job's waits, those of no time among them."""
    held = run.allocations.filter(pl.col("job") == row).select("start", "end").unique().sort("start").to_numpy()
    submit = run.jobs.row(row, named=True)["submit"]
    end = run.jobs["end"][row]
    starts = np.maximum.accumulate(np.append(submit, held[:, 1]))
    return np.column_stack([starts, np.append(held[:, 0], run.info["now"] if end is None else starts[-1])])


def steps_of(run, row: int) -> tuple[pl.DataFrame, list[int]]:
    """Rows of a job's waits, each with its end and `blocker` by name; and the borders of those of one reason and one blocker."""
    mine = run.decisions.filter(pl.col("job") == row)
    over = run.jobs["end"][row]
    over = run.info["now"] if over is None else over
    ends = mine["time"].shift(-1).fill_null(over)
    names = run.jobs["job_id"].cast(pl.Utf8)
    frame = mine.with_columns(end=ends, blocker=names.gather(mine["blocker"])).rename({"time": "start"})
    kept = ("start", "end", "reason", "began", "gated", "place", "blocker", "key", "free", "missing")
    steps = frame.filter(pl.col("reason") != "started").select(*kept, "ahead", "later", "leased", "until", "note")
    keys = list(steps.select("reason", "blocker", "began").iter_rows())
    starts = [i for i, key in enumerate(keys) if i == 0 or key[:2] != keys[i - 1][:2] or key[2] is not None]
    return steps, [*starts, steps.height]


class Context:
    """What the words about a job need of the run beside its own rows."""

    def __init__(self, run, row: int):
        self.run, self.row, self.job = run, row, run.jobs.row(row, named=True)
        self.log = run.info.get("log", {})
        starts = run.decisions.filter((pl.col("reason") == "started") & (pl.col("job") != row))
        self.started = starts["time"].to_numpy()
        self.later = run.jobs["submit"].gather(starts["job"]).to_numpy() > self.job["submit"]
        self.total = cluster_of(run).total_gpus
        self.times, self.capacity, self.used, self.running = (
            run.timeline[name].to_numpy() for name in ("time", "capacity", "used", "running")
        )

    def group(self, steps: pl.DataFrame) -> dict:
        """Facts about steps of one reason: ranges are (least, most)."""
        first = steps.row(0, named=True)
        start = steps["start"][0]
        end = steps["end"][-1]
        blocker = first["blocker"]
        needs = self.job["gpus"] if blocker is None else self.run.jobs["gpus"][row_of(self.run.jobs["job_id"], blocker)]
        a, b = np.searchsorted(self.started, [start, end])
        ticks = slice(max(0, np.searchsorted(self.times, start, "right") - 1), np.searchsorted(self.times, end))
        ranges = {name: (steps[name].min(), steps[name].max()) for name in RANGES}
        return ranges | {
            "reason": first["reason"],
            "began": first["began"],
            "gated": bool(steps["gated"].any()),
            "blocker": blocker,
            "needs": needs,
            "until": (steps["until"].min(), steps["until"].max()),
            "steps": steps.height,
            "chosen": int(b - a),
            "passed": int(self.later[a:b].sum()),
            "down": float(self.total - self.capacity[ticks].min()) if len(self.times) else 0.0,
            "used": (self.used[ticks].min(), self.used[ticks].max()) if len(self.times) else (0.0, 0.0),
            "running": (self.running[ticks].min(), self.running[ticks].max()) if len(self.times) else (0, 0),
            "rule": self.log,
            "note": steps["note"][-1],
        }

    def about(self, steps: pl.DataFrame) -> str:
        """Head line: what the job asked for, under which policy, and how long it waited."""
        job = self.job
        waits = int(steps["began"].count())
        waited = float((steps["end"] - steps["start"]).sum())
        policy = self.run.info["policy"]
        order = self.log.get("key")
        served = f"{policy}, which serves by the lowest key ({order})" if order else policy
        often = f" in {waits} waits" if waits > 1 else ""
        total = f"waited {hours(waited)}{often}" if steps.height else "did not wait"
        since = f"submitted at {hours(job['submit'])}"
        return f"job {job['job_id']} of {span((job['gpus'],) * 2, 'GPU')}, {since}, {total} under {served}."
