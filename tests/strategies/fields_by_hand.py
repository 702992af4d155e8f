"""Strategies of fields that no declaration describes: queues, limits, shares, reservations, files, words of clusters."""

from functools import cache

from hypothesis import strategies as st
from present import here, present

from gpuschedlab.knobs import knobs_of

NAMES = ["a", "b", "c"]
TYPES = ["v100", "t4"]
CLUSTERS = ["70x8", "2x4:v100", "1x4:v100,2x8:t4", "2x4:v100@a+b"]


def pairs(names: list[str], values: st.SearchStrategy) -> st.SearchStrategy:
    """Sorted pairs of a name, each at most once, and a value."""
    return st.dictionaries(st.sampled_from(names), values, max_size=2).map(lambda found: tuple(sorted(found.items())))


def amounts(most: float = 1e6) -> st.SearchStrategy:
    """Finite numbers from 0 on."""
    return st.floats(0, most)


@cache
def fields() -> dict[tuple[str, str], st.SearchStrategy]:
    """Strategies by class and field."""
    by_paper = {
        "clusters": _of_clusters,
        "deadlines": _of_deadlines,
        "prompttuner": _of_prompttuner,
        "sia": _of_sia,
        "ymir": _of_ymir,
        "autosched": _of_autosched,
    }
    rows = present({paper: make() for paper, make in by_paper.items() if here(paper)})
    words = st.sampled_from(["", "oracle", "history:half_life=5"])
    rows |= {
        ("Week", "cluster"): st.sampled_from(CLUSTERS),
        ("Week", "before"): st.sampled_from(["", "1", "0.5"]),
        ("Week", "estimator"): words,
        ("Week", "calibration"): st.sampled_from([None, *map(_preset, ("venus", "pai"))]),
        ("OwnFile", "file"): st.sampled_from(["jobs.parquet", "csv:jobs.csv"]),
        ("OwnFile", "cluster"): st.sampled_from(["", *CLUSTERS]),
        ("OwnFile", "before"): st.sampled_from(["", "1"]),
        ("OwnFile", "estimator"): words,
        ("OwnFile", "settings"): st.lists(st.sampled_from(["gpus=n", "zone=UTC"]), max_size=2).map(tuple),
        ("Agent", "act"): st.sampled_from([_first, _last]),
    }
    return rows


def _preset(name: str):
    """Calibration of a published trace."""
    from gpuschedlab.traces import load_preset

    return load_preset(name)


def _first(observation) -> int:
    """Action of an agent: the first row."""
    return 0


def _last(observation) -> int:
    """Action of an agent: none of the rows, which lets time pass."""
    return len(observation["mask"]) - 1


def _of_clusters() -> dict:
    from gpuschedlab.papers.clusters.queues import Queue
    from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
    from gpuschedlab.papers.clusters.schedulers.limits import Limit

    gpus = pairs(TYPES, amounts(64))
    queue = st.builds(
        Queue,
        name=st.sampled_from(NAMES),
        cohort=st.sampled_from(["", "one"]),
        nominal=gpus,
        borrow=gpus,
        lend=gpus,
        strict=st.booleans(),
        reclaim=st.sampled_from(["Never", "LowerPriority", "Any"]),
        within=st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        weight=amounts(),
        when_can_borrow=st.sampled_from(["Borrow", "TryNextFlavor"]),
        when_can_preempt=st.sampled_from(["TryNextFlavor", "Preempt"]),
        borrow_within=st.sampled_from(["Never", "LowerPriority"]),
        threshold=st.floats(allow_nan=False),
    )
    limit = st.builds(
        Limit,
        of=st.sampled_from(["user", "account", "qos"]),
        names=st.lists(st.sampled_from(NAMES), max_size=2).map(tuple),
        gpus=amounts(),
        jobs=amounts(),
        size=amounts(),
    )
    shares = amounts(100)
    accounts = [("ml", "", ""), ("ml", "a", ""), ("ml", "b", ""), ("bio", "", "")]
    tree = st.tuples(shares, shares, shares, shares).map(
        lambda found: ShareTree(tuple((*row, share) for row, share in zip(accounts, found, strict=True)))
    )
    priorities = pairs(NAMES, amounts())
    return {
        ("Kueue", "queues"): st.lists(queue, max_size=2, unique_by=lambda found: found.name).map(tuple),
        ("Kueue", "column"): st.sampled_from(["vc", "user", "account"]),
        ("Kueue", "by"): st.sampled_from(["user", "vc"]),
        ("Kueue", "priorities"): priorities,
        ("Slurm", "tree"): st.none() | tree,
        ("Slurm", "partitions"): priorities,
        ("Slurm", "tiers"): priorities,
        ("Slurm", "qos"): priorities,
        ("Slurm", "limits"): st.lists(limit, max_size=2).map(tuple),
        ("Site", "file"): st.sampled_from(["site.toml", "slurm:log.txt"]),
        ("Site", "cluster"): st.sampled_from(["", *CLUSTERS]),
        ("Site", "lines"): st.sampled_from(["", "SchedulerType=sched/backfill"]),
    }


def _of_deadlines() -> dict:
    return {("LearningCurve", "targets"): pairs(["bert", "cifar10"], st.floats(0, 1))}


def _of_prompttuner() -> dict:
    weights = st.lists(st.integers(1, 9), min_size=4, max_size=4)
    return {
        ("PromptLab", "gpus"): st.integers(1, 128).map(lambda servers: 8 * servers),
        ("PromptJobs", "shares"): weights.map(lambda found: tuple(weight / sum(found) for weight in found)),
    }


def _of_sia() -> dict:
    ends = st.lists(amounts(1e4), min_size=2, max_size=2, unique=True).map(sorted)
    row = st.builds(lambda kind, gpus, span: (kind, gpus, *span), st.sampled_from(TYPES), amounts(8), ends)
    return {("Sia", "reservations"): st.lists(row, max_size=2).map(tuple)}


def _of_ymir() -> dict:
    keys = st.sampled_from([("merged", "a", "b"), ("transfer", "b", "a"), ("transfer", "a", "b")])
    factors = st.dictionaries(keys, amounts(10), max_size=2).map(lambda found: tuple(sorted(found.items())))
    return {
        ("Transfers", "factors_given"): factors,
        ("Transfers", "fitted"): st.deferred(lambda: st.sampled_from([None, _fitted()])),
    }


@cache
def _fitted():
    """Return an estimator of tasks that has been fitted on two loss curves."""
    import numpy as np
    import polars as pl

    from gpuschedlab.papers.ymir.estimators.tasks import YmirEstimator

    step = np.arange(1.0, 6.0)
    losses = pl.DataFrame({"task": [*"aaaaabbbbb"], "k": [*step, *step], "loss": [*(1 / step), *(1 / (step + 1))]})
    modes = {"mode": "transfer", "source": ["a", "b"], "target": ["b", "a"]}
    return YmirEstimator().fit(losses, pairs=pl.DataFrame(modes | {"score": [0.1, 0.2], "gain": [0.3, 0.1]}))


def _of_autosched() -> dict:
    from gpuschedlab.policies import Srtf, Themis, Tiresias

    set_by_operator = [Tiresias(), Themis(), Srtf(placement="pack")]
    return {
        ("IntervalWorld", "policy"): st.sampled_from(set_by_operator[:2]),
        ("IntervalWorld", "knob"): st.just(""),
        ("IntervalWorld", "low"): st.none(),
        ("IntervalWorld", "high"): st.none(),
        ("Rule", "policy"): st.sampled_from(set_by_operator),
        ("Rule", "knob"): st.just("interval"),
        ("Rule", "values"): st.lists(st.floats(0, 3600), min_size=2, max_size=4).map(tuple),
        ("Rule", "seed"): st.integers(0, 2**32),
        ("RangePredictor", "rng"): st.integers(0, 2**31),
        ("Tuner", "options"): st.just({}),
    }


def mended() -> dict:
    """Functions that change drawn arguments so that fields fit each other, by the name of the class: `mend(arguments, draw)`."""
    return {"Slurm": _mended_slurm, "IntervalWorld": _mended_world, "Rule": _mended_rule, "Tuner": _mended_tuner}


def _mended_slurm(arguments: dict, draw) -> dict:
    """Limits are kept to by Slurm's own rule alone."""
    return arguments | {"own": arguments["own"] or bool(arguments["limits"])}


def _mended_world(arguments: dict, draw) -> dict:
    """The knob is one of the policy's; the ends of its range are within the declared one, or left to the world."""
    from gpuschedlab.autosched.lab.world import knobs_offered, suited_range

    offered = knobs_offered(arguments["policy"])
    name = draw(st.sampled_from(sorted(offered)))
    low, high = suited_range(arguments["policy"], offered[name])
    inner = low + (high - low) * draw(st.floats(0.3, 0.6))
    is_lease = name == "lease_term"
    ends = {
        "low": None if is_lease else draw(st.sampled_from([None, low])),
        "high": draw(st.sampled_from([None, high, inner])),
    }
    restart = min(arguments["restart"], 30.0) if is_lease else arguments["restart"]
    return arguments | ends | {"knob": name, "restart": restart}


def _mended_rule(arguments: dict, draw) -> dict:
    """The knob is one of the policy's."""
    return arguments | {"knob": draw(st.sampled_from(sorted(knobs_of(arguments["policy"]))))}


def _mended_tuner(arguments: dict, draw) -> dict:
    """Options are those of the sampler."""
    of_sampler = {
        "bluefin": st.fixed_dictionaries({}, optional={"eta": st.floats(0.01, 1), "feedback": st.sampled_from([1, 2])}),
        "lhs": st.fixed_dictionaries({}, optional={"size": st.integers(1, 40)}),
        "random": st.just({}),
    }
    return arguments | {"options": draw(of_sampler[arguments["sampler"]])}
