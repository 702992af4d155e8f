"""Sites from their own files: TOML, lines of slurm.conf, `sacctmgr -P show assoc`, ClusterQueues in YAML."""

import random

import pytest

import gpuschedlab as lab
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.papers.clusters.files.description import Description, Limit
from gpuschedlab.papers.clusters.files.kueue_files import read_queues
from gpuschedlab.papers.clusters.files.sacctmgr_files import read_assoc
from gpuschedlab.papers.clusters.files.slurm_files import read_conf
from gpuschedlab.papers.clusters.files.toml_file import read_site
from gpuschedlab.papers.clusters.queues import Queue, most
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.traces.logs.hosts import hosts

CONF = """\
# somebody's
ClusterName=tiny   # a comment
include /etc/slurm/more.conf
SCHEDULERTYPE=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=2880,bf_max_job_test=1000,bf_job_part_count_reserve=0,bf_continue
PriorityType=priority/multifactor
PriorityDecayHalfLife=14-0
priorityweightage=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize = 500
PriorityMaxAge=3-0
PriorityFavorSmall=YES
PriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS
OverTimeLimit=5
NodeName=DEFAULT CPUs=64 RealMemory=512000
NodeName=login,cpu[1-2] State=UNKNOWN
NodeName=gpu[01-03,08] Gres=gpu:a100:8(S:0-1) \\
    Feature="big memory"
NodeName=old[1-2] gres=gpu:v100:4,craynetwork:4
PartitionName=DEFAULT MaxTime=1-00:00:00 State=UP
PartitionName=long Nodes=gpu[01-03,08] PriorityTier=2 PriorityJobFactor=10 DefaultTime=60
PartitionName=all Nodes=ALL MaxTime=UNLIMITED Default=YES
"""
ASSOC = """\
Cluster|Account|User|Partition|Share|Priority|GrpTRES|QOS|ParentName
tiny|root|||1||||
tiny|root|root||1||||root
tiny|ml|||60||gres/gpu=16|normal|root
tiny|ml|ann||1|||normal|
tiny|vision|||3||||ml
tiny|vision|bob||parent||||
"""
QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a}
spec:
  cohort: team
  queueingStrategy: StrictFIFO
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 7}}
  fairSharing: {weight: "3"}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: t4
      resources:
      - {name: cpu, nominalQuota: 40}
      - {name: nvidia.com/gpu, nominalQuota: "9", borrowingLimit: 1}
---
kind: LocalQueue
metadata: {name: mine}
---
kind: ClusterQueue
metadata: {name: b}
spec:
  cohort: team
  resourceGroups:
  - flavors: [{name: t4, resources: [{name: nvidia.com/gpu, nominalQuota: 12}]}]
"""
JOBS = (
    "job_id,submit,gpus,duration,requested_time,vc\na,0,8,60,100,long\nb,1,8,60,,long\nc,2,1,30,,all\nd,3,1,5,50,none\n"
)
TOML = """\
[log]
path = "jobs.csv"
[slurm]
conf = "slurm.conf"
assoc = "assoc.txt"
[kueue]
queues = "queues.yaml"
[qos]
normal = 0
high = 10
[delays]
launch = "2s"
[scheduler]
backfill = "greedy"
[scheduler.weights]
qos = 7
[[windows]]
start = "1d"
end = 90000
nodes = "gpu[01-02]"
"""


@pytest.fixture
def folder(tmp_path):
    texts = {"jobs.csv": JOBS, "slurm.conf": CONF, "assoc.txt": ASSOC, "queues.yaml": QUEUES, "site.toml": TOML}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_lines_of_slurm_conf():
    site = read_conf(CONF, "slurm.conf", Description())
    assert str(site.cluster) == "4x8:a100@all+long,2x4:v100@all"
    long, everything = site.partitions
    assert (long.nodes, long.max_time, long.default_time) == (("gpu01", "gpu02", "gpu03", "gpu08"), 86_400, 3600)
    assert (long.tier, long.factor, everything.max_time, everything.default_time) == (2, 10, float("inf"), None)
    assert everything.nodes == ("login", "cpu1", "cpu2", *long.nodes, "old1", "old2")
    s = site.scheduler
    assert (s.backfill, s.depth, s.tested, s.window, s.every, s.resolution) == (
        "plan",
        float("inf"),
        1000,
        172_800,
        60,
        60,
    )
    assert (s.over, s.half_life, s.fairshare, s.recalculated) == (300, 14 * 86_400, "classic", 300)
    w = s.weights
    assert (w.age, w.fairshare, w.size, w.partition, w.max_age, w.small) == (1000, 10_000, 500, 0, 3 * 86_400, True)
    assert set(site.unmodelled) == {
        *("clustername", "Include", "SchedulerParameters.bf_continue", "PriorityFlags.ACCRUE_ALWAYS", "NodeName.state"),
        *("NodeName.cpus", "NodeName.realmemory", "NodeName.feature", "Gres craynetwork"),
        *("PartitionName.state", "PartitionName.default"),
    }
    assert len(site.unmodelled) == len(set(site.unmodelled))


def test_every_parameter_of_the_plan_is_read_in_its_unit():
    words = "bf_interval=7,bf_window=11,bf_max_job_test=13,bf_resolution=17,bf_min_age_reserve=19,bf_job_part_count_reserve=23"
    s = read_conf(f"SchedulerParameters={words}", "slurm.conf", Description()).scheduler
    assert (s.every, s.window, s.tested, s.resolution, s.min_age, s.depth) == (7, 660, 13, 17, 19, 23)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NodeName=gpu[1-3", "line 2: found 'gpu[1-3'; expected nodes such as"),
        ("NodeName=gpu[3-1]", "line 2: found 'gpu[3-1]'; expected nodes such as"),
        ("NodeName=gpu1 Gres=gpu:a100:65", "line 2: found 65 GPUs on a node; expected at most 64"),
        ("PartitionName=x Nodes=a MaxTime=soon", "line 2 maxtime: found 'soon'; expected a time such as 2-00:00:00"),
        ("PriorityWeightAge=much", "line 2 priorityweightage: found 'much'; expected a number, 0 or more"),
        ("SchedulerParameters=bf_window=-1", "line 2 schedulerparameters.bf_window: found '-1'; expected a number"),
        ("just words", "line 2: found 'just words'; expected KEY=VALUE"),
    ],
)
def test_a_broken_line_is_named(line, message):
    with pytest.raises(TraceError) as raised:
        read_conf(f"A=1\n{line}\n", "slurm.conf", Description())
    assert f"slurm slurm.conf, {message}" in str(raised.value)


def test_associations():
    site = read_assoc(ASSOC, "assoc.txt", Description())
    assert site.shares.users == (("root", "root"), ("ml", "ann"), ("vision", "bob"))
    assert [row for row in site.shares.rows if not row[1]] == [("ml", "", "root", 60.0), ("vision", "", "ml", 3.0)]
    assert set(site.unmodelled) == {"assoc qos", "assoc Share=parent"}
    assert site.limits == (Limit("accounts", ("ml", "vision"), gpus=16),)
    others = "Account|User|Partition|Share|GrpTRES|MaxTRES|MaxWall\nml|||1|cpu=4,gres/gpu:t4=2|gres/gpu=2|1-0\nml|u|debug|1|gres/gpu=3||\n"
    flat = read_assoc("Account|User|Share|GrpTRES\nroot||1|\nml||1|gres/gpu=2\n", "t", Description())
    assert flat.limits == (Limit("account", ("ml",), gpus=2),)
    assert flat.unmodelled == ("assoc ParentName, without which an account's limits are of its own jobs alone",)
    site = read_assoc(others, "t", Description())
    assert site.limits == (
        Limit("account", ("ml",), gpus=2, gpu_type="t4"),
    )  # that of one partition is listed; no user has MaxTRES
    assert set(site.unmodelled) == {"assoc partition", "assoc grptres cpu"}
    tree = "Account|User|Share\nroot||1\n ml||60\n  vision||3\n  vision|bob|1\n bio||40\n"
    assert read_assoc(tree, "t", Description()).accounts[1:] == (
        ("ml", "", "root", 60.0),
        ("vision", "", "ml", 3.0),
        ("vision", "bob", "", 1.0),
        ("bio", "", "root", 40.0),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Account|User\nml|\n", "line 1: found the columns account, user; expected also share"),
        ("", "line 1: found the columns ; expected also account, user, share"),
        ("Account|User|Share\nml|ann\n", "line 2: found 2 fields; expected 3"),
        ("Account|User|Share\nml||some\n", "line 2 Share: found 'some'; expected a number"),
        ("Cluster|Account|User|Share\na|ml||1\nb|ml||1\n", "found the clusters a, b; expected one"),
    ],
)
def test_broken_associations_are_named(text, message):
    with pytest.raises(TraceError) as raised:
        read_assoc(text, "assoc.txt", Description())
    assert message in str(raised.value)


def test_cluster_queues():
    site = read_queues(QUEUES, "queues.yaml", Description())
    a, b = site.queues
    assert a == Queue(
        "a",
        "team",
        (("t4", 9.0),),
        (("t4", 1.0),),
        strict=True,
        reclaim="Any",
        weight=3.0,
        borrow_within="LowerPriority",
        threshold=7.0,
    )
    assert b == Queue("b", "team", (("t4", 12.0),))
    unknown = {"kind LocalQueue", "spec.namespaceSelector", "resource cpu"}
    assert set(site.unmodelled) == unknown
    for text, message in (
        ("a: [", "line 1: found no YAML"),
        ("kind: Pod", "found 1 objects, none a ClusterQueue"),
        ("kind: ClusterQueue\nmetadata: {name: q}", "ClusterQueue 'q': found 'spec'"),
        (QUEUES.replace('"9"', "nine"), "ClusterQueue 'a': found the quantity 'nine'"),
        (QUEUES.replace("Any", "Always"), "found queue 'a'.reclaim: found 'Always'; expected one of Never"),
    ):
        with pytest.raises(TraceError) as raised:
            read_queues(text, "queues.yaml", Description())
        assert message in str(raised.value)


def test_a_site_from_all_its_files(folder):
    site = Site(str(folder / "site.toml"))
    found = site.description
    assert found.scheduler.backfill == "greedy"  # the TOML goes before slurm.conf, key by key
    assert (found.scheduler.weights.qos, found.scheduler.weights.age, found.scheduler.tested) == (7, 1000, 1000)
    assert found.qos == (("normal", 0.0), ("high", 10.0))
    assert (found.windows[0].start, found.windows[0].end, found.windows[0].nodes) == (
        86_400,
        90_000,
        ("gpu01", "gpu02"),
    )
    assert "assoc qos" in found.unmodelled
    assert "spec.namespaceSelector" in found.unmodelled
    page = found.page()
    assert "partition long: 4 nodes, at most 24 h" in page
    assert "queue a: 9 GPUs of t4, at most 10" in page
    assert "accounts: 3, users: 3" in page
    scenario = site()
    assert scenario.trace["requested_time"].to_list() == [100.0, 3600.0, float("inf"), 50.0]
    assert str(scenario.cluster) == "4x8:a100@all+long,2x4:v100@all"
    assert Site(site.file, more=2)().cluster.total_gpus == 40 + 16
    assert Site(site.file, cluster="1x8")().cluster.total_gpus == 8
    assert scenario.delays.switch == 2
    assert scenario.run(site.policies["greedy"]).jobs["end"].null_count() == 0
    assert lab.recipe_of(f"site:file={site.file}") == site


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[qos]", "[qualities]", "found the key 'qualities'; expected one of log, cluster"),
        ('conf = "slurm.conf"', 'conf = "other.conf"', "site other.conf: found no such file"),
        ("normal = 0", 'normal = "low"', "[qos] normal: found 'low'; expected a time such as"),
        ("qos = 7", "pos = 7", "[scheduler.weights]: found the key 'pos'; expected one of age"),
        ("qos = 7", "qos = -7", "expected weights of 0 or more"),
        ('backfill = "greedy"', "backfill = 3", "[scheduler] backfill: found 3; expected a text"),
        ("end = 90000", "", "missing 1 required positional argument: 'end'"),
        ("[log]\n", "log = 3\n[other]\n", "found the key 'other'"),
        ("[qos]", "[accounts]\nml = []\n[qos]", "[accounts.ml]: found []; expected a number"),
        ("[qos]", "[partitions]\nlong = 3\n[qos]", "[partitions.long]: found 3; expected a table"),
        ("[qos]", "[qos", "found no TOML"),
        ("launch", "boot", "[delays]: found the key 'boot'; expected one of launch, restart"),
    ],
)
def test_a_broken_toml_is_named(folder, old, new, message):
    path = folder / "site.toml"
    path.write_text(TOML.replace(old, new))
    with pytest.raises(LabError) as raised:
        read_site(path)
    assert message in str(raised.value)
    assert "site" in str(raised.value)


def test_a_site_without_a_cluster_or_a_log_says_so(folder):
    path = folder / "site.toml"
    path.write_text('[log]\npath = "jobs.csv"\n')
    with pytest.raises(TraceError, match="found no cluster; expected \\[cluster\\] nodes"):
        Site(str(path))()
    path.write_text('[cluster]\nnodes = "2x8"\n')
    with pytest.raises(TraceError, match="found \\[log\\] path = None; expected the log"):
        Site(str(path))()


@pytest.mark.parametrize("seed", range(50))
def test_damaged_files_end_in_an_error_of_ours(folder, seed):
    """Cut, repeated and swapped characters: a reader returns a site or raises what users are shown."""
    draw = random.Random(seed)
    for name, text in (("slurm.conf", CONF), ("assoc.txt", ASSOC), ("queues.yaml", QUEUES), ("site.toml", TOML)):
        signs = list(text)
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(signs))
            signs[at : at + draw.randint(0, 3)] = draw.choice(
                ["", "[", "]", "=", "|", "\\\n", "²", "-", "9" * 30, "\0", "é", '"']
            )
        (folder / name).write_text("".join(signs))
        try:
            site = read_site(folder / "site.toml")
            site.page()
            _ = site.shares
        except LabError:
            pass
        (folder / name).write_text(text)


# --- names and quotas


def test_lists_of_hosts():
    assert hosts("node[01-16,20]") == (*(f"node{i:02}" for i in range(1, 17)), "node20")
    assert hosts("r[1-2]n[1-2]") == ("r1n1", "r1n2", "r2n1", "r2n2")
    for text in ("a[1", "a]", "a[1-x]", "a[1-999999]", "a[1-300]b[1-400]c[1-2]", "a[]"):
        with pytest.raises(TraceError, match="expected nodes such as"):
            hosts(text)


def test_quotas_of_a_cohort():
    """Numbers of Kueue's page: nominal 9 and 12; a borrowing limit of 1; a lending limit of 1 on the second."""
    t4 = lambda name, n, **limits: Queue(name, "team", (("t4", n),), **{k: (("t4", v),) for k, v in limits.items()})  # noqa: E731
    b = t4("b", 12)
    assert most((t4("a", 9), b), "a", "t4") == 21
    assert most((t4("a", 9, borrow=1), b), "a", "t4") == 10
    assert most((t4("a", 9), t4("b", 12, lend=1)), "a", "t4") == 10
    assert most((t4("a", 9), t4("b", 12, lend=1)), "b", "t4") == 21
    assert most((Queue("a", "", (("t4", 9),)), b), "a", "t4") == 9
    assert most((t4("a", 9), b), "a", "v100") == 0
