"""The suite: fixed tasks, a bound that nothing beats, standings that are the same bytes, and a card that says what they are."""

import itertools
import re

import numpy as np
import polars as pl
import pytest
from task_digest import digest_of

from gpuschedlab import Cluster, Scenario, Srtf
from gpuschedlab.cli import main
from gpuschedlab.errors import RunError, TraceError
from gpuschedlab.parse import policy_of
from gpuschedlab.suite import TASKS, Standing, stand, write_card
from gpuschedlab.suite.card import middle_seed, sentences
from gpuschedlab.suite.standing import least_jct
from gpuschedlab.suite.tasks import OF_PAPERS

LAB = tuple(task for task in TASKS if task.name not in OF_PAPERS)
QUICK = tuple(task for task in LAB if task.name in ("venus-0.7", "pai-0.9"))


def one_gpu(submit, duration):
    jobs = {"job_id": [f"{i}" for i in range(len(submit))], "submit": submit, "gpus": 1, "duration": duration}
    return Scenario(pl.DataFrame(jobs).sort("submit"), Cluster.homogeneous(1, 1))


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_reached_on_one_gpu_and_by_no_order_passed(seed):
    """Preemption at no cost on one GPU: SRTF is the bound itself, and no priority order of few jobs is below it."""
    rng = np.random.default_rng(seed)
    scenario = one_gpu(np.sort(rng.uniform(0, 50, 5)), rng.uniform(1, 30, 5))
    bound = least_jct(scenario)
    assert scenario.run(Srtf()).summary()["jct_mean"] == pytest.approx(bound, rel=1e-9)
    submit, duration = (scenario.trace[name].to_list() for name in ("submit", "duration"))
    for order in itertools.permutations(range(5)):
        now = 0.0
        ends = []
        for j in order:
            now = max(now, submit[j]) + duration[j]
            ends.append(now - submit[j])
        assert np.mean(ends) >= bound - 1e-9


@pytest.mark.compiled
@pytest.mark.parametrize("task", [task for task in LAB if not task.there()], ids=lambda task: task.name)
def test_no_policy_beats_the_bound_of_a_task(task):
    scenario = task.make()(0)
    bound = least_jct(scenario)
    assert bound
    for word in ("fifo", "srtf", "tiresias", "lucid"):
        assert scenario.run(policy_of(word)).summary()["jct_mean"] >= bound * (1 - 1e-9), word


def test_tasks_are_the_same_ones_tomorrow():
    """A digest of each task's first scenario: whoever changes one gives it a new version."""
    known = {
        "venus-0.7": (1, 4000, "32x8:v100", 1078987162.0, 26924.0, 14911075.0),
        "venus-0.9": (1, 4000, "32x8:v100", 1078987162.0, 26924.0, 19252701.0),
        "venus-1.1": (1, 4000, "32x8:v100", 1078987162.0, 26924.0, 24000900.0),
        "philly-0.9": (1, 4000, "32x8:v100", 977393622.0, 5149.0, 45361120.0),
        "pai-0.9": (1, 4000, "32x8:v100", 1220465782.0, 19403.0, 18794809.0),
        "failures": (1, 4000, "32x8:v100", 1078987162.0, 26924.0, 19252701.0),
        "estimates": (1, 4000, "32x8:v100", 1078987162.0, 26924.0, 19252701.0),
    }
    assert {task.name: digest_of(task) for task in LAB if not task.there()} == known


@pytest.mark.compiled
def test_a_standing_is_the_same_bytes_on_two_workers_and_goes_on_where_it_was(tmp_path):
    alone = stand(["tiresias"], tmp_path / "one", seeds=2, tasks=QUICK, progress=False)
    stand(["fifo"], tmp_path / "two", seeds=1, tasks=QUICK[:1], progress=False)
    both = stand(["tiresias"], tmp_path / "two", seeds=2, tasks=QUICK, workers=2, progress=False)
    assert both.frame.equals(alone.frame)
    cards = [write_card(found, tmp_path / f"{i}.html").read_bytes() for i, found in enumerate((alone, both))]
    assert cards[0] == cards[1]
    assert alone.frame.group_by("task", "policy").len()["len"].unique().to_list() == [2]
    assert set(alone.frame.filter(task="venus-0.7")["policy"]) == {"tiresias", "fifo", "srtf", "lucid"}


def test_what_a_card_says_follows_from_the_figures(tmp_path):
    """Made figures: in one task mine is a tenth better than all in each seed, in another worse, in a third it depends on the seed."""
    mine = {"venus-0.7": [9.0, 18.0], "venus-0.9": [11.0, 22.0], "venus-1.1": [5.0, 30.0]}
    rows = [
        {
            "task": task,
            "version": 1,
            "metric": "jct_mean",
            "policy": policy,
            "seed": seed,
            "jobs": 10,
            "value": value,
            "bound": 8.9 * (1 + seed),
        }
        for task, values in mine.items()
        for policy in ("mine.py:Mine", "fifo", "srtf", "lucid")
        for seed, value in enumerate(values if policy == "mine.py:Mine" else [10.0, 20.0])
    ]
    costs = dict.fromkeys(("preemptions", "restarts_mean", "gpu_time_overhead", "gpu_time_lost"), 0.0) | {
        "gpu_time": 1.0
    }
    found = Standing(("mine.py:Mine",), pl.DataFrame([row | costs for row in rows]))
    assert found.verdicts("mine.py:Mine") == {"wins": ["venus-0.7"], "loses": ["venus-0.9"], "open": ["venus-1.1"]}
    ladder = found.ladder("venus-0.7")
    assert [row["policy"] for row in ladder] == ["mine.py:Mine", "fifo", "srtf", "lucid"]
    assert [(row["seeds"], row["value"]) for row in ladder[1:]] == [(2, 15.0)] * 3
    assert ladder[1]["behind"] == (pytest.approx(1 / 9), pytest.approx(0, abs=1e-12))
    assert ladder[0]["behind"] == (0, 0)
    assert found.against("mine.py:Mine", "fifo", "venus-0.7") == (pytest.approx(-0.1), pytest.approx(0, abs=1e-12))
    said = " ".join(sentences(found, "mine.py:Mine"))
    assert "Better than every policy beside it: venus-0.7 (-10.0 % from fifo in the middle seed)." in said
    assert "Within a tenth of what no schedule can beat: venus-0.7." in said
    page = write_card(found, tmp_path / "card.html").read_text()
    assert re.findall(r'data-label="from fifo">([^<]+)<', page)[0] == "-10.0 % ± 0.0"
    with pytest.raises(RunError, match="expected a file that can be written"):
        write_card(found, tmp_path / "card.html" / "inside.html")


def test_the_middle_seed_has_an_interval_from_six_seeds_on_whatever_one_seed_says():
    """Nine seeds in which a policy takes a tenth less time, and one in which it takes twice the time: the mean is no better."""
    rows = [
        {"task": "venus-0.7", "version": 1, "metric": "jct_mean", "policy": policy, "seed": seed, "value": value}
        for policy, ninth in (("mine", [90.0] * 9 + [200.0]), ("fifo", [100.0] * 10), ("srtf", [300.0] * 10))
        for seed, value in enumerate(ninth)
    ]
    found = Standing(("mine",), pl.DataFrame([row | {"bound": 50.0} for row in rows]))
    assert found.nearest("mine", "venus-0.7") == "fifo"
    assert found.against("mine", "fifo", "venus-0.7")[0] == pytest.approx(0.01)
    assert found.middle("mine", "fifo", "venus-0.7")[:3] == pytest.approx((-0.1, -0.1, -0.1))
    said = middle_seed(found, "mine", "venus-0.7")
    assert said == "venus-0.7 (-10.0 % from fifo in the middle seed, 95 %: -10.0 to -10.0)"
    few = Standing(("mine",), found.frame.filter(pl.col("seed") < 5))
    assert np.isnan(few.middle("mine", "bound", "venus-0.7").low)
    assert middle_seed(few, "mine", "venus-0.7") == "venus-0.7 (-10.0 % from fifo in the middle seed)"
    assert few.middle("mine", "nobody", "venus-0.7") is None
    assert Standing(("mine",), found.frame.filter(policy="mine")).nearest("mine", "venus-0.7") is None


def test_the_command_stands_a_policy_of_ones_own_and_says_what_failed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom gpuschedlab import Ordered\n\n@dataclass(frozen=True)\nclass Mine(Ordered):\n"
        '    """Small jobs first."""\n\n    moving = "none"\n\n    @staticmethod\n    def key(now, job, knobs):\n'
        "        return job.gpus * job.estimate\n\n\n@dataclass(frozen=True)\nclass Bad(Mine):\n"
        '    """A key that is no number."""\n\n    @staticmethod\n    def key(now, job, knobs):\n        return math.nan\n'.replace(
            "math.nan", "job.gpus * float('nan')"
        )
    )
    words = ["--seeds", "2", "--tasks", "venus-0.7", "--folder", "kept", "--csv", "all.csv"]
    assert main(["suite", "mine.py:Mine", *words]) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("venus-0.7: average JCT", "mine.py:Mine", "card: card.html"))
    assert pl.read_csv("all.csv").height == 8
    assert main(["suite", "mine.py:Bad", *words, "--card", "", "--json"]) == 1
    assert "mine.py:Bad" in capsys.readouterr().err
    assert main(["suite", "fifo", "--tasks", "venus"]) == 1
    assert "found the task 'venus'; expected some of venus-0.7" in capsys.readouterr().err


def test_a_week_of_a_fetched_log_is_a_task(tmp_path, monkeypatch):
    (tmp_path / "Venus").mkdir()
    head = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    rows = [
        f"{i},u,v,8,64,1,COMPLETED,2020-06-{d} 10:00:00,2020-06-{d} 10:00:00,2020-06-{d} 11:00:00,3600,0"
        for i, d in enumerate(("09", "10", "17"))
    ]
    (tmp_path / "Venus" / "cluster_log.csv").write_text(head + "\n".join(rows) + "\n")
    monkeypatch.setattr("gpuschedlab.suite.tasks.helios_folder", lambda: tmp_path)
    (task,) = (task for task in TASKS if task.name == "helios")
    assert task.there() == ""
    assert [task.make()(seed).trace["submit"].to_list() for seed in (0, 1)] == [[0.0, 86_400.0], [86_400.0]]
    with pytest.raises(TraceError, match="found no jobs in week 2 of Venus; expected a seed below 2"):
        task.make()(2)
