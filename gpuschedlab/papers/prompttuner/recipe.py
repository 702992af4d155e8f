"""Prompt tuning (PromptTuner, 4.6.1): bursts of jobs of seconds, for three LLMs, on servers of eight GPUs."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError
from gpuschedlab.estimators import Noisy, Oracle
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.papers.prompttuner.elasticflow import ElasticFlow
from gpuschedlab.papers.prompttuner.infless import Infless
from gpuschedlab.papers.prompttuner.jobs import LOADS, PromptJobs
from gpuschedlab.papers.prompttuner.policy import PromptTuner
from gpuschedlab.papers.prompttuner.speeds.llms import GPU_TYPE, PRICE, prompt_delays, prompt_speeds
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
        Knowledge of durations; by default the truth. Errors are drawn anew for each seed. Around another estimator:
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
        servers(self)

    @property
    def policies(self) -> dict[str, Policy]:
        """Dict of each `Policy` by name: PromptTuner with these knobs, others with and without knowledge of warm-up times."""
        rival_policies = (Infless(aware=False), Infless(aware=True), ElasticFlow(aware=True), ElasticFlow(aware=False))
        return dict(zip(POLICIES, (self.tuner, *rival_policies), strict=True))

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of jobs and cluster."""
        jobs = self.jobs
        if self.grown:
            jobs = replace(jobs, scale=jobs.scale * self.gpus / 32)
        # Without errors, what is known is what they would be around.
        exact = None if self.estimator.estimator == Oracle() else self.estimator.estimator
        job_estimator = errors_of(self.estimator, seed) or exact
        delays = prompt_delays(self.jobs.warm_up)
        return Scenario(
            jobs(seed), servers(self), speeds=prompt_speeds(), delays=delays, estimator=job_estimator, seed=seed
        )


def servers(recipe) -> Cluster:
    """Return the `Cluster` of the servers of a recipe's GPUs."""
    if recipe.gpus < NODE or recipe.gpus % NODE:
        who = type(recipe).__name__
        raise ClusterError(f"{who}.gpus: found {recipe.gpus!r}; expected a positive multiple of {NODE}.")
    return Cluster.homogeneous(recipe.gpus // NODE, NODE, GPU_TYPE)
