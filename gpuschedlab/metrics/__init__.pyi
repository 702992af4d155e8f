"""Public names of `metrics`, by module; loaded at first use. Those of papers stand in the stubs of their folders."""

from .display import MetricTable as MetricTable
from .fairness import (
    finish_time_fairness as finish_time_fairness,
    finish_time_fairness_by_type as finish_time_fairness_by_type,
    unfair_fraction as unfair_fraction,
)
from .intervals import (
    MedianInterval as MedianInterval,
    PairedRatio as PairedRatio,
    median_interval as median_interval,
    paired_ratio as paired_ratio,
)
from .attainment import slo_attainment as slo_attainment, slo_violation as slo_violation
from .summaries import METRICS as METRICS, Metric as Metric, compare as compare, summary as summary
from .times import (
    Spread as Spread,
    bounded_slowdown as bounded_slowdown,
    jct as jct,
    measured as measured,
    queueing as queueing,
    slowdown as slowdown,
    spread as spread,
)
from .usage import (
    GpuTime as GpuTime,
    contention as contention,
    cost as cost,
    fragmentation as fragmentation,
    gpu_time as gpu_time,
    makespan as makespan,
    utilisation as utilisation,
)
