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
        """Return a dict of seconds waited in all (`waited`), and for each reason."""
        spent = {"waited": float((self.steps["end"] - self.steps["start"]).sum())}
        for wait_start, wait_end, reason in self.reasons.select("start", "end", "reason").iter_rows():
            spent[reason] = spent.get(reason, 0.0) + wait_end - wait_start
        return spent

    def text(self, every: bool = False) -> str:
        """Lines of text, one for each reason, or for each instant at which something changed (`every`)."""
        explained_waits = self.reasons
        if every:
            explained_waits = self.steps
        spans = []
        for wait_start, wait_end in explained_waits.select("start", "end").iter_rows():
            spans.append(f"{hours(wait_start)}, for {lasting(wait_end - wait_start)}")
        wide = max(map(len, spans), default=0)
        reason_lines = [f"  {span:>{wide}}  {text}" for span, text in zip(spans, explained_waits["text"], strict=True)]
        return "\n".join([self.about, *reason_lines])

    def __str__(self):
        return self.text()

    def _repr_html_(self):
        html_rows = []
        for wait_start, wait_end, reason_text in self.reasons.select("start", "end", "text").iter_rows():
            reason = f"<td style='text-align:left'>{escape(reason_text)}</td>"
            html_rows.append(f"<tr><td>{hours(wait_start)}</td><td>{lasting(wait_end - wait_start)}</td>{reason}</tr>")
        table_head = "<tr><th>from</th><th>for</th><th style='text-align:left'>why it waited</th></tr>"
        return f"<p>{escape(self.about)}</p><table>{table_head}{''.join(html_rows)}</table>"


def explain(run, job: str | int) -> Explanation:
    """Explain the waits of a job of a run in an `Explanation`; see `Run.explain`."""
    if run.decisions is None:
        raise RunError(
            "explain: found a run without a log of decisions; expected one. Run the policy again with "
            "scenario.run(policy, log=True), or gpuschedlab run POLICY --log --out FOLDER."
        )
    job_row = row_of(run.jobs["job_id"], str(job))
    steps, borders = steps_of(run, job_row)
    context = Context(run, job_row)
    reason_rows = []
    texts = [phrase(context.group(steps[step : step + 1])) for step in range(steps.height)]
    steps = steps.with_columns(text=pl.Series(texts, dtype=pl.Utf8))
    for first_step, behind in pairwise(borders):
        group = steps[first_step:behind]
        wait_start, reason, blocker = group.select("start", "reason", "blocker").row(0)
        wait_end = group["end"][-1]
        missing = group["missing"].min()
        reason_rows.append((wait_start, wait_end, reason, blocker, missing, phrase(context.group(group))))
    schema = steps.select("start", "end", "reason", "blocker", "missing", "text").schema
    reasons = pl.DataFrame(reason_rows, schema=schema, orient="row")
    return Explanation(str(run.jobs["job_id"][job_row]), context.about(steps), steps, reasons)


def row_of(names: pl.Series, job: str) -> int:
    """Return the row of a job (int) by its name, among the names of all; raise TraceError if none has it."""
    names = names.cast(pl.Utf8)
    job_rows = (names == job).arg_true()
    if len(job_rows):
        return int(job_rows[0])
    near = get_close_matches(job, names.head(CANDIDATES).to_list(), 1)
    advice = "run.jobs['job_id'] lists them."
    if near:
        advice = f"did you mean {near[0]}?"
    example = ""
    if len(names):
        example = f", such as {names[0]}"
    raise TraceError(f"explain: found no job {job!r}; expected one of the {len(names):,} of the run{example}: {advice}")


def waits_of(run, row: int) -> np.ndarray:
    """Return an array (k, 2) of the start and end (s) of a job's waits, those of no time among them."""
    allocations = run.allocations.filter(pl.col("job") == row).select("start", "end").unique().sort("start")
    gpus_from = allocations["start"].to_numpy()
    gpus_until = allocations["end"].to_numpy()
    submit = run.jobs.row(row, named=True)["submit"]
    starts = np.maximum.accumulate(np.append(submit, gpus_until))
    last_end = starts[-1]
    if run.jobs["end"][row] is None:
        last_end = run.info["now"]
    return np.column_stack([starts, np.append(gpus_from, last_end)])


def steps_of(run, row: int) -> tuple[pl.DataFrame, list[int]]:
    """Return a tuple: frame of a job's waits, each with its end and `blocker` by name, and a list of borders.

    The borders are those of rows of one reason and one blocker.
    """
    mine = run.decisions.filter(pl.col("job") == row)
    over = run.jobs["end"][row]
    if over is None:
        over = run.info["now"]
    ends = mine["time"].shift(-1).fill_null(over)
    job_names = run.jobs["job_id"].cast(pl.Utf8)
    frame = mine.with_columns(end=ends, blocker=job_names.gather(mine["blocker"])).rename({"time": "start"})
    step_columns = ("start", "end", "reason", "began", "gated", "place", "blocker", "key", "free", "missing")
    steps = frame.filter(pl.col("reason") != "started").select(
        *step_columns, "ahead", "later", "leased", "until", "note"
    )
    borders = []
    cause_before = None
    for step_number, (reason, blocker, began) in enumerate(steps.select("reason", "blocker", "began").iter_rows()):
        cause = (reason, blocker)
        if cause != cause_before or began is not None:
            borders.append(step_number)
        cause_before = cause
    borders.append(steps.height)
    return steps, borders


class Context:
    """Parts of the run that the words about a job need beside its own rows."""

    def __init__(self, run, row: int):
        self.run = run
        self.row = row
        self.job = run.jobs.row(row, named=True)
        self.log = run.info.get("log", {})
        starts = run.decisions.filter((pl.col("reason") == "started") & (pl.col("job") != row))
        self.started = starts["time"].to_numpy()
        self.later = run.jobs["submit"].gather(starts["job"]).to_numpy() > self.job["submit"]
        self.total = cluster_of(run).total_gpus
        self.times = run.timeline["time"].to_numpy()
        self.capacity = run.timeline["capacity"].to_numpy()
        self.used = run.timeline["used"].to_numpy()
        self.running = run.timeline["running"].to_numpy()

    def group(self, steps: pl.DataFrame) -> dict:
        """Return a dict of facts about steps of one reason: ranges are (least, most)."""
        first_step = steps.row(0, named=True)
        wait_start = steps["start"][0]
        wait_end = steps["end"][-1]
        blocker = first_step["blocker"]
        needs = self.job["gpus"]
        if blocker is not None:
            needs = self.run.jobs["gpus"][row_of(self.run.jobs["job_id"], blocker)]
        first_start, behind_starts = np.searchsorted(self.started, [wait_start, wait_end])
        passed = self.later[first_start:behind_starts].sum()
        ranges = {range_name: (steps[range_name].min(), steps[range_name].max()) for range_name in (*RANGES, "until")}
        facts_of_job = {
            "reason": first_step["reason"],
            "began": first_step["began"],
            "gated": bool(steps["gated"].any()),
            "blocker": blocker,
            "needs": needs,
            "steps": steps.height,
            "chosen": int(behind_starts - first_start),
            "passed": int(passed),
            "rule": self.log,
            "note": steps["note"][-1],
        }
        return ranges | facts_of_job | self._of_cluster(wait_start, wait_end)

    def _of_cluster(self, start: float, end: float) -> dict:
        """Return a dict of the GPUs that were down at most, and of the ranges (least, most) of GPUs in use and of running jobs.

        All are taken between two instants (s), and are 0 without a timeline.
        """
        if not len(self.times):
            return {"down": 0.0, "used": (0.0, 0.0), "running": (0, 0)}
        first_tick = np.searchsorted(self.times, start, "right") - 1
        ticks = slice(max(0, first_tick), np.searchsorted(self.times, end))
        used = self.used[ticks]
        running = self.running[ticks]
        down = float(self.total - self.capacity[ticks].min())
        return {"down": down, "used": (used.min(), used.max()), "running": (running.min(), running.max())}

    def about(self, steps: pl.DataFrame) -> str:
        """Return the head line, a text: the request of the job, under which policy, and how long it waited."""
        job = self.job
        waits = int(steps["began"].count())
        waited = float((steps["end"] - steps["start"]).sum())
        served = self.run.info["policy"]
        if order_words := self.log.get("key"):
            served += f", which serves by the lowest key ({order_words})"
        waited_in_words = "did not wait"
        if steps.height:
            waited_in_words = f"waited {hours(waited)}"
            if waits > 1:
                waited_in_words += f" in {waits} waits"
        since = f"submitted at {hours(job['submit'])}"
        demand = span((job["gpus"], job["gpus"]), "GPU")
        return f"job {job['job_id']} of {demand}, {since}, {waited_in_words} under {served}."
