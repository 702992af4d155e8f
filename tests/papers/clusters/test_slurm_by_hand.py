"""Slurm by its documentation: cases worked out by hand from its pages, start by start, from a slurm.conf on.

Jobs are (name, submission, GPUs, duration, requested time, what else it says). Passes of backfill are at multiples of bf_interval (30 s).
All spans are whole minutes, so that bf_resolution counts nowhere. `right` gives starts (s).
"""

from typing import NamedTuple

import polars as pl
import pytest

from gpuschedlab.papers.clusters.playing.eligible import play
from gpuschedlab.widgets import Site

PAGES = (
    "slurm.conf",
    "Scheduling Configuration Guide",
    "Multifactor Priority Plugin",
    "Fair Tree Fairshare Algorithm",
    "Quality of Service",
    "Advanced Resource Reservation Guide",
    "Resource Limits",
    "sbatch",
)
COLUMNS = {
    "vc": pl.String,
    "qos": pl.String,
    "user": pl.String,
    "account": pl.String,
    "nice": pl.Float64,
    "nodes": pl.Float64,
}
COLUMNS |= {"gpu_types": pl.List(pl.String), "eligible": pl.Float64}


class Case(NamedTuple):
    page: str
    conf: str  # lines after that of the nodes
    jobs: tuple
    right: dict
    nodes: str = "NodeName=n1 Gres=gpu:t4:4"
    toml: str = ""
    assoc: str = ""
    qos: str = ""  # what `sacctmgr -P show qos` prints


ALL = "PartitionName=all Nodes=ALL MaxTime=7-0\n"
TWO = "NodeName=n[1-2] Gres=gpu:t4:4"
PLAN = "SchedulerParameters="
QOS = "[qos]\nhigh = 100\nnormal = 10\n"
A = ("a", 0, 3, 600, 600, {})
B = ("b", 1, 4, 600, 600, {})
"""Three of four GPUs are in use until 600; the next job needs four."""
LONG = ("a", 0, 3, 600, 3 * 86_400, {})
FULL = ("a", 0, 4, 600, 600, {"user": "u", "account": "x"})


def small(asked: int | None, ran: int = 60, **more) -> tuple:
    """A later job of one GPU."""
    return ("c", 2, 1, ran, asked, more)


HELD = "Account|User|ParentName|Share|GrpTRES|GrpJobs|MaxJobs\nroot|||1|||\n"
"""Limits of associations, as `sacctmgr -P show assoc` prints them."""


def owned(user: str, account: str) -> dict:
    """A job of a user in an account."""
    return {"user": user, "account": account}


def later(b: dict, c: dict, first: tuple = FULL, at: int = 1, gpus: tuple = (4, 4)) -> tuple:
    """A job that holds all until 600, and two that wait for it."""
    return (first, ("b", at, gpus[0], 600, 600, b), ("c", at + 1, gpus[1], 600, 600, c))


UNEQUAL = (
    ("a", 0, 3, 600, 600, {}), ("x", 0, 3, 1200, 1200, {}), ("b", 1, 4, 600, 600, {}), ("d", 2, 8, 600, 600, {"nodes": 2.0}),
    ("e", 3, 1, 1800, 1800, {}),
)  # fmt: skip
"""One GPU is free on each of two nodes, until 600 and 1,200; b needs a node, then d both; e would hold one of them until 1,830."""
USERS = "Account|User|ParentName|Share\nx|||1\nx|u||1\nx|w||1\ny|||1\ny|v||1\n"
PAST = (("a", 0, 4, 600, 600, {"user": "u", "account": "x"}), ("d", 14_400, 4, 300, 300, {"user": "v", "account": "y"}),
        ("b", 14_401, 4, 600, 600, {"user": "v", "account": "y"}), ("c", 14_402, 4, 600, 600, {"user": "u", "account": "x"}))  # fmt: skip
"""u has used 2,400 GPU-s four hours ago, v 1,200 just now."""
AGES = (
    ("a", 0, 4, 1200, 1200, {}),
    ("b", 1, 4, 600, 600, {"qos": "normal"}),
    ("c", 1100, 4, 600, 600, {"qos": "high"}),
)
WINDOW = "[[windows]]\nstart = 600\nend = 1200\n"
TYPES = "NodeName=n1 Gres=gpu:a100:4\nNodeName=n2 Gres=gpu:t4:4"
PARTS = "PartitionName=p1 Nodes=n1 MaxTime=7-0\nPartitionName=p2 Nodes=n2 MaxTime=7-0\n"
BOTH = "PartitionName=p1 Nodes=n1 MaxTime=7-0 {}\nPartitionName=p2 Nodes=n1 MaxTime=7-0 {}\n"

OF_U, OF_V = ({"user": user, "account": "x", "qos": "high"} for user in "uv")
EIGHT = '[cluster]\nnodes = "1x8:t4"\n'
SHOW = "Name|Priority|GrpTRES|MaxTRESPU|MaxTRES|MaxJobsPU|MaxTRESPA\n"
"""Of limits, which EASY keeps to."""

CASES = {
    "sched/builtin: nobody passes a job that waits": Case(
        "Scheduling Configuration Guide", ALL + "SchedulerType=sched/builtin\n", (A, B, small(60)), {"a": 0, "b": 600, "c": 1200},
    ),
    "sched/backfill: a lower job starts if it delays none above it": Case(
        "Scheduling Configuration Guide", ALL, (A, B, small(540)), {"b": 600, "c": 30},
    ),
    "one that by its limit would delay it waits, however short it is": Case(
        "Scheduling Configuration Guide", ALL, (A, B, small(600)), {"b": 600, "c": 1200},
    ),
    "bf_interval: seconds between passes": Case(
        "slurm.conf", ALL + PLAN + "bf_interval=60\n", (A, B, small(480)), {"b": 600, "c": 60},
    ),
    "bf_max_job_test: jobs looked at": Case(
        "slurm.conf", ALL + PLAN + "bf_max_job_test=1\n", (A, B, small(60)), {"b": 600, "c": 1200},
    ),
    "bf_max_job_test of two reaches the second": Case(
        "slurm.conf", ALL + PLAN + "bf_max_job_test=2\n", (A, B, small(60)), {"b": 600, "c": 30},
    ),
    "bf_window: a job that would start beyond a day is promised nothing": Case(
        "slurm.conf", ALL, (LONG, B, small(4 * 86_400)), {"b": 600, "c": 30},
    ),
    "bf_window of a week promises it": Case(
        "slurm.conf", ALL + PLAN + "bf_window=10080\n", (LONG, B, small(4 * 86_400)), {"b": 600, "c": 1200},
    ),
    "bf_min_age_reserve: no promise to a job that waits for less": Case(
        "slurm.conf", ALL + PLAN + "bf_min_age_reserve=300\n", (A, B, small(900)), {"b": 600, "c": 30},
    ),
    "without bf_job_part_count_reserve all jobs are promised a start": Case(
        "slurm.conf", ALL, UNEQUAL, {"b": 600, "d": 1200, "e": 1800}, TWO,
    ),
    "bf_job_part_count_reserve=1: the first alone": Case(
        "slurm.conf", ALL + PLAN + "bf_job_part_count_reserve=1\n", UNEQUAL, {"b": 600, "d": 1830, "e": 30}, TWO,
    ),
    "without weights jobs go as they come": Case("Multifactor Priority Plugin", ALL, later({}, {}), {"b": 600, "c": 1200}),
    "age: whoever waits longer": Case(
        "Multifactor Priority Plugin", ALL + "PriorityWeightAge=1000\n", later({}, {}), {"b": 600, "c": 1200},
    ),
    "QOS: the higher priority": Case(
        "Quality of Service", ALL + "PriorityWeightQOS=1000\n", later({"qos": "normal"}, {"qos": "high"}), {"c": 600, "b": 1200}, toml=QOS,
    ),
    "priority/basic: whatever is weighed": Case(
        "slurm.conf", ALL + "PriorityType=priority/basic\nPriorityWeightQOS=1000\n",
        later({"qos": "normal"}, {"qos": "high"}), {"b": 600, "c": 1200}, toml=QOS,
    ),
    "PriorityJobFactor: the higher partition": Case(
        "slurm.conf", BOTH.format("PriorityJobFactor=5", "PriorityJobFactor=10") + "PriorityWeightPartition=1000\n",
        later({"vc": "p1"}, {"vc": "p2"}), {"c": 600, "b": 1200},
    ),
    "factors are weighed: 1,000 x .1 + 500 x 1 against 1,000 x 1 + 500 x .5": Case(
        "Multifactor Priority Plugin",
        BOTH.format("PriorityJobFactor=10", "PriorityJobFactor=5") + "PriorityWeightPartition=500\nPriorityWeightQOS=1000\n",
        later({"vc": "p1", "qos": "normal"}, {"vc": "p2", "qos": "high"}), {"c": 600, "b": 1200}, toml=QOS,
    ),
    "and the other way: 1,000 x .1 + 2,000 x 1 against 1,000 x 1 + 2,000 x .5": Case(
        "Multifactor Priority Plugin",
        BOTH.format("PriorityJobFactor=10", "PriorityJobFactor=5") + "PriorityWeightPartition=2000\nPriorityWeightQOS=1000\n",
        later({"vc": "p1", "qos": "normal"}, {"vc": "p2", "qos": "high"}), {"b": 600, "c": 1200}, toml=QOS,
    ),
    "job size: the larger": Case(
        "Multifactor Priority Plugin", ALL + "PriorityWeightJobSize=1000\n", later({}, {}, gpus=(2, 4)), {"c": 600, "b": 1200},
    ),
    "PriorityFavorSmall: the smaller": Case(
        "slurm.conf", ALL + "PriorityWeightJobSize=1000\nPriorityFavorSmall=YES\n", later({}, {}, gpus=(4, 2)), {"c": 600, "b": 1200},
    ),
    "PriorityMaxAge: after ten minutes age counts in full, 1,050 against 666": Case(
        "slurm.conf", ALL + "PriorityWeightAge=1000\nPriorityWeightQOS=500\nPriorityMaxAge=10\n", AGES, {"b": 1200, "c": 1800}, toml=QOS,
    ),
    "PriorityMaxAge of a day: 64 against 501": Case(
        "slurm.conf", ALL + "PriorityWeightAge=1000\nPriorityWeightQOS=500\nPriorityMaxAge=1-0\n", AGES, {"c": 1200, "b": 1800}, toml=QOS,
    ),
    "nice: is taken off": Case(
        "sbatch", ALL + "PriorityWeightQOS=1000\n", later({"qos": "high", "nice": 100.0}, {"qos": "high"}), {"c": 600, "b": 1200}, toml=QOS,
    ),
    "fair share: whoever has used less": Case(
        "Multifactor Priority Plugin", ALL + "PriorityWeightFairshare=1000\n",
        later({"user": "u", "account": "x"}, {"user": "v", "account": "y"}), {"c": 600, "b": 1200}, assoc=USERS,
    ),
    "the classic algorithm, too": Case(
        "slurm.conf", ALL + "PriorityWeightFairshare=1000\nPriorityFlags=NO_FAIR_TREE\n",
        later({"user": "u", "account": "x"}, {"user": "v", "account": "y"}), {"c": 600, "b": 1200}, assoc=USERS,
    ),
    "Fair Tree: users of the account that has used less, before one who has used nothing": Case(
        "Fair Tree Fairshare Algorithm", ALL + "PriorityWeightFairshare=1000\n",
        (("a", 0, 7, 600, 600, {"user": "u", "account": "x"}), ("d", 0, 1, 600, 600, {"user": "v", "account": "y"}),
         ("b", 1, 8, 600, 600, {"user": "w", "account": "x"}), ("c", 2, 8, 600, 600, {"user": "v", "account": "y"})),
        {"c": 600, "b": 1200}, "NodeName=n1 Gres=gpu:t4:8", assoc=USERS,
    ),
    "PriorityDecayHalfLife of an hour: 2,400 GPU-s are 160 after four": Case(
        "slurm.conf", ALL + "PriorityWeightFairshare=1000\nPriorityDecayHalfLife=1:00:00\n", PAST, {"c": 14_700, "b": 15_300}, assoc=USERS,
    ),
    "PriorityDecayHalfLife of 0: nothing is forgotten": Case(
        "slurm.conf", ALL + "PriorityWeightFairshare=1000\nPriorityDecayHalfLife=0\n", PAST, {"b": 14_700, "c": 15_300}, assoc=USERS,
    ),
    "PriorityTier: before any priority": Case(
        "slurm.conf", BOTH.format("PriorityTier=1", "PriorityTier=10") + "PriorityWeightQOS=1000\n",
        later({"vc": "p1", "qos": "high"}, {"vc": "p2", "qos": "normal"}), {"c": 600, "b": 1200}, toml=QOS,
    ),
    "a job that waits in a partition holds up none of another's nodes": Case(
        "Scheduling Configuration Guide", PARTS + "SchedulerType=sched/builtin\n",
        (("a", 0, 3, 600, 600, {"vc": "p1"}), ("b", 1, 4, 600, 600, {"vc": "p1"}), ("c", 2, 4, 60, 60, {"vc": "p2"})),
        {"b": 600, "c": 2}, TWO,
    ),
    "DefaultTime: the limit of a job that gives none": Case(
        "slurm.conf", "PartitionName=all Nodes=ALL MaxTime=20 DefaultTime=5\n", (A, B, small(None)), {"b": 600, "c": 30},
    ),
    "otherwise MaxTime": Case("slurm.conf", "PartitionName=all Nodes=ALL MaxTime=20\n", (A, B, small(None)), {"b": 600, "c": 1200}),
    "a reservation for maintenance: nobody starts who would run into it": Case(
        "Advanced Resource Reservation Guide", ALL, (("c", 0, 1, 60, 900, {}),), {"c": 1200}, toml=WINDOW,
    ),
    "whoever ends before it starts": Case(
        "Advanced Resource Reservation Guide", ALL, (("c", 0, 1, 60, 600, {}),), {"c": 0}, toml=WINDOW,
    ),
    "--nodes: GPUs on each of two nodes": Case("sbatch", ALL, (A, ("b", 1, 4, 60, 60, {"nodes": 2.0})), {"b": 600}, TWO),
    "without it one node will do": Case("sbatch", ALL, (A, ("b", 1, 4, 60, 60, {})), {"b": 1}, TWO),
    "--gres=gpu:TYPE: on no other": Case(
        "sbatch", ALL + "SchedulerType=sched/builtin\n",
        (("a", 0, 3, 600, 600, {"gpu_types": ["a100"]}), ("b", 1, 4, 60, 60, {"gpu_types": ["t4"]}),
         ("c", 2, 2, 60, 60, {"gpu_types": ["a100"]})),
        {"b": 1, "c": 600}, TYPES,
    ),
    "--begin: is not eligible before": Case(
        "sbatch", ALL, (("c", 0, 1, 60, 60, {"eligible": 3600.0}), ("d", 5, 4, 60, 60, {})), {"c": 3600, "d": 5},
    ),
    "MaxTRESPU: GPUs of each user in a QOS; whoever is at it holds up no other": Case(
        "Resource Limits", "", (("a", 0, 4, 600, 600, OF_U), ("b", 1, 2, 60, 60, OF_U), ("c", 2, 2, 60, 60, OF_V)),
        {"a": 0, "b": 600, "c": 2}, EIGHT, qos=SHOW + "high|10||gres/gpu=4|||\n",
    ),
    "a limit of one QOS says nothing of another": Case(
        "Resource Limits", "", (("a", 0, 4, 600, 600, OF_U), ("b", 1, 2, 60, 60, OF_U | {"qos": "normal"}), ("c", 2, 2, 60, 60, OF_V)),
        {"b": 1, "c": 2}, EIGHT, qos=SHOW + "high|10||gres/gpu=4|||\nnormal|5|||||\n",
    ),
    "MaxJobsPU: jobs of each user": Case(
        "Resource Limits", "", (("a", 0, 1, 600, 600, OF_U), ("b", 1, 1, 60, 60, OF_U), ("c", 2, 1, 60, 60, OF_V)),
        {"a": 0, "b": 600, "c": 2}, EIGHT, qos=SHOW + "high|10||||1|\n",
    ),
    "GrpTRES: GPUs of all jobs of a QOS": Case(
        "Resource Limits", "", (("a", 0, 4, 600, 600, OF_U), ("b", 1, 2, 60, 60, OF_V), ("c", 2, 2, 60, 60, OF_V | {"qos": "normal"})),
        {"a": 0, "b": 600, "c": 2}, EIGHT, qos=SHOW + "high|10|gres/gpu=4||||\nnormal|5|||||\n",
    ),
    "GrpJobs: all jobs of a QOS": Case(
        "Resource Limits", "", (("a", 0, 1, 600, 600, OF_U), ("b", 1, 1, 60, 60, OF_V)), {"a": 0, "b": 600}, EIGHT,
        qos=SHOW.replace("MaxTRESPA", "GrpJobs") + "high|10|||||1\n",
    ),
    "MaxTRESPA: GPUs of each account": Case(
        "Resource Limits", "",
        (("a", 0, 4, 600, 600, OF_U), ("b", 1, 2, 60, 60, OF_U | {"user": "w"}), ("c", 2, 2, 60, 60, OF_V | {"account": "y"})),
        {"a": 0, "b": 600, "c": 2}, EIGHT, qos=SHOW + "high|10|||||gres/gpu=4\n",
    ),
    "GrpTRES of an account: it and the accounts below it together": Case(
        "Resource Limits", "",
        (("a", 0, 4, 600, 600, owned("u", "lab")), ("b", 1, 3, 60, 60, owned("v", "lab-a")), ("c", 2, 2, 60, 60, owned("v", "lab-a")),
         ("d", 3, 2, 60, 60, owned("w", "other"))),
        {"a": 0, "b": 600, "c": 2, "d": 3}, EIGHT,
        assoc=HELD + "lab||root|1|gres/gpu=6||\nlab|u||1|||\nlab-a||lab|1|||\nother||root|1|||\n",
    ),
    "GrpTRES of two accounts: each its own": Case(
        "Resource Limits", "",
        (("a", 0, 4, 600, 600, owned("u", "x")), ("b", 1, 1, 60, 60, owned("v", "x")), ("c", 2, 4, 60, 60, owned("w", "y"))),
        {"a": 0, "b": 600, "c": 2}, EIGHT, assoc=HELD + "x||root|1|gres/gpu=4||\ny||root|1|gres/gpu=4||\n",
    ),
    "GrpJobs of an account": Case(
        "Resource Limits", "",
        (("a", 0, 1, 600, 600, owned("u", "x")), ("b", 1, 1, 60, 60, owned("v", "x")), ("c", 2, 1, 60, 60, owned("u", "y"))),
        {"a": 0, "b": 600, "c": 2}, EIGHT, assoc=HELD + "x||root|1||1|\nx|u||1|||\nx|v||1|||\ny||root|1|||\n",
    ),
    "MaxJobs of a user's association: his jobs in another account do not count": Case(
        "Resource Limits", "",
        (("a", 0, 1, 600, 600, owned("u", "x")), ("b", 1, 1, 60, 60, owned("u", "x")), ("c", 2, 1, 60, 60, owned("u", "y")),
         ("d", 3, 1, 60, 60, owned("v", "x"))),
        {"a": 0, "b": 600, "c": 2, "d": 3}, EIGHT, assoc=HELD + "x||root|1|||\nx|u||1|||1\nx|v||1|||\ny||root|1|||\ny|u||1|||\n",
    ),
    "MaxJobs of an account: that of each of its users who has none": Case(
        "Resource Limits", "",
        (("a", 0, 1, 600, 600, owned("u", "x")), ("b", 1, 1, 60, 60, owned("u", "x")), ("c", 2, 1, 60, 60, owned("v", "x")),
         ("d", 3, 1, 600, 600, owned("v", "x")), ("e", 4, 1, 60, 60, owned("v", "x"))),
        {"a": 0, "b": 600, "c": 2, "d": 3, "e": 62}, EIGHT, assoc=HELD + "x||root|1|||1\nx|u||1|||\nx|v||1|||2\n",
    ),
    "GrpTRES of a user's association": Case(
        "Resource Limits", "",
        (("a", 0, 2, 600, 600, owned("u", "x")), ("b", 1, 1, 60, 60, owned("u", "x")), ("c", 2, 4, 60, 60, owned("v", "x"))),
        {"a": 0, "b": 600, "c": 2}, EIGHT, assoc=HELD + "x||root|1|||\nx|u||1|gres/gpu=2||\nx|v||1|||\n",
    ),
    "a limit of the QOS takes the place of the association's": Case(
        "Resource Limits", "", (("a", 0, 4, 600, 600, OF_U), ("b", 1, 2, 60, 60, OF_U), ("c", 2, 1, 60, 60, OF_U | {"qos": "normal"}),
         ("d", 3, 2, 600, 600, OF_U | {"qos": "normal"})),
        {"a": 0, "b": 1, "c": 2, "d": 62}, EIGHT, assoc=HELD + "x||root|1|gres/gpu=2||\n",
        qos=SHOW + "high|10|gres/gpu=6||||\nnormal|5|||||\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_starts_are_those_of_the_documentation(tmp_path, name):
    case = CASES[name]
    assert case.page in PAGES
    shared = {"vc": "p1" if "=p1 " in case.conf else "all"}
    rows = [
        dict(zip(("job_id", "submit", "gpus", "duration", "requested_time"), job)) | shared | job[5]
        for job in case.jobs
    ]
    said = {name: kind for name, kind in COLUMNS.items() if any(name in row for row in rows)}
    schema = dict.fromkeys(("submit", "gpus", "duration", "requested_time"), pl.Float64) | said
    pl.DataFrame(rows, schema={"job_id": pl.String} | schema, strict=False).write_parquet(tmp_path / "log.parquet")
    (tmp_path / "slurm.conf").write_text(f"{case.nodes}\n{case.conf}")
    (tmp_path / "assoc.txt").write_text(case.assoc)
    (tmp_path / "qos.txt").write_text(case.qos)
    named = {
        "conf": "slurm.conf" * bool(case.conf),
        "assoc": "assoc.txt" * bool(case.assoc),
        "qos": "qos.txt" * bool(case.qos),
    }
    files = "".join(f'{key} = "{name}"\n' for key, name in named.items() if name)
    rest = case.toml or case.nodes * (not case.conf)
    (tmp_path / "site.toml").write_text(f'[log]\npath = "log.parquet"\n[slurm]\n{files}{rest}')
    site = Site(str(tmp_path / "site.toml"))
    starts = dict(play(site(), site.own).jobs.select("job_id", "start").iter_rows())
    assert {job: starts[job] for job in case.right} == case.right
