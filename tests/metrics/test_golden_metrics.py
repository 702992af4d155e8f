"""Golden answers of metrics, intervals and tables."""

import numpy as np
import polars as pl
from golden_answers import golden, refusal
from stand_in import hand_run, plain_run

from gpuschedlab import metrics
from gpuschedlab.metrics import fairness, intervals, times, usage
from gpuschedlab.metrics.display import column, duration
from gpuschedlab.metrics.intervals import PairedRatio

RUNS = {"hand": hand_run(), "plain": plain_run(60, 4, seed=1), "short": plain_run(60, 4, seed=1, shortest=True)}


@golden
def test_every_metric():
    found = {}
    for name, run in RUNS.items():
        cut = run.jobs.with_columns(censored=pl.int_range(pl.len()) % 3 == 0)
        for censored in (False, True):
            each = [
                f(run, censored)
                for f in (metrics.jct, metrics.queueing, metrics.slowdown, metrics.finish_time_fairness)
            ]
            found[f"{name} {censored}"] = [
                *each,
                metrics.spread(each[0]),
                metrics.bounded_slowdown(run, 5.0, censored),
                metrics.measured(cut, censored),
            ]
        whole = metrics.summary(run, prices={"gpu": 2.0, "v100": 2.0})
        found[name] = {k: v for k, v in whole.items() if k != "seconds"}
        found[f"{name} use"] = [
            f(run)
            for f in (
                usage.makespan,
                usage.utilisation,
                usage.contention,
                usage.gpu_time,
                usage.fragmentation,
                usage.billed,
            )
        ]
        found[f"{name} pieces"] = [usage.fragmentation(run, gpus) for gpus in (1.0, 3.0, 8.0)]
        found[f"{name} free"] = usage.free_levels(run)
    found["compared"] = metrics.compare(RUNS, ["jct_mean", "utilisation", "preemptions", "late"])
    found["refused"] = refusal(metrics.compare, RUNS, ["speed"])
    found["unfair"] = fairness.unfair_fraction(np.array([0.5, 1.0, 1.2, 3.0]))
    found["none"] = [times.spread(np.zeros(0)), fairness.unfair_fraction(np.zeros(0))]
    return found


@golden
def test_intervals():
    rng = np.random.default_rng(0)
    found = {}
    for n in (6, 60, 900):
        a = rng.lognormal(3, 1, n)
        b = a * rng.uniform(0.7, 1.2, n)
        slow = np.convolve(a, np.ones(5) / 5, "same")
        found[f"{n}"] = {
            "half": [intervals.half_width(a), intervals.half_width(a, 5)],
            "mean": intervals.mean_interval(a),
            "times": [intervals.autocorrelation_times(a), intervals.autocorrelation_times(a, slow)],
            "ratio": intervals.ratio_interval(a, b),
            "narrow": intervals.ratio_interval(a, b, 0.8),
            "difference": intervals.difference_interval(a, slow),
            "paired": intervals.paired_ratio(np.arange(n) * 4000.0, a, b),
        }
        pair = found[f"{n}"]["paired"]
        found[f"{n}"]["words"] = (
            [pair.verdict, pair.range(), pair.range(4)]
            if isinstance(pair, PairedRatio) and isinstance(PairedRatio.verdict, property)
            else [pair.verdict(), pair.range()]
        )
    found["constants"] = [intervals.best_constant(many, seeds) for many, seeds in ((3, 5), (6, 10))]
    found["verdicts"] = [
        intervals.verdict(low, high, ("less", "more"), 1.0)
        for low, high in ((0.5, 0.9), (0.9, 1.2), (1.1, 2.0), (np.nan, np.nan))
    ]
    found["empty"] = [intervals.mean_interval(np.zeros(0)), intervals.mean_interval(np.ones(1))]
    return found


@golden
def test_tables():
    frame = metrics.compare(RUNS)
    shown = metrics.MetricTable(
        metrics.compare(RUNS, ["jct_mean", "jct_p99", "queueing_mean", "makespan", "utilisation", "gpu_time"])
    )
    values = {
        "jct_mean": [3.0, 7200.0, None],
        "utilisation": [0.5, 0.25, 1.0],
        "preemptions": [1, 20_000, 3],
        "gpu_time": [1e6, 2e7, 0.0],
    }
    return {
        "all": {name: frame[name] for name in frame.columns if name != "seconds"},
        "shown": str(shown),
        "html": shown._repr_html_(),
        "columns": [column(name, each) for name, each in values.items()],
        "durations": [duration(s) for s in (0.0, 0.4, 59.0, 61.0, 3599.0, 7200.0, 90_000.0, 1e7, float("nan"))],
    }
