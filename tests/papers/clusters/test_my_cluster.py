"""The sample site: its files are those that make.py makes, and the explorer of it shows what `whatif` says."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Kueue, _data, plots
from gpuschedlab.errors import PolicyError
from gpuschedlab.papers.clusters.changes import QuotaChange
from gpuschedlab.papers.clusters.playing.eligible import launched_by
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.replay import replay
from gpuschedlab.papers.clusters.whatif import whatif
from gpuschedlab.widgets import SiteExplorer

FILES = ("site.toml", "slurm.conf", "assoc.txt", "jobs.csv")


def test_the_files_are_those_that_are_made(maker, tmp_path):
    maker("site").make(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == _data.path(f"site/{name}").read_bytes(), name


@pytest.fixture(scope="module")
def found():
    return replay(Site.sample())


def test_the_replay_finds_the_rule_and_the_launch_delay(found, maker):
    made = maker("site")
    assert found.table["rule"][0] == found.own == "as configured"
    assert found.launch == made.LAUNCH
    unexplained = found.site.explanation.jobs.group_by(day=pl.col("submit") // 86_400).agg(pl.col("unexplained").sum())
    share = dict(unexplained.with_columns(pl.col("unexplained") / pl.col("unexplained").sum()).iter_rows())
    assert share[made.BY_HAND["submit"] // 86_400] >= 0.85  # of a day: somebody held a node past the log


def test_waits_by_day_by_hand():
    submit = np.array([10.0, 20.0, 86_500.0, 200_000.0])
    lines = plots.waits_by_day(submit, {"a": submit + np.array([3600, 7200, 1800, np.nan])})
    assert lines.x.tolist() == [1, 2, 3]
    assert lines.values["a"][:2].tolist() == pytest.approx([1.5, 0.5])
    assert np.isnan(lines.values["a"][2])
    assert plots.waits_by_day(np.zeros(0), {"a": np.zeros(0)}).x.tolist() == []


@pytest.fixture(scope="module")
def explorer(found):
    return SiteExplorer(found)


def test_with_nothing_changed_it_is_the_site_itself(explorer):
    explorer.knobs["more"].value = 0
    assert explorer.outcome.table["difference"].to_list() == [0, 0, 0]
    lines = explorer.board.drawings["waits"].data
    assert [line["name"] for line in lines] == ["recorded", "replayed", "changed"]
    assert lines[1]["y"].tolist() == lines[2]["y"].tolist()


def test_its_words_and_lines_are_those_of_whatif(explorer, found):
    site = found.site
    explorer.knobs["more"].value = 1
    assert explorer.outcome.table.equals(whatif(site, {"more": 1}, calibration=found).table)
    # Somebody held a node, of which the log says nothing.
    assert "Less waiting, whatever the model misses (it misses 9.5 min of 64 min; " in explorer.status.value
    explorer.knobs["more"].value = 0
    explorer.knobs["depth"].value = 1
    rule = explorer.knobs.thing.rule
    assert (rule.depth, rule.plan) == (1, site.own.plan)
    assert explorer.outcome.table.equals(whatif(site, {"policy": rule}, calibration=found).table)
    expected = launched_by(found.scenario, rule, found.launch).to_numpy()
    mean = plots.waits_by_day(found.starts["submit"].to_numpy(), {"x": expected}).values["x"]
    assert explorer.board.drawings["waits"].data[2]["y"].tolist() == pytest.approx(mean.tolist())
    explorer.knobs["known"].value = True
    assert explorer.outcome.table["difference"][0] != pytest.approx(0)


def test_its_static_twin_has_the_figure(explorer):
    assert len(explorer.figure("waits").data) == 3
    assert explorer.outcome.sentence in explorer._note()


def test_weights_are_sliders_of_a_site_that_has_them(explorer, found):
    assert {"backfill", "depth", "weight_age", "weight_fairshare", "weight_size"} <= set(explorer.knobs.controls)
    explorer.knobs["weight_fairshare"].value = 0
    rule = found.site.own.with_knobs(weight_fairshare=0)
    assert explorer.knobs.thing.rule == rule.with_knobs(depth=explorer.knobs.thing.rule.depth)
    explorer.knobs["weight_fairshare"].value = found.site.own.weight_fairshare


def test_a_site_with_queues_is_played_by_its_quotas_and_they_are_sliders(tmp_path):
    rows = [(i, 10 * i, 4, 300, "ab"[i % 2]) for i in range(40)]
    rows = "\n".join(f"j{i},{at},{gpus},{seconds},{seconds},{queue},{at}" for i, at, gpus, seconds, queue in rows)
    (tmp_path / "jobs.csv").write_text(f"job_id,submit,gpus,duration,requested_time,vc,started\n{rows}\n")
    text = '[log]\npath = "jobs.csv"\n[cluster]\nnodes = "2x8:v100"\n[queues.a]\ncohort = "all"\n'
    text += 'nominal = {%s = 12}\n[queues.b]\ncohort = "all"\nreclaim = "Any"\nnominal = {%s = 4}\n'
    (tmp_path / "site.toml").write_text(text % ("v100", "v100"))
    found = replay(Site(str(tmp_path / "site.toml")))
    assert found.site.own == Kueue(found.site.description.queues, placement="pack")
    assert not [note for note in found.notes if "queues" in note]
    explorer = SiteExplorer(found)
    explorer.knobs["moved"].value = -8
    changed = QuotaChange(rule=found.site.own, moved=-8).played
    assert [queue.nominal[0][1] for queue in changed.queues] == [4, 12]
    assert explorer.outcome.table.equals(whatif(found.site, {"policy": changed}, calibration=found).table)
    (tmp_path / "site.toml").write_text(text % ("a100", "a100"))
    found = replay(Site(str(tmp_path / "site.toml")))
    assert "no rule here keeps to queues" in found.notes
    with pytest.raises(PolicyError, match=r"found no quota of 'a' for any of v100"):
        found.scenario.run(Kueue(found.site.description.queues))
    starts = found.starts.with_columns(greedy=pl.when(pl.col("job_id") != "j0").then("greedy"))
    more = [one.table.filter(rule="greedy")["more"][0] for one in (found, replace(found, starts=starts))]
    assert more[1] > more[0]  # a job that it never starts is no job that it hits
