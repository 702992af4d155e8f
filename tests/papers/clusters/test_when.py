"""When a job will start: what is known at an instant, plays that continue it exactly, ranges that are calibrated, and clear answers."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.cli import main
from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.papers.clusters.starts.answered import (
    ENOUGH,
    OWN,
    WIDE,
    Answered,
    Calibration,
    Played,
    censored_quantiles,
)
from gpuschedlab.papers.clusters.starts.forward import Forward
from gpuschedlab.papers.clusters.starts.known_log import end_of, known_at
from gpuschedlab.papers.clusters.starts.run_times import PastRunTimes, draws, requests_of

DAY = 86_400.0


def drawn_jobs(count: int, seed: int, days: float = 3.0, gpus: int = 32) -> pl.DataFrame:
    """Jobs of six users that keep so many GPUs busy."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "job_id": [f"j{i:04d}" for i in range(count)],
            "submit": np.sort(rng.uniform(0, days * DAY, count)).round(),
            "gpus": rng.choice([1.0, 2, 4, 8, 16], count),
            "duration": rng.lognormal(8, 1, count).round() + 1,
            "user": [f"u{k}" for k in rng.integers(0, 6, count)],
            "account": ["lab"] * count,
        }
    )
    work = (frame["gpus"] * frame["duration"]).sum()
    scaled = (pl.col("duration") * 0.95 * days * DAY * gpus / work).round() + 1
    return frame.with_columns(duration=scaled, requested_time=scaled * 2, submit=pl.col("submit") - frame["submit"][0])


def logged(folder, jobs: pl.DataFrame, text: str = '[scheduler]\nbackfill = "easy"\n', nodes: str = "4x8") -> Site:
    """Site of a log; without `started`, its own rule starts the jobs."""
    folder.joinpath("site.toml").write_text(
        f'[log]\npath = "jobs.csv"\nformat = "csv"\n[cluster]\nnodes = "{nodes}"\n{text}'
    )
    path = folder / "jobs.csv"
    if "started" not in jobs.columns:
        jobs.write_csv(path)
        site = Site(str(folder / "site.toml"))
        run = site.recorded().run(site.own)
        starts = run.jobs.select("job_id", started="start")
        jobs = jobs.join(starts, on="job_id", maintain_order="left")
        place = dict(enumerate(site.recorded().played["job_id"].to_list()))
        held = run.allocations.group_by("job", maintain_order=True).agg(pl.col("node").unique().sort())
        lists = {place[job]: ",".join(f"n{node}" for node in nodes) for job, nodes in held.iter_rows()}
        jobs = jobs.with_columns(nodelist=pl.col("job_id").replace_strict(lists, default=None))
    jobs.write_csv(path)
    return Site(str(folder / "site.toml"))


@pytest.fixture(scope="module")
def busy(tmp_path_factory) -> Site:
    return logged(tmp_path_factory.mktemp("busy"), drawn_jobs(900, 3, days=9.0))


def waiting_at(site: Site, instant: float) -> list[str]:
    """Jobs that wait, by what was known."""
    return known_at(site, instant).waiting["job_id"].to_list()


def busy_instant(site: Site, first: float) -> float:
    """An instant from `first` on at which several jobs wait."""
    for instant in np.arange(first, end_of(site), 1800.0):
        if len(waiting_at(site, instant)) >= 3:
            return float(instant)
    raise AssertionError("no queue")


@pytest.mark.parametrize("tree", [False, True])
def test_a_run_continues_from_its_state_as_if_it_had_never_stopped(tree):
    """Nodes of running jobs, and what accounts had used, make the rest of a run of fair share equal, start by start."""
    jobs = drawn_jobs(300, 0)
    rows = (("lab", "", "", 1.0), *(("lab", f"u{k}", "", 1.0 + k) for k in range(6)))
    policy = lab.Slurm(tree=ShareTree(rows) if tree else None, weight_age=0, half_life=DAY)
    scenario = lab.Scenario(jobs, lab.Cluster.parse("4x8"), estimator=lab.estimators.Requested())
    run = scenario.run(policy)
    times = jobs.select("job_id").join(run.jobs.select("job_id", "start", "end"), on="job_id", maintain_order="left")
    start, end, submit, gpus = (
        frame[name].to_numpy() for frame, name in ((times, "start"), (times, "end"), (jobs, "submit"), (jobs, "gpus"))
    )
    instant = 1.5 * DAY + 0.5
    there = (submit <= instant) & (end > instant)
    runs = there & (start < instant)
    age = np.where(runs, instant - start, 0.0)
    held = run.allocations.group_by("job").agg(pl.col("node").cast(pl.Int64).unique().sort())
    nodes = dict(held.iter_rows())
    initial = jobs.select("job_id").with_columns(
        executed=age,
        attained=age * gpus,
        progress=age,
        running=pl.Series(runs),
        started=np.where(runs, start, 0.0),
        nodes=pl.Series([nodes[i] if runs[i] else [] for i in range(len(runs))], dtype=pl.List(pl.Int64)),
    )
    begun = pl.Series(start < instant)
    past = jobs.with_columns(started=start, ended=np.minimum(end, instant)).filter(begun)
    rest = scenario.replace(trace=jobs.filter(pl.Series(there | (submit > instant))))
    waits = (start > submit) & (start > instant)
    assert waits.sum() > 30

    def starts(**state) -> np.ndarray:
        simulation = rest.simulation(policy, start=instant, **state)
        found = jobs.select("job_id").join(simulation.run().jobs, on="job_id", how="left", maintain_order="left")
        return found["start"].to_numpy()[waits]

    kept = initial.filter(pl.Series(there))
    np.testing.assert_array_equal(starts(initial=kept, usage=past), start[waits])
    assert (starts(initial=kept) != start[waits]).any()
    assert (starts(initial=kept.drop("nodes"), usage=past) != start[waits]).any()


def test_with_true_run_times_and_arrivals_the_plays_are_the_log(busy):
    """If what is drawn were what came, the play would be the log itself."""
    instant = busy_instant(busy, 4 * DAY)
    known = known_at(busy, instant)
    forward = Forward(known)
    log = busy.log.trace
    true = dict(log.select("job_id", "duration").iter_rows())
    later = log.filter(pl.col("submit") > instant).select(pl.exclude("started", "nodelist"))
    forward.arrivals.coming = lambda weeks, horizon: later.with_columns(of=pl.lit("none"))
    draw = forward.drawn(1, np.random.default_rng(0))[0]
    run_times = np.array([true[job] for job in forward.queue["job_id"].to_list()])
    jobs = known.waiting["job_id"].to_list()
    plays = forward.played([type(draw)(run_times, draw.weeks)], jobs)
    started = dict(log.select("job_id", "started").iter_rows())
    expected = [started[job] - instant for job in jobs]
    np.testing.assert_allclose(plays.starts[0, forward.rows(jobs)], expected, atol=1e-6)


def test_nothing_later_than_the_instant_is_seen(busy, tmp_path):
    """Whatever a log says after the instant, the answer has the same bytes."""
    instant = busy_instant(busy, 5 * DAY)
    trace = pl.read_csv(busy.file.replace("site.toml", "jobs.csv"))
    rng = np.random.default_rng(5)
    ends = pl.col("started") + pl.col("duration")
    moved = pl.Series(rng.uniform(1, 3 * DAY, trace.height))
    changed = trace.filter((pl.col("submit") <= instant) | (pl.int_range(pl.len()) % 3 > 0)).with_columns(
        gpus=pl.when(pl.col("submit") > instant).then(1.0).otherwise("gpus"),
    )
    moved = moved.head(changed.height)
    changed = changed.with_columns(
        started=pl.when(pl.col("started") >= instant).then(pl.max_horizontal("submit", pl.lit(instant)) + moved).otherwise("started"),
        duration=pl.when(pl.col("started") >= instant).then(777.0)
        .when(ends > instant).then(instant - pl.col("started") + moved)
        .otherwise("duration"),
        nodelist=pl.when(pl.col("started") >= instant).then(pl.lit("n9")).otherwise("nodelist"),
    )  # fmt: skip
    assert not changed["started"].equals(trace["started"])
    other = logged(tmp_path, changed)
    sites = [Site(site.file) for site in (busy, other)]
    for job in ((), waiting_at(busy, instant)[-1]):
        answers = [site.when(job, instant, plays=4) for site in sites]
        texts = [f"{answer.summary()}".replace(answer.file, "") for answer in answers]
        assert texts[0] == texts[1]
        assert f"{answers[0]}" == f"{answers[1]}"


def test_same_seed_same_bytes(busy):
    instant = busy_instant(busy, 5 * DAY)
    answers = [Site(busy.file).when(at=instant, plays=2, seed=seed).table.write_json() for seed in (1, 1, 2)]
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]


def steady(count: int = 30) -> pl.DataFrame:
    """Jobs of one user that run for 100 s, an hour apart; the last runs still when two others wait."""
    submit = [3600.0 * i for i in range(count)]
    last = submit[-1]
    rows = [(f"a{i}", at, 1.0, 100.0, at) for i, at in enumerate(submit)]
    rows += [("b", last + 10, 1.0, 100.0, last + 100), ("c", last + 20, 1.0, 100.0, last + 200)]
    frame = pl.DataFrame(rows, schema=["job_id", "submit", "gpus", "duration", "started"], orient="row")
    return frame.with_columns(user=pl.lit("u"), requested_time=pl.lit(300.0))


def test_by_hand(tmp_path):
    """Every job that ended ran for 100 s: so will those that run and wait, and starts are certain."""
    site = logged(tmp_path, steady(), nodes="1x1")
    last = 29 * 3600.0
    answer = site.when(at=last + 40, plays=5)
    assert answer.table["job_id"].to_list() == ["b", "c"]
    waits = answer.table["start"].to_numpy() - last
    np.testing.assert_allclose(waits[0], 100, atol=1)
    assert 170 <= waits[1] <= 240  # b runs as long as the draw of its sweep, give or take a tenth
    assert answer.table["ahead"].to_list() == [0, 1]
    assert answer.table["waited"].to_list() == [30.0, 20.0]
    alone = site.when("b", last + 40, plays=5)
    assert alone.reasons[0] == "It asks for 1 GPU; 0 of 1 are free."
    assert "it starts as job a29 of u ends (1 GPU)" in alone.reasons[-1]
    assert "%" not in f"{alone}"  # no answered question: no per cent
    assert "Not calibrated" in alone.basis


def test_a_smaller_request_that_starts_sooner_is_named(tmp_path):
    """One of two GPUs is free: half the request starts now; a third of the time would fit before the job that is first in line."""
    jobs = steady().filter(pl.col("job_id").str.starts_with("a"))
    last = 29 * 3600.0
    rows = [("wide", last + 10, 2.0, 100.0, last + 100), ("next", last + 20, 1.0, 50.0, last + 300)]
    more = pl.DataFrame(rows, schema=jobs.columns[:5], orient="row").with_columns(
        user=pl.lit("u"), requested_time=300.0
    )
    site = logged(tmp_path, pl.concat([jobs, more], how="diagonal"), nodes="1x2")
    wide = site.when("wide", last + 30, plays=8)
    row = wide.sooner.row(0, named=True)
    assert (row["request"], row["share"]) == ("1 GPU", 1.0)
    np.testing.assert_allclose(row["sooner"], 70, atol=1)
    assert wide.requests == ["1.2 min sooner with 1 GPU: about day 2, 05:00."]
    # Promised to `wide` from a29's limit (300 s) on: what ends before it may start now.
    planned = site.when(at=last + 30, planned={"gpus": 1, "requested_time": 800.0, "user": "u"}, plays=8)
    requests = planned.sooner.filter(pl.col("share") == 1.0)["request"].to_list()
    assert requests == ["a limit of 3.3 min"]


def test_a_limit_is_named_and_kept_to(tmp_path):
    jobs = steady().with_columns(qos=pl.lit("normal"))
    site = logged(tmp_path, jobs, '[scheduler]\nbackfill = "easy"\n[[limits]]\nof = "user"\ngpus = 1\n', nodes="1x4")
    answer = site.when("b", 29 * 3600.0 + 40, plays=4)
    assert answer.reasons[0] == "It is at a limit: user u holds 1 of 1 GPUs."
    np.testing.assert_allclose(answer.table["start"][0], 29 * 3600.0 + 100, atol=1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"job": "zz"}, "found no job zz in the log; expected one of the 2 that wait: b, c."),
        ({"job": "a3"}, "found job a3, which started at 10800 s, before this instant; expected one of the 2"),
        ({"at": 29 * 3600.0 + 15, "job": "c"}, "found job c, which is submitted after this instant; expected one of the 1"),
        ({"at": 1e9}, "found the instant 1e+09 s; expected one after 0 s"),
        ({"at": "soon"}, "found at='soon'; expected seconds, a span"),
        ({"at": "2024-05-01 18:00"}, "expected seconds, as the log has no dates"),
        ({"planned": {"gpus": 9}}, "found 9 GPUs of job planned; expected at most the 1 of the cluster"),
        ({"planned": {"gpus": "eight"}}, "found gpus='eight' in a planned job; expected a value of Float64"),
        ({"planned": {"cpus": 9}}, "found cpus in a planned job; expected gpus"),
        ({"planned": {"user": "u"}}, "found no gpus in a planned job"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(tmp_path, asked, message):
    site = logged(tmp_path, steady(), nodes="1x1")
    with pytest.raises(TraceError) as error:
        site.when(**({"at": 29 * 3600.0 + 40} | asked))
    assert message in str(error.value)


def test_a_log_without_starts_is_refused(tmp_path):
    jobs = steady().drop("started")
    path = tmp_path / "jobs.csv"
    jobs.write_csv(path)
    with pytest.raises(TraceError, match="found no recorded starts"):
        Site(f"csv:{path}", "1x1").when()


SACCT = """JobID|User|Submit|Eligible|Start|End|Elapsed|Timelimit|State|AllocTRES|ReqTRES
1|ann|2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T10:10:00|00:10:00|01:00:00|COMPLETED|gres/gpu=2|gres/gpu=2
2|ann|2024-05-01T10:05:00|2024-05-01T10:05:00|2024-05-01T10:10:00|Unknown|00:20:00|01:00:00|RUNNING|gres/gpu=2|gres/gpu=2
3|bob|2024-05-01T10:06:00|2024-05-01T10:06:00|Unknown|Unknown|00:00:00|01:00:00|PENDING||gres/gpu=2
4|bob|2024-05-01T10:07:00|Unknown|Unknown|Unknown|00:00:00|01:00:00|PENDING||gres/gpu=2
5|bob|2024-05-01T10:08:00|2024-05-01T10:08:00|Unknown|2024-05-01T10:09:00|00:00:00|01:00:00|CANCELLED by 7||gres/gpu=2
6|bob|2024-05-01T10:08:00|2024-05-01T10:08:00|Unknown|Unknown|00:00:00|01:00:00|PENDING||
"""


def test_pending_jobs_of_sacct_wait_at_the_end_of_the_log(tmp_path):
    """Those that are pending are asked for; those held, without an eligible time, those without GPUs, and those cancelled are not."""
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT)
    log = lab.intake(path, zone="UTC")
    assert log.waiting["job_id"].to_list() == ["3", "4"]
    assert log.waiting["duration"].null_count() == 2
    assert log.report.counts()["never_started"] >= 3
    site = Site(f"slurm:{path}", "1x2")
    answer = site.when(plays=4)
    assert answer.table["job_id"].to_list() == ["3"]
    assert answer.date(answer.instant) == "Wed 01 May 2024 10:30"
    assert answer.table["start"][0] >= answer.instant
    assert any("1 jobs were submitted and not eligible" in note for note in answer.notes)
    with pytest.raises(TraceError, match="found job 4, which was not eligible"):
        site.when("4")


def test_the_answer_says_if_the_replay_misses_the_log(tmp_path):
    """Jobs that wait an hour for no reason that the rule knows."""
    jobs = steady(40).with_columns(started=pl.col("started") + 3600.0)
    kept = logged(tmp_path, jobs, nodes="1x1").when(at=39 * 3600.0, plays=2)
    assert "the replay misses this log: jobs waited 1.0 h on average" in kept.missed
    assert kept.missed in f"{kept}"


def test_run_times_lie_beyond_the_age_and_a_sweep_shares_them():
    rng = np.random.default_rng(2)
    ended = pl.DataFrame(
        {"job_id": [f"{i}" for i in range(200)], "submit": np.arange(200.0) * 5000, "gpus": 1.0, "user": "u"}
    ).with_columns(duration=pl.Series(rng.lognormal(7, 1, 200)), requested_time=pl.lit(20_000.0))
    past = PastRunTimes(ended.with_columns(ends=pl.col("submit") + pl.col("duration")), limited=True)
    queue = pl.DataFrame({"submit": [2e6, 2e6 + 60, 2.1e6], "gpus": 1.0, "user": "u", "requested_time": 20_000.0})
    table = draws(past, requests_of(queue, True), np.array([500.0, 0.0, 3000.0]), 4000, rng)
    assert (table > np.array([500.0, 0.0, 3000.0])[:, None]).all()
    assert table.max() <= 20_000
    together = np.corrcoef(np.log(table))
    assert together[0, 1] > 0.5
    assert abs(together[0, 2]) < 0.1
    longer = ended["duration"].filter(ended["duration"] > 3000).to_numpy()
    assert np.isin(table[2], longer).all()


def test_quantiles_without_bounds_are_those_of_the_values():
    values = np.random.default_rng(0).normal(size=99)
    levels = np.array([0.1, 0.5, 0.9])
    found = censored_quantiles(values, np.ones(99, bool), levels)
    np.testing.assert_array_equal(found, np.sort(values)[np.ceil(levels * 99).astype(int) - 1])


def test_a_calibrated_range_holds_what_it_says():
    """Ranges played three times too narrow, and answers of half of the jobs that still wait are bounds: the range still holds 80 %."""
    rng = np.random.default_rng(4)
    held = []
    for _ in range(150):

        def question(cut=np.inf):
            true = rng.normal(8, 1)
            waits = np.exp(rng.normal(true, 0.3, 40))
            wait = np.exp(true + rng.normal(0, 0.9))
            return Answered(Played(waits), min(wait, cut), bool(wait <= cut))  # fmt: skip

        calibration = Calibration(tuple(question(rng.choice([3000.0, np.inf])) for _ in range(60)))
        new = question()
        low, *_, high = calibration.quantiles(new.played)
        held.append(low <= new.wait <= high)
    assert 0.72 <= np.mean(held) <= 0.88


def test_few_answers_leave_the_range_as_played():
    waits = np.linspace(100, 1000, 40)
    few = Calibration(tuple(Answered(Played(waits), 5000.0) for _ in range(ENOUGH - 1)))
    np.testing.assert_array_equal(few.quantiles(Played(waits)), Played(waits).quantiles)
    assert not few.enough
    none = Calibration()
    assert none.factors[1] == pytest.approx(1.0, abs=2 / OWN / WIDE)


def test_command(tmp_path, capsys, monkeypatch):
    logged(tmp_path, steady(), nodes="1x1")
    monkeypatch.chdir(tmp_path)
    at = str(29 * 3600.0 + 25)
    assert main(["when", "--at", at, "--plays", "4", "--as-written"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("As of day 2, 05:00, by what the log had until then.\n")
    assert "starts about" in text
    assert main(["when", "b", "--at", at, "--plays", "4"]) == 0
    assert "Job b (1 GPU, limit 5.0 min, user u) starts about day 2, 05:01" in capsys.readouterr().out
    assert main(["when", "--planned", "gpus=1,requested_time=5:00,user=u", "--at", at, "--plays", "4", "--json"]) == 0
    assert '"planned"' in capsys.readouterr().out
    assert main(["when", "zz", "--at", at]) == 2
    assert "found no job zz in the log" in capsys.readouterr().err
    assert main(["when", "b", "--planned", "gpus=1"]) == 2
    assert "expected one of them" in capsys.readouterr().err
