"""Scenarios of prompt tuning (PromptTuner, 4.6.1), from a seed."""

from dataclasses import dataclass, field, replace

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError, TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.policies.prompttuner.jobs import LOADS, PromptJobs
from gpuschedlab.policies.prompttuner.speeds import GPU_TYPE, prompt_delays, prompt_speeds
from gpuschedlab.sim import Scenario

NODE = 8
"""GPUs of a server (4.6.1)."""

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
