"""A site's rule is what its configuration says, whatever of it is there."""

import pytest

from gpuschedlab.policies import Slurm
from gpuschedlab.widgets import Site

HEAD = "JobID|User|Account|Partition|QOS|Submit|Start|End|State|AllocTRES|Timelimit\n"
DAY = "2025-01-01T"
NODE = "NodeName=n1 Gres=gpu:t4:4\nSchedulerType=sched/backfill\n"
TWO = "PartitionName=high Nodes=n1 PriorityTier=10 MaxTime=1-0\nPartitionName=low Nodes=n1 PriorityTier=1 MaxTime=1-0\n"


def site(folder, conf: str, partitions: tuple, more: str = ""):
    """Three jobs of four GPUs for an hour each, two normal and then a high one, on a node of four."""
    words = zip("123", partitions, ("normal", "normal", "high"), ("00", "01", "02"), strict=True)
    rows = "".join(
        f"{job}|u|a|{part}|{qos}|{DAY}00:{at}:00|{DAY}0{job}:00:00|{DAY}0{int(job) + 1}:00:00|COMPLETED|gres/gpu=4|02:00:00\n"
        for job, part, qos, at in words
    )
    (folder / "log.txt").write_text(HEAD + rows)
    (folder / "slurm.conf").write_text(conf)
    (folder / "site.toml").write_text(f'[log]\npath="log.txt"\nformat="slurm"\n[slurm]\nconf="slurm.conf"\n{more}')
    found = Site(str(folder / "site.toml"))
    starts = dict(found.scenario(0).run(found.own).jobs.select("job_id", "start").iter_rows())
    return found, starts


def test_the_job_of_the_higher_tier_goes_first(tmp_path):
    _, starts = site(tmp_path, NODE + TWO, ("low", "low", "high"))
    assert starts["1"] < starts["3"] < starts["2"]


def test_weights_count_without_an_association_file(tmp_path):
    conf = NODE + "PartitionName=all Nodes=n1 MaxTime=1-0\nPriorityType=priority/multifactor\nPriorityWeightQOS=1000\n"
    found, starts = site(tmp_path, conf, ("all",) * 3, "[qos]\nhigh=100\nnormal=10\n")
    assert isinstance(found.own, Slurm)
    assert found.own.tree is None
    assert starts["1"] < starts["3"] < starts["2"]


@pytest.mark.parametrize("weight", [0, 500])
def test_what_scontrol_prints_is_read_as_a_conf(tmp_path, weight):
    conf = (
        "Configuration data as of 2025-01-01T00:00:00\n"
        "AccountingStorageBackupHost = (null)\nBatchStartTimeout       = 10 sec\nPriorityFlags           = \n"
        f"PriorityType            = priority/multifactor\nPriorityWeightQOS       = {weight}\n"
        "SchedulerType           = sched/backfill\nSchedulerParameters     = bf_interval=45,bf_max_job_test=200\n"
        "PriorityDecayHalfLife   = 7-00:00:00\n\nSlurmctld(primary) at x is UP\n"
    )
    found, _ = site(tmp_path, conf, ("all",) * 3, '[cluster]\nnodes = "1x4:t4"\n[qos]\nhigh=100\nnormal=10\n')
    scheduler = found.description.scheduler
    assert (scheduler.every, scheduler.tested, scheduler.weights.qos, scheduler.half_life) == (
        45.0,
        200,
        weight,
        604_800.0,
    )
    assert found.description.unmodelled == ("batchstarttimeout",)
