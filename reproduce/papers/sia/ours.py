"""Chapter 3 of the Sia thesis (Jayaram Subramanya, CMU 2025) on the workloads of its artifact (SOSP'23)."""

from dataclasses import replace
from functools import partial
from itertools import product

from reproduce.papers.sia import workloads
from reproduce.papers.sia.ways import ALONE, POWERS, RIGID_JOBS, ROUNDS, SHARED, measure
from reproduce.published.data import read_data
from reproduce.published.numbers import Number, Ours, named
from reproduce.published.rows import Row
from reproduce.published.study import Study

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
"""Workloads that QUICK=1 runs of each set."""

SLOW = {"pollux": (("typed", "saturn"),), ALONE["sia"]: (), ALONE["pollux"]: (), ALONE["shockwave"]: ()}
"""Settings and sets that QUICK=1 runs under policies that take long: Pollux's search takes half a minute per workload."""

SIA_TYPED = (("typed", "philly"), ("typed", "saturn"))
"""Settings and sets that `cheap` runs under Sia."""

_RIGID = Number("figure 3.1", "philly, rigid jobs", "sia", "less_avg_jct_than_gavel")
SWITCHED = "figure 3.1, switches of the artifact"
_SCALING = Number("figure 3.12", "philly", "sia, strong-scaling jobs", "avg_jct_over_rigid")
_ADAPTIVE = Number("figure 3.12", "philly", "sia, adaptive jobs", "avg_jct_over_strong_scaling")
_NO_PROFILE = Number("figure 3.13", "helios", "sia, bootstrap", "avg_jct_over_no_profile")
_ORACLE = Number("figure 3.13", "helios", "sia, bootstrap", "avg_jct_over_oracle")
_RESTARTS = Number("section 3.5.8", "helios", "sia, 30 s rounds", "restarts_over_60_s")
_FREE = Number("equation 3.3", "helios", FREE, "restarts_over_sia")


class Runs:
    """Answers of `measure`, by case.

    Parameters
    ----------
    study : Study
    slow : dict
        Settings and sets that QUICK=1 runs under policies that take long.
    """

    def __init__(self, study: Study, slow: dict = SLOW):
        held = read_data(study.data, "reference/sia_workloads.parquet").select("set", "idx").unique().sort("set", "idx")
        self.numbers = {name: tuple(rows["idx"]) for (name,), rows in held.group_by("set", maintain_order=True)}
        self.numbers[workloads.SPIKE] = self.numbers["newtrace"]
        self.study = study
        self.slow = slow

    def cases(self, setting: str, policy: str, name: str) -> list[tuple]:
        """Cases of a set under a policy: all workloads, or those of `QUICK`."""
        numbers = self.numbers[name]
        if self.study.quick:
            soon = policy not in self.slow or (setting, name) in self.slow[policy]
            numbers = QUICK.get(name, ()) if soon else ()
        return [(setting, policy, name, n) for n in numbers]

    def of(
        self, setting: str, policy: str, name: str, among: tuple[int, ...] | None = None
    ) -> dict[str, Ours] | str | None:
        """Figures of a set under a policy; why there are none; or None where it was not run."""
        cases = [c for c in self.cases(setting, policy, name) if among is None or c[3] in among]
        done = {case[3]: self.study.answer(measure, case) for case in cases}
        failed = next((each["failed"] for each in done.values() if "failed" in each), None)
        if failed:
            return f"could not be run: {failed}"
        if not done:
            return None
        each = {n: workloads.figures([one]) for n, one in done.items()}
        whole = among is not None or len(done) == len(self.numbers[name])
        pooled = workloads.figures(list(done.values()))
        return {key: Ours(x, "", named({n: one[key] for n, one in each.items()}), whole) for key, x in pooled.items()}

    def figure(self, metric: str, setting: str, policy: str, name: str, among=None) -> Ours | str | None:
        """One of the figures of `of`."""
        known = self.of(setting, policy, name, among)
        return known.get(metric) if isinstance(known, dict) else known

    def most(self, metric: str, one: tuple[str, str, str], other: tuple[str, str, str]) -> Ours | str | None:
        """The largest ratio of a figure on one of the workloads that both (setting, policy, set) ran."""
        found = _ratio(self, metric, one, other, _over)
        return found._replace(value=max(found.each.values())) if isinstance(found, Ours) else found


def ours(study: Study) -> dict[Number, Row]:
    """Every number of the chapter that can be had."""
    runs = Runs(study)
    return _tables(runs) | _variants(runs) | _rounds(runs)


def cheap(study: Study) -> dict[Number, Row]:
    """Tables and rigid jobs of one workload of each set: each policy but Pollux once, Sia and Gavel twice."""
    left_out = {"pollux": (), ALONE["gavel"]: (), "shockwave": (), "gavel, tuned": (), "sia": SIA_TYPED}
    runs = Runs(replace(study, quick=True), SLOW | left_out)
    rigid = [comparison for comparison in _adaptivity() if comparison[0].where == _RIGID.where]
    return _tables(runs) | _compared(runs, rigid)


def _tables(runs: Runs) -> dict[Number, Row]:
    """Tables 3.3 and 3.4, figure 3.7, and the artifact's run of Gavel."""
    rows: dict[Number, Row] = {}
    for (name, thesis), policy in product(SETS.items(), ("sia", "pollux", "gavel")):
        rows |= _put(
            "table 3.3", thesis, policy, METRICS, partial(runs.figure, setting="typed", policy=policy, name=name)
        )
    for policy in ("sia", "pollux", "shockwave, tuned", "themis, tuned", "gavel, tuned"):
        plain = policy.removesuffix(", tuned")
        metrics = METRICS[:4] + (("restarts",) if policy in ("sia", "pollux") else ())
        rows |= _put(
            "table 3.4", "philly", plain, metrics, partial(runs.figure, setting="t4", policy=policy, name="philly")
        )
    fairness = ("worst_rho", "unfair")
    for policy in ("sia", "pollux", "gavel", "shockwave"):
        rows |= _put("figure 3.7", "helios", policy, fairness, _helios(runs, policy))
    for policy in ALONE:
        rows |= _put(FAIR, "helios", policy, fairness, _helios(runs, ALONE[policy]))
    first = partial(runs.figure, setting="typed", policy="gavel", name="philly", among=(1,))
    return rows | _put("artifact, as run", "philly 1", "gavel", METRICS[:3], first)


def _helios(runs: Runs, policy: str):
    """A function of a metric: that of a policy on the workloads of Helios, by which the thesis means Saturn."""
    return partial(runs.figure, setting="typed", policy=policy, name="saturn")


def _put(where: str, workload: str, policy: str, metrics, figure) -> dict[Number, Row]:
    """Rows of some metrics, each by a function of the metric."""
    return {Number(where, workload, policy, metric): partial(figure, metric) for metric in metrics}


def _ratio(runs: Runs, metric: str, one: tuple, other: tuple, change) -> Ours | str | None:
    """A figure of one (setting, policy, set) against that of another, on the workloads that both ran."""
    both = {case[3] for case in runs.cases(*one)} & {case[3] for case in runs.cases(*other)}
    a, b = (runs.of(*of, among=tuple(both)) for of in (one, other))
    if isinstance(a, dict) and isinstance(b, dict):
        a = a[metric]
        b = b[metric]
        each = {name: change(a.each[name], b.each[name]) for name in a.each}
        return Ours(change(a.value, b.value), "", each, len(both) == len(runs.numbers[one[2]]))
    return next((x for x in (a, b) if isinstance(x, str)), None)


def _less(a: float, b: float) -> float:
    return 1 - a / b


def _over(a: float, b: float) -> float:
    return a / b


def _variants(runs: Runs) -> dict[Number, Row]:
    """Comparisons of two policies, or of Sia with a variant of itself."""
    rows = _compared(runs, (*_adaptivity(), *_settings(), *_rates(runs.study.quick)))
    for (name, thesis), (one, metric) in product(SETS.items(), ORDER):
        other = metric.removeprefix("avg_jct_over_")
        pair = ("typed", one, name), ("typed", other, name)
        rows[Number(EACH, thesis, one, metric)] = partial(runs.most, "avg_jct", *pair)
    return rows


def _compared(runs: Runs, comparisons) -> dict[Number, Row]:
    """Rows of comparisons: number, metric, set, policy, other policy, change."""
    rows: dict[Number, Row] = {}
    for number, metric, name, one, other, change in comparisons:
        pair = ("typed", one, name), ("typed", other, name)
        rows[number] = partial(_ratio, runs, metric, *pair, change)
    return rows


def _adaptivity():
    """Comparisons of kinds of jobs, and of what is known of them: number, metric, set, policy, other policy, change."""
    rigid = "sia, rigid jobs"
    scaling = "sia, strong-scaling jobs"
    learns = "sia, bootstrap"
    yield _RIGID, "avg_jct", "philly", rigid, "gavel", _less
    for policy in RIGID_JOBS.keys() - {rigid}:
        yield _RIGID._replace(where=SWITCHED, policy=policy), "avg_jct", "philly", policy, "gavel", _less
    yield _SCALING, "avg_jct", "philly", scaling, rigid, _over
    yield _ADAPTIVE, "avg_jct", "philly", "sia", scaling, _over
    yield _NO_PROFILE, "avg_jct", "saturn", learns, "sia, no profile", _over
    yield _ORACLE, "avg_jct", "saturn", learns, "sia", _over


def _settings():
    """Comparisons of Sia with other settings of it, as in `_adaptivity`."""
    for policy in ROUNDS:
        number = Number("section 3.5.8", "helios", policy, "more_avg_jct_than_60_s")
        yield number, "avg_jct", "saturn", policy, "sia", lambda a, b: (a - b) * 3600
    for policy, metric in product(ROUNDS, ("p99_jct", "makespan")):
        yield Number("section 3.5.8", "helios", policy, f"{metric}_over_60_s"), metric, "saturn", policy, "sia", _over
    most = "sia, p = 1"
    number = Number("figure 3.11", "helios", most, "more_unfair_than_p_-0.5")
    yield number, "unfair", "saturn", most, "sia", lambda a, b: a - b
    yield _RESTARTS, "restarts", "saturn", _RESTARTS.policy, "sia", _over
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


def _rounds(runs: Runs) -> dict[Number, Row]:
    """Wall seconds of rounds."""
    rows: dict[Number, Row] = {}
    for policy in ("sia", "gavel", "pollux"):
        rows |= _put("section 3.5.7", "helios", policy, ("round_p50", "round_p95"), _helios(runs, policy))
    large = partial(runs.figure, setting="typed", policy="sia", name=LARGE)
    rows |= _put("figure 3.10", "helios x 32", "sia", ("round_p50",), large)
    return rows | {Number("figure 3.10", "helios x 32", "pollux", "slower_than_sia"): partial(_slower, runs)}


def _slower(runs: Runs) -> str:
    """Why Pollux is not run on 2,048 GPUs."""
    sia, pollux = (runs.figure("round_p50", "typed", policy, "saturn") for policy in ("sia", "pollux"))
    times = pollux.value / sia.value
    return f"not run on 2,048 GPUs, where it takes hours; on 64 its median round takes {times:.0f} times that of Sia"
