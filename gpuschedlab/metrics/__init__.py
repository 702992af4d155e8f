"""Metrics of a run: numbers from its frames, each with its equation and source.

Times of jobs (`times`), fairness (`fairness`), use of the cluster (`usage`), deadlines (`slo`), and all of them
in one row (`table`). Per-job functions return arrays, one entry a measured job; the rest return one number.
"""

from gpuschedlab.metrics.display import MetricTable
from gpuschedlab.metrics.fairness import finish_time_fairness, finish_time_fairness_by_type, unfair_fraction
from gpuschedlab.metrics.merged import merged_shares
from gpuschedlab.metrics.pools import pool_levels
from gpuschedlab.metrics.slo import slo_attainment, slo_violation
from gpuschedlab.metrics.table import METRICS, Metric, compare, summary
from gpuschedlab.metrics.times import Spread, bounded_slowdown, jct, measured, queueing, slowdown, spread
from gpuschedlab.metrics.usage import GpuTime, contention, cost, fragmentation, gpu_time, makespan, utilisation

__all__ = [
    "METRICS",
    "GpuTime",
    "Metric",
    "MetricTable",
    "Spread",
    "bounded_slowdown",
    "compare",
    "contention",
    "cost",
    "finish_time_fairness",
    "finish_time_fairness_by_type",
    "fragmentation",
    "gpu_time",
    "jct",
    "makespan",
    "measured",
    "merged_shares",
    "pool_levels",
    "queueing",
    "slo_attainment",
    "slo_violation",
    "slowdown",
    "spread",
    "summary",
    "unfair_fraction",
    "utilisation",
]
