"""How the policies of chapter 3 of the Sia thesis run: the form of their jobs, and what is known of these."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import LabError
from reproduce.papers.sia import workloads
from reproduce.published.timing import timed

ROUNDS = {"sia, 30 s rounds": 30.0, "sia, 300 s rounds": 300.0}
POWERS = {"sia, p = -1": -1.0, "sia, p = 0.5": 0.5, "sia, p = 1": 1.0}
SHARED = {"sia, tau 180 s": 180.0, "sia, tau 300 s": 300.0}
PROFILES = {"sia, bootstrap": "bootstrap", "sia, no profile": "none"}
RIGID_JOBS = {
    "sia, rigid jobs": (workloads.fixed, {}),
    "sia, rigid jobs, p = 0.5": (workloads.fixed, {"power": 0.5, "penalty": 1.0}),
    "sia, rigid jobs, batches tuned": (workloads.retuned, {}),
    "sia, rigid jobs, as sia_fix": (workloads.retuned, {"power": 0.5, "penalty": 1.0}),
}
"""Sia of rigid jobs: as the text has them, by either switch of the artifact's `sia_fix` alone, and by both."""

ALONE = {policy: f"{policy}, alone" for policy in ("sia", "gavel", "pollux", "shockwave")}
"""Ways in which finish-time fairness is measured by the artifact's rule."""

RIGID = (workloads.fixed, workloads.tuned)
"""Forms of jobs that have the GPUs that they ask for."""


class Way(NamedTuple):
    """How a policy runs.

    Parameters
    ----------
    form : callable
        Makes the jobs of a workload what the policy takes them for: a function of `workloads`.
    policy : callable
        Makes the policy.
    alone : callable, optional
        Makes the policy of a job alone; finish-time fairness is then measured by the artifact's rule (`rho_alone`).
    whole : bool
        Whether by that rule a job keeps its GPUs.
    estimator : callable, optional
        Makes what is known of the jobs; the truth otherwise.
    """

    form: Callable
    policy: Callable
    alone: Callable | None = None
    whole: bool = False
    estimator: Callable = lambda: None

    @property
    def rigid(self) -> bool:
        """Whether jobs have the GPUs that they ask for."""
        return self.form in RIGID


def ways() -> dict[str, Way]:
    """Policies of the tables and figures, by name."""
    from gpuschedlab.estimators import Bootstrap
    from gpuschedlab.policies import Gavel, Pollux, Shockwave, Sia, ThemisRounds

    found = {
        "sia": Way(workloads.adaptive, Sia),
        "pollux": Way(workloads.placed, Pollux),
        "gavel": Way(workloads.fixed, Gavel),
        "gavel, tuned": Way(workloads.tuned, Gavel),
        "themis, tuned": Way(workloads.tuned, ThemisRounds),
        "shockwave, tuned": Way(workloads.tuned, Shockwave),
        "shockwave": Way(workloads.fixed, Shockwave),
        "sia, strong-scaling jobs": Way(workloads.scaling, Sia),
        "sia, no restart factor": Way(workloads.adaptive, lambda: Sia(restarts=False)),
    }
    found |= {name: Way(form, lambda k=k: Sia(**k)) for name, (form, k) in RIGID_JOBS.items()}
    found |= {name: Way(workloads.adaptive, lambda s=s: Sia(interval=s)) for name, s in ROUNDS.items()}
    found |= {name: Way(workloads.adaptive, lambda p=p: Sia(power=p)) for name, p in POWERS.items()}
    found |= {name: Way(workloads.adaptive, lambda s=s: Sia(timeshare=s)) for name, s in SHARED.items()}
    # A job alone leaves the search little to find: it ends sooner.
    alone = {"sia": Sia, "pollux": lambda: Pollux(patience=5), "gavel": Gavel, "shockwave": Gavel}
    found |= {ALONE[p]: found[p]._replace(alone=make, whole=p == "gavel") for p, make in alone.items()}
    known = {name: lambda m=m: Bootstrap(m) for name, m in PROFILES.items()}
    return found | {name: Way(workloads.adaptive, Sia, estimator=make) for name, make in known.items()}


def measure(data_dir, setting: str, policy: str, name: str, number: int) -> dict:
    """One workload under one policy, in one setting, with the wall seconds of its rounds; `failed` says why there is none.

    A set `scale/scale_Nx` runs on N times the cluster.
    """
    from gpuschedlab.sim import simulate
    from reproduce.papers.sia.alone import rho_alone

    way = ways()[policy]
    seconds = []
    times = int(name.removeprefix("scale/scale_").removesuffix("x")) if "scale_" in name else 1
    begin = time.process_time()
    jobs = workloads.workload(data_dir, name, number)
    try:
        form = way.form(data_dir, setting, jobs)
        cluster = workloads.cluster(setting, times)
        trace = workloads.workload_trace(form)
        decides = timed(way.policy(), seconds)
        run = simulate(trace, cluster, decides, speeds=form.speeds, estimator=way.estimator())
        found = workloads.observed(run, form.speeds)
        if way.alone:
            found["rho"] = rho_alone(way, data_dir, setting, jobs, run).tolist()
    except LabError as error:
        return {"failed": str(error)}
    rounds = {f"round_p{q}": float(np.quantile(seconds, q / 100)) for q in (50, 95)}
    return found | rounds | {"seconds": time.process_time() - begin}
