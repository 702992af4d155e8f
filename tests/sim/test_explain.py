"""Why jobs waited: the log of decisions against what the allocations say, and the words made of it."""

import json
import pickle
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.cli import main
from gpuschedlab.errors import RunError, TraceError
from gpuschedlab.policies import Themis, ThemisRounds
from gpuschedlab.sim.explain.decisions import REASONS
from gpuschedlab.sim.explain.wording import hours, lasting, span

FRAMES = ("jobs", "timeline", "allocations")
NODES = 6
SIZE = 8
CLUSTER = lab.Cluster.homogeneous(NODES, SIZE)
FAILING = CLUSTER.with_failures(150_000.0, 7200.0, 3 * 86_400.0, 4)


def world(seed=1, jobs=200, cluster=CLUSTER, **parts):
    trace = lab.generate("venus", days=1, jobs=jobs, load=1.2, cluster_gpus=NODES * SIZE, rng=seed)
    return lab.Scenario(trace.filter(pl.col("gpus") <= 24), cluster, **parts)


# --- an independent account of an instant, from the allocations alone


def free_gpus(run, cluster, t):
    """Free GPUs of each node that is up just after an instant."""
    held = run.allocations.filter((pl.col("start") <= t) & (pl.col("end") > t) & ~pl.col("guest"))
    free = cluster.node_gpus - np.bincount(held["node"], held["gpus"], cluster.total_nodes)
    down = [e.node for e in cluster.events if e.start <= t < e.end]
    free[down] = 0
    return free


def could_place(free, gpus, placement):
    """Whether a demand fits: anywhere, or on the fewest nodes that it could have on an empty cluster."""
    if placement == "pack":
        return free.sum() >= gpus
    whole, rest = divmod(int(gpus), SIZE)
    if gpus <= SIZE:
        return free.max() >= gpus
    empty = np.flatnonzero(free == SIZE)
    if len(empty) < whole:
        return False
    return rest == 0 or np.delete(free, empty[:whole]).max() >= rest


def missing_gpus(free, gpus, placement):
    """GPUs that a demand lacks: it would fit if it were so much smaller."""
    return next(less for less in range(int(gpus) + 1) if less == gpus or could_place(free, gpus - less, placement))


def spells(run):
    """Waits of all jobs (row, from, to): from submission or the end of an allocation to the next one."""
    found = []
    held = run.allocations.group_by("job", "start", maintain_order=True).agg(pl.col("end").first()).sort("job", "start")
    for row, (submit, end) in enumerate(run.jobs.select("submit", "end").iter_rows()):
        mine = held.filter(pl.col("job") == row)
        since = submit
        for start, stop in mine.select("start", "end").iter_rows():
            if start > since:
                found.append((row, since, start))
            since = stop
        assert end is not None
    return found


@pytest.mark.parametrize(
    ("placement", "cluster"), [("pack", CLUSTER), ("consolidate", CLUSTER), ("consolidate", FAILING)]
)
def test_100_random_waits_of_fifo_are_explained_as_the_allocations_say(placement, cluster):
    scenario = world(cluster=cluster)
    run = scenario.run(lab.Fifo(placement=placement), log=True)
    rng = np.random.default_rng(0)
    waits = spells(run)
    blocked = 0
    names, submit, gpus = (run.jobs[name] for name in ("job_id", "submit", "gpus"))
    for row, since, until in (waits[i] for i in rng.choice(len(waits), 100)):
        t = rng.uniform(since, until)
        inside = [r for r, a, b in waits if a <= t < b]
        head = min(inside, key=lambda r: (submit[r], r))
        missing = missing_gpus(free_gpus(run, cluster, t), gpus[head], placement)
        (step,) = run.explain(names[row]).steps.filter((pl.col("start") <= t) & (pl.col("end") > t)).to_dicts()
        assert step["missing"] == missing > 0
        assert step["free"] == free_gpus(run, cluster, t).sum()
        assert f"{missing} missing" in step["text"]
        if row == head:
            assert step["blocker"] is None
        else:
            blocked += 1
            assert step["blocker"] == names[head]
            assert f"behind job {names[head]}, which goes first and needs {gpus[head]:g} GPU" in step["text"]
        assert step["place"] == sum((submit[r], r) < (submit[row], row) for r in inside)
    assert blocked > 50


# --- laws of the log, under policies of every kind

HISTORY = lab.generate("venus", days=1, jobs=300, rng=9)
POLICIES = [
    lab.Fifo(),
    lab.Fifo(backfill="easy", placement="pack"),
    lab.Fifo(backfill="greedy", interval=300.0),
    lab.Sjf(placement="buddy"),
    lab.Srtf(),
    lab.Tiresias(),
    Themis(),
    lab.Lucid(),
    ThemisRounds(),
]


@pytest.fixture(scope="module")
def runs():
    parts = {"cluster": FAILING, "history": HISTORY, "delays": lab.Delays(restart=30.0)}
    scenario = world(2, 150, **parts)
    return {policy: (scenario.run(policy), scenario.run(policy, log=True)) for policy in POLICIES}


def words(policy):
    return f"{policy.name} {policy.knobs}"


@pytest.mark.parametrize("policy", POLICIES, ids=words)
def test_a_log_changes_no_byte(runs, policy):
    plain, logged = runs[policy]
    assert not [name for name in FRAMES if not getattr(plain, name).equals(getattr(logged, name))]
    assert plain.decisions is None
    assert {k: v for k, v in logged.info.items() if k not in ("log", "seconds")} == {
        k: v for k, v in plain.info.items() if k != "seconds"
    }


@pytest.mark.parametrize("policy", POLICIES, ids=words)
def test_every_second_of_waiting_has_a_reason(runs, policy):
    run = runs[policy][1]
    log = run.decisions
    assert log["time"].is_sorted()
    assert set(log["reason"]) <= set(REASONS)
    starts = run.jobs["restarts"] + 1
    assert log.filter(pl.col("reason") == "started").height == starts.sum()
    for row in np.flatnonzero(run.jobs["queueing"].to_numpy() > 0):
        steps = run.explain(run.jobs["job_id"][int(row)])
        assert steps.summary()["waited"] == pytest.approx(run.jobs["queueing"][int(row)], abs=1e-6)


@pytest.mark.parametrize("policy", POLICIES, ids=words)
def test_free_and_missing_gpus_are_those_of_the_allocations(runs, policy):
    run = runs[policy][1]
    log = run.decisions.filter(~pl.col("reason").is_in(["started", "undecided"]))
    some = log[np.random.default_rng(1).choice(log.height, min(60, log.height), replace=False)]
    gpus = run.jobs["gpus"]
    for row in some.iter_rows(named=True):
        free = free_gpus(run, FAILING, row["time"])
        needs = gpus[row["job"] if row["blocker"] is None else row["blocker"]]
        if policy.name != "Lucid":  # whose profiler has nodes of its own
            assert row["free"] == pytest.approx(free.sum())
        assert row["missing"] >= needs - row["free"] - 1e-9
        if row["reason"] in ("room", "nodes", "behind"):
            assert row["missing"] > 0
            assert (row["reason"] == "room") == (row["free"] < needs) or row["reason"] == "behind"
        if row["ahead"] is not None:
            held = row["ahead"] + row["later"] + row["leased"]
            up = sum(
                SIZE
                for n in range(NODES)
                if not any(e.node == n and e.start <= row["time"] < e.end for e in FAILING.events)
            )
            assert held == pytest.approx(up - free.sum())


def test_the_key_is_that_of_the_policy():
    run = world(5).run(lab.Srtf(), log=True)
    log = run.decisions.filter(pl.col("reason") != "started")
    for row in log[:: max(1, log.height // 50)].iter_rows(named=True):
        held = run.allocations.filter((pl.col("job") == row["job"]) & (pl.col("start") < row["time"]))
        spent = held.unique("start")["end"].clip(upper_bound=row["time"]).sum() - held.unique("start")["start"].sum()
        assert row["key"] == pytest.approx(run.jobs["duration"][row["job"]] - spent, abs=1e-6)
    for (_,), same in log.group_by("time", maintain_order=True):
        assert same.sort("key", "job")["place"].is_sorted()


def test_easy_backfill_names_the_job_that_would_be_delayed():
    run = world(6).run(lab.Fifo(backfill="easy", placement="pack"), log=True)
    reserved = run.decisions.filter(pl.col("reason") == "reserved")
    assert reserved.height > 5
    start = run.jobs["start"].gather(reserved["blocker"])
    assert (start <= reserved["until"] + 1e-6).all()  # estimates are exact, so the reservation holds
    job = run.jobs["job_id"][reserved["job"][0]]
    assert "would fit, but by the estimates it would delay job" in str(run.explain(job))


def test_of_two_promises_the_first_that_a_job_would_break_is_named():
    run = world(6).run(lab.Fifo(backfill="plan", depth=2, placement="pack"), log=True)
    log = run.decisions.with_columns(first=pl.col("job").filter(pl.col("reason") != "started").first().over("time"))
    reserved = log.filter(pl.col("reason") == "reserved")
    assert reserved.height > 5
    assert 0 < (reserved["blocker"] == reserved["first"]).sum() < reserved.height
    assert not log.filter(pl.col("reason") == "undecided").height


def test_decisions_on_a_grid_are_awaited():
    run = world(7, 80).run(lab.Srtf().with_knobs(interval=600.0), log=True)
    due = run.decisions.filter(pl.col("reason") == "undecided")
    assert due.height > 20
    np.testing.assert_allclose(due["until"] % 600.0, 0.0, atol=1e-6)
    assert (due["until"] - due["time"] < 600.0).all()


def test_leases_and_gates_are_named():
    run = world(8).run(Themis(), log=True)
    assert (
        run.decisions.filter(pl.col("leased") > 0)["until"] > run.decisions.filter(pl.col("leased") > 0)["time"]
    ).all()
    held = run.decisions.filter(pl.col("gated"))
    assert held.height > 0
    assert "the policy's gate held it back" in str(run.explain(run.jobs["job_id"][held["job"][0]]))


# --- round policies, by hand


@dataclass(frozen=True)
class Firsts(lab.Round):
    """GPUs for the jobs of 2 GPUs from 100 s on, for the others at once."""

    interval = 50.0

    def allocate(self, view):
        chosen = (view.gpus > 2) | (view.now >= 100)
        return lab.Allocation(np.zeros(len(view), int), np.where(chosen, view.gpus, 0))


def tiny(**columns):
    n = len(columns["gpus"])
    return pl.DataFrame({"job_id": [*"abcdef"[:n]], "submit": [0.0] * n, "duration": [1000.0] * n} | columns)


def test_a_round_left_a_job_or_found_no_nodes_for_it():
    trace = tiny(gpus=[3.0, 3.0, 2.0], submit=[0.0, 0.0, 10.0])
    run = lab.simulate(trace, lab.Cluster.homogeneous(2, 4), Firsts(), log=True)
    found = run.explain("c").reasons
    assert found["reason"].to_list() == ["undecided", "left", "unplaced"]
    assert found["start"].to_list() == [10.0, 50.0, 100.0]
    assert found["end"][-1] == run.jobs["start"][2] == 1000.0
    assert "gave 6 GPUs to 2 jobs, and it none; it needs 2 GPUs: 2 were free, but only 1 where" in found["text"][1]
    assert "no nodes were found for them" in found["text"][2]


def test_what_began_a_wait():
    outage = lab.Outage(0, 300.0, 400.0)
    cluster = lab.Cluster((lab.Nodes("v100", 1, 4),), (outage,))
    trace = tiny(gpus=[4.0, 4.0], submit=[0.0, 100.0], duration=[500.0, 50.0])
    run = lab.simulate(trace, cluster, lab.Srtf(), log=True)
    began = run.decisions.filter(pl.col("began").is_not_null()).select("time", "job", "began").rows()
    assert began == [(100.0, 0, "preempted"), (300.0, 0, "failed")]
    text = str(run.explain("a"))
    assert "waited 0.04 h in 2 waits under Srtf, which serves by the lowest key (Estimated remaining time (s))" in text
    assert "its node failed; needs 4 GPUs: 0 were free, 4 missing; up to 4 GPUs were down" in text


# --- doors


def test_a_log_survives_copies_pickles_and_a_change_of_policy():
    scenario = world(3, 80)
    whole = scenario.run(lab.Srtf(), log=True)
    simulation = scenario.simulation(lab.Srtf(), log=True)
    simulation.advance(40_000.0)
    twins = [simulation.copy(), pickle.loads(pickle.dumps(simulation))]
    other = simulation.under(lab.Fifo())
    other.run()
    for twin in twins:
        assert twin.run().decisions.equals(whole.decisions)
    assert simulation.run().decisions.equals(whole.decisions)
    assert (
        other.result()
        .decisions.filter(pl.col("time") <= 40_000.0)
        .equals(whole.decisions.filter(pl.col("time") <= 40_000.0))
    )
    assert "behind" in set(other.result().decisions["reason"])


def test_a_kept_run_explains_itself(tmp_path, capsys):
    run = lab.simulate(tiny(gpus=[2, 4, 1]), lab.Cluster.homogeneous(1, 5), lab.Fifo(), log=True)
    folder = run.to_parquet(tmp_path / "run")
    again = lab.Run.from_parquet(folder)
    assert again.decisions.equals(run.decisions)
    assert str(again.explain("c")) == str(run.explain("c"))
    assert main(["explain", str(folder), "c"]) == 0
    assert "behind job b, which goes first and needs 4 GPUs: 3 were free, 1 missing" in capsys.readouterr().out
    assert main(["explain", str(folder), "c", "--json", "--every"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(row["blocker"], row["missing"]) for row in said["waits"]] == [("b", 1.0)]
    assert said["seconds"] == {"waited": 1000.0, "behind": 1000.0}
    assert main(["explain", str(folder), "a"]) == 0
    assert "did not wait" in capsys.readouterr().out
    lab.simulate(tiny(gpus=[2]), lab.Cluster.homogeneous(1, 4), lab.Fifo()).to_parquet(folder)
    assert lab.Run.from_parquet(folder).decisions is None
    assert main(["explain", str(folder), "a"]) == 1
    assert "--log --out FOLDER" in capsys.readouterr().err


def test_the_command_line_keeps_a_log(tmp_path, capsys):
    words = ["run", "fifo", "--days", "0.5", "--jobs", "60", "--cluster", "4x8", "--load", "1.5", "--log"]
    assert main(words) == 2
    assert "expected a folder to keep the log in: --out FOLDER" in capsys.readouterr().err
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    run = lab.Run.from_parquet(tmp_path / "run")
    assert run.decisions.filter(pl.col("reason") == "behind").height > 0


def test_clear_errors():
    run = lab.simulate(tiny(gpus=[2, 4]), lab.Cluster.homogeneous(1, 4), lab.Fifo(), log=True)
    with pytest.raises(
        TraceError, match=r"found no job 'aa'; expected one of the 2 of the run, such as a: did you mean a\?"
    ):
        run.explain("aa")
    with pytest.raises(RunError, match=r"found a run without a log .* scenario.run\(policy, log=True\)"):
        lab.simulate(tiny(gpus=[2, 4]), lab.Cluster.homogeneous(1, 4), lab.Fifo()).explain("a")


def test_a_page_shows_the_reasons():
    run = lab.simulate(tiny(gpus=[2, 4, 1]), lab.Cluster.homogeneous(1, 5), lab.Fifo(), log=True)
    shown = run.explain("c")._repr_html_()
    assert "behind job b" in shown
    assert "<th>for</th>" in shown


def test_times_and_ranges_in_words():
    assert (hours(5400.0), hours(5400.0, 3)) == ("1.50 h", "1.5 h")
    assert [lasting(seconds) for seconds in (12.0, 1500.0, 9000.0)] == ["12 s", "25 min", "2.5 h"]
    assert (span((2.0, 2.0)), span((1, 1), "job"), span((2.0, 5.5), "GPU")) == ("2", "1 job", "2 to 5.5 GPUs")
