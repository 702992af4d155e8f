"""Slurm's rule as the files of a site configure it."""

from gpuschedlab.papers.clusters.files.description import Description, Scheduler
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.sim.ordered import Plan


def backfill_of(scheduler: Scheduler) -> dict[str, object]:
    """Return a dict of the knobs of a rule's backfill: `backfill`, and `depth` and `plan` if it plans."""
    if scheduler.backfill != "plan":
        return {"backfill": scheduler.backfill}
    plan = Plan(scheduler.tested, scheduler.window, scheduler.every, scheduler.resolution, scheduler.min_age)
    return {"backfill": "plan", "depth": scheduler.depth, "plan": plan}


def slurm_of(site: Description, epoch: float) -> Slurm:
    """Return a `Slurm` rule with a site's weights, shares, priorities and plan; `epoch`: `Slurm.epoch`."""
    scheduler = site.scheduler
    weights = scheduler.weights
    tree = None  # all users are equal
    if site.accounts:
        tree = site.shares
    return Slurm(
        weight_age=weights.age,
        weight_fairshare=weights.fairshare,
        weight_size=weights.size,
        weight_partition=weights.partition,
        weight_qos=weights.qos,
        max_age=weights.max_age,
        small=weights.small,
        relative=weights.relative,
        fairshare=scheduler.fairshare,
        half_life=scheduler.half_life,
        recalculated=scheduler.recalculated,
        damping=scheduler.damping,
        gres=scheduler.gres,
        epoch=epoch,
        tree=tree,
        partitions=tuple((partition.name, partition.factor) for partition in site.partitions),
        tiers=tuple((partition.name, partition.tier) for partition in site.partitions),
        qos=site.qos,
        **backfill_of(scheduler),
    )
