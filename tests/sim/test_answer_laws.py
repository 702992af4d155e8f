"""The laws of answers: each field of an Allocation has one, and a policy that breaks it is caught."""

import re
from dataclasses import dataclass, fields, replace

import numpy as np
import polars as pl
import pytest
from brief_policies import brief
from present import here, needs

from gpuschedlab import Allocation, Round, check_policy
from gpuschedlab.check.answer_laws import LAWS, Recorded
from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import ThemisRounds
from gpuschedlab.sim import Delays, simulate


@dataclass(frozen=True)
class InOrder(Round):
    """Jobs in order of submission, as long as they fit: what the breakers below start from."""

    interval = 0.0

    def allocate(self, view):
        room = view.capacity[0]
        gpus = np.zeros(len(view))
        for i in np.flatnonzero(view.running).tolist() + np.flatnonzero(~view.running).tolist():
            if view.gpus[i] <= room:
                gpus[i] = view.gpus[i]
                room = room - view.gpus[i]
        return Allocation(np.zeros(len(view), int), gpus, **self.more(view, gpus))

    def more(self, view, gpus) -> dict:
        """Other fields of the answer."""
        return {}


def trace_of(*rows) -> pl.DataFrame:
    """Jobs from rows of submit (s), GPUs, duration (s)."""
    frame = pl.DataFrame(rows, schema=["submit", "gpus", "duration"], orient="row").cast(pl.Float64)
    return frame.with_columns(job_id=pl.format("job-{}", pl.int_range(pl.len())))


def breaker(broken):
    """A policy with one wrong field in its answer, that of `broken(view, gpus)`."""

    @dataclass(frozen=True)
    class Breaker(InOrder):
        """Breaks a law."""

        def more(self, view, gpus):
            return broken(view, gpus) if len(view) else {}

    return Breaker


BREAKERS = {
    "nodes": (lambda v, g: {"nodes": [(0, 0, 99.0)]}, "row 0 of nodes"),
    "partner": (lambda v, g: {"partner": np.zeros(len(v))}, "partner of job .* expected a job with"),
    "merged": (lambda v, g: {"merged": np.ones(len(v))}, "is merged without a partner"),
    "source": (lambda v, g: {"source": np.full(len(v), 10_000)}, "source of job"),
    "profiling": (lambda v, g: {"profiling": np.full(len(v), np.nan)}, "profiling of job .* not finite"),
    "delay": (lambda v, g: {"delay": ["instant"] * len(v)}, "expected '' or one of Delays.kinds"),
    "reserved": (lambda v, g: {"reserved": {"mine": 99.0}}, "beside 99 reserved"),
    "wake": (lambda v, g: {"wake": v.now}, "wake is .* expected an instant"),
    "objective": (lambda v, g: {"objective": 2.0, "bound": 1.0}, "the objective 2 exceeds the bound 1"),
    "bound": (lambda v, g: {"objective": 0.0, "bound": -1.0}, "the objective 0 exceeds the bound -1"),
    "status": (
        lambda v, g: {"status": ""} | ({"status": b"done"} if v.now > 0 else {}),
        "status is b'done'; expected a text",
    ),
    "seconds": (lambda v, g: {"seconds": -1.0}, "the solver took -1 s"),
    "why": (
        lambda v, g: {"why": lambda: ["it waits"] * len(v)},
        "why of row .*, which has .* GPUs, is 'it waits'; expected ''",
    ),
}


@dataclass(frozen=True)
class TooMany(InOrder):
    """Gives a job more GPUs than it asks for."""

    def allocate(self, view):
        answer = super().allocate(view)
        answer.gpus[:] = np.where(answer.gpus > 0, answer.gpus + 1, 0)
        return answer


@dataclass(frozen=True)
class OfNoType(InOrder):
    """Gives GPUs of a type that is not there."""

    def allocate(self, view):
        answer = super().allocate(view)
        return Allocation(answer.gpu_type + 7, answer.gpus)


def test_every_field_has_a_law_and_a_breaker():
    names = {f.name for f in fields(Allocation)}
    assert set(LAWS) == names
    assert set(BREAKERS) | {"gpus", "gpu_type"} == names


def test_an_answer_far_from_its_bound_is_not_optimal():
    seen, run, cluster = recorded(lambda v, g: {"objective": 1.0, "bound": 2.0, "status": "optimal"})
    assert "the status is 'optimal', the objective 0.5 from its bound; expected at most 0.1" in LAWS["status"](
        seen, run, cluster
    )


@pytest.mark.parametrize("name", BREAKERS)
def test_a_policy_that_breaks_a_law_is_caught(name):
    broken, words = BREAKERS[name]
    report = check_policy(breaker(broken), only=("laws", "answers"))
    assert not report.passed
    with pytest.raises(Exception, match=words):
        report.raise_if_failed()


@pytest.mark.parametrize(
    ("cls", "words"), [(TooMany, "no table has its speed|gave .* GPUs"), (OfNoType, "gpu_type of job")]
)
def test_a_policy_that_gives_what_is_not_there_is_caught(cls, words):
    with pytest.raises(Exception, match=words):
        check_policy(cls, only=("laws", "answers")).raise_if_failed()


def test_a_sound_policy_passes():
    assert check_policy(InOrder, only=("laws", "answers")).passed


# --- forged runs: the laws see what the engine did, too


def recorded(more=lambda v, g: {}, **parts):
    policy = Recorded(breaker(more)())
    cluster = Cluster.homogeneous(2, 4)
    return policy.seen, simulate(trace_of((0, 2, 10), (0, 4, 30), (5, 1, 9)), cluster, policy, **parts), cluster


def forged(run, frame, **columns):
    return replace(run, **{frame: getattr(run, frame).with_columns(**columns)})


first = pl.int_range(pl.len()) == 0
FORGERIES = {
    "gpus": (
        "allocations",
        {"gpus": pl.when(first).then(pl.col("gpus") + 1).otherwise(pl.col("gpus"))},
        {},
        "the answer gave",
    ),
    "gpu_type": ("allocations", {"gpu_type": pl.lit("a100")}, {}, "holds a100; the answer gave v100"),
    "nodes": ("allocations", {"node": 1 - pl.col("node")}, {"nodes": [(0, 1, 2.0)]}, "the answer named 2"),
    "partner": ("allocations", {"guest": pl.lit(True)}, {}, "the answer names no partner"),
    "source": ("jobs", {"source": pl.lit(0)}, {}, "no answer said so"),
    "profiling": ("allocations", {"profiling": pl.lit(True)}, {}, "was profiled; no answer said so"),
    "delay": (
        "allocations",
        {"delay": pl.lit(8.0)},
        {"delay": ["warm"] * 3},
        "with a delay of 8 s; the answer named 'warm'",
    ),
    "reserved": ("pools", {"gpus": pl.col("gpus") + 1}, {"reserved": {"warm": 1.0}}, "pool warm has 2 GPUs"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_run_that_is_not_what_was_answered_is_found_out(name):
    frame, columns, said, words = FORGERIES[name]

    def more(view, gpus):
        if name == "delay":
            return {"delay": said["delay"][: len(view)]}
        return said if name != "nodes" or view.now == 0 else {}

    seen, run, cluster = recorded(more, delays=Delays(switch=7, kinds={"warm": 3}))
    assert [law(seen, run, cluster) for law in LAWS.values()] == [None] * len(LAWS)
    assert re.search(words, LAWS[name](seen, forged(run, frame, **columns), cluster) or "nothing")


def test_a_job_that_holds_nothing_is_found_out_unless_the_round_found_no_place():
    seen, run, cluster = recorded()
    gone = replace(run, allocations=run.allocations.filter(pl.col("job") != 1))
    assert "row 1 of .jobs holds nothing; the answer gave 4 GPUs" in LAWS["gpus"](seen, gone, cluster)
    assert LAWS["gpus"](seen, forged(gone, "rounds", status=pl.lit("heuristic, not placed")), cluster) is None
    ended = forged(gone, "jobs", end=pl.when(pl.int_range(pl.len()) == 1).then(0.0).otherwise("end"))
    assert LAWS["gpus"](seen[:1], ended, cluster) is None, "it has ended by then"


def test_a_round_that_comes_too_late_is_found_out():
    seen, run, cluster = recorded(lambda v, g: {"wake": v.now + 4})
    assert LAWS["wake"](seen, run, cluster) is None
    assert "requested a round at 4 s; the next was at 5 s" in LAWS["wake"](seen[::2], run, cluster)


# --- parts


if here("pop"):
    from gpuschedlab.policies import Pop


@needs("pop")
@pytest.mark.parametrize("name", [pytest.param("optimus", marks=needs("optimus")), "themisrounds"])
def test_pop_passes_the_battery_around_any_round_policy(name):
    check_policy(Pop(brief(name), parts=4)).raise_if_failed()


@needs("pop")
def test_pop_of_one_part_decides_as_the_policy_itself():
    trace = pl.DataFrame(
        {
            "job_id": list("abcd"),
            "submit": [0.0, 0.0, 5.0, 50.0],
            "gpus": [2.0, 4.0, 1.0, 8.0],
            "duration": [100.0, 300.0, 90.0, 70.0],
        }
    )
    whole, parts = (
        simulate(trace, Cluster.homogeneous(2, 4), p).jobs for p in (ThemisRounds(), Pop(ThemisRounds(), parts=1))
    )
    assert whole.equals(parts)


@needs("pop")
def test_parts_have_their_own_nodes_and_jobs():
    """Four jobs of one GPU on 4 nodes of 1: each part has a node and a job; a job of 2 GPUs makes it two parts."""
    seen = []

    @dataclass(frozen=True)
    class Spy(InOrder):
        """Keeps what it sees."""

        def allocate(self, view):
            seen.append((view.index.tolist(), view.capacity.tolist(), view.up.tolist()))
            return super().allocate(view)

    simulate(trace_of(*[(0, 1, 9)] * 4), Cluster.homogeneous(4, 1), Pop(Spy(), parts=8), until=1)
    assert [s[:2] for s in seen] == [([0], [1.0]), ([1], [1.0]), ([2], [1.0]), ([3], [1.0])]
    assert np.array([s[2] for s in seen]).sum(axis=0).tolist() == [1, 1, 1, 1]
    seen.clear()
    simulate(
        trace_of((0, 1, 9), (0, 2, 9), (0, 1, 9), (0, 1, 9)), Cluster.homogeneous(4, 1), Pop(Spy(), parts=8), until=1
    )
    assert [s[:2] for s in seen] == [([0, 2], [2.0]), ([1, 3], [2.0])]
