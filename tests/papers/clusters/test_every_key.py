"""Every key of a slurm.conf and of a ClusterQueue changes what is played, or is listed as not modelled: never both, never neither."""

import json
from dataclasses import replace

import pytest

from gpuschedlab.papers.clusters.files.description import Description
from gpuschedlab.papers.clusters.files.kueue_files import read_queues
from gpuschedlab.papers.clusters.files.slurm_files import read_conf

PLAYED = {  # key: a value that is not its default
    "SchedulerType": "sched/builtin", "PriorityType": "priority/basic", "PriorityWeightAge": "5", "PriorityWeightFairshare": "5",
    "PriorityWeightJobSize": "5", "PriorityWeightPartition": "5", "PriorityWeightQOS": "5", "PriorityMaxAge": "1-0",
    "PriorityFavorSmall": "YES", "PriorityFlags": "NO_FAIR_TREE", "PriorityDecayHalfLife": "1-0", "PriorityCalcPeriod": "10",
    "FairShareDampeningFactor": "3", "OverTimeLimit": "5",
}  # fmt: skip
LISTED = [
    "AccountingStorageEnforce",
    "AccountingStorageTRES",
    "AuthType",
    "BatchStartTimeout",
    "ClusterName",
    "CompleteWait",
    "CpuFreqDef",
    "DefCpuPerGPU",
    "DefMemPerCPU",
    "DefMemPerGPU",
    "DisableRootJobs",
    "EnforcePartLimits",
    "Epilog",
    "EpilogMsgTime",
    "FirstJobId",
    "HealthCheckInterval",
    "InactiveLimit",
    "JobCompType",
    "JobRequeue",
    "KillOnBadExit",
    "KillWait",
    "LaunchParameters",
    "Licenses",
    "MaxArraySize",
    "MaxJobCount",
    "MaxMemPerNode",
    "MaxNodeCount",
    "MaxStepCount",
    "MaxTasksPerNode",
    "MCSPlugin",
    "MinJobAge",
    "PowerSaveInterval",
    "PreemptExemptTime",
    "PreemptMode",
    "PreemptParameters",
    "PreemptType",
    "PriorityParameters",
    "PrioritySiteFactorPlugin",
    "PriorityUsageResetPeriod",
    "PriorityWeightAssoc",
    "PriorityWeightTRES",
    "ProctrackType",
    "Prolog",
    "ResumeTimeout",
    "ReturnToService",
    "SelectType",
    "SelectTypeParameters",
    "SchedulerTimeSlice",
    "SlurmctldHost",
    "SlurmdTimeout",
    "SuspendTime",
    "SwitchType",
    "TaskPlugin",
    "TopologyParam",
    "TopologyPlugin",
    "TrackWCKey",
    "VSizeFactor",
    "WaitTime",
]
PLANS = {
    "bf_interval": "60",
    "bf_window": "10",
    "bf_max_job_test": "7",
    "bf_resolution": "5",
    "bf_min_age_reserve": "9",
}
PLANS |= {"bf_job_part_count_reserve": "3"}
LISTED_PLANS = [
    "bf_continue",
    "bf_max_job_user=5",
    "bf_max_job_part=5",
    "bf_max_job_start=3",
    "bf_max_job_assoc=4",
    "bf_max_time=100",
    "bf_busy_nodes",
    "bf_yield_interval=10",
    "bf_node_space_size=10",
    "bf_topopt_enable",
    "bf_running_job_reserve",
    "bf_one_resv_per_job",
    "default_queue_depth=50",
    "defer",
    "defer_batch",
    "batch_sched_delay=5",
    "sched_interval=30",
    "sched_min_interval=10",
    "partition_job_depth=5",
    "max_rpc_cnt=9",
    "nohold_on_prolog_fail",
    "pack_serial_at_end",
    "preempt_reorder_count=2",
    "preempt_youngest_first",
    "assoc_limit_stop",
    "max_array_tasks=100",
    "max_switch_wait=9",
    "Ignore_NUMA",
    "enable_user_top",
    "delay_boot=3",
    "salloc_wait_nodes",
]
PARTITION = {
    "MaxTime": "10",
    "DefaultTime": "5",
    "PriorityTier": "3",
    "PriorityJobFactor": "4",
    "Nodes": "n2",
    "QOS": "q",
}
LISTED_OF_PARTITIONS = [
    "AllocNodes",
    "AllowAccounts",
    "AllowGroups",
    "AllowQos",
    "Alternate",
    "CpuBind",
    "Default",
    "DefMemPerCPU",
    "DenyAccounts",
    "DenyQos",
    "DisableRootJobs",
    "ExclusiveUser",
    "ExclusiveTopo",
    "GraceTime",
    "Hidden",
    "JobDefaults",
    "LLN",
    "MaxCPUsPerNode",
    "MaxMemPerNode",
    "MaxNodes",
    "MinNodes",
    "OverSubscribe",
    "OverTimeLimit",
    "PowerDownOnIdle",
    "PreemptMode",
    "ReqResv",
    "ResumeTimeout",
    "RootOnly",
    "SelectTypeParameters",
    "State",
    "SuspendTime",
    "TRESBillingWeights",
]
LISTED_OF_NODES = (
    "Boards CPUs CoresPerSocket Features NodeAddr NodeHostname RealMemory Reason Sockets State ThreadsPerCore TmpDisk Topology "
    "Weight"
)
BASE = "NodeName=n1,n2 Gres=gpu:4{}\nPartitionName=p{}{}\nPriorityWeightQOS=3\n{}\n"


def conf(node="", nodes=" Nodes=n1", partition="", line="") -> Description:
    return read_conf(BASE.format(node, nodes, partition, line), "slurm.conf", Description())


def once(found: Description, base: Description, key: str) -> str:
    """How a key counts: played, listed, both or neither."""
    played = replace(found, unmodelled=()) != replace(base, unmodelled=())
    listed = key in found.unmodelled
    return {(True, False): "played", (False, True): "listed", (True, True): "both", (False, False): "neither"}[
        played, listed
    ]


def test_keys_of_slurm_conf():
    assert {
        key: once(conf(line=f"{key}={value}"), conf(), key.lower()) for key, value in PLAYED.items()
    } == dict.fromkeys(PLAYED, "played")
    found = {key: once(conf(line=f"{key}=1"), conf(), key.lower()) for key in LISTED}
    assert found == dict.fromkeys(LISTED, "listed")
    found = {
        key: once(conf(line=f"PriorityFlags={key}"), conf(), f"PriorityFlags.{key}")
        for key in ("MAX_TRES", "DEPTH_OBLIVIOUS")
    }
    assert set(found.values()) == {"listed"}


def test_parameters_of_the_scheduler():
    for key, value in PLANS.items():
        assert (
            once(conf(line=f"SchedulerParameters={key}={value}"), conf(), f"SchedulerParameters.{key}") == "played"
        ), key
    for word in LISTED_PLANS:
        assert (
            once(conf(line=f"SchedulerParameters={word}"), conf(), f"SchedulerParameters.{word.split('=')[0]}")
            == "listed"
        ), word


def test_keys_of_partitions_and_nodes():
    for key, value in PARTITION.items():
        more = {"nodes": f" {key}={value}"} if key == "Nodes" else {"partition": f" {key}={value}"}
        assert once(conf(**more), conf(), f"PartitionName.{key.lower()}") == "played", key
    for key in LISTED_OF_PARTITIONS:
        assert once(conf(partition=f" {key}=1"), conf(), f"PartitionName.{key.lower()}") == "listed", key
    for key in LISTED_OF_NODES.split():
        assert once(conf(node=f" {key}=1"), conf(), f"NodeName.{key.lower()}") == "listed", key


def queue(**spec) -> Description:
    flavors = [{"name": "t4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}]
    spec = {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]} | spec
    item = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": spec}
    return read_queues(json.dumps(item), "queues.json", Description())


@pytest.mark.parametrize(
    ("key", "spec"),
    [
        ("cohort", {"cohort": "c"}),
        ("cohortName", {"cohortName": "c"}),
        ("queueingStrategy", {"queueingStrategy": "StrictFIFO"}),
        ("reclaimWithinCohort", {"preemption": {"reclaimWithinCohort": "Any"}}),
        ("withinClusterQueue", {"preemption": {"withinClusterQueue": "LowerPriority"}}),
        ("whenCanBorrow", {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}),
        ("whenCanPreempt", {"flavorFungibility": {"whenCanPreempt": "Preempt"}}),
        ("weight", {"fairSharing": {"weight": 2}}),
        ("borrowWithinCohort", {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}),
    ],
)
def test_keys_of_a_cluster_queue_that_are_played(key, spec):
    assert once(queue(**spec), queue(), f"spec.{key}") == "played"


@pytest.mark.parametrize(
    ("listed", "spec"),
    [
        ("spec.preemption.borrowWithinCohort.other", {"preemption": {"borrowWithinCohort": {"other": "x"}}}),
        ("spec.flavorFungibility.preference", {"flavorFungibility": {"preference": "BorrowingOverPreemption"}}),
        ("spec.namespaceSelector", {"namespaceSelector": {}}),
        ("spec.admissionChecks", {"admissionChecks": ["x"]}),
        ("spec.admissionChecksStrategy", {"admissionChecksStrategy": {}}),
        ("spec.admissionScope", {"admissionScope": {}}),
        ("spec.stopPolicy", {"stopPolicy": "Hold"}),
        ("spec.fairSharing.other", {"fairSharing": {"other": 1}}),
    ],
)
def test_keys_of_a_cluster_queue_that_are_listed(listed, spec):
    assert once(queue(**spec), queue(), listed) == "listed"


@pytest.mark.parametrize(
    ("of", "place"),
    [("resourceGroups", ()), ("flavors", ("flavors", 0)), ("resources", ("flavors", 0, "resources", 0))],
)
def test_keys_of_quotas(of, place):
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "t4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}],
    }
    at = group
    for step in place:
        at = at[step]
    at["other"] = 1
    assert once(queue(resourceGroups=[group]), queue(), f"{of}.other") == "listed"
    if of == "resources":
        assert (
            once(
                queue(
                    resourceGroups=[group | {"flavors": [{"name": "t4", "resources": [at | {"borrowingLimit": 1}]}]}]
                ),
                queue(),
                "",
            )
            == "played"
        )
