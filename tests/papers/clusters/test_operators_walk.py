"""What an operator types: changes of a site's own rule, windows by dates, tables that fit on a screen."""

import math
from dataclasses import replace

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.cli import main
from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.changes import limits_in
from gpuschedlab.papers.clusters.command import changes_in
from gpuschedlab.papers.clusters.files.description import Limit
from gpuschedlab.papers.clusters.replay import replay
from gpuschedlab.papers.clusters.whatif import whatif
from gpuschedlab.policies import Fifo, Kueue, Slurm
from gpuschedlab.scenarios import recipe_of
from gpuschedlab.widgets import Explorer, Site, SiteExplorer

HEAD = "JobID|User|Account|Partition|QOS|Submit|Start|End|State|AllocTRES|Timelimit\n"
CONF = "NodeName=n[1-4] Gres=gpu:t4:4\nPartitionName=all Nodes=ALL MaxTime=1-0\nPriorityWeightQOS=700\nPriorityWeightAge=20\n"
QUEUES = "[queues.all]\nnominal={t4=4}\ncohort='c'\n[queues.rest]\nnominal={t4=12}\ncohort='c'\n"
CLUSTER = '[cluster]\nnodes="4x4:t4"\n'


@pytest.fixture
def site(tmp_path):
    """Eight jobs of a node for an hour each, two at once, four nodes of four."""
    rows = "".join(
        f"{i}|u{i % 2}|a|all|high|2025-01-01T00:0{i}:00|2025-01-01T0{i // 2 + 1}:00:00|2025-01-01T0{i // 2 + 2}:00:00|COMPLETED|"
        "gres/gpu=8|02:00:00\n"
        for i in range(8)
    )
    (tmp_path / "log.txt").write_text(HEAD + rows)
    (tmp_path / "slurm.conf").write_text(CONF)

    def make(more: str = '[slurm]\nconf="slurm.conf"\n') -> Site:
        (tmp_path / "site.toml").write_text(f'[log]\npath="log.txt"\nformat="slurm"\n{more}')
        return Site(str(tmp_path / "site.toml"))

    return make


def policy(site: Site, *words: str):
    return changes_in([*words], site)["policy"]


def test_knobs_of_the_sites_own_rule_are_changes(site):
    own = site().own
    assert policy(site(), "depth=3") == own.with_knobs(depth=3)
    assert policy(site(), "weight_age=0", "max_age=600") == own.with_knobs(weight_age=0, max_age=600)
    easy = site(f'{CLUSTER}[scheduler]\nbackfill="easy"\n')
    assert policy(easy, "depth=3") == Fifo(backfill="plan", depth=3)  # EASY has no depth
    weighed = policy(easy, "weight_age=5")
    assert isinstance(weighed, Slurm)
    assert (weighed.weight_age, weighed.weight_fairshare, weighed.backfill) == (5, 0, "easy")


def test_a_named_slurm_keeps_the_sites_weights(site):
    found = policy(site(), "policy=slurm:weight_age=5")
    assert found == site().own.with_knobs(weight_age=5)
    assert (found.weight_qos, found.weight_fairshare) == (700, 0)
    assert policy(site(CLUSTER), "policy=slurm").weight_fairshare == Slurm().weight_fairshare  # a site without weights


def test_quotas_are_changed_by_queue_and_type(site):
    own = site(CLUSTER + QUEUES)
    assert isinstance(own.own, Kueue)
    found = policy(own, "quota.all=6", "borrow.rest.t4=1", "fair=true")
    assert [(q.nominal, q.borrow) for q in found.queues] == [((("t4", 6.0),), ()), ((("t4", 12.0),), (("t4", 1.0),))]
    assert found.fair
    with pytest.raises(TraceError, match=r"found quota\.al; expected a queue of the site: all, rest"):
        policy(own, "quota.al=3")


def test_an_unknown_change_names_the_nearest(site):
    with pytest.raises(TraceError, match=r"found the change 'deth'; expected one of more, .*Did you mean depth\?"):
        changes_in(["deth=3"], site())


def test_fewer_nodes(site):
    own = site('[slurm]\nconf="slurm.conf"\n[[windows]]\nstart=0\nend=9000\nnodes="n[3-4]"\n')
    assert whatif(own, changes_in(["more=-2"], own)).table["difference"][0] > 0
    assert len(own().cluster.events) == 2
    fewer = whatif_site(own, -1)
    assert (fewer.total_nodes, [w.node for w in fewer.events]) == (3, [2])  # n4 is gone
    with pytest.raises(TraceError, match="found more = -4; expected at least -3, as its first group has 4 nodes"):
        whatif(own, {"more": -4})


def whatif_site(site: Site, more: int):
    """Cluster of a site with so many nodes more."""
    return site.with_knobs(more=more)().cluster


def test_windows_by_dates_follow_the_logs_clock(site):
    days = "[[windows]]\nstart = 2025-01-01T02:00:00\nend = '2025-01-01 03:30'\n"
    (*_, window) = site(f'[slurm]\nconf="slurm.conf"\n{days}')().cluster.events
    assert (window.start, window.end) == (7200, 12_600)  # the first job came at 00:00
    with pytest.raises(TraceError, match="expected a date such as 2025-03-10 08:00"):
        site("[[windows]]\nstart='2025-13-01'\nend=3\n").description  # noqa: B018


def test_all_that_is_printed_fits_on_a_screen_and_its_words_are_explained(site, tmp_path, capsys):
    file = site().file
    keys = (
        "SlurmctldTimeout",
        "SelectTypeParameters",
        "JobAcctGatherFrequency",
        "AccountingStorageEnforce",
        "PreemptExemptTime",
    )
    (tmp_path / "slurm.conf").write_text(CONF + "".join(f"{key}=1\n" for key in keys))
    words = ["depth=3", "weight_age=500", "weight_qos=20", "weight_size=3", "limits=20:00", "more=-1"]
    changes = [part for word in words for part in ("--change", word)]
    assert main(["replay", "--trace", file, "--by", "size", *changes]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 110
    said = " ".join(out.split())
    assert "rank: correlation of simulated with recorded waits" in said
    assert "launch (from a decision to the start in the log)" in said


def test_a_log_that_names_no_cluster_is_played_on_as_many_nodes_as_it_used(site, tmp_path):
    own = recipe_of(f"ownfile:file=slurm:{tmp_path / 'log.txt'}")
    site()
    assert str(own().cluster) == "2x8:v100"  # two jobs of eight GPUs at once
    explorer = Explorer(upload=True)
    sent = lab.intake(tmp_path / "log.txt")
    explorer.take("log.txt", sent)
    assert str(explorer.cluster_of(explorer.setting)) == "2x8:v100"
    wide = sent.trace.with_columns(nodes=pl.lit(2))
    assert str(replace(sent, trace=wide).machines) == "4x4:v100"
    (tmp_path / "jobs.csv").write_text("job_id,submit,gpus,duration\na,0,2,60\n")
    assert lab.intake(tmp_path / "jobs.csv").machines is None  # no recorded starts


QOS = "Name|Priority|GraceTime|Flags|UsageFactor|GrpTRES|MaxTRESPU|MaxJobsPU|MaxWall\n"
QOS += "normal|0|00:00:00||1.000000|cpu=100,gres/gpu=12||||\nhigh|50|00:00:00|DenyOnLimit|1.000000||gres/gpu=8|3|1-00:00:00\n"


def with_qos(tmp_path, site, more: str = "") -> Site:
    (tmp_path / "qos.txt").write_text(QOS)
    return site(f'{CLUSTER}[slurm]\nqos = "qos.txt"\n{more}')


def test_what_qos_allow_is_read_and_the_rest_listed(site, tmp_path):
    found = with_qos(tmp_path, site, '[[limits]]\nof = "account"\ngpus = 15\n').description
    assert found.qos == (("normal", 0), ("high", 50))
    assert found.limits == (
        Limit("qos", ("normal",), gpus=12),
        Limit("user", qos=("high",), gpus=8),
        Limit("user", qos=("high",), jobs=3),
        Limit("qos", ("high",), wall=86_400),
        Limit("account", gpus=15),  # limits add up
    )
    assert found.unmodelled == ("qos grptres cpu", "qos flags")


def test_limits_are_changed_and_taken_away(site, tmp_path):
    own = with_qos(tmp_path, site)
    wide = changes_in(["limit.user.high=UNLIMITED", "limit.account.a=4", "limit.user.high.jobs=5"], own)["within"]
    assert [
        (each.of, each.names, each.qos, each.gpus, each.jobs) for each in wide if min(each.gpus, each.jobs) < math.inf
    ] == [
        ("qos", ("normal",), (), 12, math.inf),
        ("account", ("a",), (), 4, math.inf),
        ("user", (), ("high",), math.inf, 5),
    ]
    with pytest.raises(
        TraceError,
        match=r"whatif limit\.team\.a: of: found 'team'; expected one of user, account, qos, vc, array, member, accounts",
    ):
        changes_in(["limit.team.a=4"], own)


def test_a_changed_limit_takes_the_place_of_that_of_its_owner_alone():
    """Of accounts that share a line the others keep it; an account that has others below it is changed with these."""
    has = pair, lab_, user = (
        Limit("account", ("x", "y"), gpus=4),
        Limit("accounts", ("g", "h"), gpus=6),
        Limit("user", ("u",), jobs=2),
    )
    assert limits_in(has, {"limit.account.x": "8"}) == (
        *(replace(pair, names=("y",)), replace(pair, names=("x",), gpus=math.inf), lab_, user),
        Limit("account", ("x",), gpus=8),
    )
    assert limits_in(has, {"limit.account.g": "9"}) == (pair, replace(lab_, gpus=math.inf), user, replace(lab_, gpus=9))
    assert limits_in(has, {"limit.account.h": "9"}) == (*has, Limit("account", ("h",), gpus=9))
    assert limits_in(has, {"limit.user.jobs": "3"}) == (*has, Limit("user", jobs=3))
    assert limits_in(has, {"limit.account.z": "UNLIMITED"}) == has


def test_a_tighter_limit_makes_jobs_wait_and_none_lets_them_go(site, tmp_path):
    own = with_qos(tmp_path, site)  # each job has 8 of 16 GPUs, each user 8 at once
    assert whatif(own, changes_in(["limit.qos.high=8"], own)).table["difference"][0] > 0
    loose = changes_in(["limit.user.high=UNLIMITED", "limit.user.high.jobs=UNLIMITED"], own)
    assert whatif(own, loose).table["difference"][0] <= 0
    kept = whatif(own, changes_in(["policy=srtf"], own))
    assert kept.missing.startswith(("limits, to which", "node lists"))


def test_a_site_under_slurms_plan_keeps_to_limits_and_is_compared_with_easy_within_them(site, tmp_path):
    (tmp_path / "qos.txt").write_text("Name|Priority|GrpTRES\nhigh|50|gres/gpu=8\n")
    found = replay(site('[slurm]\nconf="slurm.conf"\nqos="qos.txt"\n'))
    assert not [note for note in found.notes if "limits" in note]
    names = ("EASY within limits", "EASY", "as configured")
    kept, plain, own = (found.starts[name].sort().diff().drop_nulls() for name in names)
    assert kept.min() >= 3600  # one job of eight GPUs at a time
    assert own.min() >= 3600
    assert plain.min() < 3600
    assert "EASY within limits" not in replay(site()).rules


def test_a_site_with_limits_has_its_explorer(site, tmp_path):
    explorer = SiteExplorer(replay(with_qos(tmp_path, site)))
    explorer.knobs["more"].value = 0
    assert explorer.outcome.table["difference"].to_list() == [0, 0, 0]
