"""What a round may answer, field by field, against calculations by hand."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Allocation, Cluster, Delays, Nodes, Outage, Round, Speeds
from gpuschedlab.errors import PolicyError, SpeedError
from gpuschedlab.sim import Scenario, Simulation

TWO = Cluster.homogeneous(2, 4)
PAIR = pl.DataFrame(
    {"model": ["a", "b"], "gpu_type": "v100", "n_gpus": None, "rate": 1.0}, schema_overrides={"n_gpus": pl.Int64}
)


def jobs(*rows, **columns) -> pl.DataFrame:
    """Jobs a, b, ... from rows of submit (s), GPUs, duration (s)."""
    names = [chr(97 + i) for i in range(len(rows))]
    frame = pl.DataFrame(rows, schema=["submit", "gpus", "duration"], orient="row").cast(pl.Float64)
    return frame.with_columns(job_id=pl.Series(names), **{k: pl.Series(k, v) for k, v in columns.items()})


@dataclass(frozen=True)
class Plan(Round):
    """All GPUs asked for to all jobs, but what `says(view)` says of the other fields; at events."""

    says: object = None
    every: float = 0.0
    free: bool = False
    seen: list = field(default_factory=list)

    @property
    def interval(self):
        return self.every

    @property
    def free_moves(self):
        return self.free

    def allocate(self, view):
        said = dict(self.says(view) or {}) if self.says else {}
        self.seen.append(view.now)
        n = len(view)
        if n == 0:
            said = {k: v for k, v in said.items() if k in ("reserved", "wake")}
        return Allocation(said.pop("gpu_type", np.zeros(n, int)), said.pop("gpus", view.gpus), **said)


def simulate(trace, cluster, policy, until=None, **parts):
    return Simulation(Scenario(trace, cluster, **parts), policy).run(until)


def stretches(run) -> list[tuple]:
    """(job, node, GPUs, start, end, guest) of each stretch, in order."""
    rows = run.allocations.select("job", "node", "gpus", "start", "end", "guest")
    return sorted(rows.rows(), key=lambda r: (r[3], r[0], r[1]))


# --- nodes


def test_jobs_get_the_nodes_that_are_named():
    def says(view):
        return {"nodes": [(i, n, g) for i, n, g in [(0, 1, 2), (1, 0, 3), (1, 1, 1)] if i < len(view)]}

    run = simulate(jobs((0, 2, 10), (0, 4, 10)), TWO, Plan(says))
    assert stretches(run) == [(0, 1, 2, 0, 10, False), (1, 0, 3, 0, 10, False), (1, 1, 1, 0, 10, False)]


@pytest.mark.parametrize(("free", "end", "restarts"), [(False, 13.0, 1), (True, 10.0, 0)])
def test_a_job_whose_nodes_change_restarts_unless_moves_are_free(free, end, restarts):
    def says(view):
        return {"nodes": [(0, 0 if view.now < 4 else 1, 2)], "wake": 4.0 if view.now < 4 else None}

    run = simulate(jobs((0, 2, 10)), TWO, Plan(says, free=free), delays=Delays(restart=3))
    assert stretches(run) == [(0, 0, 2, 0, 4, False), (0, 1, 2, 4, end, False)]
    assert run.jobs["end"].to_list() == [end]
    assert run.jobs["restarts"].to_list() == [restarts]


def test_a_job_that_is_named_the_nodes_that_it_holds_goes_on():
    def says(view):
        return {"nodes": [(row, int(job), 2) for row, job in enumerate(view.index)]}

    run = simulate(jobs((0, 2, 10), (3, 2, 10)), TWO, Plan(says), delays=Delays(restart=3))
    assert stretches(run) == [(0, 0, 2, 0, 10, False), (1, 1, 2, 3, 13, False)]


def test_who_moves_splits_no_stretch_of_those_that_stay():
    def says(view):
        return {"nodes": [(0, int(view.now >= 4), 2), (1, 1, 2)], "wake": 4.0 if view.now < 4 else None}

    run = simulate(jobs((0, 2, 10), (0, 2, 10)), TWO, Plan(says, free=True))
    assert stretches(run) == [(0, 0, 2, 0, 4, False), (1, 1, 2, 0, 10, False), (0, 1, 2, 4, 10, False)]


def test_jobs_change_places():
    """Two jobs that fill a node each; both move at once, so each needs what the other has."""
    for free, end in ((True, 10.0), (False, 10.0)):
        policy = Plan(
            lambda v: {"nodes": [(0, int(v.now >= 4), 4), (1, int(v.now < 4), 4)], "wake": 4.0 if v.now < 4 else None},
            free=free,
        )
        run = simulate(jobs((0, 4, 10), (0, 4, 10)), TWO, policy)
        assert stretches(run)[2:] == [(0, 1, 4, 4, end, False), (1, 0, 4, 4, end, False)]


def test_a_view_tells_what_is_held_and_free():
    seen = {}

    def says(view):
        if view.now == 1:
            seen.update(nodes=view.nodes, free=view.free, up=view.up, capacity=view.capacity)
        return {"nodes": [(0, 1, 1), (0, 0, 2)]}

    cluster = Cluster((Nodes("v100", 3, 4),), (Outage(2, 0.5, 50.0),))
    simulate(jobs((0, 3, 10), (1, 2, 3)), cluster, Plan(says))
    assert seen["nodes"].tolist() == [[0, 0, 2], [0, 1, 1]]
    assert seen["free"].tolist() == [2, 3, 0]
    assert seen["up"].tolist() == [True, True, False]
    assert seen["capacity"].tolist() == [8]


# --- partner, merged


def shared(**tables) -> Speeds:
    return Speeds.from_frame(PAIR, relative=True, **tables)


def test_packed_jobs_each_go_at_their_joint_rate_and_end_by_themselves():
    """A at 0.5 beside b, b at 0.8 beside a: b's 8 s take 10; then a, with 5 of 20 s done, needs 15 alone."""
    speeds = shared(sharing={("a", "b"): 0.5, ("b", "a"): 0.8})
    trace = jobs((0, 2, 20), (0, 2, 8), model=["a", "b"])
    policy = Plan(lambda v: {"partner": [-1, 0][: len(v)]})
    run = simulate(trace, Cluster.homogeneous(1, 2), policy, speeds=speeds)
    assert run.jobs["end"].to_list() == [25.0, 10.0]
    assert run.jobs["attained"].to_list() == [2 * (10 / 2 + 15), 2 * 10 / 2]
    assert run.timeline.filter(pl.col("time") < 25)["used"].to_list() == [2.0, 2.0]
    assert stretches(run) == [(0, 0, 2, 0, 10, False), (1, 0, 2, 0, 10, True), (0, 0, 2, 10, 25, False)]


def test_a_guest_keeps_the_gpus_when_its_host_ends():
    speeds = shared(sharing={("a", "b"): 0.5, ("b", "a"): 0.5})
    trace = jobs((0, 2, 5), (0, 2, 10), model=["a", "b"])
    run = simulate(
        trace,
        Cluster.homogeneous(1, 2),
        Plan(lambda v: {"partner": [-1, 0][: len(v)]}),
        speeds=speeds,
        delays=Delays(restart=9),
    )
    assert run.jobs["end"].to_list() == [10.0, 15.0]
    assert run.jobs["restarts"].to_list() == [0, 0]


def test_merged_jobs_go_by_what_joint_training_is_worth():
    """Trained jointly, a reaches its target twice as fast, b never; split after 4 s, b has its 6 s still to do."""
    speeds = shared(merged={("a", "b"): 2.0, ("b", "a"): 0.0})
    trace = jobs((0, 2, 20), (0, 2, 6), model=["a", "b"])

    def says(view):
        together = view.now < 4
        return (
            {"partner": [-1, 0] if together else [-1, -1], "merged": [together] * 2, "wake": 4.0 if together else None}
            if len(view) == 2
            else {}
        )

    run = simulate(trace, TWO, Plan(says), speeds=speeds)
    assert run.jobs["end"].to_list() == [4 + (20 - 8), 4 + 6.0]
    assert run.jobs["restarts"].to_list() == [0, 1]


def test_pairs_may_lie_on_several_nodes_and_move():
    speeds = shared(sharing={("a", "b"): 0.5, ("b", "a"): 0.5})
    trace = jobs((0, 4, 10), (0, 4, 10), model=["a", "b"])

    def says(view):
        nodes = [(0, 0, 2), (0, 1, 2)] if view.now < 6 else [(0, 2, 4)]
        return {"partner": [-1, 0][: len(view)], "nodes": nodes, "wake": 6.0 if view.now < 6 else None}

    run = simulate(trace, Cluster.homogeneous(3, 4), Plan(says, free=True), speeds=speeds)
    assert run.jobs["end"].to_list() == [20.0, 20.0]
    assert [(r[1], r[5]) for r in stretches(run)] == [
        (0, False),
        (1, False),
        (0, True),
        (1, True),
        (2, False),
        (2, True),
    ]


def test_a_pair_that_moves_goes_at_the_rates_of_its_new_nodes():
    """Each has half the speed of one alone, on two nodes half of that: 1.5 of 10 s are done when they move, the rest takes 17 s."""
    rates = pl.DataFrame(
        [(m, "v100", n, 4, 1 / n) for m in "ab" for n in (1, 2)],
        ["model", "gpu_type", "n_nodes", "n_gpus", "rate"],
        orient="row",
    )
    speeds = Speeds.from_frame(rates, relative=True, sharing={("a", "b"): 0.5, ("b", "a"): 0.5})

    def says(view):
        nodes = [(0, 0, 2), (0, 1, 2)] if view.now < 6 else [(0, 2, 4)]
        return {"partner": [-1, 0][: len(view)], "nodes": nodes, "wake": 6.0 if view.now < 6 else None}

    trace = jobs((0, 4, 10), (0, 4, 10), model=["a", "b"])
    run = simulate(trace, Cluster.homogeneous(3, 4), Plan(says, free=True), speeds=speeds)
    assert run.jobs["end"].to_list() == [23.0, 23.0]


# --- source


def test_a_job_that_starts_from_anothers_result_goes_at_the_rate_of_the_table():
    """B starts when a is done, from a's result, and needs a quarter of its 12 s."""
    speeds = shared(transfer={("a", "b"): 4.0})
    trace = jobs((0, 2, 5), (0, 2, 12), model=["a", "b"])

    def says(view):
        return {"source": [-1, -1], "gpus": np.array([2.0, 0.0])} if len(view) == 2 else {"source": [0]}

    run = simulate(trace, Cluster.homogeneous(1, 2), Plan(says), speeds=speeds)
    assert run.jobs["end"].to_list() == [5.0, 8.0]
    assert run.jobs["source"].to_list() == [None, 0]


def test_a_job_may_go_back_to_its_own_beginning():
    """From a's result b would never be done; after 3 s it starts over."""
    speeds = shared(transfer={("a", "b"): 0.0})
    trace = jobs((0, 2, 5), (0, 2, 12), model=["a", "b"])

    def says(view):
        if len(view) == 2:
            return {"gpus": np.array([2.0, 0.0])}
        return {"source": [0 if view.now < 8 else 1], "wake": 8.0 if view.now < 8 else None}

    run = simulate(trace, Cluster.homogeneous(1, 2), Plan(says), speeds=speeds)
    assert run.jobs["end"].to_list() == [5.0, 20.0]


# --- profiling


def test_a_profiled_job_holds_gpus_without_progress():
    """4 GPUs asked for; 5 s of profiling on one of them, and 3 s of delay at the second start."""

    def says(view):
        first = view.profiled < 5
        return {"profiling": first, "gpus": np.where(first, 1.0, view.gpus), "wake": 5.0 if first.any() else None}

    run = simulate(jobs((0, 4, 10)), TWO, Plan(says), delays=Delays(restart=3))
    assert run.jobs.select("end", "profiled", "overhead", "executed").row(0) == (18.0, 5.0, 3.0, 18.0)
    assert [r[2] for r in stretches(run)] == [1, 4]


# --- delay


def test_each_start_has_the_delay_of_its_kind():
    """B starts warm, for 1 s, a cold, for 6; c says nothing and has the delay of every start."""
    delays = Delays(switch=2, kinds={"warm": 1.0, "cold": 6.0})
    policy = Plan(lambda v: {"delay": np.array(["cold", "warm", ""], object)[v.index]})
    run = simulate(jobs((0, 1, 10), (0, 1, 10), (0, 1, 10)), TWO, policy, delays=delays)
    assert run.jobs["end"].to_list() == [16.0, 11.0, 12.0]
    assert run.jobs["overhead"].to_list() == [6.0, 1.0, 2.0]


def test_a_kind_of_start_needs_to_know_the_models_of_the_jobs_that_start_so():
    """Only a starts warm, so that nobody asks what that takes a job of model b."""
    delays = Delays(switch=2, kinds={"warm": {"a": 1.0}})
    trace = jobs((0, 1, 10), (0, 1, 10), model=["a", "b"], target=[10.0, 10.0])
    asked = []

    def says(view, kinds=("warm", "")):
        asked.append(view.start_seconds("warm", np.flatnonzero(view.model == 0)).tolist())
        return {"delay": np.array(kinds, object)[view.index]}

    speeds = Speeds.from_frame(PAIR)
    run = simulate(trace, TWO, Plan(says), delays=delays, speeds=speeds)
    assert run.jobs["end"].to_list() == [11.0, 12.0]
    assert asked[0] == [1.0]
    with pytest.raises(SpeedError, match="'warm' says nothing of model 'b'"):
        simulate(trace, TWO, Plan(lambda view: says(view, ("", "warm"))), delays=delays, speeds=speeds)


def test_delays_are_looked_up_by_name_once_a_run(monkeypatch):
    looked = []
    monkeypatch.setattr(Delays, "table", lambda self, models, do=Delays.table: (looked.append(1), do(self, models))[1])
    policy = Plan(lambda v: {"delay": np.full(len(v), "cold", object), "wake": v.now + 1})
    simulate(jobs((0, 1, 10), (0, 1, 10)), TWO, policy, delays=Delays(kinds={"cold": 6.0}))
    assert len(policy.seen) > 15
    assert len(looked) == 1


# --- wake


def test_rounds_are_when_the_last_answer_asked_for_them():
    policy = Plan(lambda v: {"wake": {0: 2.5, 2.5: 7.0, 7.0: np.inf}.get(v.now)})
    simulate(jobs((0, 1, 10), (8, 1, 5)), TWO, policy)
    assert policy.seen == [0, 2.5, 7, 8, 10, 13]


def test_a_round_that_sleeps_wakes_on_its_grid_or_when_something_happens():
    policy = Plan(lambda v: {"wake": np.inf if v.now else 95.0}, every=10.0)
    run = simulate(jobs((0, 1, 300), (123, 1, 40)), TWO, policy)
    assert policy.seen == [0, 100, 130, 170, 300]
    assert run.jobs["end"].to_list() == [300.0, 170.0]


# --- reserved


def test_reserved_gpus_are_logged_until_they_are_given_back():
    """A warm pool of 3 from the start, of 1 from 4 s on; after the last job it is given back at 15 s."""

    def says(view):
        kept = 3.0 if view.now < 4 else 1.0 if view.now < 15 else 0.0
        return {
            "reserved": {"warm": kept} if kept else {},
            "wake": 4.0 if view.now < 4 else 15.0 if view.now < 15 else 99.0,
        }

    policy = Plan(says)
    run = simulate(jobs((0, 2, 10)), TWO, policy)
    assert run.pools.rows() == [(0, "warm", "v100", 3), (4, "warm", "v100", 1), (15, "warm", "v100", 0)]
    assert policy.seen == [0, 4, 10, 15]  # and not at 99 s, when nothing is left to happen


# --- refusals by name


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"gpus": [1.0, 2.0]}, "job a has 1 GPUs and requests 2.*Give it what it requests"),
        ({"nodes": [(0, 0, 1)]}, "nodes of job a is 1.0; expected rows that add up"),
        ({"nodes": [(0, 7, 2)]}, r"row 0 of nodes is \[0.0, 7.0, 2.0\]"),
        ({"nodes": [(0, 0, 1), (0, 0, 1)]}, "row 0 of nodes"),
        ({"nodes": [[0, 0]]}, r"nodes has shape \(1, 2\); expected \(m, 3\)"),
        ({"partner": [0, -1]}, "partner of job a is 0; expected a job with 2 GPUs"),
        ({"partner": [1, 0]}, "partner of job a is 1; expected"),
        ({"partner": [-1, 5]}, "partner of job b is 5.0; expected -1 to 1"),
        ({"source": [-1, 0]}, "source of job b is 0; expected the row of a job that has run"),
        ({"delay": np.array(["", "hot"], object)}, "delay of job b is hot; expected '' or one of Delays.kinds"),
        ({"profiling": [0.0]}, r"profiling has shape \(1,\); expected \(2,\)"),
        ({"reserved": {"warm": 6.0}}, "gave 4 GPUs of v100 beside 6 reserved at t=0 s; the cluster has 8 up"),
        ({"reserved": {"warm": -1.0}}, r"reserved\['warm'\] is -1.0"),
        ({"wake": 0.0}, "wake is 0.0; expected an instant"),
        ({"wake": "soon"}, "wake is 'soon'"),
        ({"merged": [True, np.nan]}, "merged of job b is nan, which is not finite"),
    ],
)
def test_an_impossible_answer_is_refused_by_name(said, words):
    with pytest.raises(PolicyError, match=words):
        simulate(jobs((0, 2, 5), (0, 2, 5)), TWO, Plan(lambda v: said))


def test_pairs_and_transfers_that_no_table_knows_are_refused():
    trace = jobs((0, 2, 5), (0, 2, 9), model=["a", "b"])
    with pytest.raises(SpeedError, match=r"job b \(model b\) shares GPUs with job a, and Speeds.sharing has no row"):
        simulate(trace, TWO, Plan(lambda v: {"partner": [-1, 0]}), speeds=shared(merged={("a", "b"): 1.0}))
    with pytest.raises(SpeedError, match=r"job b \(model b\) started from the result of job a, and Speeds.transfer"):
        simulate(
            trace,
            TWO,
            Plan(lambda v: {"source": [0]} if len(v) == 1 else {"gpus": np.array([2.0, 0.0])}),
            speeds=shared(),
        )


def test_nodes_that_others_hold_are_refused():
    policy = Plan(lambda v: {"nodes": [(1, 0, 4)]} if len(v) == 2 else {})
    with pytest.raises(PolicyError, match="nodes names GPUs for job b that other jobs hold"):
        simulate(jobs((0, 2, 9), (1, 4, 9)), TWO, policy)


# --- what else a view and a policy hold


def test_text_columns_are_codes():
    seen = {}
    trace = jobs((0, 1, 5), (0, 1, 5), (0, 1, 5), fm=["vit", None, "bert"])
    simulate(trace, TWO, Plan(lambda v: seen.setdefault(0, v.codes("fm")) is None or {}))
    assert seen[0].tolist() == [1, -1, 0]
    with pytest.raises(
        PolicyError, match="Plan at t=0 s: allocate raised KeyError.*no text column 'gpus'; the trace has"
    ):
        simulate(trace, TWO, Plan(lambda v: v.codes("gpus")))


def test_value_tables_are_seen_as_instants():
    seen = {}
    trace = jobs((0, 1, 5), (10, 1, 5), deadlines=[[9.0], [8.0, 12.0]], rewards=[[100.0], [100.0, 20.0]])
    simulate(trace, TWO, Plan(lambda v: seen.update({v.now: (v.deadlines, v.rewards)})))
    assert seen[10.0][0].tolist() == [[18.0, 22.0]]
    assert seen[10.0][1].tolist() == [[100.0, 20.0]]
    assert seen[0.0][0].tolist() == [[9.0, np.inf]]


def test_what_a_policy_carries_is_its_own_and_new_at_a_switch():
    @dataclass(frozen=True)
    class Counting(Round):
        """Counts its rounds."""

        interval = 10.0

        def begin(self):
            return [0]

        def allocate(self, view):
            view.memory[0] += 1
            return Allocation(np.zeros(len(view), int), view.gpus)

    simulation = Simulation(Scenario(jobs((0, 1, 100)), TWO), Counting())
    simulation.advance(35.0)
    assert simulation.memory == [4]
    twin = simulation.copy()
    twin.advance(45.0)
    assert (twin.memory, simulation.memory) == ([5], [4])
    simulation.switch(Counting())
    assert simulation.memory == [0]


def test_stuck_policies_are_found_by_time_not_by_rounds():
    """20,000 rounds of 50 ms without progress are 1,000 s, in which nothing is wrong."""
    policy = Plan(lambda v: {"gpus": v.gpus if v.now >= 1000 else np.zeros(len(v))}, every=0.05)
    run = simulate(jobs((0, 1, 1)), TWO, policy)
    assert run.jobs["end"].to_list() == [1001.0]


@pytest.mark.parametrize("free", [False, True])
def test_a_pair_is_repacked_as_one(free):
    """Two pairs on half a node each; a job that wants a whole node makes them share one. Not named nodes: the rule packs."""
    speeds = shared(sharing={("a", "b"): 1.0, ("b", "a"): 1.0})
    trace = jobs((0, 2, 50), (0, 2, 50), (0, 2, 50), (0, 2, 50), (5, 4, 10), model=["a", "b", "a", "b", "a"])

    def says(view):
        place = {j: i for i, j in enumerate(view.index)}
        partner = np.array([place.get(j - 1, -1) if j in (1, 3) else -1 for j in view.index])
        spread = [(0, 0, 2), (2, 1, 2)] if view.now < 5 else None
        return {"partner": partner, "nodes": spread}

    run = simulate(trace, TWO, Plan(says, free=free), speeds=speeds, delays=Delays(restart=1))
    assert run.jobs["end"].drop_nulls().len() == 5
    assert run.jobs["end"][4] == 15.0
    assert sorted(run.jobs["restarts"].to_list()) == ([0] * 5 if free else [0, 0, 0, 1, 1])


def test_the_usual_answer_and_a_closer_look_say_the_same():
    """An answer in lists, or of other types, is looked at field by field; in arrays by one pass."""
    trace = jobs((0, 2, 30), (1, 4, 20), (2, 4, 10), (3, 1, 10))
    gpus = lambda v: np.where(np.cumsum(v.gpus) <= v.capacity.sum(), v.gpus, 0.0)  # noqa: E731
    ways = (
        lambda v: {"gpus": gpus(v), "gpu_type": np.zeros(len(v), np.int32)},
        lambda v: {"gpus": gpus(v).tolist()},
        lambda v: {"gpus": gpus(v), "gpu_type": np.where(gpus(v) > 0, 0, -9)},  # where it waits, its type says nothing
    )
    first, *others = (stretches(simulate(trace, TWO, Plan(way))) for way in ways)
    assert [s[3] for s in first] == [0.0, 1.0, 21.0, 21.0]
    assert others == [first, first]


@pytest.mark.parametrize("gpus", [np.nan, np.inf, -1.0, 3.0])
def test_what_is_no_request_is_refused_in_arrays_too(gpus):
    with pytest.raises(PolicyError, match="of job a|job a has 3 GPUs"):
        simulate(jobs((0, 2, 30)), TWO, Plan(lambda v: {"gpus": np.full(len(v), gpus)}))


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 0.5, 9.0])
def test_each_number_of_a_row_of_nodes_is_looked_at(place, wrong):
    """A job, a node and GPUs: one of them is no such thing, the others are right. Half a GPU is one, of another job."""
    row = [0.0, 0.0, 2.0]
    row[place] = wrong
    match = "nodes of job a is 0.5" if (place, wrong) == (2, 0.5) else "row 0 of nodes"
    with pytest.raises(PolicyError, match=match):
        simulate(jobs((0, 2, 5), (0, 2, 5)), TWO, Plan(lambda v: {"nodes": [row, (1, 1, 2)]}))


@pytest.mark.parametrize("field", ["gpus", "gpu_type", "partner", "source"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -2.0, 0.5, 9.0])
def test_each_number_of_an_answer_is_looked_at(field, wrong):
    """What is said of job a is right; what is said of b is no such number, or none that there is."""
    right = {"gpus": 2.0, "gpu_type": 0.0, "partner": -1.0, "source": -1.0}[field]
    with pytest.raises(PolicyError, match=f"{field} of job b is|job b has|gave 11 GPUs"):
        simulate(jobs((0, 2, 5), (0, 2, 5)), TWO, Plan(lambda v: {field: np.array([right, wrong])}))
