"""One language of changes, on the command line and in Python; whose GPUs others wait for; a run of a site keeps to `eligible`."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Fifo, Slurm
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.papers.clusters.changes import changes_of
from gpuschedlab.papers.clusters.command import changes_in
from gpuschedlab.papers.clusters.explains.found import Found
from gpuschedlab.papers.clusters.explains.holders import holders, sentence
from gpuschedlab.papers.clusters.explains.inference import infer
from gpuschedlab.papers.clusters.explains.owner_limits import limit_found
from gpuschedlab.papers.clusters.files.description import Limit
from gpuschedlab.papers.clusters.replay import replay
from gpuschedlab.papers.clusters.whatif import whatif
from gpuschedlab.widgets import Site

TOML = '[log]\npath = "jobs.csv"\n[cluster]\nnodes = "1x4:t4"\n[scheduler]\nbackfill = "easy"\n'
ROWS = [
    ("a", 0, 4, 100, "u", 0),
    ("b", 0, 4, 100, "v", 100),
    ("c", 50, 4, 100, "w", 200),
    ("d", 260, 1, 40, "u", 300),
]
"""Jobs (id, submission, GPUs, run time, user, start) on one node of four GPUs, each after the one before."""


@pytest.fixture
def site(tmp_path):
    """Function that makes a site of some jobs, with more lines."""

    def make(rest: str = "", rows=tuple(ROWS), **columns) -> Site:
        frame = pl.DataFrame(rows, schema=["job_id", "submit", "gpus", "duration", "user", "started"], orient="row")
        frame = frame.with_columns(requested_time="duration", nodelist=pl.lit("n1"), **columns)
        frame.write_csv(tmp_path / "jobs.csv")
        (tmp_path / "site.toml").write_text(TOML + rest)
        return Site(str(tmp_path / "site.toml"))

    return make


WORDS = {
    "limit.user": (8, "8"),
    "limit.user.jobs": (1, "1"),
    "limit.user.gpus:t4": (2, "2"),
    "limit.qos.q.wall": ("1-0", "1-0"),
    "depth": (3, "3"),
    "weight_age": (500.0, "500"),
    "plan.every": (60.0, "60"),
    "more": (1, "1"),
    "policy": ("greedy", "greedy"),
    "limits": (1800.0, "1800"),
}


@pytest.mark.parametrize("key", WORDS)
def test_python_and_the_command_line_mean_the_same(site, key):
    value, word = WORDS[key]
    made = site()
    by_word = changes_in([f"{key}={word}"], made)
    assert changes_of(made, {key: value}) == by_word
    assert changes_of(made, by_word) == by_word  # what is read stays as it is
    assert whatif(made, {key: value}).table.equals(whatif(made, by_word).table)


def test_several_changes_at_once_and_what_is_taken_away(site):
    made = site('[[limits]]\nof = "user"\ngpus = 3\n')
    found = changes_of(made, {"limit.user": math.inf, "limit.user.jobs": 2, "policy": Slurm(), "weight_age": 7.0})
    assert found["within"] == (Limit("user"), Limit("user", jobs=2))
    assert found["policy"] == Slurm(weight_age=7.0)
    assert changes_of(made, {"limit.user.gpus:t4": 1})["within"] == (
        Limit("user", gpus=3),
        Limit("user", gpus=1, gpu_type="t4"),
    )


def test_tiers_factors_and_the_plan_are_those_of_slurms_rule(site):
    made = site("[partitions.debug]\ntier = 2\nmax_time = 600\n[partitions.batch]\nmax_time = 600\n")
    found = changes_of(made, {"tier.debug": 10, "factor.batch": "5", "plan.tested": 7})["policy"]
    assert found.tiers == (("debug", 10.0), ("batch", 1.0))
    assert dict(found.partitions)["batch"] == 5.0
    assert found.plan == replace(made.slurm.plan, tested=7.0)
    with pytest.raises(TraceError, match=r"found tier\.night; expected a partition of the site: debug, batch"):
        changes_of(made, {"tier.night": 2})
    with pytest.raises(LabError, match="whole|keep|plan"):
        changes_of(made, {"plan.depths": 2})


def test_wrong_changes_are_named(site):
    with pytest.raises(TraceError, match="found the change 'gpus'; expected one of more, cluster, policy"):
        changes_of(site(), {"gpus": 3})
    with pytest.raises(LabError, match="found the policy 'EAZY'; expected a Policy, or one of strict FIFO, EASY"):
        whatif(site(), {"policy": "EAZY"})
    with pytest.raises(TraceError, match=r"whatif limit\.user: found 'many'; expected a number"):
        changes_of(site(), {"limit.user": "many"})


def test_a_changed_limit_keeps_what_a_qos_frees_from_it(site):
    made = site()
    made.__dict__["description"] = made.description.__class__(limits=(Limit("account", ("x",), gpus=4, exempt=("q",)),))
    assert changes_of(made, {"limit.account.x": 6})["within"][-1] == Limit("account", ("x",), gpus=6, exempt=("q",))


def test_a_run_of_a_site_keeps_to_when_jobs_are_eligible(site):
    made = site(eligible=pl.Series([0, 0, 150, 260]))
    assert made.recorded().trace["submit"].to_list() == [0, 0, 50, 260]
    run = made().run(Fifo(backfill="greedy"))
    assert run.jobs["start"].to_list() == [0, 100, 200, 300]
    late = site(rows=(*ROWS[:2], ("c", 50, 4, 100, "w", 600), ROWS[3]), eligible=pl.Series([0, 0, 600, 260]))
    starts = dict(late().run(Fifo()).jobs.select("job_id", "start").iter_rows())
    replayed = dict(replay(late).starts.select("job_id", "EASY").iter_rows())
    assert starts["c"] == replayed["c"] == 600


def test_one_rule_is_one_line_for_all_arrays(site):
    tasks = [(f"{7 + i % 3}_{i}", 0, 1, 100, "u", 100 * (i // 3)) for i in range(12)]
    log = infer_record(site(rows=tuple(tasks)))
    scope = log[1]
    found = limit_found(log[0], scope, scope.group, 9e5)
    assert found.toml == '[[limits]]\nof = "array"\njobs = 1'
    assert str(found) == "throttle of arrays, 1 jobs at once in 3 arrays: 250.0 h of waiting"
    last = scope._replace(most=scope.most + np.array([0, 0, 1]))
    some = limit_found(log[0], last, scope.group, 0.0)
    assert some.toml.count("[[limits]]") == 2
    assert "names = ['[7-8]']" in some.toml
    assert str(some) == "throttle of arrays, 1 jobs at once in 2 arrays, 2 in 1"
    assert isinstance(found, Found)


def infer_record(made: Site) -> tuple:
    """A site's log, and its arrays as owners of limits of jobs."""
    from gpuschedlab.papers.clusters.explains.owner_limits import scope_of

    log = made.explanation.log
    assert infer(log)
    return log, scope_of(log, ("array",), True, "")


def test_whose_gpus_others_wait_for_by_hand(site):
    """Job b waits 100 s for u's GPUs; c waits 50 s for u's and 100 s for v's; d waits 40 s for w's."""
    made = site()
    table = holders(made.explanation)
    rows = {row["user"]: row for row in table.rows(named=True)}
    assert {user: (row["others_wait"], row["waits"], row["held"]) for user, row in rows.items()} == {
        "u": (150, 40, 440),
        "v": (100, 100, 400),
        "w": (40, 150, 400),
    }
    assert [(rows[user]["waiter"], rows[user]["waiter_s"]) for user in "uvw"] == [("v", 100), ("w", 100), ("u", 40)]
    assert [(rows[user]["holder"], rows[user]["holder_s"]) for user in "uvw"] == [("w", 40), ("u", 100), ("v", 100)]
    assert table["user"].to_list() == ["u", "v", "w"]
    assert sentence(table) == (
        "Others wait longest for GPUs that user u holds: 2.5 min, 52 % of such waiting, 1.7 min of it by user v."
    )


def test_waiting_for_ones_own_gpus_is_nobody_elses(site):
    alone = holders(site(user=pl.lit("u")).explanation)
    assert alone.select("others_wait", "waits", "own").row(0) == (0, 0, 290)
    assert alone["waiter"][0] is None
    assert sentence(alone) == ""


def test_at_a_limit_nobody_holds_the_gpus(site):
    rows = (("a", 0, 1, 100, "u", 0), ("b", 0, 1, 100, "u", 100), ("c", 0, 1, 100, "v", 0))
    table = holders(site('[[limits]]\nof = "user"\njobs = 1\n', rows=rows).explanation)
    assert table["others_wait"].sum() + table["own"].sum() == 0


def test_a_log_without_users_has_no_holders(site):
    with pytest.raises(TraceError, match="holders: found no column account in the log"):
        holders(site().explanation, "account")


def test_jobs_that_never_start_after_a_change_are_counted_and_leave_no_verdict(site):
    """Three of four jobs ask for four GPUs, of which a user may have two: only the last one starts."""
    found = whatif(site(), {"limit.user": 2})
    assert found.never == 3
    assert "3 jobs never start after the change: they are in no figure" in str(found)
    assert found.missing == "jobs that never start after the change"
    assert found.table["verdict"].to_list() == ["no verdict"] * 3
    assert whatif(site(), {"limit.user": 4}).never == 0
