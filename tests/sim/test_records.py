"""How records are filled and read, block by block, and logs that become longer: the same bytes as in the plain way."""

import numpy as np
import pytest

from gpuschedlab import Cluster, Fifo, Scenario, generate
from gpuschedlab.sim.engine.jobs import state
from gpuschedlab.sim.engine.jobs.records import BODY, JOB, TICK, WAITING
from gpuschedlab.sim.setup.eligibility import EmptyCluster, Placing, Requests, able_to_run
from gpuschedlab.sim.setup.prepared import NEW_BODY, NEW_JOB, distinct
from gpuschedlab.sim.watch import waiting_of

SIZES = (0, 1, state.BLOCK - 1, state.BLOCK, 2 * state.BLOCK + 5)


@pytest.fixture(params=["short", "long"])
def size(request, monkeypatch) -> str:
    """Arrays count as short, or as long, whose memory comes from the system itself."""
    if request.param == "long":
        monkeypatch.setattr(state, "LAZY", 1)
    return request.param


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("template", [NEW_JOB, NEW_BODY])
def test_records_are_a_template_but_for_their_columns(template, rows, size):
    if rows == 0 and size == "long":
        pytest.skip("no array without rows is long")
    rng = np.random.default_rng(rows)
    names = ("submit", "user") if template is NEW_JOB else ("work", "slots", "limit")
    columns = {name: rng.integers(1, 99, rows).astype(template.dtype[name]) for name in names[:-1]}
    columns[names[-1]] = np.broadcast_to(7, rows)
    expected = np.frombuffer(bytearray(template.tobytes() * rows), template.dtype)
    for name, values in columns.items():
        expected[name] = values
    records = state.filled(template, rows, columns)
    assert records.tobytes() == expected.tobytes()
    records["state" if template is NEW_JOB else "pos"] = 1  # it can be written to


@pytest.mark.parametrize("rows", SIZES)
def test_fields_are_copies(rows):
    rng = np.random.default_rng(rows)
    records = np.zeros(rows, JOB)
    records["executed"] = rng.uniform(size=rows)
    records["queued"][rows // 2 :] = -0.0
    records["preemptions"][rows // 3 :: 999] = 5
    found = state.fields_of(records, ("executed", "queued", "preemptions", "held"), ("queued", "preemptions", "held"))
    for name, values in found.items():
        assert values.tobytes() == records[name].tobytes()
        assert values.flags.c_contiguous
        assert not np.shares_memory(values, records)


def test_a_log_has_zeros_where_nothing_was_written(size):
    log = state.new_log(5, TICK)
    for _ in range(6):
        assert not log[len(log) // 2 + 1 :].view(np.uint8).any()
        log["time"] = np.arange(1.0, len(log) + 1)
        rows = len(log)
        log = state.longer(log)
        assert len(log) == 2 * rows
        assert log["time"][:rows].tolist() == list(np.arange(1.0, rows + 1))
        assert not log[rows:].view(np.uint8).any()
    copied = state.spare(log, 7)
    assert len(copied) == len(log)
    assert copied["time"][:7].tolist() == log["time"][:7].tolist()


@pytest.mark.parametrize("most", [0, 3, 50, 10**12])
@pytest.mark.parametrize("rows", [1, 40])
def test_distinct_numbers_are_those_of_numpy(rows, most):
    numbers = np.random.default_rng(rows).integers(0, most + 1, rows)
    for found, expected in zip(distinct(numbers), np.unique(numbers, return_inverse=True), strict=True):
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("until", [0.0, 2e4, 5e4])
def test_waiting_jobs_are_found_without_a_look_at_the_others(until):
    trace = generate("venus", days=1, jobs=200, load=1.5, cluster_gpus=32, rng=1).filter(gpus=1)
    simulation = Scenario(trace, Cluster.homogeneous(1, 8)).simulation(Fifo())
    simulation.advance(until)
    rows = sorted(row for part in waiting_of(simulation.state) for row in part.tolist())
    assert rows == np.flatnonzero(simulation.state.job["state"] == WAITING).tolist()


@pytest.mark.parametrize("sharing", [False, True])
def test_jobs_of_a_demand_are_able_to_run_where_the_demand_is(sharing):
    prepared = Scenario(
        generate("venus", days=1, jobs=300, load=0.9, cluster_gpus=64, rng=2), Cluster.homogeneous(8, 8)
    ).prepared
    demands = prepared.demands(sharing)
    known = prepared.constant["known"] > 0
    for cluster in (Cluster.homogeneous(8, 8), Cluster.homogeneous(1, 4)):
        empty = EmptyCluster(cluster, Placing("consolidate"))
        of_demands = able_to_run(empty, Requests(demands.slots, demands.nodes, known[demands.known]))
        of_jobs = Requests(prepared.body["slots"], prepared.asked, known[prepared.body["knows"]])
        assert of_demands[demands.of_job].tolist() == able_to_run(empty, of_jobs).tolist()


def test_fields_that_no_one_says_are_those_of_a_new_job():
    assert {name for name in JOB.names if NEW_JOB[name] != 0} == {"contention"}
    assert {name for name in BODY.names if NEW_BODY[name] == 1} == {"rate", "gain"}
