"""Chapter 3 of the Sia thesis (Jayaram Subramanya, CMU 2025) on the workloads of its artifact (SOSP'23)."""

import time
from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import LabError
from gpuschedlab.reproduce import workloads
from gpuschedlab.reproduce.published import Number, Partial
from gpuschedlab.reproduce.study import Study, read_data
from gpuschedlab.reproduce.timing import timed

SETS = {"philly": "philly", "saturn": "helios", "newtrace": "newtrace"}
"""Sets of the artifact, and the names that the thesis has for them."""

METRICS = ("avg_jct", "p99_jct", "makespan", "gpu_hours", "contention", "contention_max", "restarts")
ROUNDS = {"sia, 30 s rounds": 30.0, "sia, 300 s rounds": 300.0}
POWERS = {"sia, p = -1": -1.0, "sia, p = 0.5": 0.5, "sia, p = 1": 1.0}
RATES = (10, 20, 30, 40, 50)
LARGE = "scale/scale_32x"

QUICK = {"philly": (1,), "saturn": (1,)}
"""Workloads that --quick runs of each set, but all of philly and saturn under Sia."""

SEARCHED = ("typed", "saturn")
"""Setting and set that --quick runs under Pollux, whose search takes half a minute per workload."""


class Way(NamedTuple):
    """How a policy runs: the form of its jobs, and what makes it."""

    form: Callable
    policy: Callable


def ways() -> dict[str, Way]:
    """Policies of the tables and figures, by name."""
    from gpuschedlab.policies import Gavel, Pollux, Shockwave, Sia, ThemisRounds

    found = {
        "sia": Way(workloads.adaptive, Sia),
        "pollux": Way(workloads.placed, Pollux),
        "gavel": Way(workloads.fixed, Gavel),
        "gavel, tuned": Way(workloads.tuned, Gavel),
        "themis, tuned": Way(workloads.tuned, ThemisRounds),
        "shockwave, tuned": Way(workloads.tuned, Shockwave),
        "shockwave": Way(workloads.fixed, Shockwave),
        "sia, rigid jobs": Way(workloads.fixed, Sia),
        "sia, strong-scaling jobs": Way(workloads.scaling, Sia),
        "sia, no restart factor": Way(workloads.adaptive, lambda: Sia(restarts=False)),
    }
    found |= {name: Way(workloads.adaptive, lambda s=s: Sia(interval=s)) for name, s in ROUNDS.items()}
    return found | {name: Way(workloads.adaptive, lambda p=p: Sia(power=p)) for name, p in POWERS.items()}


def measure(data_dir, setting: str, policy: str, name: str, number: int) -> dict:
    """One workload under one policy, in one setting, with the wall seconds of its rounds; `failed` says why there is none.

    A set `scale/scale_Nx` runs on N times the cluster.
    """
    from gpuschedlab.sim import simulate

    way, seconds = ways()[policy], []
    times = int(name.removeprefix("scale/scale_").removesuffix("x")) if "scale_" in name else 1
    begin = time.process_time()
    try:
        form = way.form(data_dir, setting, workloads.workload(data_dir, name, number))
        cluster = workloads.cluster(setting, times)
        run = simulate(workloads.workload_trace(form), cluster, timed(way.policy(), seconds), speeds=form.speeds)
    except LabError as error:
        return {"failed": str(error)}
    rounds = {f"round_p{q}": float(np.quantile(seconds, q / 100)) for q in (50, 95)}
    return workloads.observed(run, form.speeds) | rounds | {"seconds": time.process_time() - begin}


class Runs:
    """Answers of `measure`, by case; the cases of a table are asked for all at once.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study):
        held = read_data(study.data, "reference/sia_workloads.parquet").select("set", "idx").unique().sort("set", "idx")
        self.numbers = {name: tuple(rows["idx"]) for (name,), rows in held.group_by("set", maintain_order=True)}
        self.study, self.known = study, {}

    def cases(self, setting: str, policy: str, name: str) -> list[tuple]:
        """Cases of a set under a policy: all workloads, or those of `QUICK` for what takes long."""
        numbers = self.numbers[name]
        if self.study.quick and (policy != "sia" or name not in QUICK):
            searched = policy != "pollux" or (setting, name) == SEARCHED
            numbers = QUICK.get(name, ()) if searched else ()
        return [(setting, policy, name, n) for n in numbers]

    def run(self, asked: list[tuple[str, str, str]]):
        """Measure what is not yet known of some (setting, policy, set)."""
        cases = [case for each in asked for case in self.cases(*each)]
        new = [case for case in dict.fromkeys(cases) if case not in self.known]
        self.known |= dict(zip(new, self.study.measured(measure, new), strict=True)) if new else {}

    def of(self, setting: str, policy: str, name: str, among: tuple[int, ...] | None = None) -> dict | str | None:
        """Figures of a set under a policy; why there are none; or None where it was not run."""
        cases = [c for c in self.cases(setting, policy, name) if among is None or c[3] in among]
        done = [self.known[case] for case in cases]
        failed = next((each["failed"] for each in done if "failed" in each), None)
        if failed:
            return f"could not be run: {failed}"
        return workloads.figures(done) if done else None


def ours(study: Study) -> dict[Number, float | str]:
    """Every number of the chapter that can be had."""
    runs = Runs(study)
    runs.run(_asked(study.quick))
    found: dict[Number, float | str | None] = {}
    for (name, thesis), policy in product(SETS.items(), ("sia", "pollux", "gavel")):
        _put(found, "table 3.3", thesis, policy, METRICS, runs.of("typed", policy, name))
    for policy in ("sia", "pollux", "shockwave, tuned", "themis, tuned", "gavel, tuned"):
        known, plain = runs.of("t4", policy, "philly"), policy.removesuffix(", tuned")
        metrics = METRICS[:4] + (("restarts",) if policy in ("sia", "pollux") else ())
        _put(found, "table 3.4", "philly", plain, metrics, known)
    for policy in ("sia", "pollux", "gavel", "shockwave"):
        _put(found, "figure 3.7", "helios", policy, ("worst_rho", "unfair"), runs.of("typed", policy, "saturn"))
    first = runs.of("typed", "gavel", "philly", among=(1,))
    _put(found, "artifact, as run", "philly 1", "gavel", METRICS[:3], first)
    found |= _variants(runs) | _rounds(runs)
    known = {number: value for number, value in found.items() if value is not None}
    return {number: _marked(number, value) for number, value in known.items()} if study.quick else known


def _marked(number: Number, value: float | str) -> float | str | Partial:
    """What --quick measured, marked where it is of one workload of a set."""
    whole = number.policy == "sia" and number.where in ("table 3.3", "table 3.4", "figure 3.7")
    return (
        value
        if isinstance(value, str) or whole or number.where == "artifact, as run"
        else Partial(value, "Of workload 1 only.")
    )


def _asked(quick: bool) -> list[tuple[str, str, str]]:
    """(setting, policy, set) of all runs, the cheap ones first."""
    asked = [("typed", policy, name) for name, policy in product(SETS, ("sia", "gavel", "pollux"))]
    asked += [("typed", policy, "saturn") for policy in (*ROUNDS, *POWERS, "shockwave")]
    asked += [("typed", policy, "philly") for policy in ("sia, rigid jobs", "sia, strong-scaling jobs")]
    asked += [
        ("t4", policy, "philly") for policy in ("sia", "pollux", "gavel, tuned", "themis, tuned", "shockwave, tuned")
    ]
    rates = [] if quick else [f"scale/rate_{rate}" for rate in RATES]
    asked += [] if quick else [("typed", "sia", LARGE)]
    return asked + [("typed", policy, name) for name, policy in product(rates, ("sia", "pollux"))]


def _put(found: dict, where: str, workload: str, policy: str, metrics, known: dict | str | None):
    """Enter the metrics of one run, or why there is none."""
    for metric in metrics:
        value = known.get(metric) if isinstance(known, dict) else known
        found[Number(where, workload, policy, metric)] = value


def _ratio(runs: Runs, metric: str, one: tuple, other: tuple, change) -> float | str | None:
    """A figure of one (setting, policy, set) against that of another, on the workloads that both ran."""
    both = {case[3] for case in runs.cases(*one)} & {case[3] for case in runs.cases(*other)}
    a, b = (runs.of(*each, among=tuple(both)) for each in (one, other))
    if isinstance(a, dict) and isinstance(b, dict):
        return change(a[metric], b[metric])
    return next((x for x in (a, b) if isinstance(x, str)), None)


def _less(a: float, b: float) -> float:
    return 1 - a / b


def _over(a: float, b: float) -> float:
    return a / b


def _variants(runs: Runs) -> dict[Number, float | str | None]:
    """Comparisons of two policies, or of Sia with a variant of itself."""

    def against(metric, policy, name, other, change):
        return _ratio(runs, metric, ("typed", policy, name), ("typed", other, name), change)

    rigid, scaling = "sia, rigid jobs", "sia, strong-scaling jobs"
    found = {
        Number("figure 3.1", "philly, rigid jobs", "sia", "less_avg_jct_than_gavel"): against(
            "avg_jct", rigid, "philly", "gavel", _less
        ),
        Number("figure 3.12", "philly", scaling, "avg_jct_over_rigid"): against(
            "avg_jct", scaling, "philly", rigid, _over
        ),
        Number("figure 3.12", "philly", "sia, adaptive jobs", "avg_jct_over_strong_scaling"): against(
            "avg_jct", "sia", "philly", scaling, _over
        ),
    }
    for policy in ROUNDS:
        key = Number("section 3.5.8", "helios", policy, "more_avg_jct_than_60_s")
        found[key] = against("avg_jct", policy, "saturn", "sia", lambda a, b: (a - b) * 3600)
    for policy, metric in product(POWERS, ("avg_jct", "p99_jct")):
        found[Number("figure 3.11", "helios", policy, f"{metric}_over_p_-0.5")] = against(
            metric, policy, "saturn", "sia", _over
        )
    for rate in () if runs.study.quick else RATES:
        key = Number("figure 3.6", f"helios, {rate} jobs an hour", "sia", "less_avg_jct_than_pollux")
        found[key] = against("avg_jct", "sia", f"scale/rate_{rate}", "pollux", _less)
    for tau, metric in (("180", "less_avg_jct_than_sia"), ("300", "more_avg_jct_than_tau_180")):
        found[Number("figure 3.8", "Spike-240", f"sia, tau {tau} s", metric)] = LATER
    for metric in ("avg_jct_over_no_profile", "avg_jct_over_oracle"):
        found[Number("figure 3.13", "helios", "sia, bootstrap", metric)] = LATER
    return found


LATER = (
    "not measured yet: no way of `reproduce.sia.ways` has the modes of profiling and the time-sharing penalty of Sia"
)


def _rounds(runs: Runs) -> dict[Number, float | str | None]:
    """Wall seconds of rounds."""
    found: dict[Number, float | str | None] = {}
    one = {policy: runs.of("typed", policy, "saturn") for policy in ("sia", "gavel", "pollux")}
    for policy, known in one.items():
        _put(found, "section 3.5.7", "helios", policy, ("round_p50", "round_p95"), known)
    _put(found, "figure 3.10", "helios x 32", "sia", ("round_p50",), runs.of("typed", "sia", LARGE))
    times = one["pollux"]["round_p50"] / one["sia"]["round_p50"]
    reason = f"not run on 2,048 GPUs, where it takes hours; on 64 its median round takes {times:.0f} times that of Sia"
    return found | {Number("figure 3.10", "helios x 32", "pollux", "slower_than_sia"): reason}


BOUNDS = {"philly": 0.15, "helios": 0.15, "newtrace": 0.25}
"""Largest relative difference of Sia's average JCT from table 3.3."""


def checks(numbers: Mapping[Number, float]) -> list[tuple[str, bool]]:
    """Bounds on what was measured, and whether they hold."""
    from gpuschedlab.reproduce.published import read_table

    table = read_table("sia")
    published = {Number(*row[:4]): row[4] for row in table.select(*Number._fields, "value").iter_rows()}
    found = []
    for workload, bound in BOUNDS.items():
        keys = [Number("table 3.3", workload, policy, "avg_jct") for policy in ("sia", "pollux", "gavel")]
        sia, pollux, gavel = (numbers.get(key) for key in keys)
        if sia is not None:
            near = abs(sia / published[keys[0]] - 1) <= bound
            found.append((f"{workload}: Sia's average JCT within {bound:.0%} of the table", near))
        if None not in (sia, pollux, gavel):
            found.append((f"{workload}: Sia < Pollux < Gavel by average JCT", sia < pollux < gavel))
        if None not in (sia, gavel):
            found.append((f"{workload}: Sia at most 0.6 of Gavel by average JCT", sia <= 0.6 * gavel))
    key = Number("table 3.4", "philly", "sia", "avg_jct")
    if key in numbers:
        found.append(("T4s: Sia's average JCT within 15% of the table", abs(numbers[key] / published[key] - 1) <= 0.15))
    for metric, text in (("worst_rho", "worst rho"), ("unfair", "unfair share")):
        each = {p: numbers.get(Number("figure 3.7", "helios", p, metric)) for p in ("sia", "pollux", "gavel")}
        if None not in each.values():
            found.append(
                (f"helios: Sia's {text} below Pollux's and Gavel's", each["sia"] < min(each["pollux"], each["gavel"]))
            )
    return found
