"""PromptTuner, its parts and its baselines on prompt-tuning traces: paired differences over seeds, and what a round takes."""

import numpy as np

from gpuschedlab.metrics.intervals import mean_interval

POLICIES = {
    "prompttuner": ("PromptTuner", {}),
    "infless, blind": ("Infless", {"aware": False}),
    "infless, aware": ("Infless", {}),
    "elasticflow": ("ElasticFlow", {}),
    "elasticflow, blind": ("ElasticFlow", {"aware": False}),
    "without delaying, warm": ("PromptTuner", {"delaying": "warm"}),
    "without delaying, own": ("PromptTuner", {"delaying": "own"}),
    "without delaying, never": ("PromptTuner", {"delaying": "never"}),
    "without runtime reuse": ("PromptTuner", {"window": 0.0}),
    "one GPU per job": ("PromptTuner", {"most": 1}),
    "window of 15 s": ("PromptTuner", {"window": 15.0}),
    "window of 240 s": ("PromptTuner", {"window": 240.0}),
}
"""Policies and knobs by name; aware: the careful reading of a baseline, blind: as published; warm, own and never: see `PromptTuner`."""

KINDS = ("no bank", "noise", "bound", "bound of 2x", "noise on the bound")
"""Workloads of another kind, under PromptTuner; bound: an upper bound of the time is known, 2x: of twice the iterations."""

BOUNDS = {"bound": 1.0, "bound of 2x": 2.0, "noise on the bound": 1.0}
"""The user's most iterations over those from the user's prompt (`UpperBound`)."""

NOISE = 0.8
"""Relative error of durations (4.6.3.2)."""

CLUSTERS = (40, 80, 120)
"""GPUs of section 4.6.4; requests grow with them, from those of table 4.6 for 32."""

DECISION = (17.0, 83.0)
"""Mean and longest scheduling time of the thesis (ms; 4.6.4)."""


def measure(data_dir, policy: str, load: str, slo: float, seed: int, gpus: int = 32, kind: str = "") -> dict:
    """One run: late share, cost in dollars, and what the chapter says of starts.

    Parameters
    ----------
    data_dir : ignored
    policy : str
        Of `POLICIES`.
    load : str
        Of table 4.6, which grows with the GPUs.
    slo : float
        S: time to a deadline over the duration.
    seed, gpus : int
    kind : str
        "no bank": prompts of users; "noise": durations are known with a standard deviation of 80 %; "single": Vicuna alone;
        those of `BOUNDS`.
    """
    from gpuschedlab import policies
    from gpuschedlab.estimators import Noisy, Oracle
    from gpuschedlab.metrics import cost, slo_attainment, utilisation
    from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
    from gpuschedlab.papers.prompttuner.jobs import PromptJobs
    from gpuschedlab.papers.prompttuner.recipe import PromptLab
    from gpuschedlab.papers.prompttuner.speeds.llms import PRICE

    jobs = PromptJobs(load, slo=slo, bank=kind != "no bank")
    known = UpperBound(BOUNDS[kind]) if kind in BOUNDS else Oracle()
    noise = Noisy(known, error=NOISE if kind.startswith("noise") else 0.0)
    scenario = PromptLab(jobs, gpus, grown=True, estimator=noise)(seed)
    if kind == "single":
        scenario = scenario.replace(trace=scenario.trace.filter(model="vicuna-7b"))
    name, knobs = POLICIES[policy]
    run = scenario.run(getattr(policies, name)(**knobs))
    done = run.jobs
    first = scenario.delays.seconds("warm", scenario.trace["model"])
    bank = scenario.delays.seconds("warm bank", scenario.trace["model"]) - first
    asks = (done["prompt"] == "bank").to_numpy()
    jct = done["jct"].to_numpy()
    wait = np.clip(done["overhead"].to_numpy() - first - bank * asks, 0, None) / jct
    rounds = 1000 * run.rounds["seconds"].to_numpy()
    return {
        "late": 1 - slo_attainment(run),
        "cost": cost(run, PRICE),
        "utilisation": utilisation(run),
        "bank_share": float((bank / jct)[asks].max(initial=0.0)),
        "start_share": _start_share(scenario),
        "wait": [float(wait.mean()), float(wait.max())],
        "round": [float(rounds.mean()), float(rounds.max())],
    }


def _start_share(scenario) -> float:
    """Time of cold starts over that of all jobs alone, each started cold and from a user's prompt."""
    trace = scenario.trace
    work = trace["duration"] * trace["iterations"] / trace["target"]
    cold = scenario.delays.seconds("cold", trace["model"])
    return float(cold.sum() / (cold.sum() + work.sum()))


def paired(name: str, ours: list[dict], base: list[dict]) -> dict:
    """Late share (%) and cost ($) of runs, and their differences from others of the same seeds with 95 % intervals."""
    row = {"what": name}
    for metric, unit in (("late", 100.0), ("cost", 1.0)):
        a, b = (unit * np.array([each[metric] for each in runs]) for runs in (ours, base))
        less, half = mean_interval(a - b)
        row |= {metric: float(a.mean()), f"{metric} less": less, f"+- {metric}": half}
    return row


def run(data_dir=None, traces: tuple = ("medium",), seeds: tuple = tuple(range(10))) -> dict:
    """Compare on traces of table 4.6, S = 1.

    Returns
    -------
    dict
        One list of `paired` rows per load, and `clusters`, for 40, 80 and 120 GPUs; `round`: milliseconds of a decision beside
        the thesis's; `ok`: PromptTuner is late less often than without reuse of runtimes, without the bank, and where jobs never
        wait, by intervals.
    """
    found = {}
    ok = True
    for load in traces:
        cases = [(policy, "") for policy in POLICIES] + [("prompttuner", kind) for kind in KINDS]
        runs = {case: [measure(None, case[0], load, 1.0, seed, 32, case[1]) for seed in seeds] for case in cases}
        base = runs["prompttuner", ""]
        rows = [paired(kind or policy, runs[policy, kind], base) for policy, kind in cases]
        worse = {row["what"]: row["late less"] - row["+- late"] > 0 for row in rows}
        ok &= all(worse[name] for name in ("without runtime reuse", "no bank", "without delaying, never"))
        found[load] = rows
    found["clusters"] = [row for gpus in CLUSTERS for row in _cluster(gpus, seeds[:3])]
    rounds = np.array([each["round"] for each in base])
    decision = {"mean, ms": float(rounds[:, 0].mean()), "longest, ms": float(rounds[:, 1].max())}
    decision |= {"thesis: mean, ms": DECISION[0], "thesis: longest, ms": DECISION[1]}
    return found | {"decision": decision, "ok": bool(ok)}


def _cluster(gpus: int, seeds) -> list[dict]:
    """Rows of the baselines on a larger cluster."""
    names = ("prompttuner", "infless, blind", "infless, aware", "elasticflow")
    runs = {name: [measure(None, name, "medium", 1.0, seed, gpus) for seed in seeds] for name in names}
    return [{"GPUs": gpus} | paired(name, runs[name], runs["prompttuner"]) for name in names]
