"""Golden answers of the laboratory's recipes: their scenarios with each knob elsewhere, what they say, what they refuse."""

import polars as pl
import pytest
from golden_answers import digest, golden, ran, refusal, varied

from gpuschedlab import Srtf
from gpuschedlab.check import small_trace
from gpuschedlab.scenarios import recipe_of
from gpuschedlab.scenarios.conditions import Conditions, days_in, past_in_words, with_past
from gpuschedlab.scenarios.own_file import OwnFile
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.scenarios.week import Shape, Week

WEEK = Week(cluster="4x8").with_knobs(days=1, jobs=60)
MADE = {
    "week": WEEK,
    "past": Week(cluster="4x8", before="1").with_knobs(days=1, jobs=40),
    "small": SmallCluster(nodes=2, jobs=30),
}


def facts(scenario) -> list:
    """A scenario in a few lines."""
    past = "" if scenario.history is None else digest(scenario.history)
    warm = "" if scenario.warm is None else digest(scenario.warm)
    return [
        digest(scenario.trace),
        past,
        warm,
        str(scenario.cluster),
        digest([[o.node, o.start, o.end] for o in scenario.cluster.events]),
        str(scenario.delays),
        type(scenario.estimator).__name__,
    ]


@pytest.mark.parametrize("name", MADE)
@golden
def test_scenarios(name):
    found = {}
    for knobs, recipe in varied(MADE[name], "mtbf", "days", "jobs").items():
        found[knobs] = facts(recipe(2))
    failing = MADE[name].with_knobs(mtbf=40_000.0, mttr=4000.0, restart=30.0) if name != "small" else MADE[name]
    about = failing.about(failing(1))
    return found | {
        "failing": facts(failing(1)),
        "about": {k: str(v) for k, v in about.items()},
        "ran": ran(failing(1), Srtf()),
    }


@golden
def test_own_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_trace(50).write_parquet("jobs.parquet")
    small_trace(30).select("job_id", "submit", "gpus", "duration").write_csv("jobs.csv")
    base = OwnFile("jobs.parquet", "3x4")
    found = {}
    each = {
        "plain": base,
        "history": base.with_knobs(history=0.4),
        "half": base.with_knobs(jobs=20, load=0.8),
        "days": base.with_knobs(days=0.02),
    }
    each |= {
        "csv": OwnFile("csv:jobs.csv", "2x8"),
        "before": OwnFile("jobs.parquet", "3x4", before="jobs.parquet"),
        "set": OwnFile("csv:jobs.csv", settings=("columns.gpus=gpus * 2",)),
    }
    for name, recipe in each.items():
        scenario = recipe(1)
        found[name] = [*facts(scenario), {k: str(v)[:300] for k, v in recipe.about(scenario).items() if k != "intake"}]
    same = small_trace(5).with_columns(submit=pl.lit(0.0))
    same.write_parquet("same.parquet")
    refused = [
        refusal(OwnFile("nowhere.parquet"), 1),
        refusal(OwnFile("same.parquet").with_knobs(history=0.5), 1),
        refusal(OwnFile("jobs.parquet", before="90"), 1),
    ]
    return found | {"refused": refused}


@golden
def test_parts():
    trace = small_trace(40)
    days = [days_in(word) for word in ("", "3", "0.5", "-1", "file.csv")]
    old, new = with_past(trace, 0.0, "0.01")[::-1]
    return {
        "days": days,
        "past": [digest(old), digest(new), past_in_words(old, "0.01"), past_in_words(None, "")],
        "gpus": [getattr(Conditions(), "gpus", None), str(Shape(burstiness=0.0))],
        "words": [str(recipe_of(word)) for word in ("week", "smallcluster:nodes=3,load=1.2")],
        "refused": [
            refusal(recipe_of, word) for word in ("week:days=-1", "smallcluster:nodes=0", "smallcluster:large=2")
        ],
    }
