"""Random pairs of runs whose sentences are read, each statement held against the frames: `python tests/metrics/statements.py --count 1000`.

A third of the traces has jobs of seconds, and the median job of 0.1 to 10 s. The others are generated days and weeks of several presets,
recipes with weeks like them, logs of some weeks that were cut off, and rare cases: one job, equal jobs, no job that ends, equal policies,
ends that are moved by almost nothing.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from clauses import RULES, Reading, read
from frames_of_pair import Context, jobs_of

import gpuschedlab as lab
from gpuschedlab.comparison import OF_LOG, OF_TRACE, OF_WEEK, Comparison
from gpuschedlab.metrics.who_pays import Scope, compared
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.scenarios.week import Week

DAY = 86_400.0
MEASURES = ("jct", "wait", "late", "unfair", "cost")
PRESETS = ("venus", "philly", "pai")
NAMES = (
    ("now", "before"),
    ("A<b>", "B & c"),
    ("srtf (interval 600)", "easy"),
    ("x+y", "x"),
    ("tiresias:queues=3", "under"),
)
SECONDS = 10.0
"""Median duration below which jobs are short."""


@dataclass
class Case:
    """Two runs, or frames of jobs, by name, and what is asked of them."""

    kind: str
    runs: dict
    place: str = ""
    among: np.ndarray | None = None
    censored: bool = False
    comparison: Comparison | None = None
    recipe: object = None
    contenders: dict = field(default_factory=dict)

    @property
    def short(self) -> bool:
        """Whether the median job takes under 10 s."""
        jobs = jobs_of(next(iter(self.runs.values())))
        return jobs.height > 0 and jobs["duration"].median() < SECONDS

    def measures(self, rng) -> list[str]:
        """Time to finish, and some other measures that the frames have."""
        if isinstance(next(iter(self.runs.values())), pl.DataFrame):
            return ["jct"]
        return ["jct", *rng.choice(MEASURES[1:], 2, replace=False).tolist()]


def policy_of(rng, scale: float):
    """Any policy of the laboratory, with knobs that suit jobs of a scale (s)."""
    placement = ("consolidate", "pack", "spread")[rng.integers(3)]
    backfill = ("none", "easy", "greedy")[rng.integers(3)]
    return (
        lambda: lab.Fifo(backfill=backfill, placement=placement),
        lambda: lab.Fifo(backfill=backfill),
        lambda: lab.Sjf(placement=placement),
        lambda: lab.Srtf(),
        lambda: lab.Srtf(interval=float(rng.uniform(1, 60))),
        lambda: lab.Tiresias(thresholds=(float(np.clip(scale * rng.uniform(0.1, 10), 600, 1e6)),)),
        lambda: lab.Tiresias(starve_limit=float(rng.uniform(1, 4))),
        lambda: lab.Themis(),
    )[rng.integers(8)]()


def jobs_of_scale(rng, n: int, scale: float, gpus: float) -> pl.DataFrame:
    """Jobs that come at random, with log-normal durations about a scale (s)."""
    duration = scale * rng.lognormal(0.0, rng.uniform(0.2, 2.0), n)
    sizes = rng.choice([1.0, 1.0, 1.0, 2.0, 4.0, 8.0], n)
    load = rng.uniform(0.4, 1.4)
    gaps = rng.exponential(1.0, n) * float((duration * sizes).mean()) / (gpus * load)
    if rng.random() < 0.3:
        duration = duration.round(1) + 0.1 * scale
    return pl.DataFrame(
        {"job_id": [f"{i}" for i in range(n)], "submit": np.cumsum(gaps), "gpus": sizes, "duration": duration}
    )


def with_deadlines(rng, trace: pl.DataFrame) -> pl.DataFrame:
    """The trace with deadlines of most jobs, some of them best-effort."""
    n = trace.height
    deadline = trace["duration"].to_numpy() * rng.uniform(1.1, 6.0, n)
    trace = trace.with_columns(deadline=pl.Series(np.where(rng.random(n) < 0.8, deadline, np.nan)).fill_nan(None))
    if rng.random() < 0.3:
        trace = trace.with_columns(kind=pl.Series(rng.choice(["strict", "best_effort"], n)))
    return trace


def scenario_of(rng, trace: pl.DataFrame, nodes: int, scale: float) -> lab.Scenario:
    """Scenario of a trace: with deadlines, delays, warm jobs and an end, or without."""
    options = {}
    if rng.random() < 0.6:
        trace = with_deadlines(rng, trace)
    if rng.random() < 0.2:
        options["delays"] = lab.Delays(restart=float(0.1 * scale))
    if rng.random() < 0.15:
        before = pl.col("submit") - float(trace["submit"].max() or 0.0) - 1.0
        options["warm"] = trace.with_columns(before, job_id="w" + pl.col("job_id"))
    if rng.random() < 0.12:
        options["until"] = float(trace["submit"].quantile(rng.uniform(0.3, 1.0)) + scale)
    return lab.Scenario(trace, lab.Cluster.homogeneous(nodes, 8), **options)


def two_runs(rng, scenario: lab.Scenario, scale: float) -> dict:
    """Runs of two policies."""
    names = NAMES[rng.integers(len(NAMES))]
    return {name: scenario.run(policy_of(rng, scale)) for name in names}


def of_seconds(rng) -> Case:
    """Jobs of seconds."""
    scale = float(10 ** rng.uniform(-1.0, 0.95))
    nodes = int(rng.integers(1, 4))
    trace = jobs_of_scale(rng, int(rng.integers(50, 400)), scale, 8 * nodes)
    runs = two_runs(rng, scenario_of(rng, trace, nodes, scale), scale)
    return Case("seconds", runs, ("", OF_TRACE, OF_WEEK)[rng.integers(3)])


def generated(rng) -> Case:
    """Generated days."""
    nodes = int(rng.integers(1, 7))
    amount = {"days": int(rng.integers(1, 8)), "jobs": int(rng.integers(50, 500)), "load": float(rng.uniform(0.3, 1.2))}
    trace = lab.generate(PRESETS[rng.integers(3)], **amount, cluster_gpus=8 * nodes, rng=rng)
    trace = trace.with_columns(pl.col("gpus").clip(upper_bound=8 * nodes))
    case = Case("generated", two_runs(rng, scenario_of(rng, trace, nodes, 600.0), 3600.0))
    case.place = ("", OF_WEEK)[rng.integers(2)]
    if not case.place and rng.random() < 0.3:
        submit = trace["submit"].median()
        case.among = (jobs_of(next(iter(case.runs.values())))["submit"] <= submit).to_numpy()
    return case


def logged(rng) -> Case:
    """A log of three to five weeks, which was cut off for some jobs."""
    nodes = int(rng.integers(1, 4))
    amount = {
        "days": float(rng.uniform(13, 35)),
        "jobs": int(rng.integers(100, 500)),
        "load": float(rng.uniform(0.5, 1.0)),
    }
    trace = lab.generate(PRESETS[rng.integers(3)], **amount, cluster_gpus=8 * nodes, rng=rng)
    trace = trace.with_columns(pl.col("gpus").clip(upper_bound=8 * nodes))
    if rng.random() < 0.5:
        trace = trace.with_columns(censored=pl.Series(rng.random(trace.height) < 0.05))
    runs = two_runs(rng, scenario_of(rng, trace, nodes, 600.0), 3600.0)
    return Case("log", runs, (OF_LOG, OF_LOG, "")[rng.integers(3)], censored=bool(rng.random() < 0.3))


def recipes(rng) -> Case:
    """A recipe's trace, with others like it."""
    if rng.random() < 0.3:
        recipe = SmallCluster(nodes=2).with_knobs(jobs=int(rng.integers(50, 150)), load=float(rng.uniform(0.5, 1.2)))
    else:
        knobs = {
            "days": float(rng.integers(1, 8)),
            "jobs": int(rng.integers(50, 150)),
            "load": float(rng.uniform(0.4, 1.2)),
        }
        recipe = replace(Week(cluster=f"{rng.integers(2, 5)}x8", preset=PRESETS[rng.integers(3)]), warm=0.0)
        recipe = recipe.with_knobs(**knobs)
        if rng.random() < 0.3:
            recipe = replace(recipe, warm=7.0)
    contenders = {name: policy_of(rng, 3600.0) for name in ("one", "two")}
    weeks = int(rng.choice([1, 4, 6, 9, 10]))
    found = lab.compare(recipe, contenders, seed=int(rng.integers(100)), weeks=weeks)
    return Case("recipe", found.runs, found.place, comparison=found, recipe=recipe, contenders=contenders)


def odd(rng) -> Case:
    """One job, equal jobs, no job that ends, or one policy under two names."""
    kind = ("one job", "equal jobs", "no end", "one policy", "few jobs")[rng.integers(5)]
    n = {"one job": 1, "few jobs": int(rng.integers(2, 30))}.get(kind, int(rng.integers(30, 150)))
    scale = float(10 ** rng.uniform(-1, 4))
    trace = jobs_of_scale(rng, n, scale, 8.0)
    if kind == "equal jobs":
        trace = trace.with_columns(submit=pl.lit(0.0), gpus=pl.lit(1.0), duration=pl.lit(scale))
    scenario = scenario_of(rng, trace, 1, scale)
    if kind == "no end":
        scenario = scenario.replace(until=float(trace["submit"][0] + 0.5 * trace["duration"].min()))
    runs = two_runs(rng, scenario, scale)
    if kind == "one policy":
        runs = dict.fromkeys(runs, scenario.run(policy_of(rng, scale)))
        if rng.random() < 0.5:
            runs = {name: scenario.run(run_policy) for name, run_policy in zip(runs, [lab.Srtf()] * 2, strict=True)}
    return Case(kind, runs, ("", OF_TRACE, OF_LOG)[rng.integers(3)])


def nudged(rng) -> Case:
    """Frames of one run, of which some ends are moved by a share of the average that lies about what counts."""
    scale = float(10 ** rng.uniform(-1, 4))
    jobs = lab.Scenario(jobs_of_scale(rng, 120, scale, 8.0), lab.Cluster.homogeneous(1, 8)).run(lab.Sjf()).jobs
    average = float((jobs["end"] - jobs["submit"]).mean())
    by = average * float(rng.choice([0.0, 1e-5, 0.004, 0.009, 0.02, 0.05, 0.3]))
    moves = rng.random(jobs.height) < rng.choice([0.02, 0.3, 0.9, 1.0])
    sign = rng.choice([[1, 1], [-1, 1], [-1, -1]][rng.integers(3)], jobs.height)
    floor = (jobs["submit"] + 0.5 * (jobs["end"] - jobs["submit"])).to_numpy()
    end = np.maximum(
        jobs["end"].to_numpy() + np.where(moves, sign * by * rng.uniform(0.5, 1.5, jobs.height), 0.0), floor
    )
    frames = {"now": jobs.with_columns(end=pl.Series(end)), "before": jobs}
    return Case("nudged", frames, ("", OF_WEEK, OF_LOG)[rng.integers(3)])


MAKERS = {of_seconds: 0.36, generated: 0.26, logged: 0.12, recipes: 0.06, odd: 0.1, nudged: 0.1}
"""What makes pairs, and how often."""


def texts_of(case: Case, rng) -> Iterator[tuple[str, Context]]:
    """What is said of a case, and what the text does not say of itself."""
    for measure in case.measures(rng):
        prices = float(rng.uniform(0.5, 5.0))
        context = Context(case.runs, measure, case.place, prices, censored=case.censored)
        context = replace(context, recipe=case.recipe, contenders=case.contenders)
        options = {"censored": case.censored}
        if measure == "cost":
            options["prices"] = prices
        if case.among is not None and measure != "cost":
            of = "submitted early"
            text = str(compared(*case.runs.values(), tuple(case.runs), Scope(case.among, of), measure=measure))
            yield text, replace(context, among=case.among, of=of)
            continue
        if case.comparison is None and rng.random() < 0.4:
            yield str(as_they_come(case, rng, measure, options)), context
            continue
        comparison = case.comparison or Comparison(case.runs, place=case.place)
        yield comparison.sentence(measure, **options), context


def as_they_come(case: Case, rng, measure: str, options: dict):
    """Compare the runs as they come, the worse one with the better one among them; now and then one run alone, or with itself."""
    names = tuple(case.runs)
    runs = list(case.runs.values())
    scope = Scope(place=case.place)
    draw = rng.random()
    if draw < 0.05:
        return compared(runs[0], None, (names[0], ""), scope, measure=measure, **options)
    if draw < 0.1:
        return compared(runs[0], runs[0], names, scope, measure=measure, **options)
    return compared(*runs, names, scope, measure=measure, **options)


def readings(count: int, seed: int) -> Iterator[tuple[int, Case, list[Reading]]]:
    """Make so many pairs, and read what is said of each; a pair is that of its seed, whatever came before."""
    makers = list(MAKERS)
    for number in range(seed, seed + count):
        rng = np.random.default_rng((number, 82))
        case = makers[rng.choice(len(makers), p=list(MAKERS.values()))](rng)
        yield number, case, [read(text, context) for text, context in texts_of(case, rng) if text]


def main(count: int, seed: int) -> int:
    """Print how many statements were read, and each that is false."""
    kinds = Counter()
    forms = Counter()
    false = 0
    texts = 0
    for number, case, found in readings(count, seed):
        kinds[case.kind] += 1
        kinds["median job under 10 s"] += case.short
        for reading in found:
            texts += 1
            forms.update(reading.forms)
            false += len(reading.false)
            for problem in reading.false:
                print(f"seed {number}, {case.kind}, {reading.context.measure}: {problem}\n  {reading.text}", flush=True)
    print(f"{count} pairs of seeds {seed} to {seed + count - 1}: {dict(kinds)}")
    for form, _ in RULES:
        if form not in forms:
            print(f"no such clause was read: {form}")
    print(f"{forms.total():,} statements of {len(forms)} forms in {texts:,} texts, {false} false")
    return false > 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.exit(main(given.count, given.seed))
