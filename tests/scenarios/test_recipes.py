"""Recipes: knobs and a seed make a scenario; what a recipe holds is declared where it belongs, and nowhere again."""

import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Annotated

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab import cli
from gpuschedlab.errors import LabError, PolicyError, TraceError
from gpuschedlab.knobs import Holds, Knob, Knobbed, knobs_of
from gpuschedlab.parse import with_words, word_of
from gpuschedlab.scenarios import Recipe, aliases, recipe_of, recipes
from gpuschedlab.scenarios.own_file import OwnFile
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.scenarios.week import Week
from gpuschedlab.sweep import grid, sweep
from gpuschedlab.widgets import Explorer

ROOT = Path(__file__).resolve().parents[2]
OF_FILES = {"ownfile", "site"}
ALL = [pytest.param(cls, id=name) for name, cls in recipes().items()]
MADE = [pytest.param(cls, id=name) for name, cls in recipes().items() if name not in OF_FILES]
SMALLEST = {"week": {"days": 1, "jobs": 50}, "mergingcluster": {"hours": 1.0}, "promptlab": {"minutes": 5}}
SMALLEST |= {"promptloop": {"load": "low", "minutes": 5, "cap": 5}}
TINY = SmallCluster(nodes=2, jobs=5)


def small_one(cls) -> Recipe:
    return cls().with_knobs(**SMALLEST.get(cls.__name__.lower(), {}))


@pytest.mark.parametrize("cls", ALL)
def test_a_recipe_survives_a_word_a_dict_and_a_pickle(cls):
    recipe = cls() if cls is not OwnFile else OwnFile("mine.parquet", "3x4")
    for info in knobs_of(recipe).values():  # another value of each knob, where there is one
        others = list(info.knob.choices or (info.knob.low, info.knob.high))
        value = next((v for v in others if v != info.default and info.problem(v) is None), info.default)
        try:
            recipe = recipe.with_knobs(**{info.name: int(value) if info.kind == "int" else value})
        except LabError:  # another knob must move with it
            continue
    assert recipe != cls()
    assert recipe_of(word_of(recipe)) == recipe
    assert recipe_of(json.loads(json.dumps(recipe.to_dict()))) == recipe
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert hash(recipe) == hash(recipe_of(word_of(recipe)))


@pytest.mark.parametrize("cls", MADE)
def test_the_same_knobs_and_seed_make_the_same_scenario(cls):
    recipe = small_one(cls)
    one = recipe(3)
    same = recipe_of(word_of(recipe)).scenario(3)
    other = recipe(4)
    assert one.seed == 3
    assert one.trace.equals(same.trace)
    assert one.cluster == same.cluster
    assert not one.trace.equals(other.trace)
    assert all(isinstance(policy, lab.sim.Policy) for policy in recipe.policies.values())


@pytest.mark.parametrize("cls", ALL)
def test_nothing_about_a_knob_is_written_twice(cls):
    """A recipe's own knobs are not those of what it holds or compares: these are read where they are declared."""
    recipe = cls()
    held = [getattr(recipe, f.name) for f in dataclasses.fields(recipe)]
    held = [thing for thing in (*held, *recipe.policies.values()) if isinstance(thing, Knobbed)]
    inside = {(name, info.knob.help) for thing in held for name, info in knobs_of(thing).items()}
    for name, info in knobs_of(cls).items():
        if info.holder:
            thing = getattr(recipe, info.holder)
            assert info.knob.help == knobs_of(thing)[name].knob.help
            assert info.value_of(recipe) == getattr(thing, name)
        else:
            assert (name, info.knob.help) not in inside
            assert name not in {n for thing in held for n in knobs_of(thing)} - {"jobs", "load", "gpus"}, name


def test_knobs_that_recipes_share_are_declared_once():
    declared: dict[str, set] = {}
    for cls in recipes().values():
        for info in knobs_of(cls).values():
            if not info.holder:
                declared.setdefault(info.knob.help, set()).add(info.knob)
    assert all(len(knobs) == 1 for knobs in declared.values())


def test_a_recipe_is_nowhere_listed():
    """A file that is there is found: in scenarios/, or as recipe.py in a paper's folder."""
    package = ROOT / "gpuschedlab"
    files = [
        *(package / "scenarios").glob("[a-z]*.py"),
        *package.glob("papers/*/recipe.py"),
        *package.glob("autosched/recipe.py"),
    ]
    written = {
        name for path in files for name in re.findall(r"^class (\w+)\(.*\bRecipe\)", path.read_text(), re.MULTILINE)
    }
    assert {name.lower() for name in written} == set(recipes())


def test_a_held_knob_is_changed_and_checked_where_it_is_declared():
    small = SmallCluster().with_knobs(placement="buddy", nodes=3)
    assert (small.policy.placement, small.nodes) == ("buddy", 3)
    assert small.policy == dataclasses.replace(SmallCluster().policy, placement="buddy")
    with pytest.raises(PolicyError, match=r"Fifo.placement: found 'heap'; expected one of"):
        small.with_knobs(placement="heap")
    with pytest.raises(TraceError, match=r"SmallCluster has no knob \['depth'\]"):
        small.with_knobs(depth=3)
    with pytest.raises(TraceError, match="SmallCluster.nodes: found 0; expected 1 to 64"):
        SmallCluster(nodes=0)


def test_a_knob_that_is_held_twice_or_not_there_is_named():
    @dataclasses.dataclass(frozen=True)
    class Twice(Recipe):
        placement: Annotated[str, Knob(choices=("pack", "spread"))] = "pack"
        policy: Annotated[lab.Fifo, Holds(("placement",))] = lab.Fifo()

    @dataclasses.dataclass(frozen=True)
    class Nowhere(Recipe):
        policy: Annotated[lab.Fifo, Holds(("depth_of_field",))] = lab.Fifo()

    for cls, name in ((Twice, "placement"), (Nowhere, "depth_of_field")):
        with pytest.raises(TraceError, match=f"{cls.__name__}.policy: found the knob '{name}'; expected one of"):
            knobs_of(cls)


def test_a_held_range_is_that_worth_a_search():
    assert (knobs_of(Week)["days"].knob.low, knobs_of(Week)["days"].knob.high) == (1, 365)
    assert Week().with_knobs(days=400).amount.days == 400  # what may be chosen is not narrowed


def test_words_name_recipes():
    assert recipe_of("smallcluster:nodes=3,placement=buddy").policy.placement == "buddy"
    assert recipe_of("ownfile:file=jobs.parquet,cluster=2x8") == OwnFile("jobs.parquet", "2x8")
    for word in aliases():
        assert recipe_of(f"{word}:slo=2") == recipe_of(word).with_knobs(slo=2)
    assert with_words(TINY, {"load": "1.5"}).load == 1.5
    with pytest.raises(TraceError, match=r"recipe 'smalcluster': expected one of .*Did you mean smallcluster\?"):
        recipe_of("smalcluster")
    with pytest.raises(TraceError, match="smallcluster has no knob 'node'; its knobs are placement, nodes"):
        recipe_of("smallcluster:node=3")


def test_a_file_of_ones_own_is_a_recipe(tmp_path):
    path = tmp_path / "jobs.parquet"
    lab.traces.write_parquet(TINY(0).trace, path)
    scenario = OwnFile(str(path), "2x8")(seed=5)
    assert scenario.trace["job_id"].to_list() == TINY(0).trace["job_id"].to_list()
    assert (scenario.cluster.total_gpus, scenario.seed) == (16, 5)
    (tmp_path / "mine.toml").write_text('path = "jobs.parquet"\nformat = "parquet"\n')
    assert OwnFile(str(tmp_path / "mine.toml"))(0).cluster.total_gpus == 560


def test_a_part_of_a_log_is_its_history(tmp_path):
    """The instant between is the zero of both; the cluster is that of the spec."""
    (tmp_path / "jobs.csv").write_text(
        "id,submit,gpus,duration\n" + "".join(f"{i},{5000 + 10 * i},2,60\n" for i in range(11))
    )
    (tmp_path / "mine.toml").write_text('path = "jobs.csv"\n[cluster]\nnodes = "3x4:t4"\n')
    scenario = OwnFile(str(tmp_path / "mine.toml"), history=0.5)(0)
    assert scenario.history["submit"].to_list() == [-50, -40, -30, -20, -10]
    assert scenario.trace["submit"].to_list() == [0, 10, 20, 30, 40, 50]
    assert str(scenario.cluster) == "3x4:t4"
    assert OwnFile(str(tmp_path / "mine.toml")).log.report.jobs == 11
    rows = {
        "job_id": [f"{i}" for i in range(11)],
        "submit": [5000.0 + 10 * i for i in range(11)],
        "gpus": 2.0,
        "duration": 60.0,
    }
    pl.DataFrame(rows).write_parquet(tmp_path / "later.parquet")  # a stored trace begins when it begins
    scenario = OwnFile(str(tmp_path / "later.parquet"), "3x4:t4", history=0.5)(0)
    assert scenario.history["submit"].to_list() == [-50, -40, -30, -20, -10]
    (tmp_path / "jobs.csv").write_text("id,submit,gpus,duration\na,0,2,60\nb,0,2,60\n")
    with pytest.raises(TraceError, match="found all jobs at one instant"):
        OwnFile(str(tmp_path / "mine.toml"), history=0.5)(0)


def test_a_sweep_takes_recipes_and_writes_their_words_down(tmp_path):
    found = sweep(grid(TINY, load=[0.5, 1.0]), [lab.Fifo(), lab.Srtf()], tmp_path / "cells", seeds=2, workers=1)
    assert found.frame.height == 8
    assert set(found.frame["scenario"]) == {word_of(TINY.with_knobs(load=load)) for load in (0.5, 1.0)}
    direct = TINY.with_knobs(load=0.5)(1).run(lab.Srtf()).summary()["jct_mean"]
    row = found.frame.filter(scenario=word_of(TINY.with_knobs(load=0.5)), policy="srtf", seed=1)
    assert row["jct_mean"].to_list() == [direct]


def test_an_explorer_takes_a_recipe_and_another_seed_is_another_trace():
    explorer = Explorer(TINY, [lab.Fifo, lab.Srtf])
    assert explorer.run.jobs["duration"].to_list() == TINY(0).trace["duration"].to_list()
    explorer.panel.seed.value = 2
    assert explorer.run.jobs["duration"].to_list() == TINY(2).trace["duration"].to_list()
    trace = next(iter(explorer.traces.values()))
    assert eval(trace.code(2), {"lab": lab}).equals(TINY(2).trace)
    explorer.close()


def test_the_command_line_takes_a_recipe(capsys, tmp_path):
    words = ["--on", "smallcluster:nodes=2", "--set", "jobs=5", "--set", "placement=spread", "--out", "", "--json"]
    assert cli.main(["compare", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["policies"]) == list(TINY.policies)  # its own policies, as none is named
    assert (told["jobs"], told["estimator"]) == (5, "oracle")
    assert told["trace"].startswith("smallcluster:placement=spread,nodes=2,jobs=5 (seed 0): Nodes of 8 GPUs")
    assert cli.main(["compare", "fifo", "srtf", *words]) == 0
    assert list(json.loads(capsys.readouterr().out)["policies"]) == ["fifo", "srtf"]
    wrong = {
        ("compare", "--set", "nodes=2"): "Week has no knob 'nodes'; its knobs are",
        ("compare", "--on", "smallcluster", "--mtbf", "9"): "recipe smallcluster: found --mtbf; expected none, as its",
        ("compare", "--on", "smallcluster", "--history", "2"): "recipe smallcluster: found --history; expected none",
        ("compare", "--on", "smallcluster", "--set", "nods=2"): "SmallCluster has no knob 'nods'",
    }
    for given, said in wrong.items():
        assert cli.main(list(given)) == 2
        assert said in capsys.readouterr().err
    asked = ["sweep", "fifo", "--on", "smallcluster:nodes=2,jobs=5", "--vary", "load=0.5/1", "--workers", "1"]
    assert cli.main([*asked, "--out", str(tmp_path / "cells"), "--json"]) == 0
    assert {row["scenario"] for row in json.loads(capsys.readouterr().out)["rows"]} == {
        "smallcluster:nodes=2,jobs=5,load=0.5",
        "smallcluster:nodes=2,jobs=5,load=1",
    }


def answer(capsys, *words: str) -> dict:
    """What `compare fifo srtf` says in JSON, without the time that it took and the words for what was run."""
    assert cli.main(["compare", "fifo", "srtf", *words, "--out", "", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for run in told["policies"].values():
        run["metrics"].pop("seconds"), run["info"].pop("seconds")
    return {name: value for name, value in told.items() if name not in ("trace", "intake")}


def test_options_are_words_for_the_knobs_of_a_recipe(capsys, tmp_path):
    """What options put together, one word of the recipe says as well, and so does the recipe in Python."""
    given = "--days 1 --jobs 60 --load 0.7 --cluster 4x8 --history 0.5 --mtbf 40000 --restart 30 --speeds none"
    words = "before=0.5,days=1,jobs=60,load=0.7,cluster=4x8,mtbf=40000,restart=30,speeds=none,exact=true"
    told = answer(capsys, *given.split())
    assert answer(capsys, "--on", f"week:{words}") == told
    assert answer(capsys, "--recipe", "week:exact=true", *given.split()) == told
    run = recipe_of(f"week:{words}")(0).run(lab.Srtf())
    assert run.summary()["jct_mean"] == told["policies"]["srtf"]["metrics"]["jct_mean"]
    lab.traces.write_parquet(TINY.with_knobs(jobs=40)(0).trace, tmp_path / "jobs.parquet")
    given = ["--cluster", "4x8", "--jobs", "20", "--load", "0.5", "--mtbf", "9000", "--estimator", "noisy:error=1"]
    told = answer(capsys, "--trace", str(tmp_path / "jobs.parquet"), *given)
    file = f"file={tmp_path / 'jobs.parquet'},cluster=4x8,jobs=20,load=0.5,mtbf=9000,estimator=noisy:error=1"
    assert answer(capsys, "--on", f"ownfile:{file}") == told


def test_any_recipe_runs_on_another_cluster_with_another_estimator(capsys, tmp_path):
    """Also in a sweep, and with knobs that are varied."""
    words = ["--on", "smallcluster:jobs=5", "--cluster", "3x8", "--estimator", "noisy:error=1"]
    told = answer(capsys, *words)
    assert (told["cluster"], told["estimator"]) == ("3x8:v100", "noisy:error=1")
    words += ["--vary", "jobs=5/6", "--workers", "1", "--out", str(tmp_path / "cells"), "--json"]
    assert cli.main(["sweep", "srtf", *words]) == 0
    rows = {row["scenario"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert set(rows) == {"smallcluster:jobs=5", "smallcluster:jobs=6"}
    assert rows["smallcluster:jobs=5"]["jct_mean"] == told["policies"]["srtf"]["metrics"]["jct_mean"]


def test_a_sweep_says_what_compare_says(capsys, tmp_path):
    """Nodes fail at the same instants, and a file of the past is learnt by both."""
    lab.traces.write_parquet(TINY.with_knobs(jobs=40)(0).trace, tmp_path / "past.parquet")
    words = [
        "--days",
        "1",
        "--jobs",
        "40",
        "--cluster",
        "4x8",
        "--mtbf",
        "40000",
        "--history",
        str(tmp_path / "past.parquet"),
    ]
    told = answer(capsys, *words)
    assert told["estimator"] == "runtime"
    words += ["--workers", "1", "--out", str(tmp_path / "cells"), "--json"]
    assert cli.main(["sweep", "fifo", "srtf", *words]) == 0
    for row in json.loads(capsys.readouterr().out)["rows"]:
        assert row["jct_mean"] == told["policies"][row["policy"]]["metrics"]["jct_mean"]


def blocks(page: str) -> list[str]:
    """Python of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("page", "base"), [("own-recipe.md", "lab.Recipe"), ("own-estimator.md", "Estimator")])
def test_ones_own_is_one_file_of_at_most_30_lines(page, base):
    own = next(code for code in blocks(page) if f"({base})" in code)
    assert len(own.strip().splitlines()) <= 30
    assert own.lstrip().startswith(("import", "from", '"""'))  # a file of its own: it names what it needs


def test_the_recipe_of_the_page_is_taken_from_a_file(tmp_path, capsys):
    path = tmp_path / "bursts.py"
    path.write_text(next(code for code in blocks("own-recipe.md") if "(lab.Recipe)" in code))
    assert recipe_of(f"{path}:Bursts:jobs=12")(seed=1).trace.height == 12
    assert cli.main(["compare", "fifo", "--on", f"{path}:jobs=12", "--out", "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 12
