"""Traces of a seed are those of every version: published results and recipes name them by preset and seed."""

import datetime

import pytest
from golden_answers import digest, golden

from gpuschedlab.traces import generate, presets

ASKED = {
    "plain": {"days": 3},
    "short": {"days": 0.3, "rng": 1},
    "jobs": {"jobs": 300, "days": 2, "rng": 2},
    "load": {"load": 0.4, "cluster_gpus": 48, "days": 2, "rng": 3},
    "jobs and load": {"jobs": 200, "load": 0.9, "cluster_gpus": 20, "days": 1.5, "start": "2021-03-06 13:00"},
    "rate": {"rate": 0.3, "days": 9, "rng": 5, "start": datetime.datetime(2020, 1, 1, 5)},
}


@pytest.mark.parametrize("preset", presets())
@golden
def test_generated_traces(preset):
    return {name: digest(generate(preset, **asked)) for name, asked in ASKED.items()}
