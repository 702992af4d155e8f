"""Noise on estimates: its law, and that it belongs to the job."""

import math

import numpy as np
import polars as pl
import pytest

from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.estimators import Noisy
from gpuschedlab.estimators.noisy import _splitmix, normal_of


def test_noise_has_mean_one_and_the_given_spread():
    ids = pl.Series([f"job-{i}" for i in range(200_000)])
    jobs = pl.DataFrame({"job_id": ids, "submit": 0.0, "gpus": 1.0, "duration": 500.0})
    for error in (0.1, 0.5):
        factor = Noisy(error=error, rng=4).predict(jobs) / 500
        assert factor.mean() == pytest.approx(1, abs=5 * error / math.sqrt(len(ids)))
        assert factor.std() == pytest.approx(error, rel=0.02)
    assert (Noisy(error=0).predict(jobs) == 500).all()


def test_noise_is_normal_and_independent_of_neighbouring_ids_and_seeds():
    from scipy import stats

    ids = pl.Series([f"job-{i}" for i in range(20_000)])
    z = normal_of(ids, 0)
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(z, normal_of(ids, 1))[0, 1]) < 0.03


def test_noise_from_a_generator_is_drawn_once():
    noisy = Noisy(rng=np.random.default_rng(7))
    jobs = recurring_sample(20, rng=0)
    assert isinstance(noisy.rng, int)
    assert (noisy.predict(jobs) == noisy.predict(jobs)).all()
    assert (noisy.predict(jobs) == Noisy(rng=np.random.default_rng(7)).predict(jobs)).all()


def test_the_same_id_has_the_same_noise_whatever_stands_beside_it():
    ids = ["", "a", "ä", "日本", "a much longer name than all the others", "a"]
    together = normal_of(pl.Series(ids), 3)
    assert together.tolist() == [normal_of(pl.Series([i], dtype=pl.String), 3)[0] for i in ids]
    assert len(set(together.tolist())) == 5


def test_bits_are_those_of_splitmix64():
    """The first outputs of the generator for seed 1234567, as its public implementations give them."""
    states = np.uint64(1234567) + np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert _splitmix(states).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
