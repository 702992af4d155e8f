"""Speeds from the profiles of the Pollux artifact: of fixed, elastic, adaptive and tuned jobs."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Fifo, simulate
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.codes import RateRows, find_row
from reproduce.papers.pollux.adaptive import adaptive_speeds
from reproduce.papers.pollux.profiles import pollux_elastic_speeds, pollux_names, pollux_speeds
from reproduce.papers.pollux.tuned import tuned_jobs


def pollux_profiles():
    """One application, profiled on 1 and 2 nodes of up to 2 GPUs; two local and two validated batch sizes."""
    rows = []
    for placement, base in (("1", 1.0), ("2", 1.5), ("11", 2.0), ("12", 3.0), ("22", 4.0)):
        gpus = sum(map(int, placement))
        rows += [("app", "aws", placement, len(placement), gpus, b, base + b / 10, base / 2) for b in (10, 20)]
    rows += [("app", "aws", None, 3, g, b, 5.0 + b / 10, 1.0) for g in (3, 6) for b in (10, 20)]
    names = ["model", "gpu_type", "placement", "n_nodes", "n_gpus", "local_bsz", "step_time", "sync_time"]
    steps = pl.DataFrame(rows, schema=names, orient="row")
    rows = [("app", 10, e, 100.0 * (e + 1), 1.0, 1.0) for e in range(2)]
    rows += [("app", 40, e, 90.0 * (e + 1), 3.0, 1.0) for e in range(2)]
    names = ["model", "batch_size", "epoch", "progress", "grad_sqr", "grad_var"]
    return steps, pl.DataFrame(rows, schema=names, orient="row")


def pollux(batch, gpus, **options):
    columns = ["application", "batch_size", "num_replicas"]
    workload = pl.DataFrame([("app", batch, gpus)], schema=columns, orient="row")
    return pollux_speeds(*pollux_profiles(), workload, whole_seconds=False, **options)


def looked_up(speeds, counts):
    counts = np.array(counts)
    row = find_row(RateRows.of(speeds), 0, 0, len(counts), int(counts.sum()), counts)
    return speeds.rate[row]


def test_pollux_rate_is_gain_over_step_time():
    speeds = pollux(40, 3)
    assert speeds.models == ("app/40/3",)
    assert speeds.seg_end.tolist() == [90.0, 180.0]  # the smallest over batch sizes
    # 14 on each of 3 GPUs would exceed the largest validated batch, 40: 13 on each, hence 39 a step
    assert looked_up(speeds, [1, 2]) == pytest.approx(_gain(39) / (3.0 + 13 / 10))
    assert _gain(40) == pytest.approx((1 + 3) / (1 / 4 + 3))


def _gain(batch):
    w = (batch - 10) / 30
    sqr = 1 + 2 * w
    var = 1.0
    return (var + sqr) / (var * 10 / batch + sqr)


def test_pollux_steps_accumulate():
    # 40 on one GPU, at most 20 at once: two steps, one of them without synchronisation
    step = 1.0 + 2.0
    sync = 0.5
    assert looked_up(pollux(40, 1), [1]) == pytest.approx(_gain(40) / (2 * step - sync))


def test_pollux_placements_are_equal_in_any_order_and_else_interpolated():
    speeds = pollux(30, 3)
    assert looked_up(speeds, [1, 2]) == looked_up(speeds, [2, 1]) == pytest.approx(_gain(30) / 4.0)
    assert looked_up(speeds, [1, 1, 1]) == pytest.approx(_gain(30) / 6.0)
    assert looked_up(speeds, [3]) > 0  # beyond what was profiled: the nearest


def test_pollux_epochs_last_whole_seconds():
    columns = ["application", "batch_size", "num_replicas"]
    workload = pl.DataFrame([("app", 30, 3)], schema=columns, orient="row")
    speeds = pollux_speeds(*pollux_profiles(), workload)
    assert speeds.rounding == 1.0
    assert pollux(30, 3).rounding == 0.0
    job = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [3], "duration": [1.0], "model": ["app/30/3"]})
    run = simulate(job, Cluster.parse("2x2:aws"), Fifo(placement="widest"), speeds=speeds)
    assert run.jobs["end"][0] == 2 * round(90.0 * 4.0 / _gain(30))
    assert pollux_names(workload).to_list() == list(speeds.models)


def test_pollux_needs_profiles():
    with pytest.raises(SpeedError, match="no step times or validation of 'app'"):
        pollux(10, 1, gpu_type="t4")


def elastic_profiles():
    """One application on up to 4 GPUs of nodes of 2, in two epochs; batches of 10 to 40, at least 10 on a GPU."""
    rows = [
        ("app", "aws", p, len(p), sum(map(int, p)), b, sum(map(int, p)) ** 0.5 + b / 10, 0.5)
        for p in ("1", "2", "11", "12", "22", "112", "1111")
        for b in (10, 20)
    ]
    names = ["model", "gpu_type", "placement", "n_nodes", "n_gpus", "local_bsz", "step_time", "sync_time"]
    steps = pl.DataFrame(rows, schema=names, orient="row")
    rows = [("app", b, e, 100.0 * (e + 1), s, 1.0) for b, s in ((10, 1.0), (40, 3.0)) for e in range(2)]
    names = ["model", "batch_size", "epoch", "progress", "grad_sqr", "grad_var"]
    return steps, pl.DataFrame(rows, schema=names, orient="row")


def test_elastic_profiles_are_those_of_fixed_gpus_and_predictions_beside_them():
    job = pl.DataFrame({"application": ["app"], "batch_size": [40], "num_replicas": [3]})
    elastic = pollux_elastic_speeds(*elastic_profiles(), job, gpus=8, gpus_per_node=2)
    assert elastic.models == tuple(pollux_names(job, elastic=True))
    assert elastic.configurations()["n_gpus"].max() == 4  # 10 of the batch of 40 on each
    fixed = pollux_speeds(*elastic_profiles(), job)

    def rate(speeds, *counts):
        counts = np.array(counts)
        return speeds.rate[find_row(RateRows.of(speeds), 0, 0, len(counts), counts.sum(), counts)]

    assert rate(elastic, 1, 2) == rate(elastic, 2, 1) == rate(fixed, 1, 2)
    # A step of 14 on each of 3 GPUs would exceed the largest batch: 13 each; the gain predicted is that of 40.
    gain = (1 + 3) / (1 / 4 + 3)
    assert elastic.rates([0], [0.0], [0], [2], [3])[0, 0] == pytest.approx(gain / (3**0.5 + 1.3))
    assert elastic.rounding == fixed.rounding == 1.0  # epochs last whole seconds


@pytest.fixture(scope="module")
def profiles(data_dir):
    return [pl.read_parquet(data_dir / f"profiles/{name}.parquet") for name in ("step_time", "validation")]


@pytest.mark.data
def test_adaptive_jobs_are_as_fast_as_their_best_fixed_batch(profiles):
    """On one T4, where all batch sizes were profiled, against profiles of each batch size."""
    adaptive = adaptive_speeds(*profiles, ["bert"], shape={"aws": (1, 4)})
    batches = [12, 24, 48, 96, 192, 384]
    fixed = pl.DataFrame({"application": "bert", "batch_size": batches, "num_replicas": 1})
    rates = pollux_speeds(*profiles, fixed, whole_seconds=False)
    n = len(batches)
    for progress in adaptive.seg_end:
        each = rates.rates(np.arange(n), np.full(n, progress), [0], [1], [1])[:, 0]
        best = adaptive.rates([0], [progress], [0], [1], [1])[0, 0]
        assert each.max() * 0.999 <= best <= each.max() * 1.1  # sizes in between may be better


@pytest.mark.data
def test_tuned_jobs_have_half_to_four_fifths_of_the_ideal_speed_up(profiles):
    workload = pl.DataFrame({"application": ["cifar10"] * 40 + ["ncf"]})
    tuned = tuned_jobs(workload, *profiles, gpus=16, rng=3)
    assert tuned.filter(application="ncf").select("num_replicas", "batch_size").row(0) == (1, 32_768)
    cifar = tuned.filter(application="cifar10")
    assert cifar["num_replicas"].max() <= 16
    assert cifar["num_replicas"].n_unique() > 3
    alone = pl.DataFrame({"application": "cifar10", "batch_size": [128, 256, 512, 1024, 2048, 4096], "num_replicas": 1})
    least = seconds(profiles, alone).min()
    share = least / seconds(profiles, cifar) / cifar["num_replicas"].to_numpy()
    assert ((share > 0.45) & (share < 0.85)).all()  # between profiled sizes, the two interpolate differently
    assert tuned.equals(tuned_jobs(workload, *profiles, gpus=16, rng=3))


def seconds(profiles, jobs):
    """Whole time of each job on its GPUs, on the fewest nodes."""
    from gpuschedlab.speeds.elapsed import seconds_to
    from reproduce.papers.pollux.profiles import pollux_names

    speeds = pollux_speeds(*profiles, jobs, whole_seconds=False)
    gpus = jobs["num_replicas"].to_numpy()
    zero = np.zeros(jobs.height, int)
    model = speeds.model_codes(pollux_names(jobs))
    return seconds_to(speeds, model, np.full(jobs.height, np.inf), zero, -(-gpus // 4), gpus)
