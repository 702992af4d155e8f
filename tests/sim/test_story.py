"""The story of a job, and the log of one job's decisions: the rows that a log of all jobs has of it, and counts of `Run.jobs`."""

import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from present import here

import gpuschedlab as lab
from gpuschedlab.errors import TraceError
from gpuschedlab.scenarios.week import Week

POLICIES = {
    "none": lab.Fifo(),
    "easy": lab.Fifo(backfill="easy"),
    "plan": lab.Fifo(backfill="plan"),
    "greedy": lab.Sjf(),
    "srtf": lab.Srtf(),
    "late": lab.Srtf(interval=300.0),
    "tiresias": lab.Tiresias(thresholds=(600.0,)),
    "lucid": lab.Lucid(profiler_nodes=1),
}
if here("gavel"):
    POLICIES["gavel"] = lab.Gavel()


@pytest.fixture(scope="module")
def scenario():
    trace = lab.generate("venus", days=0.5, jobs=150, load=1.4, cluster_gpus=24, rng=5).filter(pl.col("gpus") <= 16)
    outage = lab.Outage(node=1, start=9000.0, end=20_000.0)
    return lab.Scenario(trace, lab.Cluster(lab.Cluster.homogeneous(3, 8).groups, (outage,)))


@pytest.mark.parametrize("name", POLICIES)
def test_a_log_of_one_job_has_the_rows_that_a_log_of_all_has(scenario, name):
    policy = POLICIES[name]
    every = scenario.run(policy, log=True)
    plain = scenario.run(policy)
    waits = every.jobs["queueing"].to_numpy()
    for row in dict.fromkeys([int(waits.argmax()), int(every.jobs["preemptions"].arg_max()), 3, 60]):
        job = every.jobs["job_id"][row]
        run = scenario.run(policy, log=job)
        assert run.jobs.equals(plain.jobs)
        rows = pl.col("job") == row
        mine, theirs = (log.filter(rows & (pl.col("reason") != "started")) for log in (run.decisions, every.decisions))
        assert mine.equals(theirs)
        assert run.explain(job).reasons["reason"].equals(every.explain(job).reasons["reason"])
        assert run.story(job) == every.story(job)


@pytest.mark.parametrize("name", POLICIES)
def test_stories_agree_with_the_frames(scenario, name):
    run = scenario.run(POLICIES[name], log=True)
    for row in run.jobs.iter_rows(named=True):
        said = run.story(row["job_id"])
        stops = re.search(r"stopped (once|\d+ times)", said)
        behind = "which none may pass" in said
        if said.startswith("No wait"):
            assert row["queueing"] < 0.5
            assert f"{row['gpus']:g} GPU" in said
            continue
        if not behind:
            assert (1 if stops and stops[1] == "once" else int(stops[1].split()[0]) if stops else 0) == row[
                "preemptions"
            ]
        number, unit = re.match(r"Waits ([\d,.]+) (s|min|h|d)", said).groups()
        scale = {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit]
        last = 10.0 ** -len(number.partition(".")[2])
        assert abs(float(number.replace(",", "")) * scale - row["queueing"]) <= 0.51 * last * scale
        assert not re.search("None|nan", said)


@pytest.fixture(scope="module")
def week():
    """The default week with a quarter of its jobs and nodes."""
    return Week(cluster="18x8").with_knobs(jobs=2_500).scenario()


@pytest.mark.parametrize("name", ["srtf", "tiresias", pytest.param("none", marks=pytest.mark.long)])
def test_on_a_quarter_of_the_default_week_a_story_counts_what_the_jobs_say(week, name):
    every = week.run(POLICIES[name], log=True)
    waits = every.jobs["queueing"].to_numpy()
    stops = every.jobs["preemptions"].to_numpy()
    rows = np.random.default_rng(70).choice(np.flatnonzero(waits > 1.0), 128, replace=False)
    told = Counter()
    for row in {*rows.tolist(), *np.argsort(waits)[-2:].tolist(), *np.argsort(stops)[-2:].tolist()}:
        said = every.story(every.jobs["job_id"][row])
        found = re.search(r", stopped (once|\d+)", said)
        times = 0 if found is None else 1 if found[1] == "once" else int(found[1])
        assert times == (0 if "none may pass" in said else stops[row])
        number, unit = re.match(r"Waits ([\d.]+) (\w+)", said).groups()
        assert float(number) * {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit] == pytest.approx(
            waits[row], rel=0.06, abs=0.51
        )
        told[times > 0] += 1
    assert min(told.values()) >= 5 or not stops.any()
    row = int(waits.argmax())  # that of one job alone
    run = week.run(POLICIES[name], log=every.jobs["job_id"][row])
    assert run.story(every.jobs["job_id"][row]) == every.story(every.jobs["job_id"][row])


def test_a_story_names_who_holds_the_gpus():
    trace = pl.DataFrame(
        {
            "job_id": ["a", "b", "c"],
            "submit": [0.0, 60.0, 120.0],
            "gpus": [4, 1, 2],
            "duration": [36_000.0, 3600.0, 7200.0],
        }
    )
    scenario = lab.Scenario(trace, lab.Cluster.homogeneous(1, 4))
    said = scenario.run(lab.Srtf(), log="a").story("a")
    assert said == (
        "Waits 2.0 h, stopped once for jobs with less time left. In its longest wait (2.0 h) these hold 1 to 3 of 4 GPUs and "
        "1 to 3 are free; it needs 4."
    )
    assert (
        scenario.run(lab.Srtf()).story("a")
        == "Waits 2.0 h, stopped once. In its longest wait (2.0 h) 1 to 3 GPUs are free; it needs 4."
    )
    assert scenario.run(lab.Fifo(), log="c").story("c") == (
        "Waits 10 h behind job b, which none may pass; it needs 1 GPU when 0 are free."
    )


def test_unknown_jobs_are_told(scenario):
    with pytest.raises(TraceError, match="found no job 'nobody'"):
        scenario.run(lab.Fifo(), log="nobody")
    with pytest.raises(TraceError, match="found no job 'nobody'"):
        scenario.run(lab.Fifo()).story("nobody")
    assert np.isfinite(scenario.run(lab.Fifo()).jobs["end"].to_numpy()).all()
