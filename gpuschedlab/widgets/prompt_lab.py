"""What the PromptExplorer's knobs say: prompt-tuning jobs, a cluster, and a policy; no widgets here."""

from dataclasses import dataclass
from typing import Annotated

from gpuschedlab.estimators import Noisy
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.policies import ElasticFlow, Infless, PromptTuner
from gpuschedlab.policies.prompttuner.jobs import LOADS, PromptJobs
from gpuschedlab.policies.prompttuner.recipe import PromptScenario
from gpuschedlab.sim import Round, Scenario

POLICIES = ("PromptTuner", "INFless, blind", "INFless, aware", "ElasticFlow", "ElasticFlow, blind")


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

    chosen: Annotated[str, Knob(choices=POLICIES, help="policy of the first figure")] = "PromptTuner"
    beside: Annotated[str, Knob(choices=POLICIES, help="policy of the second figure")] = "INFless, blind"
    load: Annotated[str, Knob(choices=tuple(LOADS), help="requests, by table 4.6")] = "medium"
    slo: Annotated[float, Knob(0.25, 3, step=0.25, help="S: time to the deadline over the duration")] = 1.0
    window: Annotated[float, Knob(0, 300, step=5, unit="s", help="idle time after which a GPU leaves its pool")] = 60.0
    warm_up: Annotated[float, Knob(0, 3, step=0.25, help="warm-up times over the stand-ins")] = 1.0
    gpus: Annotated[int, Knob(8, 128, step=8, unit="GPUs", help="size of the cluster")] = 32
    noise: Annotated[float, Knob(0, 1, step=0.1, help="relative error of estimated durations")] = 0.0
    bank: Annotated[bool, Knob(help="whether prompts come from the bank")] = True
    delaying: Annotated[str, Knob(choices=("any", "warm", "own", "never"), help="GPUs that jobs may wait for")] = "any"

    def policy(self, name: str) -> Round:
        """A policy of `POLICIES` with the knobs that it has."""
        if name == "PromptTuner":
            return PromptTuner(window=self.window, delaying=self.delaying)
        kind = Infless if name.startswith("INFless") else ElasticFlow
        return kind(aware=not name.endswith("blind"))

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs and cluster."""
        jobs = PromptJobs(self.load, slo=self.slo, bank=self.bank, warm_up=self.warm_up)
        known = Noisy(error=self.noise, rng=seed) if self.noise else None
        return PromptScenario(jobs, self.gpus, estimator=known)(seed)
