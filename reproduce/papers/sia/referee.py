"""Slips of Sia's artifact, each on all eight workloads of Philly."""

import numpy as np

from reproduce.papers.sia.ways import RIGID_JOBS, measure
from reproduce.published.referee import Slip

REPOSITORY = "siasosp23/artifacts"
CASES = tuple((number,) for number in range(1, 9))
TEXT, POWER, TUNED, BOTH = RIGID_JOBS
"""Sia of rigid jobs as the text has them, by `sia_fix`'s p and lambda, with its tuned batches, and with both."""


def _average(data_dir, policy: str, number: int) -> float:
    return float(np.mean(measure(data_dir, "typed", policy, "philly", number)["jct"]))


def tuned_batches(data_dir, number: int) -> list[float]:
    """Sia of rigid jobs as its artifact runs them, and with the batch sizes of the workload."""
    return [_average(data_dir, policy, number) for policy in (BOTH, POWER)]


def power(data_dir, number: int) -> list[float]:
    """Sia of rigid jobs as its artifact runs them, and with the thesis' p and lambda."""
    return [_average(data_dir, policy, number) for policy in (BOTH, TUNED)]


SLIPS = {
    "sia-tuned-batches": Slip(
        REPOSITORY,
        "`sia-simulator/multi_simulator.py`, `multi_simulate`",
        "Batch tuning is turned off for `gavel`, and for `sia` where asked, never for `sia_fix`: rigid jobs under Sia choose their "
        "batch sizes, those under Gavel do not.",
        f'`RIGID_JOBS["{BOTH}"]` over `["{POWER}"]` in `reproduce/papers/sia/ways.py`',
        "average completion time of rigid jobs under Sia, p = .5",
        tuned_batches,
        CASES,
    ),
    "sia-rigid-power": Slip(
        REPOSITORY,
        "`sia-simulator/multi_simulator.py` and `sia_fix.py`, defaults",
        "Rigid jobs are run with p = .5 and lambda = 1; the text gives p = -.5 and lambda = 1.1.",
        f'`RIGID_JOBS["{BOTH}"]` over `["{TUNED}"]` in `reproduce/papers/sia/ways.py`',
        "average completion time of rigid jobs under Sia, batches tuned",
        power,
        CASES,
    ),
}
