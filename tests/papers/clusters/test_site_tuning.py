"""A site's own knobs tuned on the first half of its log, and judged on the rest."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.files.slurm_lines import unsayable
from gpuschedlab.papers.clusters.playing.eligible import play
from gpuschedlab.papers.clusters.tuning.settings import axes_of, own_setting
from gpuschedlab.papers.clusters.tuning.site_tuning import (
    KEPT,
    Gain,
    Parts,
    gain_of,
    missed,
    searched,
    simplest,
    tune_site,
)
from gpuschedlab.papers.clusters.whatif import whatif
from gpuschedlab.widgets import Site

ROUNDS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The sample with everything in its slurm.conf, and two limits."""
    home = tmp_path_factory.mktemp("site")
    for name in ("jobs.csv", "slurm.conf", "assoc.txt"):
        shutil.copy(Path(Site.sample().file).parent / name, home)
    (home / "qos.txt").write_text("Name|MaxTRESPU|MaxJobsPU\nnormal|gres/gpu=24|6\n")
    files = 'conf = "slurm.conf"\nassoc = "assoc.txt"\nqos = "qos.txt"\n'
    (home / "site.toml").write_text(f'[log]\npath = "jobs.csv"\n[slurm]\n{files}')
    jobs = pl.read_csv(home / "jobs.csv")
    jobs.with_columns(qos=pl.lit("normal")).write_csv(home / "jobs.csv")
    return home


@pytest.fixture(scope="module")
def site(folder):
    return Site(str(folder / "site.toml"))


@pytest.fixture(scope="module")
def found(site):
    return tune_site(site, ROUNDS, seed=3)


def test_what_is_announced_and_realised_are_means_of_the_same_jobs(site, found):
    """By plays without the class: the first half alone, and of the whole log the jobs from the cut on."""
    assert found.changed
    assert found.announced.after < found.announced.before
    scenario = site.recorded()
    early = scenario.replace(trace=scenario.trace.filter(pl.col("submit") < found.cut))
    rule = replace(found.setting.rule, limits=found.setting.limits)
    begin = early.trace["submit"].min() + (3 * 86_400 if found.cut - early.trace["submit"].min() >= 6 * 86_400 else 0)
    for gain, of, first in ((found.announced, early, begin), (found.realised, scenario, found.cut)):
        waits = []
        for policy in (site.own, rule):
            jobs = play(of, policy).jobs.filter(pl.col("submit") >= first)
            waits.append(jobs["end"] - jobs["submit"] - jobs["duration"])
        assert gain.jobs == len(waits[0])
        assert gain.before == pytest.approx(waits[0].mean())
        assert gain.after == pytest.approx(waits[1].mean())


def test_nothing_of_the_rest_is_seen_by_the_search(folder, found, tmp_path):
    """Jobs of the rest run for a tenth of the time: the setting and what is announced stay as they are."""
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    jobs = pl.read_csv(tmp_path / "jobs.csv")
    late = pl.col("submit") >= found.cut
    jobs = jobs.with_columns(duration=pl.when(late).then(pl.col("duration") * 0.1).otherwise("duration"))
    jobs.write_csv(tmp_path / "jobs.csv")
    other = tune_site(Site(str(tmp_path / "site.toml")), ROUNDS, seed=3)
    assert other.setting == found.setting
    assert other.announced == found.announced
    assert other.realised.before < 0.5 * found.realised.before


def test_the_lines_that_are_printed_say_the_setting_that_was_found(folder, site, found, tmp_path):
    """The changed slurm.conf is read as the very rule; limits go by sacctmgr."""
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "slurm.conf").write_text(found.back.conf.text)
    changed = Site(str(tmp_path / "site.toml"))
    assert own_setting(changed).rule == found.setting.rule
    assert not unsayable(own_setting(site).rule, found.setting.rule)
    assert not found.back.notes
    limits = found.setting.limits != site.description.limits
    assert bool(found.back.commands) == limits
    assert all(command.startswith("sacctmgr -i modify ") for command in found.back.commands)


def test_the_command_sees_nothing_of_the_rest_either(folder, tmp_path, capsys):
    """Jobs of the second half start at other times, which show other limits: what is searched and announced is the same."""
    from gpuschedlab.cli import main

    answers = []
    for name in ("one", "other"):
        home = tmp_path / name
        shutil.copytree(folder, home)
        jobs = pl.read_csv(home / "jobs.csv")
        late = pl.col("submit") >= jobs["submit"].median() + 1
        if name == "other":
            soon = pl.col("submit") + 5.0 * pl.int_range(pl.len())
            jobs = jobs.with_columns(started=pl.when(late).then(soon).otherwise("started"))
        jobs.write_csv(home / "jobs.csv")
        assert main(["tune", "--site", str(home / "site.toml"), "--rounds", "6", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    one, other = ([row["announced"] for row in answer["rows"]] for answer in answers)
    assert one == other
    assert answers[0]["changes"] == answers[1]["changes"]
    assert answers[0]["miss"] != answers[1]["miss"]


def test_a_limit_under_which_jobs_never_start_does_not_win(site):
    """Half of 24 GPUs of a user keeps the jobs of 16 and 24 from ever starting; those that start wait less."""
    parts = Parts(site)
    own = own_setting(site)
    (axis,) = [axis for axis in axes_of(site) if axis.name.startswith("gpus of")]
    tried = {setting.limits[axis_place(site)].gpus: setting for setting in axis.values(own)}
    assert sorted(tried) == [12.0, 24.0, 36.0, 48.0, np.inf]
    small = parts.early_jobs(tried[12.0])
    assert small["wait"].null_count() > parts.early_jobs(own)["wait"].null_count()
    assert parts.early(tried[12.0]) == np.inf
    again = {setting.limits[axis_place(site)].gpus for setting in axis.values(tried[36.0])}
    assert again == set(tried)  # multiples of the site's own, whatever is in force
    gain = gain_of(parts.early_jobs(own), small)
    assert gain.never == small["wait"].null_count() - parts.early_jobs(own)["wait"].null_count()


def axis_place(site) -> int:
    """Place of the limit of GPUs."""
    return next(place for place, limit in enumerate(site.description.limits) if "gpus" in limit.amounts)


def test_it_agrees_with_a_what_if_of_the_same_change(site, found):
    """On all jobs that a what-if counts, the change has the same sign."""
    change = {"policy": replace(found.setting.rule, limits=()), "within": found.setting.limits}
    table = whatif(site, change).table
    assert np.sign(table["difference"][0]) == np.sign(found.realised.difference)


def test_no_single_value_is_better_where_the_search_ends(site):
    """With as many rounds as it needs; and the simplest setting keeps all but a little of the gain."""
    parts = Parts(site)
    axes = [axis for axis in axes_of(site) if axis.name in ("depth", "weight_age", "plan.window")]
    tried = list(searched(parts, axes, 1000, np.random.default_rng(0)))
    assert len({*tried}) == len(tried)
    best = min(tried, key=parts.early)
    neighbours = [setting for axis in axes for setting in axis.values(best)]
    assert parts.early(best) == min(map(parts.early, neighbours))
    own = own_setting(site)
    simple = simplest(parts, best, axes)
    gain = parts.early(own) - parts.early(best)
    assert parts.early(own) - parts.early(simple) >= (1 - KEPT) ** len(axes) * gain - 1e-9


def test_the_same_seed_gives_the_same_answer(site, found):
    again = tune_site(site, ROUNDS, seed=3)
    assert (again.setting, again.announced, again.realised) == (found.setting, found.announced, found.realised)


def test_the_interval_holds_the_miss_of_the_replay(found):
    """By hand: -120 s, -200 to -40 s, and a replay that waits 30 s too little."""
    gain = Gain(jobs=100, before=300.0, after=180.0, low=-200.0, high=-40.0)
    one = replace(found, announced=gain, realised=gain, miss=-30.0)
    assert one.interval == (-230.0, -10.0)
    assert one.sentence.endswith("a change of -3.8 min to -10 s, the replay's own miss of 30 s among it: less.")
    other = replace(one, miss=50.0)
    assert other.interval == (-250.0, 10.0)
    assert other.sentence.endswith(": no clear change.")
    assert replace(one, miss=np.nan).interval == (-200.0, -40.0)


def test_what_the_replay_misses_is_of_the_jobs_that_were_played():
    played = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 10.0], "wait": [5.0, 30.0]})
    trace = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": [0.0, 10.0, 20.0], "started": [0.0, 20.0, 90.0]})
    assert missed(played, trace) == pytest.approx(12.5)  # 35 simulated, 10 recorded
    assert np.isnan(missed(played, trace.drop("started")))


def test_sites_that_cannot_be_tuned_say_why(tmp_path):
    jobs = "job_id,submit,gpus,duration\n" + "".join(f"{i},{i},1,60\n" for i in range(60))
    (tmp_path / "jobs.csv").write_text(jobs)
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-2] Gres=gpu:8\nPartitionName=p Nodes=ALL\n")
    (tmp_path / "site.toml").write_text('[log]\npath = "jobs.csv"\n[cluster]\nnodes = "2x8"\n')
    with pytest.raises(TraceError, match="found no slurm.conf"):
        tune_site(Site(str(tmp_path / "site.toml")))
    (tmp_path / "site.toml").write_text('[log]\npath = "jobs.csv"\n[slurm]\nconf = "slurm.conf"\n')
    with pytest.raises(TraceError, match="found 30 jobs to search on and 30 to judge by; expected 50 or more"):
        tune_site(Site(str(tmp_path / "site.toml")))


def test_where_nothing_waits_nothing_is_changed(tmp_path, capsys, monkeypatch):
    from gpuschedlab.cli import main

    jobs = "job_id,submit,gpus,duration\n" + "".join(f"{i},{100 * i},1,60\n" for i in range(120))
    (tmp_path / "jobs.csv").write_text(jobs)
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-2] Gres=gpu:8\nPartitionName=p Nodes=ALL\n")
    (tmp_path / "site.toml").write_text('[log]\npath = "jobs.csv"\n[slurm]\nconf = "slurm.conf"\n')
    assert main(["tune", "--site", str(tmp_path / "site.toml"), "--rounds", "5"]) == 0
    out = capsys.readouterr().out
    assert "Of 5 settings that slurm.conf can say none gains" in out
    assert "to put it in force" not in out


def test_from_the_command_line(folder, found, capsys):
    from gpuschedlab.cli import main

    words = ["tune", "--site", str(folder / "site.toml"), "--rounds", str(ROUNDS), "--seed", "3", "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["sentence"] == found.sentence
    assert answer["rows"][1] == {
        "setting": "tuned",
        "announced": found.announced.after,
        "realised": found.realised.after,
    }
    assert answer["changes"] == f"{found.back}"
