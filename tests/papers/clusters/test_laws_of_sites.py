"""Laws of shares, quotas and sites: whose share is less used goes first, no queue exceeds its quota, lines of slurm.conf by hand."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Kueue, Outage, Scenario, Slurm
from gpuschedlab.cli import main
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters import metrics, replay
from gpuschedlab.papers.clusters.files import description, kueue_files, slurm_files, toml_file
from gpuschedlab.papers.clusters.queues import Queue, most
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.papers.clusters.schedulers.priority import size_factor
from gpuschedlab.papers.clusters.standing import standing
from gpuschedlab.papers.clusters.whatif import whatif
from papers.clusters.test_site_files import ASSOC, CONF, JOBS, QUEUES, TOML

EMPTY = description.Description()


@pytest.fixture
def folder(tmp_path):
    """A site with every file, and a log with starts."""
    texts = {"jobs.csv": JOBS, "slurm.conf": CONF, "assoc.txt": ASSOC, "queues.yaml": QUEUES, "site.toml": TOML}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


# --- lines of files


def scheduler_with(old: str, new: str):
    """Settings of the scheduler by a slurm.conf with one line changed."""
    assert old in CONF
    return slurm_files.read_conf(CONF.replace(old, new), "c", EMPTY).scheduler


PARAMETERS = (
    "SchedulerParameters=bf_interval=60,bf_window=2880,bf_max_job_test=1000,bf_job_part_count_reserve=0,bf_continue"
)


@pytest.mark.parametrize(
    ("old", "new", "setting", "value"),
    [
        ("SCHEDULERTYPE=sched/backfill", "SchedulerType=sched/builtin", "backfill", "none"),
        ("PriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS", "PriorityFlags=ACCRUE_ALWAYS", "fairshare", "tree"),
        ("PriorityDecayHalfLife=14-0", "PriorityDecayHalfLife=7-0", "half_life", 7 * 86400),
        ("OverTimeLimit=5", "OverTimeLimit=UNLIMITED", "over", np.inf),
        ("OverTimeLimit=5", "OverTimeLimit=7", "over", 420),
        (PARAMETERS, "SchedulerParameters=bf_interval=30", "every", 30),
        (PARAMETERS, "SchedulerParameters=bf_window=60", "window", 3600),
        (PARAMETERS, "SchedulerParameters=bf_resolution=600", "resolution", 600),
        (PARAMETERS, "SchedulerParameters=bf_max_job_test=9", "tested", 9),
    ],
)
def test_a_line_of_slurm_conf_by_hand(old, new, setting, value):
    assert getattr(scheduler_with(old, old), setting) != value
    assert getattr(scheduler_with(old, new), setting) == value


def test_a_site_has_the_lines_of_all_its_files(folder):
    site = toml_file.read_site(folder / "site.toml")
    assert site.scheduler.backfill == "greedy", "the site's own words come before those of slurm.conf"
    assert site.scheduler.weights.qos == 7
    assert site.scheduler.weights.fairshare == 10_000
    assert [name for name, *_ in site.nodes] == ["gpu01", "gpu02", "gpu03", "gpu08", "old1", "old2"]
    assert dict(site.qos) == {"normal": 0, "high": 10}
    assert [description.seconds(value, "s") for value in (5, "2 h", "1-00:00:00")] == [300, 7200, 86400], (
        "a number alone is minutes"
    )
    assert [kueue_files.quantity(value) for value in (5, "9", "500m", "2k")] == [5, 9, 0.5, 2000]
    assert [slurm_files.yes(text, "w") for text in ("YES", "0")] == [True, False]
    (partition,) = (part for part in site.partitions if part.name == "all")
    assert partition.max_time == np.inf, "a partition without a limit has none"


def read_toml(folder, text):
    (folder / "odd.toml").write_text(text)
    return toml_file.read_site(folder / "odd.toml")


REFUSED = [
    (
        lambda _: slurm_files.read_conf(CONF.replace("MaxTime=1-00:00:00", "MaxTime=soon"), "c", EMPTY),
        "line 21 maxtime: found 'soon'",
    ),
    (
        lambda _: slurm_files.read_conf(CONF.replace("gpu[01-03,08] Pri", "gpu[01-9x] Pri"), "c", EMPTY),
        r"found 'gpu\[01-9x\]'",
    ),
    (
        lambda _: slurm_files.read_conf(CONF.replace("priorityweightage=1000", "priorityweightage=many"), "c", EMPTY),
        "many",
    ),
    (lambda _: slurm_files.number("x", "w"), "x"),
    (lambda _: kueue_files.read_queues(QUEUES.replace("Any", "Some"), "q", EMPTY), "Some"),
    (lambda _: kueue_files.read_queues(QUEUES.replace('"9"', '"9z"'), "q", EMPTY), "9z"),
    (lambda _: kueue_files.read_queues("a: [", "q", EMPTY), "q"),
    (lambda folder: read_toml(folder, TOML.replace("launch", "start")), "start"),
    (lambda folder: read_toml(folder, TOML + "[what]\n"), "what"),
    (lambda folder: read_toml(folder, "x ="), "odd.toml"),
]
"""Files that are refused, and a word of the refusal."""


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_what_was_found(folder, call, words):
    with pytest.raises(LabError, match=words):
        call(folder)


# --- shares, sizes, quotas


def tree_of(seed: int) -> ShareTree:
    draw = np.random.default_rng(seed)
    rows = []
    accounts = ["root"]
    for i in range(draw.integers(2, 6)):
        rows.append((f"a{i}", "", accounts[draw.integers(len(accounts))], float(draw.integers(0, 4))))
        accounts.append(f"a{i}")
    rows += [(accounts[draw.integers(len(accounts))], f"u{i}", "", float(draw.integers(0, 3))) for i in range(8)]
    return ShareTree(rows)


@pytest.mark.parametrize("rule", ["tree", "classic"])
@pytest.mark.parametrize("seed", range(8))
def test_who_uses_more_is_not_served_sooner(seed, rule):
    tree = tree_of(seed)
    usage = np.random.default_rng(seed).integers(0, 9, 8).astype(float)
    factors = tree.factors(usage, rule)
    assert ((factors >= 0) & (factors <= 1)).all()
    assert tree.factors(7 * usage, rule) == pytest.approx(factors), "only shares of the usage count"
    for user in range(8):
        more = usage.copy()
        more[user] += 5.0
        assert tree.factors(more, rule)[user] <= factors[user] + 1e-12
    used = {(account, user, account): amount for (account, user), amount in zip(tree.users, usage, strict=True)}

    def usage_of(row) -> float:
        account, user = row[:2]
        if user:
            return used[account, user, account]
        return sum(usage_of(other) for other in tree.rows if other[2] == account)

    for row, level in zip(tree.rows, tree.levels(usage), strict=True):
        siblings = [other for other in tree.rows if other[2] == row[2]]
        share = row[3] / sum(other[3] for other in siblings) if row[3] else 0.0
        part = usage_of(row) / max(sum(map(usage_of, siblings)), 1e-12)
        assert level == pytest.approx(share / part if part else (np.inf if share else 0.0))


def test_the_damping_factor_weakens_what_was_used():
    tree = tree_of(0)
    usage = np.arange(8.0)
    positive = tree.factors(usage, "classic") > 0
    assert (tree.factors(usage, "classic", 3.0)[positive] >= tree.factors(usage, "classic")[positive]).all()


def test_factors_of_size_by_hand():
    nodes, gpus = np.array([1, 2, 4]), np.array([1.0, 8, 16])
    assert size_factor(nodes, gpus, 8, 32) == pytest.approx((nodes / 8 + gpus / 32) / 2)
    assert size_factor(nodes, gpus, 8, 32, small=True) == pytest.approx(1 - (nodes / 8 + gpus / 32) / 2)
    limits = np.array([60.0, 600, 6000])
    assert size_factor(nodes, gpus, 8, 32, limits) == pytest.approx(np.maximum(nodes / 8, gpus / 32) / (limits / 60))


def test_quotas_by_hand():
    queues = (
        Queue("a", "all", (("x", 4), ("y", 2)), (("x", 1),)),
        Queue("b", "all", (("x", 3),), (), (("x", 1),), True, "Never", "LowerPriority"),
    )
    assert queues[0].quota("x") == (4, 1, 4)
    assert queues[1].quota("x") == (3, np.inf, 1)
    assert queues[1].quota("y") == (0, np.inf, 0)
    assert [most(queues, name, "x") for name in "ab"] == [5, 7], "a borrows 1 at most, b the 4 of a"


def scenario(seed: int) -> Scenario:
    """Jobs with users, queues, priorities and limits on two types of nodes."""
    rng = np.random.default_rng(seed)
    n = 30
    duration = np.ceil(rng.lognormal(6.5, 1, n))
    user = rng.integers(0, 4, n)
    trace = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(n)],
            "submit": np.floor(np.sort(rng.uniform(0, 6000, n))),
            "gpus": rng.choice([0.5, 1.0, 2.0, 4.0, 8.0], n),
            "duration": duration,
            "requested_time": np.ceil(duration * rng.uniform(1, 3, n)),
            "user": [f"u{u}" for u in user],
            "account": [f"a{u % 2}" for u in user],
            "vc": [("all", "own")[u % 2] for u in user],
            "qos": [("low", "high")[u // 2] for u in user],
        }
    )
    cluster = Cluster(Cluster.parse("2x8:a100,2x4:v100").groups, (Outage(1, 2000.0, 2600.0), Outage(3, 500.0, 900.0)))
    return Scenario(trace, cluster, estimator=Requested(), until=60_000.0)


def usage_of_queues(run, kinds: list[str]) -> pl.DataFrame:
    """GPUs that each queue holds of each type, from each start on."""
    held = run.allocations.with_columns(
        vc=pl.Series(run.jobs["vc"].gather(run.allocations["job"].to_list())),
        kind=pl.Series([kinds[node] for node in run.allocations["node"]]),
    )
    rows = []
    for at in held["start"].unique().sort():
        now = held.filter((pl.col("start") <= at) & (pl.col("end") > at))
        rows.append(now.group_by("vc", "kind").agg(pl.col("gpus").sum()).with_columns(at=pl.lit(at)))
    return pl.concat(rows)


@pytest.mark.parametrize("reclaim", ["Never", "LowerPriority", "Any"])
@pytest.mark.parametrize("within", ["Never", "LowerPriority", "LowerOrNewerEqualPriority"])
def test_no_queue_of_kueue_exceeds_its_quota(reclaim, within):
    queues = (
        Queue("all", "team", (("a100", 10), ("v100", 2)), (("a100", 4),), (), within == "Never", reclaim, within),
        Queue("own", "team", (("a100", 6), ("v100", 6)), (), (("v100", 2),), False, reclaim, within),
    )
    kinds = ["a100", "a100", "v100", "v100"]
    run = scenario(3).run(Kueue(queues, priorities=(("u0", 2.0), ("u3", 1.0))))
    used = usage_of_queues(run, kinds)
    for queue in queues:
        for kind in ("a100", "v100"):
            own = used.filter((pl.col("vc") == queue.name) & (pl.col("kind") == kind))["gpus"]
            assert own.max() is None or own.max() <= most(queues, queue.name, kind) + 1e-9
    cohort = used.group_by("at", "kind").agg(pl.col("gpus").sum())
    nominal = {"a100": 16.0, "v100": 8.0}
    assert all(gpus <= nominal[kind] + 1e-9 for _, kind, gpus in cohort.rows())
    evicted = run.jobs["preemptions"].sum()
    assert evicted == 0 or (reclaim, within) != ("Never", "Never")


def test_a_tier_of_slurm_waits_less_if_it_is_higher():
    """The same queue of jobs, whose partition is once in the higher tier and once in the lower."""
    waits = {}
    for tiers in ((("own", 2.0),), (("all", 2.0),)):
        runs = [scenario(seed).run(Slurm(half_life=3600.0, tiers=tiers)) for seed in range(6)]
        jobs = pl.concat([run.jobs.select("vc", "queueing") for run in runs])
        waits[tiers[0][0]] = dict(jobs.group_by("vc").agg(pl.col("queueing").mean()).rows())
    assert waits["own"]["own"] < waits["all"]["own"]
    assert waits["all"]["all"] < waits["own"]["all"]


# --- sites


@pytest.fixture(scope="module")
def replayed():
    return replay.replay(Site.sample())


def test_more_nodes_of_a_site_are_more_nodes(folder):
    sample = Site.sample()
    assert sample.with_knobs(more=3)().cluster.total_gpus > sample().cluster.total_gpus
    site = Site(str(folder / "site.toml"))
    assert site().trace["job_id"].to_list() == ["a", "b", "c", "d"]
    assert site.launch == 2.0, "the launch of site.toml"


@pytest.mark.parametrize("group", ["size", "vc", "account", "hour", "weekday", "quarter"])
def test_groups_of_a_replay_hold_each_job_once(replayed, group):
    table = replayed.by(group)
    assert table["jobs"].sum() == replayed.starts.filter(pl.col("started").is_not_nan()).height


def test_more_nodes_shorten_the_mean_wait_and_the_sites_own_rule_changes_nothing(replayed):
    more = whatif(Site.sample(), {"more": 2}, calibration=replayed).summary()
    same = whatif(Site.sample(), {"policy": Site.sample().own}, calibration=replayed).summary()
    assert more["mean wait"] < 0
    assert more["waited over an hour"] < 0
    assert set(same.values()) == {0.0}


def test_errors_of_starts_by_hand():
    found = metrics.start_errors(np.zeros(4), [0.0, 10, 20, np.nan], [5.0, 10, 80, 9])
    assert found["jobs"] == 3
    assert found["bias"] == pytest.approx(65 / 3)
    assert found["mae"] == pytest.approx(65 / 3)
    assert found["median"] == 5
    assert found["within_10"] == pytest.approx(2 / 3)
    assert found["within_60"] == 1
    assert found["rank"] == 1
    assert (found["recorded"], found["simulated"]) == (10, pytest.approx(95 / 3))


def test_standing_ranks_every_user_by_the_level_of_its_account():
    table = standing(Site.sample())
    assert set(table["user"]) == set(Site.sample()().trace["user"])
    assert sorted(table["fairshare"]) == pytest.approx([(rank + 1) / table.height for rank in range(table.height)])
    for _, own in table.group_by("account"):
        assert own.sort("fairshare")["level"].is_sorted(), (
            "within an account those who used less of their share come first"
        )


def test_the_command_replays_a_site_and_names_a_missing_one(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    started = (
        JOBS.replace("vc\n", "vc,started\n")
        .replace("long\n", "long,5\n")
        .replace("all\n", "all,9\n")
        .replace("none\n", "none,12\n")
    )
    (folder / "jobs.csv").write_text(started)
    assert main(["replay", "--trace", "site.toml"]) == 0
    assert "4" in capsys.readouterr().out
    assert main(["replay", "--trace", "site.toml", "--change", "more=1"]) == 0
    capsys.readouterr()
    assert main(["replay", "--trace", "nowhere.toml"]) != 0
    assert "nowhere.toml" in capsys.readouterr().err
    with pytest.raises(TraceError, match="nowhere"):
        toml_file.read_site(folder / "nowhere.toml")
