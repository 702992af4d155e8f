"""Jobs start no earlier than they are eligible, and those that depend on others move with their ends; by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Fifo, Scenario
from gpuschedlab.papers.clusters.playing import eligible
from gpuschedlab.papers.clusters.playing.eligible import links, play
from gpuschedlab.papers.clusters.replay import replay
from gpuschedlab.papers.clusters.whatif import waits, whatif
from gpuschedlab.widgets import Site

TWO = Cluster.homogeneous(1, 2)
TWICE = Cluster.homogeneous(2, 2)


def log(*rows, **more) -> pl.DataFrame:
    """Jobs (id, user, submitted, eligible, GPUs, started, duration)."""
    names = ("job_id", "user", "submit", "eligible", "gpus", "started", "duration")
    frame = pl.DataFrame(rows, schema=names, orient="row", strict=False)
    numbers = ("submit", "eligible", "gpus", "started", "duration")
    return frame.with_columns(pl.col(numbers).cast(pl.Float64), requested_time=pl.lit(7200.0), **more)


def starts(trace: pl.DataFrame, cluster: Cluster = TWO) -> dict[str, float]:
    return dict(play(Scenario(trace, cluster), Fifo()).jobs.select("job_id", "start").iter_rows())


BEGIN = log(("a", "u", 0, 3600, 2, 3600, 60), ("b", "v", 10, 10, 2, 10, 60))
CHAIN = log(
    ("x", "v", 0, 0, 2, 0, 1000),
    ("a", "u", 1, 1, 2, 1000, 500),
    ("b", "u", 2, 1500, 2, 1500, 100),  # waits for a
    ("c", "u", 3, 1601, 1, 1601, 50),  # waits for b, a second after its end
)


def test_a_job_does_not_start_before_it_is_eligible():
    assert starts(BEGIN) == {"a": 3600, "b": 10}
    assert links(BEGIN).is_empty()


def test_a_job_that_became_eligible_as_one_of_its_user_ended_depends_on_it():
    assert links(CHAIN).rows() == [("b", "a", 0, 2), ("c", "b", 1, 3)]
    assert links(CHAIN.with_columns(user="job_id")).is_empty()  # another user's end is a coincidence
    assert starts(CHAIN) == {"x": 0, "a": 1000, "b": 1500, "c": 1601}
    assert starts(CHAIN, TWICE) == {"x": 0, "a": 1, "b": 501, "c": 602}  # all of it moves with a


def test_a_dependent_job_is_not_released_before_it_is_submitted():
    late = CHAIN.with_columns(submit=pl.when(pl.col("job_id") == "b").then(1400.0).otherwise("submit"))
    assert starts(late, TWICE) == {"x": 0, "a": 1, "b": 1400, "c": 1501}


def test_jobs_that_a_log_names_come_after_the_last_of_them():
    named = CHAIN.drop("eligible").with_columns(after=pl.Series([None, None, ["x", "a"], ["b"]]))
    assert links(named).rows() == [("b", "a", 0, 2), ("b", "x", 0, 2), ("c", "b", 0, 3)]
    assert starts(named, TWICE) == {"x": 0, "a": 1, "b": 1000, "c": 1100}  # b waits for x, too


def test_a_user_thinks_as_long_as_before():
    thinks = log(("a", "u", 0, 0, 2, 0, 100), ("b", "u", 130, 130, 2, 130, 50))
    thinks = thinks.drop("eligible").with_columns(after=pl.Series([None, ["a"]]))
    slow = thinks.with_columns(duration=pl.col("duration") * 2)
    assert links(thinks).rows() == [("b", "a", 30, 0)]
    assert starts(thinks) == {"a": 0, "b": 130}
    assert links(thinks.with_columns(think_time=pl.Series([None, 45.0]))).rows() == [("b", "a", 45, 0)]
    assert starts(slow.with_columns(started=pl.Series([0.0, 230]), submit=pl.Series([0.0, 230]))) == {"a": 0, "b": 230}


def crowded(n: int = 3000, users: int = 20, gpus: int = 16) -> pl.DataFrame:
    """A log of a full cluster: each fifth job waits for the one that its user submitted before it."""
    draw = np.random.default_rng(1)
    wide = draw.choice([1.0, 2, 4, 8], n, p=[0.5, 0.2, 0.2, 0.1])
    lasts = np.exp(draw.normal(7.5, 1.2, n)).round() + 30
    submit = np.sort(draw.uniform(0, (wide * lasts).sum() / gpus, n)).round()
    rows = pl.DataFrame(
        {"submit": submit, "gpus": wide, "duration": lasts, "user": draw.integers(0, users, n).astype(str)}
    )
    rows = rows.with_row_index("job_id").with_columns(pl.col("job_id").cast(pl.String), started=pl.lit(1e9))
    held = pl.Series(draw.random(n) < 0.2)
    return rows.with_columns(after=pl.when(held).then(pl.concat_list(pl.col("job_id").shift(1).over("user"))))


def test_on_a_full_cluster_all_that_wait_for_others_start_after_them(monkeypatch):
    trace = crowded().with_columns(pl.when(pl.col("after").list.first().is_not_null()).then("after"))
    before = trace.explode("after").drop_nulls("after").select("job_id", before="after", gap=pl.lit(0.0))
    before = before.join(trace.select("job_id", floor="submit"), on="job_id")
    monkeypatch.setattr(eligible, "links", lambda _: before)

    def early() -> float:
        run = play(Scenario(trace, Cluster.homogeneous(2, 8)), Fifo(backfill="easy"))
        return eligible.unsettled(trace, waits(run.jobs))

    assert early() == 0
    monkeypatch.setattr(eligible, "WORK", 0)
    assert early() > 0.01  # twelve runs are not enough


def test_where_jobs_do_not_settle_there_is_no_verdict(site, monkeypatch):
    """On one node a waits for x; b, which comes after a, would start at 1,000 beside it in the first run."""
    rows = ("x", "v", 0, 0, 2, 0, 1000), ("a", "u", 1, 1, 1, 1, 500), ("b", "u", 2, 501, 1, 501, 100)
    own = replace(site(log(*rows)), cluster="2x2")
    own.__dict__["explanation"] = SimpleNamespace(missing="", unsaid="", unplayed=0.0)
    assert whatif(own, {"cluster": "1x2"}).missing == ""
    monkeypatch.setattr(eligible, "WORK", 0)
    monkeypatch.setattr(eligible, "ROUNDS", 1)
    assert whatif(own, {"cluster": "1x2"}).missing.startswith("runs in which jobs start after all that they wait for")


@pytest.fixture
def site(tmp_path):
    def make(trace: pl.DataFrame) -> Site:
        trace.write_parquet(tmp_path / "log.parquet")
        (tmp_path / "site.toml").write_text('[log]\npath="log.parquet"\n[cluster]\nnodes="1x2"\n')
        return Site(str(tmp_path / "site.toml"))

    return make


def test_a_replay_and_a_what_if_keep_to_it(site):
    found = replay(site(CHAIN))
    assert found.errors(found.own)["mae"] == 0
    table = whatif(site(CHAIN), {"more": 1}).table
    assert table.filter(figure="mean wait")["before"][0] == pytest.approx(
        999 / 4
    )  # of a alone: waits count from eligibility
    assert table.filter(figure="mean wait")["after"][0] == 0
