"""Prompt-tuning workloads in the manner of table 4.6: bursts of jobs of seconds, for three LLMs, with deadlines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.knobs import Constraint, Knob, Knobbed
from gpuschedlab.papers.prompttuner.speeds.llms import BANK, COMMUNICATION, ITERATION, LLMS, WARM_UP
from gpuschedlab.traces.schema import validate

LOADS = {"low": (41, 55, 42), "medium": (77, 71, 65), "high": (99, 85, 76)}
"""Requests in 20 minutes for each of `LLMS` (table 4.6)."""

MINUTES = 20
"""Length of a trace of the thesis (4.6.1)."""

DATA_SETS = 12
PARTS = 10
"""Tasks of an LLM: data sets (table 4.5) times exclusive partitions (4.6.1)."""

BUDGET = 0.2
"""Share of the time to the deadline that a search of the bank may take (4.5.2)."""

SIZES = (1, 2, 4, 8)
SHARES = (0.6, 0.2, 0.15, 0.05)
"""GPUs that jobs of the trace hold, and shares of the jobs: a stand-in."""

LENGTH = 1.56
"""Mean duration of a job of the trace over its LLM's warm-up time: the start is then 39 % of the whole (37 to 41 %, 4.2.2)."""


@dataclass(frozen=True)
class PromptJobs(Knobbed):
    """Recipe of a prompt-tuning trace; `PromptJobs()(seed)` makes the trace.

    As many requests per LLM as table 4.6 has; one minute has `peak` times the mean, the others vary; gaps within a minute
    are exponential. A job of the trace has GPUs and a duration, and is given one of the 120 tasks of its LLM with about its
    GPU-time. Its deadline is `slo` times its duration plus the LLM's warm-up time. A task is iterations from a user's prompt;
    from the prompt of the bank it takes fewer. The bank is searched where its time is at most 20 % of that to the deadline.

    Differs from the paper in
    -------------------------
    The traces are private. Counts, peak, length, deadlines and the number of tasks are the thesis's; GPUs, durations and
    warm-up times are stand-ins: jobs hold 1, 2, 4 or 8 GPUs, and last so long that the warm-up is 39 % of the whole (4.2.2:
    37 to 41 %). `gain` stands for the saving of the bank, of which the thesis has bounds alone: 1.28 to 1.81 times fewer
    iterations at least than from an induced prompt, 1.7 to 4.5 times between the median and the best of 20 prompts.

    Raises
    ------
    TraceError
        A value is out of range.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 4.2.2, 4.5.2 and 4.6.1, tables 4.5 and 4.6.

    Examples
    --------
    >>> trace = PromptJobs("low")(seed=0)
    >>> trace.height, trace["model"].value_counts(sort=True)["count"].to_list()
    (138, [55, 42, 41])
    """

    raises: ClassVar = TraceError
    load: Annotated[str, Knob(choices=tuple(LOADS), help="requests, by table 4.6")] = "medium"
    slo: Annotated[float, Knob(0.05, 20, log=True, tuned=(0.25, 4), help="time to the deadline over duration")] = 1.0
    bank: Annotated[bool, Knob(help="whether initial prompts come from the prompt bank")] = True
    gain: Annotated[
        float, Knob(1, 10, tuned=(1, 5), help="median of iterations saved: user's prompt over the bank's")
    ] = 1.5
    scale: Annotated[float, Knob(0.01, 1000, log=True, tuned=(0.5, 8), help="requests over those of the table")] = 1.0
    minutes: Annotated[int, Knob(1, 100_000, log=True, unit="min", tuned=(5, 1440), help="length; same rate")] = MINUTES
    peak: Annotated[float, Knob(1, 20, help="requests of the busiest minute of 20 over the mean")] = 5.0
    warm_up: Annotated[float, Knob(0, 10, tuned=(0.25, 4), help="warm-up times over the stand-ins, in deadlines")] = 1.0

    length: Annotated[float, Knob(0.01, 100, help="mean duration of the trace's jobs over their warm-up time")] = LENGTH
    spread: Annotated[float, Knob(0, 3, help="spread of these durations: deviation of their logarithm")] = 0.6
    shares: Annotated[tuple, Knob(0, 1, many=4, help="jobs of 1, 2, 4 and 8 GPUs, in parts of all")] = SHARES
    luck: Annotated[float, Knob(0, 3, help="spread of what the bank saves over tasks: deviation of its logarithm")] = (
        0.25
    )
    constraints: ClassVar = (
        Constraint("four shares that add up to 1", lambda k: _add_up_to_one(k["shares"]), lambda k: {"shares": SHARES}),
    )

    def __call__(self, seed: int | np.random.Generator = 0) -> pl.DataFrame:
        """Return the trace of a seed, a frame: `prompt` is "bank" or "user", `iterations` those from the user's prompt."""
        tasks = {llm: task_table(llm, self.length * np.dot(SIZES, self.shares), self.luck) for llm in LLMS}
        return self.of_tasks(tasks, BANK, seed)

    def of_tasks(
        self, tasks: Mapping[str, pl.DataFrame], search: Mapping[str, float], seed: int | np.random.Generator = 0
    ) -> pl.DataFrame:
        """Return the trace of a seed, a frame, from tasks of each LLM, as of `task_table`, and the seconds of a search of its bank."""
        rng = np.random.default_rng(seed)
        requests_of_llms = zip(LLMS, LOADS[self.load], strict=True)
        jobs_of_llms = [
            self._jobs_of(llm, requests_of_llm, tasks[llm], search[llm], rng)
            for llm, requests_of_llm in requests_of_llms
        ]
        jobs = pl.concat(jobs_of_llms).sort("submit", maintain_order=True)
        job_names = [f"lpt-{i:05}" for i in range(jobs.height)]
        return validate(jobs.with_columns(pl.Series("job_id", job_names, pl.String)), source="prompt jobs")

    def _jobs_of(self, llm: str, count: int, tasks: pl.DataFrame, search: float, rng) -> pl.DataFrame:
        """Return a frame of the requests of one LLM."""
        count = max(1, round(count * self.scale * self.minutes / MINUTES))
        submit = _arrivals(count, self.minutes, self.peak, rng)
        gpus = rng.choice(SIZES, count, p=self.shares).astype(float)
        duration = self.length * WARM_UP[llm] * rng.lognormal(-(self.spread**2) / 2, self.spread, count)  # of mean 1
        task = _matched(duration * gpus, tasks["gpu_time"].to_numpy(), rng)
        iterations = tasks["iterations"].to_numpy()[task]
        rate = gpus * (1 - COMMUNICATION * (gpus > 1)) / ITERATION[llm]
        duration = iterations / rate
        deadline = self.slo * duration + self.warm_up * WARM_UP[llm]
        asks = worth_a_search(search, deadline) & self.bank
        luck = tasks["luck"].to_numpy()[task]
        gain = np.maximum(1.0, self.gain * np.exp(luck))
        target = np.where(asks, iterations / gain, iterations)
        task_names = [f"{llm} {task_name}" for task_name in tasks["task"].gather(task)]
        return pl.DataFrame(
            {
                "submit": submit,
                "gpus": gpus,
                "duration": target / rate,
                "model": [llm] * count,
                "llm": [llm] * count,
                "deadline": deadline,
                "kind": ["strict"] * count,
                "target": target,
                "task": task_names,
                "prompt": np.where(asks, "bank", "user"),
                "iterations": iterations,
            }
        )


def _add_up_to_one(shares: tuple) -> bool:
    """Whether there is a share for each size, and all of them add up to 1."""
    return len(shares) == len(SIZES) and abs(sum(shares) - 1) < 1e-9


def worth_a_search(seconds: float | np.ndarray, deadline: float | np.ndarray, budget: float = BUDGET) -> np.ndarray:
    """Return an array: whether the prompt bank is searched, iff that takes at most a share of the time to the deadline (4.5.2)."""
    return np.asarray(seconds) <= budget * np.asarray(deadline, float) + 1e-9


def task_table(llm: str, work: float = LENGTH * np.dot(SIZES, SHARES), luck: float = 0.25) -> pl.DataFrame:
    """Return a frame of the 120 tasks of an LLM: `task`, `iterations` from a user's prompt, their `gpu_time` (GPU-s), and `luck`.

    Their middle is `work` times the LLM's warm-up time. `luck` is the logarithm of the bank's saving on this task over that
    on the median task, of the deviation that is given.
    """
    rng = np.random.default_rng(LLMS.index(llm))
    middle = work * WARM_UP[llm] * np.geomspace(0.15, 6.0, DATA_SETS)
    gpu_time = (middle[:, None] * rng.lognormal(0, 0.2, (DATA_SETS, PARTS))).ravel()
    task_names = [f"set {i:02} part {j}" for i in range(DATA_SETS) for j in range(PARTS)]
    lucks = rng.normal(0, luck, DATA_SETS * PARTS)
    iterations = np.ceil(gpu_time / ITERATION[llm])
    return pl.DataFrame(
        {"task": task_names, "iterations": iterations, "gpu_time": iterations * ITERATION[llm], "luck": lucks}
    )


def _matched(wanted: np.ndarray, tasks: np.ndarray, rng, among: int = 5) -> np.ndarray:
    """Return an array (jobs,): a task for each job, at random among those of the nearest GPU-time."""
    apart = np.abs(np.log(wanted)[:, None] - np.log(tasks)[None, :])
    near = np.argsort(apart, axis=1, kind="stable")[:, :among]
    return near[np.arange(len(wanted)), rng.integers(among, size=len(wanted))]


def _arrivals(count: int, minutes: int, peak: float, rng) -> np.ndarray:
    """Return an array of instants (s), ascending: counts of the minutes with one peak in 20, exponential gaps within each."""
    weight = rng.gamma(2.0, 0.5, minutes)
    for begin in range(0, minutes, MINUTES):
        end_minute = min(begin + MINUTES, minutes)
        busiest = rng.integers(begin, end_minute)
        quiet_minutes = np.delete(np.arange(begin, end_minute), busiest - begin)
        if len(quiet_minutes):
            most_weight = min(peak, end_minute - begin)
            weight[quiet_minutes] *= (end_minute - begin - most_weight) / weight[quiet_minutes].sum()
            weight[busiest] = most_weight
    # The k-th request stands where its share of the weight does.
    request_number = np.floor(np.arange(1, count + 1) - 0.5)
    share = np.cumsum(weight) / weight.sum()
    minute = np.searchsorted(share, (request_number + 0.5) / count)
    arrivals = []
    for m, many in zip(*np.unique(np.minimum(minute, minutes - 1), return_counts=True), strict=True):
        gaps = rng.exponential(1.0, many + 1)
        within_minute = np.cumsum(gaps)[:-1] / gaps.sum()
        arrivals.append(60.0 * (m + within_minute))
    return np.concatenate(arrivals)
