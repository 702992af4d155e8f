"""Shockwave's artifact, job by job: its runs beside ours with the rules of its round loop, and without each."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from present import needs

from gpuschedlab.errors import LabError
from reproduce.papers.shockwave.artifact import Rules, artifacts, outcome, policy_of, price, read_artifact
from reproduce.papers.shockwave.artifact_table import LAMBDAS, lambda_rows

pytestmark = needs("gavel")

MOVED = {
    ("max_min_fairness", "start", 0.0): (0.862, 0.925),
    ("max_min_fairness", "renewal", 0.0): (0.780, 0.944),
    ("max_min_fairness", "newcomers_wait", False): (0.950, 0.982),
    ("min_total_duration", "start", 0.0): (0.848, 0.877),
    ("min_total_duration", "renewal", 0.0): (1.026, 0.968),
    ("min_total_duration", "newcomers_wait", False): (0.951, 0.980),
    ("min_total_duration", "centre", 0.0): (1.064, 0.997),
}
"""Mean completion time and makespan over the artifact's with one rule off, as another program of the same round loop gave them."""


@pytest.fixture(scope="module")
def tacc(data_dir):
    return next(artifact for artifact in artifacts(data_dir) if artifact.name == "tacc32")


@pytest.mark.parametrize(("name", "mean"), [("max_min_fairness", 0.02), ("min_total_duration", 0.05)])
def test_with_all_rules_gavels_objectives_give_the_artifacts_runs(tacc, name, mean):
    found = outcome(tacc, name, policy_of(name))
    assert found.mean_ratio == pytest.approx(1, abs=mean)
    assert found.makespan_ratio == pytest.approx(1, abs=0.02)
    assert found.rank >= 0.9
    assert found.within >= 0.8


@pytest.mark.parametrize("case", MOVED, ids=lambda case: f"{case[0]}-{case[1]}")
def test_each_rule_that_is_off_moves_the_run_as_it_moves_another_program(tacc, case):
    name, rule, off = case
    rules = replace(Rules(), **{rule: off})
    found = outcome(tacc, name, policy_of(name, rules), start=rules.start)
    assert (found.mean_ratio, found.makespan_ratio) == pytest.approx(MOVED[case], abs=0.035)


def test_shockwave_at_one_price_gives_the_artifacts_run_over_draws_of_noise(tacc):
    found = [outcome(tacc, "shockwave", policy_of("shockwave"), seed=seed) for seed in range(4)]
    mean = np.array([each.mean_ratio for each in found])
    makespan = np.array([each.makespan_ratio for each in found])
    assert np.abs(mean - 1).max() <= 0.05
    assert np.abs(makespan - 1).max() <= 0.03
    assert mean.std() <= 0.01
    assert makespan.std() <= 0.01


def test_the_weight_of_the_last_job_shortens_the_makespan_as_long_as_planned_rounds_are_kept(tacc):
    kept, dropped = lambda_rows(tacc)
    none, tenth, one, ten = (kept[f"lambda {weight:g}"] for weight in LAMBDAS)
    assert tenth <= 0.95 * none
    assert one <= 0.95 * tenth
    assert ten == pytest.approx(one, rel=0.03)
    assert kept["bound"] == pytest.approx(20_506, abs=1)
    assert ten <= 1.12 * kept["bound"]
    without = [dropped[f"lambda {weight:g}"] for weight in LAMBDAS]
    assert max(without) <= 1.03 * min(without)


def test_prices_per_second_are_weights_of_the_window():
    """The artifact's 1e-3 is 330 of a longest job of 16,500 s, measured in such jobs; 20 here, where 1,000 s count as one."""
    assert price(1e-3) == pytest.approx(20)
    assert price(1e-3) * 16_500 / 1000 == pytest.approx(330)


def test_a_trace_of_the_artifact_is_read_without_its_runs(tmp_path):
    file = tmp_path / "short64.trace"
    line = "LM (batch size 5)\tpython3 main.py --data %s/x\tlm\t--steps\t1\t9\t{}\tgns\t1\t-1.000000\t{}\t{}\n"
    file.write_text(line.format(1, 600, 0) + line.format(4, 1800, 24))
    short = read_artifact(file)
    assert short.gpus == 64
    assert short.jobs.select("arrival", "gpus", "dur").rows() == [(0.0, 1.0, 600.0), (24.0, 4.0, 1800.0)]
    found = outcome(short, "shockwave", policy_of("shockwave"))
    # The first job begins at once; the second with the next round, 120 s later, at the cost of a start.
    assert found.makespan == pytest.approx(120 + 20 + 1800)
    assert found.mean == pytest.approx((600 + 120 + 20 + 1800 - 24) / 2)
    assert np.isnan(found.mean_ratio)


def test_a_file_that_does_not_name_its_gpus_says_what_to_pass(tmp_path):
    file = tmp_path / "tacc.parquet"
    with pytest.raises(LabError, match="no number of GPUs at the end of 'tacc'; expected one, or gpus="):
        read_artifact(file)
    with pytest.raises(LabError, match=r"found no inputs/shockwave/\*.parquet in"):
        artifacts(Path(tmp_path))
