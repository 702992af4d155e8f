"""The twin: mechanisms from logs of attempts, in worlds whose secrets are known; refusals; canaries; choices; the command."""

import json
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
import polars as pl
import pytest
from few import ALL, few

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import twin
from gpuschedlab.autosched.mechanisms.attempts import attempts_of
from gpuschedlab.autosched.mechanisms.rates import failures, prediction_error, repairs
from gpuschedlab.autosched.mechanisms.resumption import delay_of
from gpuschedlab.autosched.mechanisms.slowdowns import power_of, powered, slowdowns
from gpuschedlab.autosched.mechanisms.work.pace import Pace
from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Delays, Scenario
from reproduce.autosched import worlds

DAY = 86_400.0


@pytest.fixture(scope="module")
def slow():
    """A world that restarts in 2,919 s where 60 s are believed: (scenario as believed, run of its log)."""
    _, trace, _, _, run = worlds.operated("slow", 32)
    return worlds.scenario_of(trace), run


@pytest.fixture(scope="module")
def found(slow):
    """Its twin."""
    return twin(slow[1], slow[0])


SECRET = worlds.secret("slow", 32)


def test_a_restart_delay_is_found_and_put_into_the_scenario(slow, found):
    believed = slow[0]
    true = SECRET["restart"]
    restart = found.mechanisms["restart"]
    assert restart.rows >= 50
    assert restart.value == pytest.approx(true, rel=0.15)
    assert restart.low <= true <= restart.high
    assert found.scenario.trace["restart"].median() == pytest.approx(true, rel=0.15)
    error = np.abs(found.scenario.trace["duration"] / believed.trace["duration"] - 1)
    assert np.quantile(error, 0.9) < 0.15  # the work, though the log has held seconds alone
    assert found.at(restart=60.0).trace["restart"].median() == pytest.approx(60, rel=0.01)


def test_predictions_are_judged_by_the_work_of_the_twin(slow, found):
    run = slow[1]
    seen = found.mechanisms["prediction"]
    assert seen.low <= SECRET["error"] <= seen.high
    held = run.jobs["executed"].to_numpy()
    assert prediction_error(run.jobs["predicted"].to_numpy(), held)[1] > SECRET["error"]  # held seconds would not do


def test_a_delay_by_size_differs_from_a_constant_one(slow):
    world, *_, run = worlds.operated("size", 31)
    assert delay_of(attempts_of(slow[1])).by_size < 0.5
    found = delay_of(attempts_of(run))
    assert found.by_size > 0.9
    for gpus in (1, 8, 32):
        _value, low, high = found.at(gpus)
        assert low <= world["restart"] * gpus ** world["size"] <= high
        assert high < 3 * low


def test_placement_is_the_power_at_which_work_does_not_depend_on_where_a_job_ran():
    world, _, _, _, run = worlds.operated("place", 14)
    log = attempts_of(run)
    _cluster, speeds = worlds.parts()
    believed = worlds.scenario_of(worlds.trace_of(14))
    found = twin(run, believed).mechanisms["placement"]
    assert found.low <= world["placement"] <= found.high
    assert found.overlap > 0.05
    assert found.rows > 100
    log = log.with_columns(nodes=pl.lit(1))  # a log of the same cluster in which nothing was ever spread
    load = np.zeros((log["job"].n_unique(), 4))
    pace = Pace(np.zeros(log.height), np.zeros(log.height))
    assert power_of(log, slowdowns(log, speeds), pace, load) == (1.0, 0.0, np.inf, 0)


def test_a_power_of_the_slowdown_leaves_the_fewest_nodes_as_they_were():
    _, speeds = worlds.parts()
    model = np.arange(len(speeds.models))
    types = np.zeros(2, int)
    before, after = (
        s.rates(model, 0.0 * model, types, np.array([1, 4]), np.array([8, 8])) for s in (speeds, powered(speeds, 2.0))
    )
    np.testing.assert_allclose(after[:, 0], before[:, 0])
    np.testing.assert_allclose(after[:, 1], before[:, 0] * (before[:, 1] / before[:, 0]) ** 2)


def test_failures_are_counted_against_busy_time():
    log = pl.DataFrame(
        {
            "submit": [0.0, 0.0, 1000.0], "start": [0.0, 0.0, 500.0], "end": [500.0, 1000.0, 2000.0], "gpus": [8.0, 4.0, 8.0],
            "why": ["node", "done", "done"],
        }
    )  # fmt: skip
    rate, low, high, count, busy = failures(log, 8.0)
    assert (count, busy) == (1, 500 + 500 + 500)
    assert rate == pytest.approx(1 / 1500)
    assert low == pytest.approx(0.0253 / 1500, rel=0.01)
    assert high == pytest.approx(5.572 / 1500, rel=0.001)


def test_repairs_end_when_a_waiting_job_takes_the_node():
    """Of two nodes of a job the one that failed is back last; a job that came later, or needs more nodes, tells nothing."""
    rows = [
        ("a", 0, 0.0, 0.0, 100.0, ["x", "y"], "node"), ("b", 1, 50.0, 110.0, 120.0, ["y"], "done"),
        ("c", 2, 90.0, 400.0, 500.0, ["x"], "node"), ("d", 3, 700.0, 700.0, 800.0, ["x"], "node"),
        ("e", 4, 750.0, 900.0, 999.0, ["x", "y"], "done"),
    ]  # fmt: skip
    names = ("job_id", "job", "submit", "start", "end", "at", "why")
    log = pl.DataFrame(rows, schema=names, orient="row").with_columns(nodes=pl.col("at").list.len())
    mean, low, high, count = repairs(log)
    assert (mean, count) == (300.0, 1)
    assert low == pytest.approx(2 * 300 / 7.378, rel=1e-3)
    assert high == pytest.approx(2 * 300 / 0.0506, rel=1e-2)


def sacct(run, path, zero=datetime(2026, 1, 5)):
    """What `sacct -D -P` says of a run."""
    words = {"done": "COMPLETED", "preempted": "PREEMPTED", "node": "NODE_FAIL"}
    lines = ["JobID|User|Partition|Submit|Start|End|ElapsedRaw|State|AllocTRES|NNodes"]
    before = {}
    for row in attempts_of(run).iter_rows(named=True):
        submit = before.get(row["job"], row["submit"])
        before[row["job"]] = row["end"]
        state = words[row["why"]] if (row["why"], row["status"]) != ("done", "killed") else "CANCELLED"
        times = [f"{zero + timedelta(seconds=round(t)):%Y-%m-%dT%H:%M:%S}" for t in (submit, row["start"], row["end"])]
        elapsed = round(row["end"]) - round(row["start"])
        cells = [
            100 + row["job"],
            row["user"],
            "gpu",
            *times,
            elapsed,
            state,
            f"gres/gpu={row['gpus']:g}",
            row["nodes"],
        ]
        lines.append("|".join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


ATTEMPT = ("job", "start", "end", "gpus", "why")


def test_intervals_hold_as_asked_on_seeds_that_nothing_was_chosen_on(monkeypatch):
    monkeypatch.setattr(worlds, "trace_of", lru_cache(maxsize=1)(worlds.trace_of))  # the jobs of a seed, in each kind
    seen = [worlds.watch(kind, 715 + i) for i in range(few(1, 3)) for kind in ("slow", "size", "place", "fail")]
    least = {"restart": 0.88, "prediction": 0.88, "placement": 0.9, "failure": 0.88, "repair": 0.88}
    for row in worlds.coverage(seen):
        asked = row["worlds"] * least[row["mechanism"].split()[0]]
        assert row["holds"] >= asked - 1, row  # of twelve worlds one fewer comes by chance
        if row["mechanism"].startswith("restart"):
            assert row["close"] >= (0.85 * row["worlds"] if ALL else 0.5 * row["worlds"]), row


def test_a_log_of_attempts_says_what_the_run_says_and_a_merged_one_is_refused(slow, tmp_path):
    believed, run = slow
    path = sacct(run, tmp_path / "sacct.txt")
    each, merged = (lab.intake(("slurm", path), attempts=how).trace for how in ("each", "merge"))
    value = twin(each, believed).mechanisms["restart"].value
    names = {"JobID": "job_id", "User": "user", "ElapsedRaw": "duration", "AllocTRES": "gpus", "NNodes": "nodes"}
    table = pl.read_csv(path, separator="|").rename(names).with_columns(pl.col("gpus").str.strip_prefix("gres/gpu="))
    table.write_csv(path.with_suffix(".csv"))  # the same attempts, in a table of one's own
    own = lab.read("csv", path.with_suffix(".csv"), attempts="each")
    assert attempts_of(own).select(*ATTEMPT).equals(attempts_of(each).select(*ATTEMPT))
    assert value == pytest.approx(SECRET["restart"], rel=0.15)
    with pytest.raises(EstimatorError, match=r'twin: found a merged log.* Read it with attempts="each"'):
        twin(merged, believed)
    with pytest.raises(EstimatorError, match="twin: found no column started, state in the log"):
        twin(each.drop("started", "state"), believed)


def test_what_was_not_seen_is_said_and_stays_as_it_is_believed(slow):
    believed, _run = slow
    calm = believed.replace(delays=Delays(restart=77.0)).run(lab.Fifo())
    found = twin(calm, believed)
    assert found.mechanisms["restart"].words == "restart not seen (too few restarted jobs completed)"
    assert "failure not seen (0 failures)" in found.sentence
    assert "restart" not in found.scenario.trace.columns
    assert found.scenario.delays == believed.delays
    assert found.frame["seen"].to_list() == [False] * 8
    with pytest.raises(EstimatorError, match="Twin.at: found 'size'; expected some of restart, placement"):
        found.at(size=2.0)


def attempts(**columns) -> pl.DataFrame:
    """A log as of an intake with attempts="each": twelve jobs that are preempted once and restart in 600 s, on one node."""
    n = pl.int_range(24)
    late = (n % 2) * 4000.0
    log = pl.select(
        job_id=pl.format("{}{}", n // 2, pl.when(n % 2 == 1).then(pl.lit("#2")).otherwise(pl.lit(""))),
        submit=5000.0 * (n // 2),
        started=5000.0 * (n // 2) + late,
        gpus=8.0,
        duration=pl.when(n % 2 == 1).then(600.0 + 100 * (n // 2 + 1)).otherwise(900.0),
        state=pl.when(n % 2 == 1).then(pl.lit("COMPLETED")).otherwise(pl.lit("PREEMPTED")),
    )
    return log.with_columns(**columns)


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        ("sacct.txt", "found str; expected a Run, or a frame"),
        (attempts(started=pl.from_epoch(pl.col("started"))), "found column started of Datetime"),
        (attempts(gpus=pl.when(pl.col("state") == "COMPLETED").then("gpus")), "found gpus None, state PREEMPTED of job 0, and 11 more"),
        (attempts(gpus=pl.lit(0.0)), "found gpus 0.0, state PREEMPTED of job 0, and 23 more; expected GPUs"),
        (attempts(state=pl.when(pl.col("gpus") < 0).then("state")), "found gpus 8.0, state None of job 0,.*how it ended"),
    ],
)  # fmt: skip
def test_a_log_that_would_mislead_the_twin_is_refused(log, problem):
    scenario = Scenario(
        lab.generate("venus", days=1, jobs=20, load=1.0, cluster_gpus=8, rng=0), lab.Cluster.homogeneous(1, 8)
    )
    with pytest.raises(EstimatorError, match=f"twin: {problem}"):
        twin(log, scenario)


def test_names_of_jobs_are_numbers_or_texts_with_a_count():
    plain = attempts_of(attempts())["attempt"]
    assert plain.sum() == 12
    numbers = attempts(job_id=pl.col("job_id").str.replace("#2", "").cast(pl.Int64))
    assert attempts_of(numbers)["attempt"].equals(plain)
    own = attempts(job_id=pl.format("run#{}", pl.col("job_id").str.replace("#2", "").cast(pl.Int64) + 1))
    assert attempts_of(own)["attempt"].sum() == 12  # and not 23 restarts of a job named run
    assert attempts_of(own)["job"].n_unique() == 12


def test_a_delay_of_few_restarts_is_said_to_be_rough():
    scenario = Scenario(
        lab.generate("venus", days=1, jobs=20, load=1.0, cluster_gpus=8, rng=0), lab.Cluster.homogeneous(1, 8)
    )
    found = twin(attempts(), scenario)
    restart = found.mechanisms["restart"]
    assert (
        restart.note == "rough: 12 restarts"
    )  # and no word of a delay that varies: all attempts are shorter than some delays tried
    assert restart.low <= 600 <= restart.high
    assert "repair not seen (no lists of nodes)" in found.sentence
    large = restart._replace(value=3312.4, low=1040.0, high=12_419.0, note="")
    assert large.words == "restart 3,310 s (1,040 to 12,400)"


@pytest.mark.parametrize("seed", range(21, 21 + few(1, 3)))
def test_canaries_show_the_placement_and_cost_others_little(seed):
    world = worlds.secret("place", seed)
    trace = worlds.trace_of(seed)
    policy = lab.Tiresias(placement="consolidate")
    believed = worlds.scenario_of(trace)
    truth = worlds.scenario_of(trace, world)
    quiet = truth.run(policy)
    unseen = twin(quiet, believed)
    assert not unseen.mechanisms["placement"].seen
    asked = unseen.ask(begin=5 * DAY)
    assert "33 canaries of known work, 11 models on 1, 2, 4 nodes" in asked.sentence
    assert asked.gpu_hours < 80
    both = pl.concat([truth.trace, asked.jobs.with_columns(restart=60.0)], how="diagonal_relaxed").sort("submit")
    run = truth.replace(trace=both).run(policy)
    found = twin(run, believed, canaries=asked).mechanisms["placement"]
    assert found.value == pytest.approx(world["placement"], rel=0.1)
    assert found.low <= world["placement"] <= found.high
    others = run.jobs.filter(~pl.col("job_id").str.starts_with("canary"))
    assert others["jct"].mean() < 1.03 * quiet.jobs["jct"].mean()


def test_a_choice_says_where_it_flips(found):
    frame, sentence = found.flips({"fifo": lab.Fifo(), "srtf": lab.Srtf()})
    assert frame["mechanism"].to_list() == ["estimates", "restart", "restart", "placement", "placement"]
    assert (frame["better"] >= 1).all()
    assert frame["best"][0] == "srtf"
    assert "and at each end of what the log leaves open" in sentence
    # policies that differ in what the placement costs: the log leaves open whether spreading pays
    frame, sentence = found.flips({p: lab.Fifo(placement=p) for p in ("pack", "consolidate")})
    placed = dict(zip(frame["value"].to_list()[3:], frame["best"].to_list()[3:]))
    flips = len({frame["best"][0], *placed.values()}) == 2
    assert flips == ("flips" in sentence)


def test_its_figure_has_an_interval_for_each_mechanism_that_was_seen(found):
    shown = plots.mechanisms(found)
    assert set(shown.values) == {name for name, m in found.mechanisms.items() if m.seen}
    restart = found.mechanisms["restart"]
    bars = shown.values["restart"]["error_y"]
    assert bars["array"] == [restart.high / restart.value - 1]
    assert bars["arrayminus"] == [1 - restart.low / restart.value]
    assert len(plots.plot_mechanisms(found).data) == len(shown.values)


def test_tune_reads_the_mechanisms_of_a_log(tmp_path, capsys):
    from gpuschedlab.cli import main

    trace = lab.generate("venus", days=4, load=1.1, cluster_gpus=64, rng=4).filter(pl.col("gpus") <= 32)
    run = Scenario(trace, lab.Cluster.homogeneous(8, 8), delays=Delays(restart=900.0)).run(
        lab.Tiresias(thresholds=(1e5,))
    )
    path = sacct(run, tmp_path / "sacct.txt")
    words = ["tune", "--trace", f"slurm:{path}", "--methods", "default", "--out", str(tmp_path)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert " jobs on 8x8:v100; history: 0 jobs" in out  # as many nodes as the log used
    assert "70x8" not in out
    assert "mechanism restart " in out
    assert "mechanism placement not seen (no column model that the speeds know)" in out
    assert "'default' is best at the estimates" in out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = ["restart", "placement", "failure", "repair", "prediction", "first_start", "checkpoint", "slow_nodes"]
    assert [m["name"] for m in found["mechanisms"]] == names
    assert found["mechanisms"][0]["low"] <= 900 <= found["mechanisms"][0]["high"]


def test_of_a_log_search_on_its_mechanisms_is_offered_first(tmp_path, capsys, monkeypatch):
    """The search that believes 0 s has another simulator than the one that reads 900 s; both play the same jobs."""
    from gpuschedlab.autosched import Controller
    from gpuschedlab.cli import main

    trace = lab.generate("venus", days=1, jobs=100, load=1.3, cluster_gpus=32, rng=4).filter(pl.col("gpus") <= 16)
    real = Scenario(trace, lab.Cluster.homogeneous(4, 8), delays=Delays(restart=900.0))
    path = sacct(real.run(lab.Tiresias(thresholds=(1e4,))), tmp_path / "sacct.txt")
    restarts = {}
    probe = Controller.probe

    def spied(self, forecast):
        made = probe(self, forecast)
        trace = made.base.trace
        kind = "believed" if "believed" in self.believed.__name__ else "read"
        restarts.setdefault(kind, []).extend(trace["restart"] if "restart" in trace.columns else [0.0])
        return made

    monkeypatch.setattr(Controller, "probe", spied)
    words = ["tune", "--trace", f"slurm:{path}", "--restart", "0", "--rounds", "2", "--out", str(tmp_path / "runs")]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["methods"]
    assert [row["method"] for row in rows] == ["search", "believed", "default", "selftune"]
    assert min(restarts["read"]) > 0  # jobs to come have it, too
    assert max(restarts["believed"]) == 0
    assert rows[0]["jct"] > 0


def test_a_search_on_believed_mechanisms_needs_a_log(tmp_path, capsys, monkeypatch):
    from gpuschedlab.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["tune", "--hours", "2", "--jobs", "60", "--cluster", "4x8", "--methods", "believed"]) == 2
    assert "found a trace that shows no mechanisms" in capsys.readouterr().err


def test_a_forecast_is_simulated_as_the_log_shows_it_and_no_stronger(tmp_path):
    """Mechanisms stand once: in the scenario of the log, and in that of a forecast from it, speeds and delays are the same."""
    from types import SimpleNamespace

    from gpuschedlab.autosched.tuned_loops import Loops
    from gpuschedlab.speeds import Speeds

    rows = [("m", "v100", None, None, 1.0), ("m", "v100", 4, 2, 0.6), ("m", "v100", 4, 4, 0.4)]
    speeds = Speeds.from_frame(
        pl.DataFrame(rows, schema=["model", "gpu_type", "n_gpus", "n_nodes", "rate"], orient="row"), relative=True
    )
    jobs = {
        "job_id": ["a", "b"],
        "submit": [0.0, 5.0],
        "gpus": [4.0, 4.0],
        "duration": [600.0, 900.0],
        "model": ["m", "m"],
    }
    believed = Scenario(pl.DataFrame(jobs), lab.Cluster.homogeneous(4, 8), speeds=speeds, seed=2)
    shown = believed.replace(
        trace=believed.trace.with_columns(restart=pl.lit(900.0), duration=pl.lit(50.0)), speeds=powered(speeds, 0.5)
    )

    def at(scenario):
        trace = scenario.trace.with_columns(restart=pl.lit(900.0), duration=pl.lit(50.0))
        return scenario.replace(trace=trace, speeds=powered(scenario.speeds, 0.5))

    loops = SimpleNamespace(twin=SimpleNamespace(at=at), believed=believed)
    loops.as_believed = lambda scenario: Loops.as_believed(loops, scenario)
    forecast = shown.replace(trace=shown.trace.with_columns(duration=pl.lit(700.0)))
    found = Loops.as_shown(loops, forecast)
    assert found.trace["duration"].to_list() == [700.0, 700.0]  # forecast, not the log's own
    assert found.trace["restart"].to_list() == [900.0, 900.0]
    assert found.speeds.rate.tolist() == shown.speeds.rate.tolist() != believed.speeds.rate.tolist()
    assert Loops.as_believed(loops, forecast).speeds is believed.speeds
    assert "restart" not in Loops.as_believed(loops, forecast).trace.columns
    assert found.seed == shown.seed
