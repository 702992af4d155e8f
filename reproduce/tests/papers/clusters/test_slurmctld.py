"""A real slurmctld: settings that are printed come back from it, and pairs of configurations differ as was announced."""

import runpy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from few import few

from gpuschedlab.papers.clusters.files.slurm_lines import ConfChange, conf_with
from reproduce.papers.clusters.random_settings import drawn
from reproduce.papers.clusters.slurm_judge import Stream, free_running, judged, recorded
from reproduce.papers.clusters.slurmctld.pair_jobs import Draw
from reproduce.papers.clusters.slurmctld.pair_jobs import drawn as jobs_of_pair
from reproduce.papers.clusters.slurmctld.pair_site import FILES, back_of, log_of, site_of
from reproduce.papers.clusters.slurmctld.pairs import Result, results, table
from reproduce.papers.clusters.slurmctld.recorder import recorder
from reproduce.papers.clusters.slurmctld.settings import (
    Own,
    Sample,
    checked,
    limits_wanted,
    problems_of,
    shown_by,
    values_of,
)

ROOT = Path(__file__).resolve().parents[4]
PORT = 53_000
PAIRS = ("weight", "backfill", "limit", "tier")
BETWEEN = "backfill-changed"
"""Stream whose passes of backfill are 30 s apart: at which instants is not recorded, so its decisions cannot be judged."""
WEIGHTED = {"types-4": {"weight_age": 1000, "weight_size": 1000, "max_age": 300.0, "recalculated": 60.0}}
"""Weights of a stream's slurm.conf."""
TYPED = [name for name in dict.fromkeys(name for name, _ in recorded()) if name.startswith("types-")]


@pytest.mark.skipif(bool(recorder.why_not(counted=True)), reason=recorder.why_not(counted=True) or "a Slurm is there")
def test_a_real_slurm_gives_back_every_printed_value():
    problems = []
    count = few(3, 12)
    assert checked(count, seed=1, port=PORT, say=problems.append) == count, problems


@dataclass
class Shown:
    """What a slurmctld shows."""

    values: dict[str, str]
    rows: dict[str, dict[str, str]]
    refused: tuple[str, ...] = ()

    def config(self) -> dict[str, str]:
        return self.values

    def partitions(self) -> dict[str, dict[str, str]]:
        return self.rows

    def refusals(self) -> list[str]:
        return [*self.refused]


def shown(text: str) -> Shown:
    """A slurmctld that takes each value of a file."""
    values = {}
    rows = {"batch": {"PriorityTier": "1", "PriorityJobFactor": "1"}}
    for line in text.splitlines():
        for (partition, key), value in values_of(line.partition("#")[0]).items():
            place = values
            if partition:
                place = rows.setdefault(partition, {})
                key = {"prioritytier": "PriorityTier", "priorityjobfactor": "PriorityJobFactor"}.get(key, key)
            place[key] = value
    return Shown(values, rows)


@pytest.fixture
def sample(tmp_path) -> Sample:
    return Sample(tmp_path)


def test_a_value_that_does_not_come_back_is_named(sample):
    was = sample.site.slurm
    tiers = tuple((name, 7.0) for name, _ in was.tiers)
    change = conf_with(sample.text, was, replace(was, weight_age=500.0, max_age=3600.0, tiers=tiers))
    own = Own(sample.text, shown_by(shown(sample.text)))
    good = shown(change.text)
    assert problems_of(good, change, own) == []
    good.values["prioritymaxage"] = "01:00:00"  # as slurmctld writes it
    assert problems_of(good, change, own) == []
    other = shown(change.text)
    other.values["priorityweightage"] = "501"
    other.values["schedulertype"] = "sched/builtin"
    other.rows["batch"]["PriorityTier"] = "1"
    other.refused = ("error: Invalid SchedulerParameters bf_window: 0",)
    assert sorted(problems_of(other, change, own)) == [
        " priorityweightage=500: shown as '501'",
        " schedulertype was 'sched/backfill', is 'sched/builtin'",
        "batch prioritytier=7: shown as '1'",
        "refused: error: Invalid SchedulerParameters bf_window: 0",
    ]
    assert problems_of(good, ConfChange(sample.text), own) != []


def test_settings_are_those_of_a_seed(sample):
    was = sample.site.slurm
    first = [drawn(np.random.default_rng(5), was) for _ in range(2)]
    assert first[0] == first[1] != drawn(np.random.default_rng(6), was)


def test_columns_of_limits_by_hand():
    from gpuschedlab.papers.clusters.files.description import Limit

    limits = (
        Limit("user", qos=("normal",), gpus=4, gpu_type="a100"),
        Limit("account", ("research",), jobs=3),
        Limit("member", ("research/ada",), jobs=2),
        Limit("member", ("research/ben",), wall=60),
    )
    assert limits_wanted(limits) == {
        ("qos normal", "maxtrespu", "gres/gpu:a100"): "4",
        ("account research", "grpjobs", ""): "3",
        ("user research/ada", "maxjobs", ""): "2",
        ("user research/ben", "maxwall", ""): "60 s",
    }


@cache
def pairs() -> dict[str, Result]:
    """Results of the recorded pairs."""
    return {found.pair: found for found in results()}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_announced_sign_is_the_realised_one(pair):
    assert pairs()[pair].sign_is_right


def test_the_announced_size_is_the_realised_one_in_three_of_four():
    assert sum(found.size_is_right for found in pairs().values()) >= 3


def test_a_size_is_right_within_15_percent_or_the_scatter_of_slurm():
    pair = Result("x", "depth=1", own=(100.0, 110.0), changed=(50.0, 58.0), announced=-53.5)
    assert pair.differences == (-50.0, -52.0)
    assert pair.realised == -51.0
    assert pair.size_is_right
    assert not replace(pair, announced=-59.0).size_is_right
    assert replace(pair, announced=-59.0, changed=(50.0, 80.0)).size_is_right  # -50 and -30
    assert not replace(pair, announced=5.0).sign_is_right


@cache
def streams() -> dict[tuple[str, int], Stream]:
    """Recordings of the pairs; a change of the plan is one of the rule."""
    found = recorded(FILES)
    diffs = {(result.pair, "changed"): result.diff for result in pairs().values()}
    for (name, _), stream in found.items():
        key, _, value = diffs.get(tuple(name.rsplit("-", 1)), "").partition("=")
        if key.startswith("plan."):
            stream.plan = {key.removeprefix("plan."): float(value)}
    return found


@pytest.mark.parametrize("name", [f"{pair}-{side}" for pair in PAIRS for side in ("own", "changed")])
def test_starts_of_pairs_are_as_recorded(name):
    if name == BETWEEN:
        pytest.skip("the instants of its passes of backfill are not recorded")
    of_both = [stream for (of, _), stream in streams().items() if of == name]
    right, placed = np.sum([judged(stream) for stream in of_both], axis=0)
    assert right >= 0.9 * sum(len(stream.jobs) for stream in of_both)
    assert placed >= 0.9 * right


def test_the_page_has_the_pairs():
    page = (ROOT / "docs/systems/slurm-checked.md").read_text(encoding="utf-8")
    for row in table([*pairs().values()]):
        assert row in page, "copy what `make referee DIFF=seeded OPTIONS=--only-print` prints for data/slurm/pairs"


def test_jobs_of_pairs_are_those_of_their_seeds():
    for (name, _), stream in streams().items():
        seed = dict(runpy.run_path(str(ROOT / "data/slurm/make.py")))["pl"].read_csv(FILES / "streams.csv")
        draw = Draw(int(seed.filter(stream=name)["seed"][0]))
        gpus = [job["nodes"] * job["each"] for job in jobs_of_pair(draw)]
        assert gpus == [job["gpus"] for job in stream.jobs]


def test_a_change_that_the_files_cannot_say_is_refused(tmp_path):
    site = site_of(log_of(jobs_of_pair(Draw(0, jobs=5))), tmp_path)
    with pytest.raises(ValueError, match="expected what Slurm's files can say"):
        back_of(site, "weight_age=0.5")
    assert back_of(site, "tier.short=10").conf.lines == (
        ("PartitionName=short PriorityTier=1", "PartitionName=short PriorityTier=10"),
    )


@pytest.mark.parametrize("name", TYPED)
def test_free_runs_with_types_wait_as_long_on_the_mean(name):
    of_both = [stream for (of, _), stream in recorded().items() if of == name]
    ratios = [np.mean(free_running(stream, **WEIGHTED.get(name, {}))) / stream.wait for stream in of_both]
    assert 0.85 <= np.mean(ratios) <= 1.15
