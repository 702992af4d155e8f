"""The prompt bank over a day: jobs are real tunings, each from what the bank holds at its start, and each fills it at its end."""

import copy
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.papers.prompttuner.estimators.prompt_bank import SAMPLES, PromptBank
from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
from gpuschedlab.papers.prompttuner.jobs import LENGTH, SHARES, SIZES, PromptJobs
from gpuschedlab.papers.prompttuner.policy import PromptTuner
from gpuschedlab.papers.prompttuner.recipe import PromptLab, servers
from gpuschedlab.papers.prompttuner.speeds.llms import (
    EVALUATION,
    ITERATION,
    LLMS,
    PRICE,
    WARM_UP,
    prompt_speeds,
    search_as_work,
)
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.recipe_base import Recipe
from scenes import prompt_tuning as tuning
from scenes.tiny_transformer import HELD_OUT, Task, judge, samples

PARTS = 5
"""Parts of each task, each with samples and a user's prompt of its own."""


class Tuning(NamedTuple):
    """What a tuning gave: `iterations`, number of the tuned `prompt`, whether the target was `reached`."""

    iterations: int
    prompt: int
    reached: bool


class Start(NamedTuple):
    """A job's start: its row, the number of its first `prompt`, `evaluations` of its search, its `tuning`."""

    row: int
    prompt: int
    evaluations: int
    tuning: Tuning


@dataclass
class Prompts:
    """All prompts of a day by number, and what is known of them: nothing is scored or tuned twice; part p of task k is k * PARTS + p."""

    tasks: tuple[Task, ...]
    cap: int  # iterations after which a tuning is given up
    seed: int
    scores: dict = field(default_factory=dict)
    tunings: dict = field(default_factory=dict)

    def __post_init__(self):
        self.all = list(tuning.candidates(self._rng(0)))
        self.known = len(self.all)
        features = tuning.features(np.array(self.all))
        self.bank = PromptBank(features, tuning.CLUSTERS, visited=tuning.VISITED, rng=self.seed)
        parts = len(self.tasks) * PARTS
        self.users = list(range(self.known, self.known + parts))
        self.all += list(tuning.candidates(self._rng(1), parts))

    def _rng(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *what])

    def score(self, part: int, prompts: np.ndarray) -> np.ndarray:
        """Losses (m,) of prompts by number on the samples of a part (equation 4.1)."""
        known = self.scores.setdefault(part, {})
        new = [int(p) for p in prompts if int(p) not in known]
        if new:
            data = samples(self.tasks[part // PARTS], SAMPLES, self._rng(2, part))
            known |= zip(new, judge(tuning.frozen(), np.array([self.all[p] for p in new]), *data).loss, strict=True)
        return np.array([known[int(p)] for p in prompts], float)

    def tune(self, part: int, prompt: int) -> Tuning:
        """The tuning of a prompt for a part; a prompt that needs no iteration stays the same one."""
        if (part, prompt) not in self.tunings:
            rng, task = self._rng(3, part), self.tasks[part // PARTS]
            found = tuning.tune(task, self.all[prompt][None], rng, self.cap)
            iterations, number = int(found.iterations[0]), prompt
            if iterations:
                number = len(self.all)
                self.all.append(found.prompts[0])
            self.tunings[part, prompt] = Tuning(iterations, number, bool(found.reached[0]))
        return self.tunings[part, prompt]


class Day:
    """One LLM's bank as it is searched and filled, from its state at the beginning of the day."""

    def __init__(self, prompts: Prompts, grows: bool):
        self.prompts, self.grows = prompts, grows
        self.bank, self.numbers = copy.copy(prompts.bank), list(range(prompts.known))

    def start(self, row: int, part: int, asks: bool) -> Start:
        """Search for a job, and tune from what is found; without a search from the user's prompt."""
        if not asks:
            prompt, evaluations = self.prompts.users[part], 0
        else:
            found = self.bank.look_up(lambda which: self.prompts.score(part, np.array(self.numbers)[which]))
            prompt, evaluations = self.numbers[found.prompt], found.evaluations
        return Start(row, prompt, evaluations, self.prompts.tune(part, prompt))

    def end(self, start: Start) -> bool:
        """Put a job's tuned prompt into the bank, unless it is there or is not good enough; whether it was."""
        new = start.tuning.prompt
        if not self.grows or not start.tuning.reached or new in self.numbers:
            return False
        found = self.bank.insert(tuning.features(self.prompts.all[new][None])[0])
        self.numbers.append(new)
        if found.dropped is not None:
            self.numbers.pop(found.dropped)
        return True


@dataclass
class Loop:
    """Jobs of real tunings, and the runs in which they settle.

    `settle` simulates, walks through the starts and ends of the run to see what the bank held at each start, tunes from what
    was found there, and simulates again until no job's work changes. What a policy decides may depend on nothing but ends
    that have been and on what is known at submission; so each pass is right for one start more at least, and the end is the
    only one that there is.
    """

    jobs: PromptJobs
    cap: int  # iterations after which a tuning is given up
    stretch: float  # see `PromptLoop`
    grows: bool  # whether tuned prompts are put into the bank
    seed: int
    prompts: Prompts | None = None  # of another loop with the same `cap` and seed, whose tunings are not done again

    def __post_init__(self):
        self.prompts = self.prompts or Prompts(HELD_OUT, self.cap, self.seed)

    @cached_property
    def table(self) -> pl.DataFrame:
        """Parts of all tasks: `task`, `part`, and the small transformer's `tiny` iterations from the user's prompt, at least 1."""
        parts = range(len(self.prompts.users))
        tiny = [max(self.prompts.tune(part, self.prompts.users[part]).iterations, 1) for part in parts]
        names = [f"order {t.order} shift {t.shift} part {p}" for t in self.prompts.tasks for p in range(PARTS)]
        return pl.DataFrame({"task": names, "part": list(parts), "tiny": np.array(tiny, float)})

    def unit(self, llm: str) -> float:
        """Iterations of an LLM that one of the small transformer stands for: users' prompts take as long as the stand-ins."""
        work = LENGTH * WARM_UP[llm] * np.dot(SIZES, SHARES) / ITERATION[llm]
        return self.stretch * work / self.table["tiny"].mean()

    def made(self) -> pl.DataFrame:
        """The trace before any run: each job takes what its user's prompt does."""
        tasks, search = {}, {}
        for llm in LLMS:
            own = self.table.select("task", iterations=pl.col("tiny") * self.unit(llm))
            tasks[llm] = own.with_columns(gpu_time=pl.col("iterations") * ITERATION[llm], luck=pl.lit(0.0))
            search[llm] = self.prompts.bank.worst() * EVALUATION[llm]
        trace = self.jobs.of_tasks(tasks, search, self.seed)
        worst = {llm: s / ITERATION[llm] for llm, s in search.items()}
        worst = pl.col("model").replace_strict(worst, return_dtype=pl.Float64)
        asks = pl.when(pl.col("prompt") == "bank").then(worst).otherwise(0.0)
        return trace.with_columns(look_up=asks)

    def settle(self, scenario: Callable[[pl.DataFrame], object], policy) -> "Loop":
        """Run a policy until what the bank holds at each start no longer changes; `scenario` makes one of a trace."""
        trace = self.made()
        for self.passes in range(1, trace.height + 3):
            self.scenario = scenario(trace)
            self.run = self.scenario.run(policy)
            work = self.walk(self.run.jobs)
            if np.array_equal(work, trace["target"].to_numpy()):
                return self
            faster = trace["duration"] * pl.Series(work) / trace["target"]
            trace = trace.with_columns(target=pl.Series(work), duration=faster)
        raise EstimatorError(
            f"PromptLoop: found no end after {self.passes} runs; expected jobs whose work is settled by what ended before them. "
            "Let the estimator know nothing but what is known at submission, such as UpperBound."
        )

    def walk(self, jobs: pl.DataFrame) -> np.ndarray:
        """Work (n,) of jobs, from starts in order of a run; ends move where it differs from the run's.

        Leaves `starts`, in that order, and `inserted`, the rows whose prompts went into a bank, in order.
        """
        jobs = jobs.with_row_index("row")
        names, parts = jobs["task"].str.splitn(" ", 2).struct.field("field_1"), self.table.select("task", "part")
        part = names.replace_strict(dict(parts.iter_rows()), return_dtype=pl.Int64)
        jobs = jobs.with_columns(part=part).sort("start", maintain_order=True)
        days, ends = {llm: Day(self.prompts, self.grows) for llm in LLMS}, []
        work, self.starts, self.inserted = np.zeros(jobs.height), [], []

        def until(instant: float):
            while ends and ends[0][0] <= instant:
                _, row, llm, start = heapq.heappop(ends)
                if days[llm].end(start):
                    self.inserted.append(row)

        for job in jobs.iter_rows(named=True):
            until(job["start"])
            llm, row = job["model"], job["row"]
            start = days[llm].start(row, job["part"], job["prompt"] == "bank")
            search = start.evaluations * EVALUATION[llm] / ITERATION[llm]
            work[row] = self.unit(llm) * max(start.tuning.iterations, 1) + search
            before = job["start"] + job["overhead"]
            ratio = work[row] / job["target"]
            end = job["end"] if ratio == 1 else before + (job["end"] - before) * ratio
            heapq.heappush(ends, (end, row, llm, start))
            self.starts.append(start)
        until(np.inf)
        return work


@dataclass(frozen=True)
class PromptLoop(Recipe):
    """A day of prompt tuning in which the bank learns: iterations are those of real tunings of a small transformer.

    Each LLM has a bank of its own, with the same prompts when the day begins. A job is a task that the transformer was not
    taught, on samples of its own, with a user's prompt. When it starts, the bank is searched as it is then; its tuning begins
    at the prompt that is found, and when it ends its tuned prompt is put into the bank. The scores of the search are time on
    the job's own GPUs. What the bank holds at each start depends on what ended before, and that on the scheduler: the scenario
    is that of `tuner`, which is run until nothing changes (`Loop`); another policy would find the iterations of this one.

    Parameters
    ----------
    jobs : PromptJobs
        Requests, GPUs and deadlines; what the bank saves is measured here, so `gain` and `luck` say nothing.
    gpus : int
        GPUs of the cluster, a multiple of 8.
    grows : bool
        Whether tuned prompts are put into the bank.
    cap : int
        Iterations of the small transformer after which a job is given up, its prompt is then not put into the bank.
    stretch : float
        Time of an iteration over that at which the user's prompts take as long as `PromptJobs` has its jobs in the mean.
    tuner : PromptTuner
    estimator : UpperBound
        What is known of durations. The truth cannot be: it lies in what the bank will hold.

    Raises
    ------
    ClusterError
        The GPUs are no positive multiple of 8.

    Examples
    --------
    >>> PromptLoop().with_knobs(load="low", minutes=5).knobs["grows"]
    True
    """

    metrics: ClassVar = PromptLab.metrics
    price: ClassVar = PRICE
    jobs: Annotated[PromptJobs, Holds(("load", "slo", "warm_up", "minutes"))] = PromptJobs()
    gpus: Annotated[int, Knob(8, 1024, step=8, unit="GPUs", help="size of the cluster")] = 32
    grows: Annotated[bool, Knob(help="whether tuned prompts are put into the bank")] = True
    cap: Annotated[int, Knob(1, 500, help="iterations after which a tuning is given up")] = 100
    stretch: Annotated[float, Knob(0.01, 100, log=True, help="time of an iteration over the stand-in's")] = 1.0
    tuner: Annotated[PromptTuner, Holds(("window", "delaying"))] = PromptTuner()
    estimator: Annotated[UpperBound, Holds(("above", "spread"))] = UpperBound()

    def __post_init__(self):
        super().__post_init__()
        servers(self)

    @property
    def policies(self) -> dict[str, Policy]:
        """The one whose run the bank's contents are of."""
        return {"PromptTuner": self.tuner}

    def loop(self, seed: int = 0, prompts: Prompts | None = None) -> Loop:
        """The bank's day, with what was found and tuned in it; `prompts` of another loop of the seed spare their tunings."""
        delays, known = search_as_work(self.jobs.warm_up), replace(self.estimator, rng=seed)

        def made(trace) -> Scenario:
            return Scenario(trace, servers(self), speeds=prompt_speeds(), delays=delays, estimator=known, seed=seed)

        return Loop(self.jobs, self.cap, self.stretch, self.grows, seed, prompts).settle(made, self.tuner)

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs with measured iterations, and cluster."""
        return self.loop(seed).scenario
