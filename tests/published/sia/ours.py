"""Chapter 3 of the Sia thesis (Jayaram Subramanya, CMU 2025) on the workloads of its artifact (SOSP'23)."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from published.data import read_data
from published.numbers import Number, Partial
from published.sia import workloads
from published.sia.ways import ALONE, POWERS, PROFILES, ROUNDS, SHARED, measure
from published.study import Study

SETS = {"philly": "philly", "saturn": "helios", "newtrace": "newtrace"}
"""Sets of the artifact, and the names that the thesis has for them."""

FAIR = "figure 3.7, rule of the artifact"
ORDER = (("sia", "avg_jct_over_pollux"), ("pollux", "avg_jct_over_gavel"))
EACH = "table 3.3, workload by workload"
METRICS = ("avg_jct", "p99_jct", "makespan", "gpu_hours", "contention", "contention_max", "restarts")
FREE = "sia, no restart factor"
RATES = (10, 20, 30, 40, 50)
LARGE = "scale/scale_32x"

QUICK = {"philly": (1,), "saturn": (1,), workloads.SPIKE: (1,)}
"""Workloads that QUICK=1 runs of each set, but all of `WHOLE` under Sia."""

WHOLE = ("philly", "saturn")

SLOW = {
    "pollux": (("typed", "philly"), ("typed", "saturn")),
    ALONE["pollux"]: (("typed", "saturn"),),
    ALONE["shockwave"]: (),
}
"""Settings and sets that QUICK=1 runs under policies that take long: Pollux's search takes half a minute per workload."""

_RIGID = Number("figure 3.1", "philly, rigid jobs", "sia", "less_avg_jct_than_gavel")
_SCALING = Number("figure 3.12", "philly", "sia, strong-scaling jobs", "avg_jct_over_rigid")
_ADAPTIVE = Number("figure 3.12", "philly", "sia, adaptive jobs", "avg_jct_over_strong_scaling")
_NO_PROFILE = Number("figure 3.13", "helios", "sia, bootstrap", "avg_jct_over_no_profile")
_ORACLE = Number("figure 3.13", "helios", "sia, bootstrap", "avg_jct_over_oracle")
_FREE = Number("equation 3.3", "helios", FREE, "restarts_over_sia")


class Runs:
    """Answers of `measure`, by case; the cases of a table are asked for all at once.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study):
        held = read_data(study.data, "reference/sia_workloads.parquet").select("set", "idx").unique().sort("set", "idx")
        self.numbers = {name: tuple(rows["idx"]) for (name,), rows in held.group_by("set", maintain_order=True)}
        self.numbers[workloads.SPIKE] = self.numbers["newtrace"]
        self.study, self.known = study, {}

    def cases(self, setting: str, policy: str, name: str) -> list[tuple]:
        """Cases of a set under a policy: all workloads, or those of `QUICK` for what takes long."""
        numbers = self.numbers[name]
        if self.study.quick and (policy != "sia" or name not in WHOLE):
            soon = policy not in SLOW or (setting, name) in SLOW[policy]
            numbers = QUICK.get(name, ()) if soon else ()
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

    def most(self, metric: str, one: tuple[str, str, str], other: tuple[str, str, str]) -> float | str | None:
        """The largest ratio of a figure on one of the workloads that both (setting, policy, set) ran."""
        both = {case[3] for case in self.cases(*one)} & {case[3] for case in self.cases(*other)}
        each = [_ratio(self, metric, one, other, _over, (n,)) for n in sorted(both)]
        failed = next((x for x in each if isinstance(x, str)), None)
        return failed or max(each, default=None)


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
    for thesis, policy in product(("philly", "helios"), ALONE):
        name = {"philly": "philly", "helios": "saturn"}[thesis]
        known = runs.of("typed", ALONE[policy], name)
        _put(found, FAIR, thesis, policy, ("worst_rho", "unfair"), known)
    first = runs.of("typed", "gavel", "philly", among=(1,))
    _put(found, "artifact, as run", "philly 1", "gavel", METRICS[:3], first)
    found |= _variants(runs) | _rounds(runs)
    known = {number: value for number, value in found.items() if value is not None}
    return {number: _marked(number, value) for number, value in known.items()} if study.quick else known


def _marked(number: Number, value: float | str) -> float | str | Partial:
    """What QUICK=1 measured, marked where it is of one workload of a set."""
    whole = number.policy == "sia" and number.where in ("table 3.3", "table 3.4", "figure 3.7")
    return (
        value
        if isinstance(value, str) or whole or number.where == "artifact, as run"
        else Partial(value, "Of workload 1 only.")
    )


def _asked(quick: bool) -> list[tuple[str, str, str]]:
    """(setting, policy, set) of all runs, the cheap ones first."""
    asked = [("typed", policy, name) for name, policy in product(SETS, ("sia", "gavel", "pollux"))]
    asked += [("typed", policy, "saturn") for policy in (*ROUNDS, *POWERS, *PROFILES, FREE, "shockwave")]
    asked += [("typed", policy, workloads.SPIKE) for policy in ("sia", *SHARED)]
    asked += [("typed", policy, name) for policy, name in product(ALONE.values(), ("philly", "saturn"))]
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


def _ratio(runs: Runs, metric: str, one: tuple, other: tuple, change, among=None) -> float | str | None:
    """A figure of one (setting, policy, set) against that of another, on the workloads that both ran, or some."""
    both = {case[3] for case in runs.cases(*one)} & {case[3] for case in runs.cases(*other)}
    a, b = (runs.of(*each, among=among or tuple(both)) for each in (one, other))
    if isinstance(a, dict) and isinstance(b, dict):
        return change(a[metric], b[metric])
    return next((x for x in (a, b) if isinstance(x, str)), None)


def _less(a: float, b: float) -> float:
    return 1 - a / b


def _over(a: float, b: float) -> float:
    return a / b


def _variants(runs: Runs) -> dict[Number, float | str | None]:
    """Comparisons of two policies, or of Sia with a variant of itself."""
    found = {}
    for number, metric, name, one, other, change in (*_adaptivity(), *_settings(), *_rates(runs.study.quick)):
        found[number] = _ratio(runs, metric, ("typed", one, name), ("typed", other, name), change)
    for (name, thesis), (one, metric) in product(SETS.items(), ORDER):
        other = metric.removeprefix("avg_jct_over_")
        found[Number(EACH, thesis, one, metric)] = runs.most("avg_jct", ("typed", one, name), ("typed", other, name))
    return found


def _adaptivity():
    """Comparisons of kinds of jobs, and of what is known of them: number, metric, set, policy, other policy, change."""
    rigid, scaling, learns = "sia, rigid jobs", "sia, strong-scaling jobs", "sia, bootstrap"
    yield _RIGID, "avg_jct", "philly", rigid, "gavel", _less
    yield _SCALING, "avg_jct", "philly", scaling, rigid, _over
    yield _ADAPTIVE, "avg_jct", "philly", "sia", scaling, _over
    yield _NO_PROFILE, "avg_jct", "saturn", learns, "sia, no profile", _over
    yield _ORACLE, "avg_jct", "saturn", learns, "sia", _over


def _settings():
    """Comparisons of Sia with other settings of it, as in `_adaptivity`."""
    for policy in ROUNDS:
        number = Number("section 3.5.8", "helios", policy, "more_avg_jct_than_60_s")
        yield number, "avg_jct", "saturn", policy, "sia", lambda a, b: (a - b) * 3600
    for policy, metric in product(POWERS, ("avg_jct", "p99_jct")):
        number = Number("figure 3.11", "helios", policy, f"{metric}_over_p_-0.5")
        yield number, metric, "saturn", policy, "sia", _over
    short, long = SHARED
    number = Number("figure 3.8", "Spike-240", short, "less_avg_jct_than_sia")
    yield number, "avg_jct", workloads.SPIKE, short, "sia", _less
    number = Number("figure 3.8", "Spike-240", long, "more_avg_jct_than_tau_180")
    yield number, "avg_jct", workloads.SPIKE, long, short, lambda a, b: a / b - 1
    yield _FREE, "restarts", "saturn", FREE, "sia", _over


def _rates(quick: bool):
    """Comparisons at rates of submission, as in `_adaptivity`."""
    for rate in () if quick else RATES:
        number = Number("figure 3.6", f"helios, {rate} jobs an hour", "sia", "less_avg_jct_than_pollux")
        yield number, "avg_jct", f"scale/rate_{rate}", "sia", "pollux", _less


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


LIMITS = (
    ("philly: average JCT of adaptive <= strong-scaling jobs", _ADAPTIVE, 0.0, 1.0),
    ("philly: average JCT of strong-scaling <= rigid jobs", _SCALING, 0.0, 1.0),
    ("helios: average JCT with profiles at most 3% above that without", _NO_PROFILE, 0.0, 1.03),
    ("helios: average JCT with all known at most 3% above that with profiles", _ORACLE, 0.97, np.inf),
    ("helios: at least 1.5 times the restarts without the restart factor", _FREE, 1.5, np.inf),
)
"""Bounds of numbers: what they say, number, least and most."""


def checks(numbers: Mapping[Number, float]) -> list[tuple[str, bool]]:
    """Bounds on what was measured, and whether they hold."""
    from published.numbers import read_table

    table = read_table("sia")
    published = {Number(*row[:4]): row[4] for row in table.select(*Number._fields, "value").iter_rows()}
    found = [(text, low <= numbers[n] <= high) for text, n, low, high in LIMITS if n in numbers]
    near = [(Number("table 3.3", each, "sia", "avg_jct"), bound) for each, bound in BOUNDS.items()]
    for number, bound in (*near, (Number("table 3.4", "philly", "sia", "avg_jct"), 0.15)):
        if number in numbers:
            text = f"{number.where}, {number.workload}: Sia's average JCT within {bound:.0%} of the table"
            found.append((text, abs(numbers[number] / published[number] - 1) <= bound))
    for workload in BOUNDS:
        sia, gavel = (numbers.get(Number("table 3.3", workload, p, "avg_jct")) for p in ("sia", "gavel"))
        if None not in (sia, gavel):
            found.append((f"{workload}: Sia at most 0.6 of Gavel by average JCT", sia <= 0.6 * gavel))
        ratios = [numbers.get(Number(EACH, workload, *pair)) for pair in ORDER]
        if None not in ratios:
            found.append((f"{workload}: Sia < Pollux < Gavel by average JCT on each workload", max(ratios) < 1))
    return found + _fairer(numbers)


def _fairer(numbers) -> list[tuple[str, bool]]:
    """Whether Sia is fairer than the others that were measured, by equation 3.6 and by the artifact's rule."""
    found = []
    for where, workload, metric in product(("figure 3.7", FAIR), ("philly", "helios"), ("worst_rho", "unfair")):
        sia, *others = (numbers.get(Number(where, workload, p, metric)) for p in ("sia", "pollux", "gavel"))
        others = [x for x in others if x is not None]
        if sia is not None and others:
            what = {"worst_rho": "worst rho", "unfair": "unfair share"}[metric]
            text = f"{workload}, {where}: Sia's {what} below that of Pollux and Gavel"
            found.append((text if len(others) == 2 else text.replace("Pollux and ", ""), sia < min(others)))
    return found
