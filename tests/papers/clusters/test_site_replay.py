"""Replay of a site's log: what is compared, with which intervals, and what is said of it."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cli import main
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterWarning, LabError
from gpuschedlab.metrics.intervals import SHORT
from gpuschedlab.papers.clusters.command import changes_in
from gpuschedlab.papers.clusters.metrics import start_errors, start_errors_by
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.replay import replay
from gpuschedlab.papers.clusters.standing import standing
from gpuschedlab.papers.clusters.whatif import (
    BELOW,
    DAY,
    SIDES,
    SURELY,
    UNTOLD,
    Missed,
    WhatIf,
    biases,
    compared,
    in_this_log,
    played,
    whatif,
)
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from gpuschedlab.traces.logs.ledger import most_at_once

JOBS = {
    "job_id": ["a", "b", "c", "d"],
    "submit": [0, 1, 2, 3],
    "gpus": [4, 5, 1, 2],
    "duration": [60, 60, 30, 10],
    "requested_time": [100, 100, 90, 120],
    "user": ["ann", "bob", "ann", "eve"],
    "account": ["ml", "ml", "bio", None],
    "vc": ["long", "long", "all", "all"],
    "started": [0, 62, 5, 122],
}
SLICED = {
    "shape": ["3g.20gb", "3g.20gb", "1g.5gb", "7g.40gb"],
    "gpus": [3 / 7, 3 / 7, 1 / 7, 1],
    "started": [0, 1, 5, 122],
}
"""3g, 3g and 1g at once have 7 parts of computing, and are too many cells for one GPU."""

TOML = '[log]\npath = "jobs.csv"\n[cluster]\nnodes = "1x6"\n[scheduler]\nbackfill = "{}"\nhalf_life = "1d"\n'


@pytest.fixture
def site(tmp_path):
    """Function that makes a site of the jobs, some columns changed, and a scheduler."""

    def make(backfill="easy", rest="", **columns) -> Site:
        pl.DataFrame(JOBS | columns).write_csv(tmp_path / "jobs.csv")
        (tmp_path / "site.toml").write_text(TOML.format(backfill) + rest)
        return Site(str(tmp_path / "site.toml"))

    return make


# --- errors of starts


def test_errors_of_starts_by_hand():
    found = start_errors([0, 10, 20, 30, 40], [5, 12, 20, np.nan, 50], [0, 12, 90, 31, 710])
    assert found["jobs"] == 4
    assert (found["bias"], found["mae"], found["median"]) == pytest.approx(((-5 + 0 + 70 + 660) / 4, 735 / 4, 37.5))
    assert (found["within_10"], found["within_60"], found["within_600"]) == (0.5, 0.5, 0.75)
    assert (found["recorded"], found["simulated"]) == pytest.approx(((5 + 2 + 0 + 10) / 4, (0 + 2 + 70 + 670) / 4))
    assert found["rank"] == pytest.approx(0.2)  # recorded waits 5 2 0 10, simulated 0 2 70 670: ranks 3 2 1 4, 1 2 3 4
    assert start_errors([0.0], [np.nan], [1.0]) == {"jobs": 0}
    edges = start_errors([0] * 4, [1000] * 4, [1010, 940, 1600, 1601])  # within: not beyond
    assert (edges["within_10"], edges["within_60"], edges["within_600"]) == (0.25, 0.5, 0.75)
    assert np.isnan(start_errors([0, 1], [1, 2], [3, 9])["rank"])  # recorded waits are all alike
    with pytest.raises(LabError, match="expected one submission and two starts for each job"):
        start_errors([0, 1], [0], [0])


def test_errors_by_group():
    jobs = pl.DataFrame({"submit": [0, 0, 0], "started": [1, 2, 4], "x": ["u", None, "u"], "s": [1.0, 0.0, 0.0]})
    assert start_errors_by(jobs, "x", "s").select("x", "jobs", "mae").rows() == [("-", 1, 2.0), ("u", 2, 2.0)]


def test_most_gpus_at_once():
    jobs = pl.DataFrame(
        {"job_id": [*"abcd"], "started": [0, 10, 10, None], "duration": [10, 10, 20, 5], "gpus": [4, 2, 3, 9]}
    )
    assert most_at_once(jobs) == 5  # a ends as b and c start, d never started
    assert most_at_once(pl.concat([jobs, jobs[1:2]])) == 5  # b was written twice
    assert most_at_once(jobs.head(0)) == most_at_once(jobs.drop("started")) == 0


# --- replay


def test_a_replay_knows_requested_times_and_never_recorded_starts(site):
    first = replay(site())
    other = replay(site(started=[50, 51, 52, 53]))
    rules = ["strict FIFO", "EASY", "depth 2", "conservative", "greedy", "EASY, true run times"]
    assert list(first.rules) == rules
    assert first.starts.select(rules).equals(other.starts.select(rules))
    # by their requests c ends before a and passes b, and d does not; by true run times it does
    assert first.starts["EASY"].to_list() == [0, 60, 2, 120]
    assert first.starts["EASY, true run times"].to_list() == [0, 60, 2, 32]
    assert first.starts["strict FIFO"].to_list() == [0, 60, 60, 120]


def test_jobs_that_never_started_in_the_log_load_the_simulation_and_are_not_compared(site):
    found = replay(site(started=[0, None, 5, 122]))
    assert found.starts["job_id"].to_list() == ["a", "c", "d"]
    assert found.starts["EASY"].to_list() == [0, 2, 120]


def test_a_rule_that_is_nearer_than_the_sites_own_is_named_first(site):
    found = replay(site("none"))
    assert found.own == "strict FIFO"
    assert found.verdict.startswith(
        "EASY is nearer to the log than strict FIFO. strict FIFO: mean wait 58 s, recorded 46 s;"
    )
    assert not replay(site("easy")).verdict.startswith("EASY is nearer")


def test_a_launch_delay_moves_starts_and_holds_gpus(site):
    found = replay(site(started=[3, 66, 5, 130]))
    assert found.launch == 3
    assert found.launched.to_list() == [3, 66, 5, 129]
    assert found.later["mae"] == pytest.approx((0 + 1) / 2)
    found = replay(site(started=[3, 66, 5, 130], rest="[delays]\nlaunch = 3\n"))
    assert found.starts["EASY"].to_list() == [3, 66, 5, 129]
    assert found.launch == 0


def test_what_does_not_fit_is_said_before(site):
    notes = {
        "the log uses 10 GPUs at once, and the cluster has 6": {"started": [0, 1, 2, 122]},
        "1 jobs started before they were submitted or eligible": {"eligible": [0, 1, 9, 3]},
        "2 jobs have no time limit: 0 get that of their partition, 2 a day": {"requested_time": [100, None, 90, None]},
        "3 jobs have no time limit: 1 get that of their partition, 2 a day": {
            "requested_time": ["", "100", "unlimited", ""],
            "rest": "[partitions.long]\nmax_time = 200\n",
        },
        "1 jobs ask for GPU types that the cluster lacks: k80": {"gpu_type": ["v100", "v100", "k80", None]},
        "the log holds 3 slices at once, which need at least 2 GPUs, and the cluster has 1": SLICED,
        "1 jobs ran for longer than they requested": {"requested_time": [50, 100, 90, 120], "state": ["TIMEOUT"] * 4},
        "1 windows are left out": {"rest": '[[windows]]\nstart = 5\nend = 9\nusers = ["eve"]\n'},
        "no rule here keeps to queues": {"rest": "[partitions.long]\n[queues.q]\n"},
    }
    for note, change in notes.items():
        with pytest.warns(ClusterWarning) if "gpu_type" in change else contextlib.nullcontext():
            found = replay(site(**change))
            found = replay(replace(found.site, cluster="1x1")) if change is SLICED else found
        assert any(said.startswith(note) for said in found.notes), (note, found.notes)
    assert replay(site()).notes == ()
    assert replay(site("plan")).own == "conservative"
    with pytest.raises(LabError, match="found no recorded starts"):
        replay(site(started=[None] * 4))


def test_a_kept_trace_whose_starts_are_all_unknown_has_none(tmp_path):
    """A log loses columns that say nothing when it is read; a parquet file keeps them."""
    jobs = pl.DataFrame(JOBS | {"started": [None] * 4}, schema_overrides={"started": pl.Float64})
    jobs.with_columns(pl.col("submit", "gpus", "duration").cast(pl.Float64)).write_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(LabError, match="found no recorded starts"):
        replay(Site(str(tmp_path / "jobs.parquet"), "1x6"))


def test_changes_are_read_in_seconds_unless_they_name_a_unit(site):
    assert changes_in(["limits=1800"], site())["limits"] == 1800
    assert changes_in(["limits=00:30:00"], site())["limits"] == 1800


def test_a_job_that_takes_one_of_several_types_asks_for_one_that_is_there(site):
    asked = pl.Series([["k80", "v100"], ["k80", "t4"], None], dtype=pl.List(pl.String))
    one = site()
    jobs = one.log.trace.head(3).with_columns(gpu_types=asked)
    stand_in = SimpleNamespace(log=SimpleNamespace(trace=jobs))
    assert Site.untyped(stand_in, Cluster.parse("2x4:V100")).to_list() == [["k80", "t4"]]


def test_jobs_end_at_their_limits_and_none_is_cut_that_ran_beyond_them(site):
    """A requested 50 s and ran 60; the others keep to their limits, however late they are launched."""
    asked = [50, 60, 30, 120]
    states = ["COMPLETED", "TIMEOUT", "TIMEOUT", "COMPLETED"]
    assert not site(requested_time=asked).limited
    made = site(requested_time=asked, state=states, rest="[delays]\nlaunch = 3\n")
    assert made.limited
    scenario = made()
    assert scenario.trace["limit"].to_list() == [None, 60, 30, 120]
    jobs = scenario.run(made.own).jobs
    assert jobs["executed"].to_list() == [63, 63, 33, 13]
    assert not jobs["timed_out"].any()
    assert replay(made).launched.null_count() == 0
    shorter = whatif(made, {"limits": 20})
    assert shorter.unknown == 0
    assert shorter.table["difference"][0] < 0
    longer = whatif(made, {"limits": 1e5})
    assert longer.unknown == pytest.approx((5 * 60 + 1 * 30) / 3600)
    assert "GPU-hours are of jobs stopped at their limits" in str(replace(longer, unknown=12.0))


def test_windows_of_a_site_are_windows_of_its_nodes(site):
    """D waits for the end of a window of the second of two nodes, though nobody is on it; `more` nodes come before it."""
    nodes = '[[windows]]\nstart = 50\nend = 300\nnodes = ["n1"]\n[[windows]]\nstart = 400\nend = 410\n'
    rest = nodes + '[[windows]]\nstart = 1\nend = 2\nusers = ["eve"]\n'
    made = replace(site(rest=rest), more=0)
    path = Path(made.file)
    path.write_text(path.read_text().replace("1x6", "1x6:a100,1x4:t4"))
    made = Site(made.file)
    windows = [(w.node, w.start, w.end, w.announced) for w in made().cluster.events]
    assert windows == [(1, 50, 300, 0), (0, 400, 410, 0), (1, 400, 410, 0)]
    assert [w.node for w in replace(made, more=2)().cluster.events] == [3, 0, 1, 2, 3]
    assert [w.start for w in replace(made, cluster="1x8")().cluster.events] == [400]
    assert "windows" not in " ".join(replay(made).notes).replace("1 windows are left out", "")
    assert made().run(made.own).jobs["start"].to_list() == [0, 60, 2, 120]  # d has no other place before


def test_groups(site):
    found = replay(site())
    assert found.by("size").select("size", "jobs", "mae").rows() == [("1", 1, 3.0), ("2-7", 3, pytest.approx(4 / 3))]
    assert found.by("vc")["vc"].to_list() == ["all", "long"]
    assert found.by("account")["account"].to_list() == ["-", "bio", "ml"]
    assert found.by("quarter")["jobs"].to_list() == [1, 1, 1, 1]
    with pytest.raises(LabError, match="found the group 'colour'; expected one of size, vc"):
        found.by("colour")


def test_standing_is_decayed_usage_of_recorded_starts(site):
    """Ann has used 240 and 30 GPU-s in two accounts; half is forgotten in a day."""
    accounts = "[scheduler.weights]\nfairshare = 100\n"
    accounts += "[accounts.ml]\nshares = 1\nusers = {ann = 1, bob = 1}\n[accounts.bio]\nusers = {ann = 1, eve = 1}\n"
    found = standing(site(rest=accounts, started=[0, 86_340, 5, 122]))
    usage = {(a, u): s for a, u, s in found.select("account", "user", "usage").iter_rows()}
    assert usage[("ml", "ann")] == pytest.approx(240 / 2, rel=1e-3)  # ends when the ledger is read, a day later
    assert usage[("ml", "bob")] == pytest.approx(300, rel=1e-3)
    assert usage[("bio", "ann")] == pytest.approx(15, rel=1e-3)
    assert usage[("bio", "eve")] == 0  # d has no account
    assert [u for (u,) in found.select("user").iter_rows()] == ["eve", "ann", "ann", "bob"]
    assert found["points"].to_list() == [100, 75, 50, 25]
    with pytest.raises(LabError, match="found no column account"):
        standing(_without_accounts(site))


def _without_accounts(site) -> Site:
    made = site()
    path = made.file.replace("site.toml", "jobs.csv")
    pl.read_csv(path).drop("account").write_csv(path)
    return made


# --- what if


def year(seed: int, effect: float):
    """Jobs of 52 weeks before and after a change that takes `effect` s from each wait on average: weeks differ far more than that."""
    draw = np.random.default_rng(seed)
    jobs = draw.integers(5, 30, 52)
    week = np.repeat(np.arange(52), jobs)
    level = np.repeat(draw.gamma(2.0, 3_000.0, 52), jobs)
    wait = level + draw.exponential(500.0, len(week))
    change = effect + np.repeat(draw.normal(0, 300.0, 52), jobs) + draw.normal(0, 100.0, len(week))
    names = {"job_id": [f"{i}" for i in range(len(week))], "submit": week * 7 * DAY, "block": week, "unit": "weeks"}
    return (pl.DataFrame(names | {"wait": w, "ran": 600.0, "undone": 0.0}) for w in (wait, wait + change))


def test_intervals_of_a_synthetic_year_hold_the_known_effect():
    held = 0
    for seed in range(100):
        row = compared(*year(seed, -700.0)).table.row(0, named=True)
        held += row["low"] <= -700 <= row["high"]
    assert 90 <= held <= 99


def test_jobs_of_a_whatif_count_after_a_warm_up():
    """Three days, unless the log is shorter than eight; the last weeks alone where they are asked for."""
    rule = Fifo()
    submit = np.arange(0, 70 * DAY, 3600.0) + 100
    for days, weeks, first in ((70, None, 3 * DAY), (70, 1, 70 * DAY - 3600 - 7 * DAY), (5, None, 0.0)):
        some = submit[submit < days * DAY]
        trace = pl.DataFrame(
            {"job_id": [f"{i}" for i in range(len(some))], "submit": some, "gpus": 1, "duration": 60.0}
        )
        (jobs,) = played(((Scenario(trace, Cluster.parse("1x2")), rule),), weeks)
        assert jobs["submit"][0] == pytest.approx(100 + first)
        assert jobs["submit"][-1] == some[-1]


def test_a_job_that_a_limit_stops_waits_no_less(tmp_path):
    """Of 100,000 s a limit of an hour leaves 96,400 undone; the next job waits for an hour in the place of a day."""
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit,gpus,duration,requested_time\na,0,1,100000,200000\nb,1,1,60,60\n")
    found = whatif(Site(f"csv:{path}", "1x1"), {"limits": 3600.0})
    before = found.table.row(0, named=True)["before"]
    after = found.table.row(0, named=True)["after"]
    assert (before, after) == (pytest.approx(99_999 / 2), pytest.approx(3_599 / 2))
    assert found.cut == pytest.approx(96_400 / 3600)
    assert "+27 GPU-hours of work are left undone by jobs stopped at their limits" in str(found)


@pytest.fixture(scope="module")
def ten_days(tmp_path_factory) -> Site:
    """A log of ten busy days, whose recorded starts are those of greedy backfill."""
    draw = np.random.default_rng(4)
    jobs = {"job_id": [f"{i}" for i in range(1500)], "submit": np.sort(draw.uniform(0, 10 * DAY, 1500)).round()}
    jobs |= {"gpus": draw.choice([1, 2, 4], 1500), "duration": draw.exponential(1_000.0, 1500).round() + 1}
    path = tmp_path_factory.mktemp("site") / "jobs.csv"
    frame = pl.DataFrame(jobs).with_columns(requested_time=pl.col("duration") * 2)
    frame.with_columns(started=pl.col("submit")).write_csv(path)
    site = Site(f"csv:{path}", "1x6")
    starts = site().run(site.policies["greedy"]).jobs.select("job_id", started="start")
    frame.join(starts, on="job_id", maintain_order="left").write_csv(path)
    return Site(f"csv:{path}", "1x6")


def test_whatif_counts_the_same_jobs_on_both_sides(ten_days):
    found = whatif(ten_days, {"more": 1})
    assert found.jobs == (ten_days.trace["submit"] >= ten_days.trace["submit"].min() + 3 * DAY).sum()
    wait = found.table.row(0, named=True)
    assert wait["difference"] == pytest.approx(wait["after"] - wait["before"])
    assert wait["low"] < wait["difference"] < wait["high"] < 0
    assert wait["verdict"] == "lower"
    assert found.summary()["mean wait"] == wait["difference"]
    same = whatif(ten_days, {"policy": "EASY"}).table
    assert same["difference"].to_list() == [0.0, 0.0, 0.0]
    assert set(same["verdict"]) == {"undecided"}


def test_a_short_log_is_too_short_to_tell(ten_days):
    """Five jobs of a log say nothing, and every surface says so."""
    scenario = ten_days()
    few = scenario.replace(trace=scenario.trace.head(5))
    found = compared(*played(((few, ten_days.own), (few, ten_days.policies["greedy"]))))
    assert set(found.table["verdict"]) <= {SHORT, "undecided"}
    longer = compared(*(year(0, -700.0)))
    changed = longer.table.with_columns(low=pl.lit(float("nan")), high=pl.lit(float("nan")), verdict=pl.lit(SHORT))
    assert str(WhatIf(changed, 9)).count("too short to tell") == 3
    assert "nan" not in str(WhatIf(changed, 9))
    assert "nan" not in WhatIf(changed, 9)._repr_html_()


def test_a_difference_below_what_the_replay_misses_is_marked(ten_days):
    calibration = replay(ten_days)
    assert calibration.own == "EASY"
    bias = biases(calibration)
    assert bias["mean wait"] == pytest.approx(calibration.errors("EASY")["bias"])
    assert bias["mean wait"] != 0  # the log is greedy's
    small = whatif(ten_days, {"policy": "EASY"}, calibration=calibration)
    assert set(small.table["verdict"]) == {BELOW}
    assert small._repr_html_().count(BELOW) == 3
    assert BELOW in str(small)
    large = whatif(ten_days, {"more": 1}, calibration=calibration).table.row(0, named=True)
    assert large["bias"] == bias["mean wait"]
    assert abs(large["difference"]) > abs(large["bias"])
    assert large["verdict"] == "lower"


def test_a_side_is_reported_if_what_the_model_misses_cannot_turn_it(ten_days):
    before, after = played(((ten_days(), ten_days.own), (ten_days().replace(), ten_days.policies["strict FIFO"])))
    whole = compared(before, after).table
    change = whole["difference"][0]
    assert change > 0
    for seconds, answer in [(change / SURELY - 1, SIDES[1]), (change / SURELY + 1, UNTOLD), (float("nan"), UNTOLD)]:
        found = compared(before, after, missed=Missed("drained nodes", seconds, 9e4))
        assert found.table["verdict"].to_list() == [answer, UNTOLD, UNTOLD]
        assert found.table["difference"].equals(whole["difference"])
        assert found.table.select(pl.col("low", "high").is_nan().all()).row(0) == (True, True)  # no bound is promised
        assert found.sentence.startswith("More waiting" if answer != UNTOLD else "No verdict")
        assert found.sentence in str(found)
    assert compared(before, after).sentence == ""


def test_a_change_that_is_none(ten_days):
    with pytest.raises(LabError, match="found the change 'gpus'; expected one of more, cluster, policy"):
        whatif(ten_days, {"gpus": 3})
    with pytest.raises(
        LabError,
        match="found the policy 'EAZY'; expected a Policy, or one of strict FIFO, EASY, depth 2, conservative, greedy",
    ):
        whatif(ten_days, {"policy": "EAZY"})


# --- the command


def test_the_command(site, capsys):
    path = site(rest="[accounts.ml]\nusers = {ann = 1}\n").file
    assert main(["replay", "--trace", path, "--by", "vc", "--standing"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("why jobs waited: too few GPUs idle ")
    assert "\n\nEASY: mean wait 44 s, recorded 46 s;" in out
    assert "4 jobs; recorded waits (s): mean 46, median 32, p95 110\n" in out
    assert "note: no rule here keeps to accounts" in out
    assert main(["replay", "--trace", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["rule"] for row in found["rules"]][0] == "EASY"
    assert found["mae"] == pytest.approx((0 + 2 + 3 + 2) / 4)
    assert main(["replay", "--trace", "nowhere.toml"]) == 2
    assert "site nowhere.toml: found no such file" in capsys.readouterr().err
    assert main(["replay", "--trace", path, "--by", "colour"]) == 2
    capsys.readouterr()
    assert (
        main(
            ["replay", "--trace", path, "--change", "more=1", "--change", "policy=srtf", "--change", "estimator=oracle"]
        )
        == 0
    )
    assert (
        "what if more=1, policy=srtf, estimator=oracle\nmean wait: 44 to 0, -44: lower, in this log"
        in capsys.readouterr().out
    )
    assert main(["replay", "--trace", path, "--change", "limits=00:30:00"]) == 0
    assert "what if limits=00:30:00\nmean wait: 44 to 44" in capsys.readouterr().out
    assert main(["replay", "--trace", path, "--change", "more=x"]) == 2
    assert "found 'x'; expected -1000 to 1000 nodes" in capsys.readouterr().err


def test_a_sites_own_plan_has_its_row(site):
    found = replay(site("plan", "depth = 3\n"))
    assert found.own == "as configured"
    assert {"as configured", "depth 2", "conservative", "as configured, true run times"} <= set(found.rules)
    assert whatif(found.site, {"policy": "EASY"}, calibration=found).table.height


@pytest.mark.parametrize(
    ("difference", "misses", "expected"),
    [
        (-50.0, 20.0, "lower, in this log"),
        (50.0, 20.0, "higher, in this log"),
        (-50.0, 26.0, ""),  # the model may miss as much
        (2.0, 3.0, "no change, in this log"),  # both are at most 1 % of the mean wait
        (-2.0, 0.1, "no change, in this log"),  # however little the model misses
        (2.0, 30.0, ""),
        (0.0, np.nan, ""),
    ],
)
def test_a_short_log_has_a_side_of_its_own_jobs(difference, misses, expected):
    """By hand, of a mean wait of 400 s: twice what the model misses is the bound of a side."""
    assert in_this_log(difference, 400.0, Missed("", misses, 410.0)) == expected
