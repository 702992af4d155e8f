"""AutoSched in a closed loop over two weeks of real traces, beside leaving the knobs alone, SelfTune and the true future.

Philly 2017-09-22 to 10-06 on 100 nodes of 8, Venus 2020-07-26 to 08-09 on 70, PAI's sample (relative days 42 to 56) on 100,
and two weeks generated like Venus on 70; each at its own load, and with submission times stretched so that the load is 1.1.
A seed draws the jobs' models (none of the real traces records them), the generated trace, and all that tuners draw. All
start with the policy's defaults; a restart costs 60 s; Themis and Lucid know what `Runtime` learnt from the jobs before.
Tiresias' Gittins ranks are fitted from the same jobs. Of Philly there are none: durations are known there, the ranks are
those of log-normal services, and the causal model learns from the three days after the two weeks.
Jobs of more GPUs than all but `PROFILED` are left out for every policy: Lucid's profiler may take that many, and such a job
could then never start. `about` says how many there are of each trace, and what was learnt from.
Where times are stretched so are days: what tuners take for a day of 24 h is 17.5 h of Philly's, 25.7 h of Venus', 14.2 h of
PAI's.
The room is how much better Optimal is than SelfTune; Fixed is the best configuration found on the very trace. Scatter is
chance: by how much Fixed's result varies when each job is submitted up to a second later.

All of it takes hours, divided by the cores: rows are kept as they come (`measure_all`), a run ends after `MINUTES`, and the
next one goes on from there. Where several are measured at a time, seconds are upper bounds.
"""

from __future__ import annotations

import itertools
import statistics
import time
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from reproduce.autosched.generation import SLICES
from reproduce.published.data import DAY, load_real
from reproduce.published.kept import measure_all

if TYPE_CHECKING:
    from gpuschedlab.sim import Scenario

NODES = {"philly": 100, "venus": 70, "pai": 100, "generated": 70}
SPAN = 14 * DAY
LOADS = (None, 1.1)
SEEDS = {"tiresias": 3, "themis": 3, "lucid": 15}
"""Seeds of each policy's cases; more of Lucid, since its results scatter: see `standard_error` of a case beside the bound of 1 %."""
TUNED = ("selftune", "optimal", "autosched")
MINUTES = 14.0
"""After which no further case is begun."""
ROOM = 0.15
GAIN = 1.10
NEAR = 0.05
SLACK = 0.01
RETUNE = 1.0
LOOP = 600.0
"""Most seconds of a decision, in the median, and of two weeks in the loop."""
#: What the thesis reports of AutoSched: JCT against SelfTune, share of jobs with rho <= 1 against Fixed, JCT against SelfTune.
PUBLISHED = {"tiresias": "1.10-1.36", "themis": "1.07-1.12 (against Fixed)", "lucid": "1.15-1.17"}
PROFILED = 128
"""GPUs of the 16 nodes that Lucid's profiler may take."""
LEAST = 500
"""Jobs before the two weeks that make a history: Philly's extract has but 42, which lasted until then."""


class Stretch(NamedTuple):
    """Two weeks of a trace, times stretched to a load, with a cluster.

    Parameters
    ----------
    history : polars.DataFrame
        Jobs before (time below 0); empty where there are hardly any.
    lessons : polars.DataFrame
        What the offline phase measures on: what is known of the history at 0, or without one the three days after, on a clock
        of its own.
    trace : polars.DataFrame
    cluster : Cluster
    speeds : Speeds
    own : float
        Load before it was stretched.
    left_out : int
        Jobs of the two weeks that are left out: they request more GPUs than all but `PROFILED`.
    """

    history: pl.DataFrame
    lessons: pl.DataFrame
    trace: pl.DataFrame
    cluster: object
    speeds: object
    own: float
    left_out: int = 0

    def first(self, days: float | None) -> Stretch:
        """Its first days only; None: all."""
        return self if days is None else self._replace(trace=self.trace.filter(pl.col("submit") < days * DAY))

    def scenario(self, policy: str, seed: int) -> Scenario:
        """What a policy runs in: it knows what `Runtime` learns from the history; Tiresias asks for no durations."""
        from gpuschedlab.estimators import Runtime
        from gpuschedlab.sim import Delays, Scenario

        knows = Runtime() if policy != "tiresias" and self.history.height else None
        given = {"history": self.history, "speeds": self.speeds, "estimator": knows, "seed": seed}
        return Scenario(self.trace, self.cluster, **given, delays=Delays(restart=60.0))


def stretch(data_dir, name: str, load: float | None, seed: int) -> Stretch:
    """Read or generate a trace, and stretch it to a load (None: its own).

    Jobs of more GPUs than all but `PROFILED` are left out; `left_out` counts those of the two weeks.

    Raises
    ------
    TraceError
        There is no such trace, or none of its jobs lies in the two weeks.
    """
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.speeds import default_speeds
    from gpuschedlab.traces.tools import known_at

    cluster = Cluster.homogeneous(NODES[name], 8)
    frame = _generated(cluster, seed) if name == "generated" else real_trace(data_dir, name)
    frame = frame.filter(pl.col("submit") < SPAN + 3 * DAY)
    inside = pl.col("submit").is_between(0, SPAN, closed="left")
    fits = pl.col("gpus") <= cluster.total_gpus - PROFILED
    left_out = frame.filter(inside & ~fits).height
    frame = frame.filter(fits)
    speeds = default_speeds(cluster)
    models = np.random.default_rng(seed).choice(speeds.models, frame.height)
    frame = frame.with_columns(model=pl.Series(models))
    if not frame.select(inside.any()).item():
        raise TraceError(
            f"bench autosched: found no job of {name} in two weeks from {SLICES[name][0]:%Y-%m-%d}; expected some."
        )
    own = frame.filter(inside).select((pl.col("gpus") * pl.col("duration")).sum()).item() / (cluster.total_gpus * SPAN)
    times = pl.col("submit") * (own / load if load else 1.0)
    trace, after = (frame.filter(part).with_columns(times) for part in (inside, pl.col("submit") >= SPAN))
    history = frame.filter(pl.col("submit") < 0).with_columns(times).tail(20_000)
    history = history if history.height >= LEAST else history.head(0)
    lessons = (known_at(history) if history.height else after).with_columns(pl.col("submit") - pl.col("submit").min())
    return Stretch(history, lessons, trace, cluster, speeds, own, left_out)


def real_trace(data_dir, name: str) -> pl.DataFrame:
    """A real trace on a clock that is 0 where its two weeks begin."""
    frame = load_real(data_dir, name, whole=True)
    first = SLICES[name][0]
    zero = frame.select(pl.col("submit").min() + (pl.lit(first) - pl.col("clock").min()).dt.total_seconds()).item()
    return frame.with_columns(pl.col("submit") - zero).drop("clock")


def _generated(cluster, seed: int) -> pl.DataFrame:
    """Four weeks generated like Venus at its own load on so many nodes, 1.18; the first two are the history."""
    from gpuschedlab.traces import generate

    frame = generate("venus", days=28, load=1.18, cluster_gpus=cluster.total_gpus, rng=seed)
    return frame.with_columns(pl.col("submit") - SPAN).drop("model", strict=False)


def measure(data_dir, name: str, load: float | None, policy: str, seed: int, days: float | None = None) -> dict:
    """One row: what each tuner's schedule was worth, and what tuning cost; of the first days only, where they are given."""
    from gpuschedlab.autosched import Space, attach, best_fixed, gather, score, train
    from gpuschedlab.policies import ALL

    cut = stretch(data_dir, name, load, seed).first(days)
    scenario = cut.scenario(policy, seed)
    history = cut.history
    space = Space(scenario.fitted(ALL[policy]()))
    samples = gather(scenario.replace(trace=cut.lessons), space)
    past = best_fixed(scenario.replace(trace=cut.lessons), space, searches=1).leaders()
    row = {"trace": name, "load": load or "own", "own_load": round(cut.own, 3), "policy": policy, "seed": seed}
    row |= {"jobs": scenario.trace.height, "left_out": cut.left_out, "learnt_from": history.height}
    objective = space.policy.goals[0]
    row |= {"objective": objective, "default": score(scenario.simulation(space.policy))[objective]}
    fixed = best_fixed(scenario, space, rounds=40).best.policy
    row["fixed"] = score(scenario.simulation(fixed))[objective]
    for method in TUNED:
        simulation = scenario.simulation(space.policy)
        model = train(samples, space, rng=seed) if method != "selftune" else None
        begin = time.perf_counter()
        loop = attach(method, simulation, history=history, model=model, hints=past, seed=seed)
        loads = [job_load(simulation) for _ in loop.steps(float(scenario.trace["submit"].max()))]
        decisions = loop.decisions
        row[f"{method}_loop_s"] = time.perf_counter() - begin
        if method == "autosched":
            row["updates"], row["with_load"] = moves(decisions, loads)
        row[method] = score(simulation)[objective]
        row[f"{method}_retune_s"] = statistics.median(d.seconds for d in decisions)
        row[f"{method}_measured"] = statistics.fmean(d.measured for d in decisions)
        row[f"{method}_switches"] = sum(d.switched for d in decisions)
    row["scatter"] = scatter(scenario, fixed)
    return row


def job_load(simulation) -> float:
    """GPUs over jobs of those in the system: the job load of figure 6.16 b; 0 of none."""
    jobs = simulation.snapshot().jobs
    here = (jobs["submit"] <= simulation.now) & ~jobs["done"]
    return float(jobs["gpus"][here].mean()) if here.any() else 0.0


def moves(decisions, loads) -> tuple[dict[str, int], dict[str, float | None]]:
    """By knob, how often decisions changed it, and the rank correlation of its numbers with the job load (None: it never moved)."""
    from scipy.stats import spearmanr

    updates = {}
    with_load = {}
    for name in decisions[0].policy.knobs:
        values = [decision.policy.knobs[name] for decision in decisions]
        updates[name] = sum(a != b for a, b in itertools.pairwise(values))
        moved = updates[name] > 0 and all(isinstance(value, int | float) for value in values) and len({*loads}) > 1
        with_load[name] = float(spearmanr(values, loads).statistic) if moved else None
    return updates, with_load


def scatter(scenario, policy, draws: int = 12) -> float:
    """Standard deviation over mean of a policy's objective, if each job is submitted up to a second later.

    No policy is better for that: this part of a difference between two schedules is chance.
    """
    from gpuschedlab.autosched import score

    found = []
    for seed in range(draws):
        late = pl.Series(np.random.default_rng(seed).random(scenario.trace.height))
        moved = scenario.replace(trace=scenario.trace.with_columns(pl.col("submit") + late))
        found.append(score(moved.simulation(policy))[policy.goals[0]])
    return statistics.stdev(found) / statistics.fmean(found)


def times(objective: str, value: float, base: float) -> float:
    """How many times better than the base, whichever way the objective points."""
    return value / base if objective == "fair" else base / value


def judge(rows: list[dict]) -> list[dict]:
    """Medians over the seeds of each case, with their spread, and whether the bounds hold.

    `standard_error` is that of the mean ratio to SelfTune; None of one seed.
    """
    cases: dict[tuple, list[dict]] = {}
    for row in rows:
        cases.setdefault((row["trace"], row["load"], row["policy"]), []).append(row)
    found = []
    for (trace, load, policy), group in cases.items():
        against = [times(r["objective"], r["autosched"], r["selftune"]) for r in group]
        room = statistics.median(times(r["objective"], r["optimal"], r["selftune"]) - 1 for r in group)
        best = statistics.median(
            min(times(r["objective"], r["autosched"], r[o]) for o in ("selftune", "default")) for r in group
        )
        optimal, fixed = (
            statistics.median(times(r["objective"], r["autosched"], r[o]) for r in group) for o in ("optimal", "fixed")
        )
        gain = statistics.median(against)
        retune = statistics.median(r["autosched_retune_s"] for r in group)
        longest = max(r["autosched_loop_s"] for r in group)
        good = best >= 1 - SLACK and (room < ROOM or gain >= GAIN or optimal >= 1 - NEAR)
        found.append(
            {"trace": trace, "load": load, "policy": policy, "seeds": len(group), "room": room}
            | {"scatter": statistics.median(r["scatter"] for r in group)}
            | {"against_selftune": gain, "low": min(against), "high": max(against)}
            | {"standard_error": statistics.stdev(against) / len(against) ** 0.5 if len(against) > 1 else None}
            | {
                "against_better_of_selftune_and_default": best,
                "against_optimal": optimal,
                "against_fixed": fixed,
                "published": PUBLISHED[policy],
            }
            | {"retune_s": retune, "loop_s": longest, "ok": good and retune <= RETUNE and longest <= LOOP}
        )
    return found


def about(rows: list[dict]) -> dict[str, str]:
    """By trace: its jobs, those that are left out, and what policies and estimators learnt from."""
    found = {}
    for row in rows:
        learnt = f"policies and estimators learnt from {row['learnt_from']:,} jobs before"
        if not row["learnt_from"]:
            learnt = (
                f"fewer than {LEAST} jobs before: Tiresias' Gittins ranks not fitted (log-normal services), Themis and Lucid "
                "know durations"
            )
        left = f"{row['left_out']} of more GPUs than all but {PROFILED} left out"
        found.setdefault(row["trace"], f"{row['jobs']:,} jobs, {left}; {learnt}")
    return found


def run(
    data_dir=None,
    traces=tuple(NODES),
    loads=LOADS,
    policies=tuple(SEEDS),
    seeds=(),
    days: float | None = None,
    minutes: float = MINUTES,
    workers: int = -1,
) -> dict:
    """Measure what is not kept yet, on several cores and for so many minutes, and judge all that is.

    Returns
    -------
    dict
        `rows` a case, `runs` a seed, `about` a trace, `left` (seeds that are not measured yet), and `ok`.
    """
    asked = product(seeds or range(max(SEEDS.values())), traces, loads, policies)
    part = () if days is None else (days,)
    cases = [(n, load, p, s, *part) for s, n, load, p in asked if seeds or s < SEEDS[p]]
    answers = measure_all("autosched", measure, data_dir, cases, workers, seconds=60 * minutes)
    runs = [answer for answer in answers if answer is not None]
    judged = judge(runs)
    left = len(answers) - len(runs)
    return {
        "rows": judged,
        "runs": runs,
        "about": about(runs),
        "left": left,
        "ok": not left and all(c["ok"] for c in judged),
    }
