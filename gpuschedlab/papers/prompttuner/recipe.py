"""Prompt tuning (PromptTuner, 4.6.1): bursts of jobs of seconds, for three LLMs, on servers of eight GPUs."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError
from gpuschedlab.estimators import Noisy, Oracle
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.papers.prompttuner.elasticflow import ElasticFlow
from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
from gpuschedlab.papers.prompttuner.infless import Infless
from gpuschedlab.papers.prompttuner.jobs import LOADS, PromptJobs
from gpuschedlab.papers.prompttuner.loop import Loop, Prompts
from gpuschedlab.papers.prompttuner.policy import PromptTuner
from gpuschedlab.papers.prompttuner.speeds.llms import GPU_TYPE, PRICE, prompt_delays, prompt_speeds, search_as_work
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.recipe_base import Recipe, errors_of

NODE = 8
"""GPUs of a server (4.6.1)."""

POLICIES = ("PromptTuner", "INFless, blind", "INFless, aware", "ElasticFlow", "ElasticFlow, blind")


@dataclass(frozen=True)
class PromptLab(Recipe):
    """Prompt-tuning jobs on servers of eight GPUs, and policies for them.

    Parameters
    ----------
    jobs : PromptJobs
    gpus : int
        GPUs of the cluster, a multiple of 8. The thesis has 32, and 40 to 120 in simulations.
    grown : bool
        Whether the requests grow with the cluster, from 32 GPUs on (4.6.4).
    tuner : PromptTuner
    estimator : Noisy
        What is known of durations; by default the truth. Errors are drawn anew for each seed. Around another estimator:
        `Noisy(UpperBound(above=2.0), error=0.0)`.

    Raises
    ------
    ClusterError
        The GPUs are no positive multiple of 8.

    Examples
    --------
    >>> PromptLab(PromptJobs("low"))(seed=1).summary()["jobs"]
    138
    >>> PromptLab().with_knobs(load="low", window=0).policies["PromptTuner"].window
    0
    """

    aliases: ClassVar = {f"lpt-{load}": f"load={load}" for load in LOADS}
    metrics: ClassVar = (
        "late",
        "cost",
        "gpu_time_billed",
        "gpu_time",
        "jct_mean",
        "jct_p99",
        "queueing_mean",
        "preemptions",
        "seconds",
    )
    price: ClassVar = PRICE
    jobs: Annotated[PromptJobs, Holds(("load", "slo", "warm_up", "bank", "minutes"))] = PromptJobs()
    gpus: Annotated[int, Knob(8, 1024, step=8, unit="GPUs", help="size of the cluster")] = 32
    grown: bool = False
    tuner: Annotated[PromptTuner, Holds(("window", "delaying"))] = PromptTuner()
    estimator: Annotated[Noisy, Holds(("error",))] = Noisy(error=0.0)
    chosen: Annotated[str, Knob(choices=POLICIES, help="policy of the first figure")] = "PromptTuner"
    beside: Annotated[str, Knob(choices=POLICIES, help="policy of the second figure")] = "INFless, aware"

    def __post_init__(self):
        super().__post_init__()
        _servers(self)

    @property
    def policies(self) -> dict[str, Policy]:
        """PromptTuner with these knobs, and the others with and without knowledge of warm-up times."""
        others = (Infless(aware=False), Infless(aware=True), ElasticFlow(aware=True), ElasticFlow(aware=False))
        return dict(zip(POLICIES, (self.tuner, *others), strict=True))

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs and cluster."""
        jobs = replace(self.jobs, scale=self.jobs.scale * self.gpus / 32) if self.grown else self.jobs
        # Without errors, what is known is what they would be around.
        exact = None if self.estimator.estimator == Oracle() else self.estimator.estimator
        known, delays = errors_of(self.estimator, seed) or exact, prompt_delays(self.jobs.warm_up)
        return Scenario(jobs(seed), _servers(self), speeds=prompt_speeds(), delays=delays, estimator=known, seed=seed)


def _servers(recipe) -> Cluster:
    """Servers of a recipe's GPUs."""
    if recipe.gpus < NODE or recipe.gpus % NODE:
        who = type(recipe).__name__
        raise ClusterError(f"{who}.gpus: found {recipe.gpus!r}; expected a positive multiple of {NODE}.")
    return Cluster.homogeneous(recipe.gpus // NODE, NODE, GPU_TYPE)


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
        _servers(self)

    @property
    def policies(self) -> dict[str, Policy]:
        """The one whose run the bank's contents are of."""
        return {"PromptTuner": self.tuner}

    def loop(self, seed: int = 0, prompts: Prompts | None = None) -> Loop:
        """The bank's day, with what was found and tuned in it; `prompts` of another loop of the seed spare their tunings."""
        delays, known = search_as_work(self.jobs.warm_up), replace(self.estimator, rng=seed)

        def made(trace) -> Scenario:
            return Scenario(trace, _servers(self), speeds=prompt_speeds(), delays=delays, estimator=known, seed=seed)

        return Loop(self.jobs, self.cap, self.stretch, self.grows, seed, prompts).settle(made, self.tuner)

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs with measured iterations, and cluster."""
        return self.loop(seed).scenario
