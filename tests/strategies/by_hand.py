"""Strategies of classes without knobs, written by hand: clusters, speeds, scenarios, programs, samplers, graphs."""

from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl
from hypothesis import strategies as st
from present import here

from gpuschedlab.cluster import Cluster, Nodes, Outage, Window
from gpuschedlab.knobs import Constraint, Data, Holds, Knob
from gpuschedlab.sim import Allocation, Delays, Scenario
from gpuschedlab.speeds import Curves, Speeds
from gpuschedlab.speeds.delays import LEAST_PERIOD
from strategies.fields_by_hand import NAMES, TYPES, amounts

MODELS = ["bert", "cnn"]
Rows = dict[type, tuple[Callable, st.SearchStrategy]]
given = st.fixed_dictionaries


@cache
def strategies_of_arguments() -> Rows:
    """Constructor and strategy of its arguments, by class."""
    rows = _of_clusters() | _of_speeds() | _of_knobs() | _of_runs() | _of_programs() | _of_screens()
    if here("autosched"):
        from strategies.autosched_by_hand import strategies_of_autosched

        rows |= strategies_of_autosched()
    return rows


def objects_of(cls: type) -> st.SearchStrategy:
    """Objects of a class of this module."""
    make, arguments = strategies_of_arguments()[cls]
    return arguments.map(lambda found: make(**found))


def _of_clusters() -> Rows:
    nodes = {
        "gpu_type": st.sampled_from(TYPES),
        "nodes": st.integers(1, 3),
        "gpus_per_node": st.integers(1, 8),
        "partitions": st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(lambda names: tuple(sorted(names))),
    }
    outage = {"node": st.integers(0, 9), "start": amounts(1e4), "end": st.just(np.inf) | st.floats(1.1e4, 1e5)}
    return {
        Nodes: (Nodes, given(nodes)),
        Outage: (Outage, given(outage)),
        Window: (Window, given(outage | {"announced": amounts(1e4)})),
        Cluster: (Cluster, _cluster(given(nodes), given(outage))),
    }


@st.composite
def _cluster(draw, nodes: st.SearchStrategy, outages: st.SearchStrategy) -> dict:
    """Groups of nodes, and outages of nodes that there are, some of them announced."""
    groups = tuple(Nodes(**found) for found in draw(st.lists(nodes, min_size=1, max_size=3)))
    total = sum(group.nodes for group in groups)
    events = []
    for found in draw(st.lists(outages, max_size=3)):
        kind = draw(st.sampled_from([Outage, Window]))
        events.append(kind(**found | {"node": found["node"] % total}))
    return {"groups": groups, "events": tuple(events)}


def _of_speeds() -> Rows:
    seconds = amounts(1e4)
    of_models = st.dictionaries(st.sampled_from([*MODELS, "*"]), seconds, min_size=1)
    delays = {
        "restart": seconds,
        "switch": seconds,
        "checkpoint": st.sampled_from([None, 0.0, LEAST_PERIOD]) | st.floats(LEAST_PERIOD, 1e4),
        "kinds": st.dictionaries(st.sampled_from(["warm", "cold"]), seconds | of_models),
    }
    return {
        Delays: (Delays, given(delays)),
        Curves: (Curves.from_frame, given({"frame": points(), "models": st.none() | st.just((*MODELS, "none"))})),
        Speeds: (Speeds.from_frame, _speeds()),
    }


def points() -> st.SearchStrategy:
    """Points of the models' own curves, at least one."""
    point = st.tuples(st.sampled_from(MODELS), st.integers(0, 20))
    measured = st.dictionaries(point, st.floats(-10, 10), min_size=1, max_size=6)
    return measured.map(_frame_of_points)


def _frame_of_points(measured: dict) -> pl.DataFrame:
    """Frame of points by (model, progress)."""
    rows = [(model, float(progress), metric) for (model, progress), metric in measured.items()]
    return pl.DataFrame(rows, schema=["model", "progress", "metric"], orient="row")


@st.composite
def _speeds(draw) -> dict:
    """Rates of two models on some GPUs, factors of pairs, and curves."""
    rates = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(MODELS), st.sampled_from(TYPES), st.sampled_from([1, 2, 4])),
            st.floats(0.01, 100),
            min_size=1,
        )
    )
    rows = [(*key, rate) for key, rate in rates.items()]
    names = sorted({row[0] for row in rows})
    factor = st.none() | st.dictionaries(
        st.tuples(st.sampled_from(names), st.sampled_from(names)), st.floats(0.1, 1), min_size=1
    )
    has_both = len(names) == len(MODELS)
    return {
        "frame": pl.DataFrame(rows, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"),
        "gpu_types": draw(st.sampled_from([None, tuple(TYPES)])),
        "relative": draw(st.booleans()),
        "sharing": draw(factor),
        "merged": draw(factor),
        "transfer": draw(factor),
        "curves": draw(st.none() | points().map(Curves.from_frame)) if has_both else None,
        "rounding": draw(amounts(60)),
    }


def _of_knobs() -> Rows:
    texts = st.sampled_from(["", "s", "how long"])
    low = st.floats(1e-3, 1e3)
    knob = {
        "low": st.none() | low,
        "high": st.none() | low.map(lambda least: least + 1e3),
        "log": st.booleans(),
        "step": st.none() | st.floats(0.1, 10),
        "unit": texts,
        "choices": st.sampled_from([None, ("a", "b")]),
        "help": texts,
        "many": st.integers(1, 9),
        "tuned": st.sampled_from([None, (1.0, 2.0)]),
        "unlimited": st.booleans(),
        "words": texts,
    }
    constraint = {
        "text": st.sampled_from(["a", "b"]),
        "holds": st.sampled_from([all, any]),
        "project": st.sampled_from([dict, sorted]),
    }
    return {
        Knob: (Knob, given(knob)),
        Data: (Data, given({"many": st.integers(1, 64)})),
        Holds: (Holds, given({"names": st.sampled_from([(), ("a",), ("a", "b")])})),
        Constraint: (Constraint, given(constraint)),
    }


def small_jobs() -> st.SearchStrategy:
    """Traces of a few jobs of 1 to 4 GPUs."""
    job = st.tuples(st.integers(0, 300), st.sampled_from([1.0, 2.0, 4.0]), st.integers(1, 500), st.sampled_from(NAMES))
    return st.lists(job, min_size=1, max_size=8).map(_trace_of)


def _trace_of(rows: list[tuple]) -> pl.DataFrame:
    """Trace of (submit, gpus, duration, user) rows, in order of submission."""
    rows = sorted(rows)
    submit, gpus, duration, user = zip(*rows, strict=True)
    columns = {
        "job_id": [f"j{i:02}" for i in range(len(rows))],
        "submit": [float(instant) for instant in submit],
        "gpus": list(gpus),
        "duration": [float(seconds) for seconds in duration],
        "user": list(user),
        "deadline": [3.0 * seconds + 60 for seconds in duration],
    }
    return pl.DataFrame(columns)


@cache
def _doubled() -> Speeds:
    """Speeds of one model, of which no job needs to be."""
    return Speeds.from_frame(
        pl.DataFrame({"model": ["cnn"], "gpu_type": ["v100"], "n_gpus": [1], "rate": [2.0]}), relative=True
    )


def _before(trace: pl.DataFrame) -> pl.DataFrame:
    """The same jobs under other names, before 0."""
    return trace.with_columns(pl.col("submit") - 1000, job_id=pl.lit("before-") + pl.col("job_id"))


def small_clusters() -> st.SearchStrategy:
    """Clusters of one type on which each of the small jobs fits; a node may fail."""
    shapes = st.sampled_from([(1, 4), (2, 4), (3, 8)])
    failures = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 200)), max_size=2)
    return st.builds(_small_cluster, shapes, failures)


def _small_cluster(shape: tuple[int, int], failures: list[tuple]) -> Cluster:
    events = tuple(Outage(0, float(start), float(start + seconds)) for start, seconds in failures)
    return Cluster((Nodes("v100", *shape),), events)


def _of_runs() -> Rows:
    from gpuschedlab.estimators import Noisy, Requested

    scenario = {
        "trace": small_jobs(),
        "cluster": small_clusters(),
        "history": st.none() | small_jobs(),
        "warm": st.none() | small_jobs().map(_before),
        "speeds": st.none() | st.just(_doubled()),
        "estimator": st.none() | st.sampled_from([Noisy(error=0.5), Requested()]),
        "delays": objects_of_delays(),
        "limits": st.sampled_from([None, "none", 200.0, np.inf]),
        "types": st.sampled_from([None, "requested"]),
        "over": amounts(100),
        "until": st.none() | amounts(1000),
        "seed": st.integers(0, 2**63 - 1),
    }
    jobs = 3
    of_jobs = [
        ("objective", amounts()),
        ("bound", amounts()),
        ("status", st.sampled_from(["", "optimal"])),
        ("seconds", amounts()),
    ]
    answer = {
        "gpu_type": st.lists(st.integers(0, 1), min_size=jobs, max_size=jobs).map(np.array),
        "gpus": st.lists(amounts(8), min_size=jobs, max_size=jobs).map(np.array),
        "nodes": st.none() | st.just(np.array([(0, 1, 2)])),
        "wake": st.none() | amounts(),
        "reserved": st.sampled_from([{}, {"kept": np.array([1.0, 0.0])}]),
        "why": st.sampled_from([None, list]),
    }
    answer |= dict(of_jobs)
    arrays = {
        "partner": [-1, -1, -1],
        "merged": [True, False, True],
        "source": [-1, 0, 1],
        "profiling": [True, False, False],
        "delay": ["", "warm", ""],
    }
    answer |= {name: st.none() | st.just(np.array(values)) for name, values in arrays.items()}
    rows = {Scenario: (Scenario, given(scenario)), Allocation: (Allocation, given(answer))}
    return rows | _of_agents()


def objects_of_delays() -> st.SearchStrategy:
    """Delays, none of them longer than a job, with every kind of start that a policy names."""
    kinds = {"spared": 0.0, "hidden": 0.0, "pipelined": 0.0, "warm": 1.0, "cold": 5.0}
    checkpoint = st.sampled_from([None, 0.0]) | st.floats(1, 100)
    return st.builds(Delays, restart=amounts(20), switch=amounts(5), checkpoint=checkpoint, kinds=st.just(kinds))


def _of_agents() -> Rows:
    from gpuschedlab.gym import REWARDS, SchedulingEnv
    from gpuschedlab.gym.agent import PLACEMENTS

    scenarios = st.builds(Scenario, small_jobs(), small_clusters())
    environment = {
        "scenario": scenarios,
        "reward": st.sampled_from(REWARDS),
        "rows": st.integers(1, 20),
        "placement": st.sampled_from(PLACEMENTS),
        "actions": st.sampled_from(["pick", "order"]),
        "render_mode": st.sampled_from([None, "ansi"]),
    }
    return {SchedulingEnv: (SchedulingEnv, given(environment))}


@st.composite
def _program(draw) -> dict:
    """A program of a few variables and rows: the box of the variables holds 0, so that it is never malformed."""
    variables = draw(st.integers(1, 4))
    rows = draw(st.integers(1, 3))

    def vector(size: int, low: float, high: float) -> st.SearchStrategy:
        return st.lists(st.floats(low, high), min_size=size, max_size=size).map(np.array)

    return {
        "c": draw(vector(variables, -10, 10)),
        "A": np.array([draw(vector(variables, 0, 5)) for _ in range(rows)]),
        "row_lower": draw(st.just(-np.inf) | vector(rows, -5, 0)),
        "row_upper": draw(st.just(np.inf) | vector(rows, 0, 20)),
        "lower": draw(st.just(0.0) | vector(variables, -3, 0)),
        "upper": draw(vector(variables, 0, 9)),
        "integrality": draw(st.booleans() | st.just(np.arange(variables) % 2 == 0)),
        "maximize": draw(st.booleans()),
        "shape": draw(st.sampled_from([None, (variables, 1)])),
        "name": draw(st.sampled_from(["Program", "Round 3"])),
    }


@st.composite
def _knapsack(draw) -> dict:
    """A knapsack of a few jobs, each in some configurations."""
    jobs = draw(st.integers(1, 4))
    worth = st.floats(0, 10) | st.just(np.nan)
    utility = draw(st.lists(st.lists(worth, min_size=3, max_size=3), min_size=jobs, max_size=jobs))
    flags = st.lists(st.booleans(), min_size=jobs, max_size=jobs).map(np.array)
    return {
        "utility": np.array(utility),
        "type_of_config": np.array([0, 0, 1]),
        "gpus_of_config": np.array([1, draw(st.integers(2, 4)), 1]),
        "capacity": np.array([draw(st.integers(0, 8)), draw(st.integers(0, 8))]),
        "quantum": draw(st.sampled_from([0.0, 0.01])),
        "name": draw(st.sampled_from(["Multiple choice", "Round 3"])),
        "mandatory": draw(st.none() | flags),
        "keys": draw(st.none() | st.just(np.arange(jobs))),
    }


def _of_programs() -> Rows:
    from gpuschedlab.optim import Change, EditedProgram, MultipleChoice, Program, Session

    two = st.lists(st.floats(0, 9), min_size=2, max_size=2).map(np.array)
    change = {name: st.none() | two for name in ("c", "row_lower", "row_upper", "lower", "upper")}
    session = {
        "solver": st.sampled_from(["highs", "prices"]),
        "gap": st.floats(1e-9, 0.1),
        "work": st.none() | st.floats(0.1, 10),
    }
    return {
        Program: (Program, _program()),
        MultipleChoice: (MultipleChoice, _knapsack()),
        Change: (Change, given(change)),
        EditedProgram: (
            EditedProgram,
            given({"amounts": st.dictionaries(st.sampled_from(TYPES), amounts(), min_size=1)}),
        ),
        Session: (Session, given(session)),
    }


def _of_screens() -> Rows:
    from gpuschedlab.scenarios.week import Generated
    from gpuschedlab.widgets import Cache, Guess

    options = st.fixed_dictionaries({"days": st.floats(0.5, 2)}, optional={"jobs": st.integers(1, 50)})
    guess = {
        "question": st.sampled_from(["Which?", "How many times?"]),
        "choices": st.just(("FIFO", "SRTF")),
        "right": st.sampled_from(["FIFO", "SRTF"]),
        "times": st.none() | st.just((2.0, 1.5, 2.5)),
    }
    return {
        Cache: (Cache, given({"limit": st.integers(1, 99), "size": st.integers(0, 10**9)})),
        Generated: (Generated, given({"preset": st.sampled_from(["venus", "pai"]), "options": options})),
        Guess: (Guess, given(guess)),
    }
