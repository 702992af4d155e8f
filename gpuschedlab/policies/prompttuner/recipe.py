"""Scenarios of prompt tuning (PromptTuner, 4.6.1), from a seed."""

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError, TraceError
from gpuschedlab.estimators import Estimator, Noisy
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.policies.prompttuner.elasticflow import ElasticFlow
from gpuschedlab.policies.prompttuner.infless import Infless
from gpuschedlab.policies.prompttuner.jobs import LOADS, PromptJobs
from gpuschedlab.policies.prompttuner.policy import PromptTuner
from gpuschedlab.policies.prompttuner.speeds import GPU_TYPE, PRICE, prompt_delays, prompt_speeds
from gpuschedlab.sim import Round, Scenario

NODE = 8
"""GPUs of a server (4.6.1)."""

LINEUP = ("PromptTuner", "INFless, blind", "INFless, aware", "ElasticFlow", "ElasticFlow, blind")

PREFIX = "lpt-"
"""Begins the names of these scenarios on the command line: ``lpt-medium``."""


@dataclass(frozen=True)
class PromptScenario:
    """Recipe of a scenario: prompt-tuning jobs on servers of eight GPUs; `PromptScenario()(seed)` makes it.

    Parameters
    ----------
    jobs : PromptJobs
    gpus : int
        GPUs of the cluster, a multiple of 8. The thesis has 32, and 40 to 120 in simulations.
    grown : bool
        Whether the requests grow with the cluster, from 32 GPUs on (4.6.4).
    estimator : Estimator, optional
        What is known of durations; default: the truth.

    Raises
    ------
    ClusterError
        The GPUs are no positive multiple of 8.

    Examples
    --------
    >>> PromptScenario(PromptJobs("low"))(seed=1).summary()["jobs"]
    138
    """

    jobs: PromptJobs = field(default_factory=PromptJobs)
    gpus: int = 32
    grown: bool = False
    estimator: Estimator | None = None

    def __post_init__(self):
        if self.gpus < NODE or self.gpus % NODE:
            raise ClusterError(f"PromptScenario.gpus: found {self.gpus!r}; expected a positive multiple of {NODE}.")

    def __call__(self, seed: int = 0) -> Scenario:
        """Make the scenario of a seed."""
        jobs = replace(self.jobs, scale=self.jobs.scale * self.gpus / 32) if self.grown else self.jobs
        return Scenario(
            jobs(seed),
            Cluster.homogeneous(self.gpus // NODE, NODE, GPU_TYPE),
            speeds=prompt_speeds(),
            delays=prompt_delays(self.jobs.warm_up),
            estimator=self.estimator,
            seed=seed,
        )


def prompt_scenario(name: str, **knobs) -> PromptScenario:
    """Recipe by its name on the command line.

    Parameters
    ----------
    name : str
        ``lpt-low``, ``lpt-medium`` or ``lpt-high``.
    **knobs
        Of `PromptJobs`.

    Raises
    ------
    TraceError
        There is no such name.

    Examples
    --------
    >>> prompt_scenario("lpt-high").jobs.load
    'high'
    """
    if name not in prompt_names():
        raise TraceError(f"scenario {name!r}: found no such one; expected one of {', '.join(prompt_names())}.")
    return PromptScenario(PromptJobs(name.removeprefix(PREFIX), **knobs))


def prompt_names() -> list[str]:
    """Names of the scenarios."""
    return [PREFIX + load for load in LOADS]


@dataclass(frozen=True)
class PromptLab(Knobbed):
    """Jobs, GPUs and policies of prompt tuning.

    Examples
    --------
    >>> lab = PromptLab(load="low", window=0)
    >>> lab.policy("PromptTuner").window
    0
    >>> lab.scenario(seed=1).trace.height
    138
    """

    chosen: Annotated[str, Knob(choices=LINEUP, help="policy of the first figure")] = "PromptTuner"
    beside: Annotated[str, Knob(choices=LINEUP, help="policy of the second figure")] = "INFless, blind"
    load: Annotated[str, Knob(choices=tuple(LOADS), help="requests, by table 4.6")] = "medium"
    slo: Annotated[float, Knob(0.25, 3, step=0.25, help="S: time to the deadline over the duration")] = 1.0
    window: Annotated[float, Knob(0, 300, step=5, unit="s", help="idle time after which a GPU leaves its pool")] = 60.0
    warm_up: Annotated[float, Knob(0, 3, step=0.25, help="warm-up times over the stand-ins")] = 1.0
    gpus: Annotated[int, Knob(8, 128, step=8, unit="GPUs", help="size of the cluster")] = 32
    noise: Annotated[float, Knob(0, 1, step=0.1, help="relative error of estimated durations")] = 0.0
    bank: Annotated[bool, Knob(help="whether prompts come from the bank")] = True
    delaying: Annotated[str, Knob(choices=("any", "warm", "own", "never"), help="GPUs that jobs may wait for")] = "any"
    price: ClassVar[float] = PRICE

    def policy(self, name: str) -> Round:
        """A policy of `LINEUP` with the knobs that it has."""
        if name == "PromptTuner":
            return PromptTuner(window=self.window, delaying=self.delaying)
        kind = Infless if name.startswith("INFless") else ElasticFlow
        return kind(aware=not name.endswith("blind"))

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs and cluster."""
        jobs = PromptJobs(self.load, slo=self.slo, bank=self.bank, warm_up=self.warm_up)
        known = Noisy(error=self.noise, rng=seed) if self.noise else None
        return PromptScenario(jobs, self.gpus, estimator=known)(seed)
