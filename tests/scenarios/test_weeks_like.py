"""Weeks like this one: the sentence is recomputed from the seeds that it names, by other code; seeds, stopping, and the door."""

import re

import numpy as np
import pytest
from scipy.stats import binom

import gpuschedlab as lab
from gpuschedlab.errors import RunError
from gpuschedlab.scenarios.own_file import OwnFile
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.scenarios.week import Week
from gpuschedlab.weeks import Kept, refine, seeds_of, weeks_like

SMALL = Week(cluster="8x8").with_knobs(jobs=600, load=0.7)
PAIR = {"srtf": lab.Srtf(), "easy": lab.Fifo(backfill="easy")}


def named_seeds(text: str) -> list[int]:
    """Seeds of "Seeds: 0, and 10,000 to 10,004."."""
    words = re.search(r"Seeds: (.*)\.$", text)[1].replace(",", "").replace(" and ", " ")
    words = re.sub(r"(\d) (\d)", r"\1;\2", words.replace(" to ", "-"))
    found = []
    for part in words.split(";"):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def ratio_of(recipe, seed: int, pair=PAIR) -> float:
    """Ratio of the mean times to finish of the jobs submitted in a week's own days, from frames."""
    means = []
    for policy in pair.values():
        jobs = recipe(seed).run(policy).jobs.filter(lab_submitted())
        means.append((jobs["end"] - jobs["submit"]).mean())
    return means[1] / means[0]


def lab_submitted():
    """Jobs that the week's trace has."""
    import polars as pl

    return ~pl.col("job_id").str.starts_with("week")


def interval_by_hand(ratios) -> tuple[float, float]:
    """Interpolated order statistics, for up to 12 values, written anew."""
    ordered = sorted(ratios)
    n = len(ordered)
    reached = {d: 1 - 2 * binom.cdf(d - 1, n, 0.5) for d in range(1, n // 2 + 1)}
    d = max(depth for depth, level in reached.items() if level >= 0.95)
    part = (reached[d] - 0.95) / (reached[d] - reached[d + 1])
    share = (n - d) * part / (d + (n - 2 * d) * part)
    low = ordered[d - 1] * (1 - share) + ordered[d] * share
    return low, ordered[n - d] * (1 - share) + ordered[n - d - 1] * share


def test_the_sentence_is_recomputed_from_the_seeds_that_it_names():
    found = weeks_like(SMALL, PAIR, seed=3)
    seeds = named_seeds(found.text)
    assert sorted(found.seeds) == seeds
    assert found.seeds[0] == 3
    ratios = [ratio_of(SMALL, seed) for seed in found.seeds]
    assert found.ratios == pytest.approx(ratios)
    assert (found.interval.low, found.interval.high) == pytest.approx(interval_by_hand(ratios))
    numbers = [float(x.replace(",", "")) for x in re.findall(r"\d[\d,]*\.\d+", found.text.partition("Seeds")[0])]
    expected = [np.median(ratios), *interval_by_hand(ratios), min(ratios), max(ratios)]
    assert numbers == pytest.approx(expected, abs=0.051)
    if len(ratios) >= 9:
        assert f"number {1 + sum(r > ratios[0] for r in ratios)} of {len(ratios)}" in found.text


def test_the_sentence_of_a_comparison_says_this_week_first():
    found = lab.compare(SMALL, [lab.Fifo(backfill="easy"), lab.Srtf()], seed=5, weeks=6)
    said = found.sentence()
    assert said.startswith("In this week, under srtf the average job ")
    week, _, others = said.partition(" In 6 such weeks ")
    ratio = ratio_of(SMALL, 5)
    now, before = (found.runs[name].summary()["jct_mean"] for name in ("srtf", "fifo:backfill=easy"))
    assert before / now == pytest.approx(ratio)
    assert found.weeks.ratios[0] == pytest.approx(ratio)
    assert others.endswith(found.weeks.source)
    assert "too " not in week
    assert found.html().count("<p") >= 2


def test_weeks_come_one_by_one_and_stop_when_they_are_enough():
    kept = Kept(SMALL)
    steps = list(refine(kept, PAIR, 0, 8))
    assert [len(step.seeds) for step in steps] == list(range(1, len(steps) + 1))
    assert [step.enough for step in steps[5:-1]] == [False] * len(steps[5:-1])
    assert steps[-1].enough or len(steps) == 8
    played = dict(kept.figures)
    again = list(refine(kept, PAIR, 0, 8))
    assert kept.figures == played, "nothing is played twice"
    assert again[-1].ratios.tolist() == steps[-1].ratios.tolist()


def test_seeds_are_this_one_and_others():
    assert seeds_of(0, 12) == (0, *range(10_000, 10_011))
    assert seeds_of(10_003, 6) == (10_003, 10_000, 10_001, 10_002, 10_004, 10_005)
    assert len(set(seeds_of(10_003, 40))) == 40


def test_what_each_policy_knows_is_its_own():
    """A pair of a policy and its estimator plays with it."""
    from gpuschedlab.estimators import Noisy

    wrong = weeks_like(SMALL, {"noisy": (lab.Srtf(), Noisy(error=2.0)), "srtf": lab.Srtf()}, most=2)
    assert (wrong.ratios < 1).all()


def test_other_recipes_and_logs(tmp_path):
    small = lab.compare(SmallCluster(nodes=2, jobs=60), [lab.Fifo(), lab.Srtf()], weeks=6)
    assert " In 6 such scenarios " in small.sentence()
    assert small.sentence().startswith("In this trace")
    path = tmp_path / "jobs.parquet"
    lab.traces.write_parquet(lab.generate("venus", days=21, jobs=900, load=0.9, cluster_gpus=64, rng=1), path)
    log = lab.compare(OwnFile(str(path), "8x8"), [lab.Fifo(), lab.Srtf()])
    assert log.weeks is None
    assert log.sentence().startswith("In this log, under ")
    assert re.search(
        r"By week of submission: sooner in \d of 3 weeks, from [\d.]+ to [\d.e+]+ times\.$", log.sentence()
    )
    assert "95 %" not in log.sentence()


def test_refusals():
    with pytest.raises(RunError, match="found 1 policies, 12 weeks and measure 'jct'; expected two policies"):
        weeks_like(SMALL, {"srtf": lab.Srtf()})
    with pytest.raises(RunError, match="and one of jct, p99"):
        weeks_like(SMALL, PAIR, measure="cost")
