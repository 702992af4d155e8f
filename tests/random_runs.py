"""Random runs of every policy, whose books are added up again: `python tests/random_runs.py --count 2000`.

Clusters have one or two GPU types on nodes of one or two sizes, odd ones among them, and nodes that fail, some in partitions; jobs are
rigid or elastic, with rates by placement, shape and phase, factors of pairs, and delays of their own, and some ask for GPU types.
Half of the simulations are copied, or switched to other policies, on their way.
"""

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import polars as pl
from dice import Dice

from gpuschedlab import Cluster, Delays, Nodes, Outage, Round, Run, Scenario, Speeds
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.errors import LabError
from gpuschedlab.knobs import knobs_of
from gpuschedlab.policies import ALL
from gpuschedlab.sim.ordered import Plan
from gpuschedlab.speeds import Curves

POLICIES = ALL | {"dice": Dice}
LIMIT = 50_000.0
"""Seconds up to which a run is made: jobs that never find a place are none of its business."""
SLOW = 20.0
"""Seconds of the processor from which on a run is named."""
LEFT_OUT = ("time_limit", "late")
BRIEF = {"population": 6, "generations": 4}
SHORTEST = {"Shockwave": 60.0, "Gavel": 10.0, "Pollux": 10.0}
"""Seconds between rounds, at least, of policies whose rounds take milliseconds."""
MODELS = ("a", "b", "c")
PLANS = (Plan(), Plan(tested=2), Plan(window=500.0, resolution=30.0), Plan(keep=True), Plan(every=60.0, min_age=20.0))


def known_gains():
    """Estimator that knows the gains which tasks give each other."""
    from gpuschedlab.estimators import Transfers

    return Transfers(method="oracle")


ESTIMATORS = {"ymir": known_gains}
"""Functions that make the estimator of a policy which cannot do without."""


def cluster_of(rng) -> Cluster:
    groups = [
        Nodes(name, int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 4, 5, 8])))
        for name in ("slow", "fast")[: rng.integers(1, 3)]
        for _ in range(rng.integers(1, 3))
    ]
    nodes = sum(g.nodes for g in groups)
    at = rng.uniform(0, 3000, rng.integers(0, 6))
    length = rng.uniform(5, 400, 6)
    whole = rng.random() < 0.5
    outages = [
        Outage(int(rng.integers(nodes)), *(np.round((a, a + d)) if whole else (a, a + d))) for a, d in zip(at, length)
    ]
    return Cluster(tuple(groups), tuple(replace(o, start=float(o.start), end=float(o.end)) for o in outages))


def delays_of(rng, named: bool) -> Delays:
    more = {"warm": 0, "cold": 30, "hidden": 0, "pipelined": 0}  # a cold start takes no less than a warm one
    kinds = {kind: {of: float(rng.integers(0, 30) + least) for of in ("a", "*")} for kind, least in more.items()}
    return Delays(
        restart=float(rng.choice([0.0, 7.5, 30.0])),
        switch=float(rng.choice([0.0, 2.0])),
        checkpoint=rng.choice([None, 0.0, 10.0, 45.0, 300.0]),
        kinds=kinds if named or rng.random() < 0.5 else {},
    )


def speeds_of(rng, cluster: Cluster, rigid: bool = True) -> Speeds | None:
    """None, or rates of three models: relative or not, in one to three phases, by nodes and by shape."""
    if rigid and rng.random() < 0.25:
        return None
    relative = rigid and rng.random() < 0.3
    phases = [*np.sort(rng.uniform(20, 300, rng.integers(0, 3))), np.inf]
    phases = [np.inf] if relative else phases
    rows = []
    shapes = ("1,1", "2,1", "1,2,1", "3,1")
    listed = [(None, g, None) for g in (1, 2, 3, 4, 6, 8)] + [(2, g, None) for g in (2, 4, 8)]
    listed += [(s.count(",") + 1, sum(map(int, s.split(","))), s) for s in shapes] + [(None, None, None)]
    for model in MODELS:
        for kind in dict.fromkeys(group.gpu_type for group in cluster.groups):
            for nodes, gpus, placement in listed:
                rate = (0.3 + rng.random()) * (1.0 if relative else (gpus or 5) ** 0.7)
                rows += [(model, kind, nodes, gpus, placement, end, rate * rng.uniform(0.3, 1)) for end in phases]
    frame = pl.DataFrame(
        rows, orient="row", schema=["model", "gpu_type", "n_nodes", "n_gpus", "placement", "progress", "rate"]
    )
    pairs = [{(x, y): float(rng.uniform(0.4, 1.5)) for x in MODELS for y in MODELS} for _ in range(3)]
    points = [("transfer", x, y, float(e), 0.5 + e / 50) for x in MODELS for y in MODELS if x != y for e in range(1, 9)]
    points += [("merged", *point[1:]) for point in points]
    curves = pl.DataFrame(points, ["mode", "model", "other", "progress", "metric"], orient="row")
    return Speeds.from_frame(
        frame,
        relative=relative,
        sharing={pair: min(1.0, factor) for pair, factor in pairs[0].items()},
        merged=pairs[1],
        transfer=pairs[2],
        curves=Curves.from_frame(curves, MODELS),
        rounding=float(rng.choice([0.0, 0.0, 1.0, 60.0])),
    )


def trace_of(rng, most: float, speeds: Speeds | None) -> pl.DataFrame:
    n = int(rng.integers(2, 26))
    sizes = [g for g in (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0, 16.0) if g <= most and (g >= 1 or speeds is None)]
    duration = rng.lognormal(5, 1, n) if rng.random() < 0.5 else np.ceil(rng.lognormal(5, 1, n))
    user = rng.integers(0, 3, n)
    frame = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(n)],
            "submit": np.cumsum(rng.integers(0, 2, n) * rng.exponential(80, n).round(int(rng.integers(0, 3)))),
            "gpus": rng.choice(sizes, n),
            "duration": duration,
            "user": [f"u{u}" for u in user],
            "vc": [f"v{u % 2}" for u in user],
            "name": [f"n{u}" for u in user],
            "deadline": duration * rng.uniform(1.2, 6, n),
            "kind": [("best_effort", "strict", "soft")[u] for u in user],
        }
    )
    if speeds is not None:
        models = [str(m) if rng.random() < 0.8 else None for m in rng.choice(MODELS, n)]
        frame = frame.with_columns(model=pl.Series(models, dtype=pl.Utf8), target=pl.Series(2 * duration))
    if rng.random() < 0.2:
        frame = frame.with_columns(restart=pl.Series([float(rng.integers(0, 20)) if u else None for u in user]))
    return frame


def queues_of(rng, cluster: Cluster) -> dict:
    """Knobs of Kueue: queues of two cohorts or none, which lend and take back, or no queues; other users' jobs are in the first."""
    from gpuschedlab.papers.clusters.queues import Queue

    def some(share):
        return tuple((kind, int(n)) for kind, n in zip(cluster.gpu_types, cluster.capacity) if rng.random() < share)

    if rng.random() < 0.3:
        return {}
    cohorts = ("", "one", "one")
    reclaim = ("Never", "LowerPriority", "Any")
    within = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
    nominal = dict(zip(cluster.gpu_types, (int(n) for n in cluster.capacity)))
    parts = {kind: int(rng.integers(1, n + 1)) for kind, n in nominal.items()}
    own = (parts, {kind: nominal[kind] - n for kind, n in parts.items()})
    queues = tuple(
        Queue(
            f"v{i}", cohorts[rng.integers(3)], tuple(own[i].items()), some(0.2), some(0.2), bool(rng.random() < 0.3),
            reclaim[rng.integers(3)], within[rng.integers(3)],
        )
        for i in range(2)
    )  # fmt: skip
    return {"queues": queues, "priorities": (("u0", 2.0), ("u1", 1.0))}


def policy_of(rng, cls, cluster: Cluster):
    """The policy with its default knobs, or with any allowed ones."""
    if cls is Dice:
        return Dice(
            int(rng.integers(1 << 30)),
            free_moves=bool(rng.random() < 0.5),
            placement=("pack", "spread")[rng.integers(2)],
        )
    known = knobs_of(cls)
    values = {name: value for name, value in BRIEF.items() if name in known}
    if rng.random() < 0.5:
        for name, info in known.items():
            k = info.knob
            share = rng.integers(0, 9) / 8
            if name in LEFT_OUT or name in values:
                continue
            if k.choices:
                values[name] = k.choices[rng.integers(len(k.choices))]
                continue
            number = k.low * (k.high / k.low) ** share if k.log else k.low + share * (k.high - k.low)
            values[name] = (number,) if info.kind == "floats" else number
        if cls.__name__ in SHORTEST and "interval" in values:
            values["interval"] = max(values["interval"], SHORTEST[cls.__name__])
    policy = cls(**cls.project({f.name: getattr(cls(), f.name) for f in fields(cls) if f.name in known} | values))
    more = {"plan": PLANS[rng.integers(len(PLANS))]} if "plan" in vars(policy) and rng.random() < 0.5 else {}
    if cls.__name__ == "Kueue":
        more |= queues_of(rng, cluster)
    return replace(policy, **more)


def parted(rng, cluster: Cluster) -> Cluster:
    """The cluster with each group of nodes in one partition, or in both."""
    names = (("v0",), ("v1",), ("v0", "v1"))
    return replace(cluster, groups=tuple(replace(g, partitions=names[rng.integers(3)]) for g in cluster.groups))


def asking(rng, cluster: Cluster, trace: pl.DataFrame) -> tuple[pl.DataFrame, dict]:
    """Trace whose jobs are in partitions that are there, and options; half of the time they ask for types."""
    there = sorted({name for g in cluster.groups for name in g.partitions})
    n = trace.height
    if there:
        trace = trace.with_columns(vc=pl.Series([there[i] for i in rng.integers(0, len(there), n)]))
    if rng.random() < 0.5:
        return trace, {}
    kinds = sorted({g.gpu_type for g in cluster.groups})
    some = (rng.permutation(kinds)[: rng.integers(1, 3)].tolist() for _ in range(n))
    lists = [asked if rng.random() < 0.7 else None for asked in some]
    return trace.with_columns(gpu_types=pl.Series(lists, dtype=pl.List(pl.String))), {"types": "requested"}


def goes_with(policy, cluster: Cluster, delays: Delays) -> bool:
    """Whether a policy can get anything done there: its slices are longer than delays, and it leaves nodes to run on."""
    slices = policy.interval if isinstance(policy, Round) else policy.lease or np.inf
    kinds = max((seconds for _, of in delays.kinds for _, seconds in of), default=0.0)
    too_short = 1 < slices <= 1.1 * max(delays.restart + delays.switch, kinds)
    return getattr(policy, "profiler_nodes", 0) < cluster.total_nodes and (not too_short or isinstance(policy, Dice))


def case(name: str, seed: int, plain: bool = False) -> tuple[Scenario, object] | None:
    """Scenario and policy of a seed; None: they do not go together. `plain`: without partitions and types asked for."""
    rng = np.random.default_rng((seed, sorted(POLICIES).index(name)))
    cluster = cluster_of(rng)
    delays = delays_of(rng, named=name == "dice")
    asks = np.random.default_rng((seed, 1))
    if name != "dice" and not plain and asks.random() < 0.3:
        cluster = parted(asks, cluster)
    policy = policy_of(rng, POLICIES[name], cluster)
    if not goes_with(policy, cluster, delays):
        return None
    left = slice(getattr(policy, "profiler_nodes", 0), None)
    speeds = speeds_of(rng, cluster, rigid=name != "dice")
    most = np.bincount(cluster.node_type[left], cluster.node_gpus[left]).max()
    trace = trace_of(rng, min(most, 4.0) if name == "dice" else most, speeds)
    options = {}
    if name == "dice":
        trace = trace.with_columns(
            pl.col("model").fill_null("a"), pl.col("target").clip(upper_bound=200), gpus=pl.lit(1.0)
        )
    elif not plain:
        trace, options = asking(asks, cluster, trace)
    estimator = ESTIMATORS[name]() if name in ESTIMATORS and speeds is not None else None
    try:
        scenario = Scenario(trace, cluster, speeds=speeds, delays=delays, estimator=estimator, until=LIMIT, **options)
        scenario.simulation(policy)
    except LabError:  # refused before the first event: a job that could never run, a policy that does not keep to types
        return None
    return scenario, policy


def kinds_of(scenario: Scenario, past: list) -> set[str]:
    """What a run has of what is drawn, but for its copies."""
    policies = [policy for _, policy in past]
    has = {
        "switched": len(past) > 1,
        "planned backfill": any(getattr(p, "plan", Plan()) != Plan() for p in policies),
        "kueue": any(type(p) is POLICIES.get("kueue") for p in policies),
        "slurm": any(type(p) is POLICIES.get("slurm") for p in policies),
        "partitions": any(g.partitions for g in scenario.cluster.groups),
        "requested types": scenario.types == "requested",
        "outages": len(scenario.cluster.events) > 0,
        "speeds": scenario.speeds is not None,
    }
    return {kind for kind, there in has.items() if there}


def played(rng, scenario: Scenario, policy, past: list, kinds: Counter) -> Run:
    """Run of a simulation that is copied, and switched, at some instants; `past` takes (instant, policy in force from then on)."""
    simulation = scenario.simulation(policy)
    for now in np.sort(rng.uniform(0, 3000, rng.integers(1, 5)) if rng.random() < 0.5 else []):
        simulation.advance(now)
        other = None
        if rng.random() < 0.5:
            names = sorted(POLICIES.keys() - ESTIMATORS.keys() - ({"dice"} - {type(policy).__name__.lower()}))
            other = policy_of(rng, POLICIES[names[rng.integers(len(names))]], scenario.cluster)
        if other is None or not goes_with(other, scenario.cluster, scenario.delays):
            twin = simulation.copy()
            simulation.advance(now + rng.uniform(0, 500))  # what the original does is nothing to the copy
            simulation = twin
            kinds["copied"] = 1
            continue
        try:
            simulation = simulation.under(other)
        except LabError:  # it cannot take over: refused at once
            continue
        past.append((now, other))
    return simulation.run(LIMIT)


def problem_of(name: str, seed: int, plain: bool = False, seen: Counter | None = None) -> str | None:
    """What is wrong with the run of a seed: None, "left out", or the law's words. `plain`: one policy, from beginning to end."""
    kinds = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = case(name, seed, plain)
        if made is None:
            return "left out"
        past = [(0.0, made[1])]
        try:
            run = made[0].run(made[1]) if plain else played(np.random.default_rng(seed), *made, past, kinds)
            problem = books_add_up(run, made[0], tuple(past))
        except LabError as error:
            problem = f"{type(error).__name__}: {error}"
        except Exception:
            problem = traceback.format_exc()
    if seen is not None:
        seen.update(kinds | Counter(kinds_of(made[0], past)))
    return problem and f"{', '.join(f'{p} at {now:.6g} s' for now, p in past)}: {problem}"


def main(count: int, seed: int, only: list[str]):
    """Make runs until so many were checked; print what is wrong with them."""
    names = only or sorted(POLICIES)
    seen = Counter()
    kinds = Counter()
    left = 0
    wrong = 0
    first = seed
    while sum(seen.values()) < count:
        for name in names:
            begin = time.process_time()
            problem = problem_of(name, seed, seen=kinds)
            if (spent := time.process_time() - begin) > SLOW:
                print(f"{name} {seed}: took {spent:.0f} s", flush=True)
            if problem == "left out":
                left += 1
                continue
            seen[name] += 1
            if problem:
                wrong += 1
                print(f"{name} {seed}: {problem}", flush=True)
        seed += 1
    print(
        f"{sum(seen.values())} runs of seeds {first} to {seed - 1}, {wrong} wrong; {left} did not go together; {dict(seen)}"
    )
    print(f"runs of each kind: {dict(kinds.most_common())}; next: --seed {seed}")
    return wrong > 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("policies", nargs="*")
    given = parser.parse_args()
    sys.exit(main(given.count, given.seed, given.policies))
