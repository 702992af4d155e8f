"""A job whose model is known on some GPU types only runs on these, and waits for nobody else's."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from brief_policies import brief
from present import here

import gpuschedlab as lab
from gpuschedlab.cluster import Nodes
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.errors import ClusterError, SpeedError
from gpuschedlab.gym import Agent
from gpuschedlab.gym.agent import first_come
from gpuschedlab.policies import ALL
from gpuschedlab.speeds import Speeds

CLUSTER = lab.Cluster((Nodes("a", 1, 2), Nodes("b", 1, 2)))
RATES = [("both", t, g, 1.0) for t in "ab" for g in (1, 2)] + [("only b", "b", g, 1.0) for g in (1, 2, 4)]
PAIRS = {(m, n): 0.9 for m in ("both", "only b") for n in ("both", "only b")}
SPEEDS = Speeds.from_frame(
    pl.DataFrame(RATES, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"), relative=True, sharing=PAIRS
)
EVERY = {name: cls for name, cls in ALL.items() if name != "lucid"}
EVERY |= {"lucid": lambda: lab.Lucid(profiler_nodes=0), "agent": lambda: Agent(first_come)}
PARTED = [name for name in ("optimus", "gavel", "sia") if here("pop") and here(name)]
EVERY |= {f"pop of {name}": partial(lab.Pop, brief(name), parts=2) for name in PARTED}


def jobs(models, gpus=2.0, submit=0.0, duration=100.0) -> pl.DataFrame:
    n = len(models)
    given = {"gpus": gpus, "submit": submit, "duration": duration}
    columns = {name: np.broadcast_to(np.asarray(value, float), n) for name, value in given.items()}
    return pl.DataFrame({"job_id": [f"j{i}" for i in range(n)], "model": pl.Series(models, dtype=pl.Utf8), **columns})


def run(trace, policy, cluster=CLUSTER, **parts):
    return lab.simulate(trace, cluster, policy, speeds=SPEEDS, **parts)


@pytest.mark.parametrize("name", EVERY)
def test_a_job_runs_where_its_model_is_known(name):
    made = run(jobs(["only b", "only b", "both", None], [2, 2, 2, 1], [0, 0, 1, 2]), EVERY[name]())
    assert made.jobs["end"].null_count() == 0
    held = made.allocations.filter(pl.col("job") < 2)
    assert held.height >= 2
    if made.jobs["profiled"].sum():  # a profiler makes no progress, on GPUs of any type
        held = held.filter(pl.col("end") - pl.col("start") > 300)
    assert set(held["gpu_type"]) <= {"b"}


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        (lab.Fifo(), [100, 200, 200, 300]),  # j2 waits behind j1, which node b has no room for until 100
        (lab.Srtf(), [100, 200, 101, 201]),  # j2 passes j1, which cannot use a
        (lab.Sjf(), [100, 200, 101, 201]),
        (lab.Tiresias(), [100, 200, 101, 201]),
        (lab.Themis(), [100, 200, 101, 201]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_jobs_of_equal_demand_pass_one_that_lacks_a_speed(policy, ends):
    trace = jobs(["only b", "only b", "both", None], [2, 2, 2, 1], [0, 0, 1, 2])
    assert run(trace, policy).jobs["end"].to_list() == ends


def test_what_is_known_counts_by_the_gpus_requested():
    rows = [("m", "a", 1, 1.0), ("m", "b", 1, 1.0), ("m", "b", 2, 1.0), ("wild", "b", None, 2.0)]
    frame = pl.DataFrame(rows, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row")
    speeds = Speeds.from_frame(frame, gpu_types=("a", "b", "absent"))
    found = speeds.usable([0, 0, 0, 1, -1], [1, 2, 3, 7, 3], speeds.type_codes(("c", "b", "a")))
    t = True
    f = False
    assert found.tolist() == [[f, t, t], [f, t, f], [t, t, t], [f, t, f], [t, t, t]]
    trace = jobs(["m", "m"]).with_columns(target=100.0)
    made = lab.simulate(trace, CLUSTER, lab.Fifo(), speeds=speeds)
    assert made.jobs["end"].to_list() == [100, 200]  # a has a speed on one GPU only
    with pytest.raises(SpeedError, match="3 GPUs of c on 1 nodes, which its speed table lacks"):
        lab.simulate(trace.with_columns(gpus=3.0), lab.Cluster.parse("1x4:c,1x4:b"), lab.Fifo(), speeds=speeds)


def test_placements_make_a_type_known_too():
    frame = pl.DataFrame({"model": "m", "gpu_type": "b", "n_gpus": 4, "placement": ["22", "4"], "rate": [1.0, 2.0]})
    speeds = Speeds.from_frame(frame, gpu_types=("a", "b"), relative=True)
    assert speeds.usable([0], [4], np.array([0, 1])).tolist() == [[False, True]]
    trace = jobs(["m", "m"], 4.0)
    made = lab.simulate(trace, lab.Cluster.parse("1x4:a,1x4:b"), lab.Fifo(), speeds=speeds)
    assert made.jobs["end"].to_list() == [50, 100]


def test_a_job_larger_than_its_types_is_refused_before_the_run():
    with pytest.raises(
        ClusterError, match="j0 asks for 4 GPUs; .* the largest pool of one GPU type on which its model is known has 2"
    ):
        run(jobs(["only b", None], [4, 4]), lab.Fifo(), lab.Cluster.parse("1x4:a,1x2:b"))


def test_a_profiler_of_a_type_without_a_speed_is_skipped():
    cluster = lab.Cluster.parse("2x2:a,1x2:b")  # the first node, of type a, profiles
    made = run(jobs(["only b", "both"]), lab.Lucid(profiler_nodes=1), cluster)
    assert made.jobs["end"].to_list() == [100, 100]
    assert made.allocations.sort("job")["node"].to_list() == [2, 0]


def test_guests_join_hosts_of_types_on_which_they_have_a_speed():
    policy = lab.Lucid(profiler_nodes=0)
    assert policy.sharing
    made = run(
        jobs(["both", None, "only b"], submit=[0, 0, 1]), policy
    )  # j0 has a, j1 has b and no model to share with
    assert made.jobs["end"].to_list() == [100, 100, 200]
    other = run(jobs([None, "both", "only b"], submit=[0, 0, 1]), policy)
    assert other.jobs["shared"].to_list() == pytest.approx([0, 110, 110], abs=2)


def test_the_log_counts_the_gpus_that_a_job_could_use():
    made = run(jobs(["only b", "only b"]), lab.Fifo(), log=True)
    waits = made.decisions.filter(reason="room")
    assert waits.select("free", "missing").rows() == [(0.0, 2.0)]


def test_a_room_has_types():
    room = FreeGpus(CLUSTER, "pack")
    b = np.array([False, True])
    assert room.take(1.0, b).tolist() == [[1.0, 1.0]]
    demands = np.array([2.0, 2.0, 1.0])
    usable = np.array([[True, True], b, b])
    assert room.fits(demands, usable).tolist() == [True, False, True]


def test_a_table_by_types_with_partitions_is_refused_by_what_the_cluster_has():
    divided = lab.Cluster((Nodes("b", 1, 4, partitions=("v0",)),))
    table = Speeds.from_frame(pl.DataFrame({"model": "m", "gpu_type": divided.gpu_types, "n_gpus": 1, "rate": 1.0}))
    with pytest.raises(SpeedError, match=r"known on b@v0 only; the cluster has b\. Add"):
        lab.Scenario(jobs(["m"]), divided, speeds=table)
