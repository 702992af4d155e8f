"""Changed settings as lines of slurm.conf and commands of sacctmgr: what is written is read again as the same rule."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpuschedlab import Slurm
from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.files.description import Description, Limit
from gpuschedlab.papers.clusters.files.sacctmgr_files import read_qos
from gpuschedlab.papers.clusters.files.sacctmgr_lines import commands
from gpuschedlab.papers.clusters.files.slurm_lines import conf_with, unsayable
from gpuschedlab.papers.clusters.way_back import way_back
from gpuschedlab.widgets import Site
from reproduce.papers.clusters.random_settings import drawn, words

CONF = """\
# nodes of the site
NodeName=n[1-4] Gres=gpu:a100:8 CPUs=64 Features=nvlink
PartitionName=DEFAULT State=UP MaxTime=2-0   # of all
PartitionName=batch Nodes=ALL Default=YES PriorityTier=2
PartitionName=debug Nodes=n1 \\
  DefaultTime=10 AllowGroups=staff
SchedulerType=sched/backfill
SchedulerParameters=defer,bf_interval=30,bf_continue,bf_window=2880,bf_job_part_count_reserve=8,nohold_on_prolog_fail
PriorityType=priority/multifactor
PriorityWeightFairshare=10000  # as agreed in May
PriorityFlags=CALCULATE_RUNNING,DEPTH_OBLIVIOUS
PriorityDecayHalfLife=7-0
SlurmctldPort=6817
"""
OLDER = CONF.replace("PriorityType=priority/multifactor\n", "")
OLDER = OLDER.replace("PriorityFlags=CALCULATE_RUNNING,DEPTH_OBLIVIOUS", "priorityflags=NO_FAIR_TREE")


@pytest.fixture
def rule_of(tmp_path):
    """Function that reads the rule of a slurm.conf."""

    def read(text: str) -> Slurm:
        (tmp_path / "jobs.csv").write_text("job_id,submit,gpus,duration\na,0,1,60\n")
        (tmp_path / "slurm.conf").write_text(text)
        (tmp_path / "site.toml").write_text('[log]\npath = "jobs.csv"\n[slurm]\nconf = "slurm.conf"\n')
        return Site(str(tmp_path / "site.toml")).slurm

    return read


@pytest.mark.parametrize("conf", [CONF, OLDER])
def test_of_random_settings_the_printed_file_says_the_same_rule(rule_of, conf):
    """The site's other words are unchanged, and in their order."""
    was = rule_of(conf)
    dice = np.random.default_rng(0)
    for _ in range(20):
        wanted = drawn(dice, was)
        printed = conf_with(conf, was, wanted)
        assert rule_of(printed.text) == wanted
        assert words(printed.text) == words(conf)
        assert conf_with(printed.text, wanted, was).text.count("\n") == printed.text.count("\n")
        assert rule_of(conf_with(printed.text, wanted, was).text) == was  # and back


def test_lines_by_hand(rule_of):
    was = rule_of(CONF)
    wanted = replace(
        was, weight_fairshare=500.0, depth=math.inf, plan=replace(was.plan, every=45.0), relative=True, max_age=93_780.0
    )
    wanted = replace(wanted, tiers=(("batch", 2.0), ("debug", 9.0)))
    assert str(conf_with(CONF, was, wanted)).splitlines() == [
        "- PriorityWeightFairshare=10000  # as agreed in May",
        "+ PriorityWeightFairshare=500  # as agreed in May",
        "+ PriorityMaxAge=1-02:03:00",
        "- SchedulerParameters=defer,bf_interval=30,bf_continue,bf_window=2880,bf_job_part_count_reserve=8,nohold_on_prolog_fail",
        "+ SchedulerParameters=defer,bf_interval=45,bf_continue,bf_window=2880,nohold_on_prolog_fail",
        "- PriorityFlags=CALCULATE_RUNNING,DEPTH_OBLIVIOUS",
        "+ PriorityFlags=CALCULATE_RUNNING,DEPTH_OBLIVIOUS,SMALL_RELATIVE_TO_TIME",
        "-   DefaultTime=10 AllowGroups=staff",
        "+   DefaultTime=10 AllowGroups=staff PriorityTier=9",
    ]
    assert conf_with(CONF, was, was).lines == ()


def test_what_the_file_cannot_say_is_named(rule_of):
    was = rule_of(CONF)
    wanted = replace(
        was, weight_age=0.5, max_age=90.0, damping=0.5, own=False, plan=replace(was.plan, keep=False, every=0.0)
    )
    assert unsayable(was, wanted) == [
        "own: it has no key",
        "weight_age=0.5: it has whole numbers to 4294967295, the nearest is 0",
        "max_age=90: it has whole minutes, in seconds to 2147483580, the nearest is 120",
        "damping=0.5: it has whole numbers to 65535, the nearest is 1",
        "every=0: it has whole numbers to 10800, the nearest is 1",
    ]
    with pytest.raises(TraceError, match="found values that it cannot say: own: it has no key; weight_age=0.5"):
        conf_with(CONF, was, wanted)
    near = replace(was, weight_age=0.0, max_age=120.0, damping=1.0, plan=replace(was.plan, every=1.0))
    assert unsayable(was, near) == []


QOS = "Name|Priority|GrpTRES|MaxTRESPU|MaxJobsPU\nnormal|0|gres/gpu=32|gres/gpu=8|\nhigh|9||gres/gpu:a100=4|2\n"


def test_commands_by_hand():
    site = read_qos(QOS, "qos", Description())
    account = Limit("account", ("x",), gpus=16)
    site = replace(site, limits=(*site.limits, account, Limit("member", ("x/u",), jobs=2)))
    pool, each, typed, jobs, *_ = site.limits
    wanted = (
        replace(pool, gpus=40),
        typed,
        replace(jobs, jobs=3),
        replace(account, gpus=20),
        Limit("member", ("x/u",), wall=90_000),
    )
    assert commands(site, wanted) == (
        [
            "sacctmgr -i modify qos normal set GrpTRES=gres/gpu=40",
            "sacctmgr -i modify qos normal set MaxTRESPU=gres/gpu=-1",
            "sacctmgr -i modify qos high set MaxJobsPU=3",
            "sacctmgr -i modify account x set GrpTRES=gres/gpu=20",
            "sacctmgr -i modify user where name=u account=x set MaxJobs=-1",
            "sacctmgr -i modify user where name=u account=x set MaxWall=1-01:00:00",
        ],
        [],
    )
    assert commands(site, site.limits) == ([], [])
    assert each.amounts == {"gpus": 8}
    group = Limit("accounts", ("g", "h"), gpus=6)  # g and those below it
    assert commands(site, (*site.limits, group))[0] == ["sacctmgr -i modify account g set GrpTRES=gres/gpu=6"]
    assert commands(site, (*site.limits, replace(typed, gpus=6)))[0] == []  # the tighter of two is what holds
    one = replace(site, qos=(("normal", 0.0),), limits=())
    assert commands(one, (Limit("user", gpus=8),))[0] == ["sacctmgr -i modify qos normal set MaxTRESPU=gres/gpu=8"]
    assert commands(site, (*site.limits, Limit("user", gpus=8), Limit("array", jobs=2))) == (
        [],
        ["gpus of each user", "jobs of each array"],
    )


def test_a_change_in_words_of_the_command_line():
    back = way_back(Site.sample(), {"weight_age": "500", "limit.account.ml": 16, "more": 1})
    assert [new for _, new in back.conf.lines] == ["PriorityWeightAge=500", "PriorityType=priority/multifactor"]
    assert back.commands == ("sacctmgr -i modify account ml set GrpTRES=gres/gpu=16",)
    assert back.notes[0] == "more: it is no setting"
    assert "policy=Fifo: slurm.conf has Slurm's own rule alone" in way_back(Site.sample(), {"policy": "greedy"}).notes
    with pytest.raises(TraceError, match=r"found no slurm.conf; expected \[slurm\]"):
        way_back(Site("csv:nowhere.csv", "1x2"), {"more": 1})
