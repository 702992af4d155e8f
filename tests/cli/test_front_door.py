"""What a newcomer meets first: a quick command line, and names that an editor completes."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import gpuschedlab as lab
from gpuschedlab import gym, problems, sim, traces, widgets
from gpuschedlab._faces import names_of_papers, papers
from gpuschedlab.cli import main
from gpuschedlab.cli.parser import COMMANDS, commands, make_parser


def loaded(code: str) -> set[str]:
    """Packages that a fresh Python has loaded after some code."""
    code = f"import contextlib, io, sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def helped(*words: str) -> str:
    """Code that asks for help."""
    return f"""
from gpuschedlab._faces import names_of_papers, papers
from gpuschedlab.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
    main({[*words, "--help"]!r})
assert "usage: gpuschedlab" in out.getvalue()
"""


SLOW = {"numpy", "polars", "numba", "scipy", "sklearn", "joblib", "tqdm"}


@pytest.mark.parametrize("words", [(), *((name,) for name in commands())])
def test_help_loads_nothing_that_is_slow(words):
    assert not loaded(helped(*words)) & SLOW


def test_a_policy_does_not_load_the_engine():
    code = "from gpuschedlab import Tiresias\nfrom gpuschedlab.knobs import knobs_of\nknobs_of(Tiresias)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert "gpuschedlab.sim.policy" in done.stdout.split()
    assert not {"gpuschedlab.sim.simulation", "gpuschedlab.sim.engine.events"} & set(done.stdout.split())


@pytest.mark.parametrize("name", commands())
def test_each_command_has_help_of_its_own(name, capsys):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: gpuschedlab {name}")
    assert commands()[name][0][1:12] in said


def test_help_begins_with_three_examples_that_can_be_typed(capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["--help"])
    examples, _, _ = capsys.readouterr().out.partition("\n\nusage: ")
    lines = [re.split(r"\s{2,}", line) for line in examples.splitlines()]
    assert len(lines) == 3
    for words, about in lines:
        assert about
        name, *arguments = words.split()
        assert name == "gpuschedlab"
        assert make_parser().parse_args(arguments).command.__name__ == arguments[0]


def test_commands_are_found_by_being_there_in_their_order():
    assert list(commands())[: len(COMMANDS)] == list(COMMANDS)
    assert commands()["trace"] == (
        "list, describe, generate, convert or fetch traces",
        "gpuschedlab.cli.commands.trace",
    )


# --- what an editor shows

HOME = Path(__file__).resolve().parents[1]
COMPLETED = (
    "lab.",
    "lab.simu",
    "from gpuschedlab.traces import read_",
    "lab.simulate(trace, cluster, lab.Fifo()).su",
    "lab.Tiresias().with_",
)
SIGNED = [
    ("lab.simulate(", "trace: pl.DataFrame | Scenario, cluster: Cluster | Policy | None=None"),
    ("lab.simulate(", "-> Run"),
    ("lab.compare(", 'what: "Recipe | Scenario | pl.DataFrame | Mapping[str, Run]"'),
    ("lab.Scenario(", "estimator: Estimator | None=None, delays: Delays"),
    ("lab.Scenario(trace, cluster).run(", "run(policy: Policy, *, log: bool | str=False) -> Run"),
    ("lab.Tiresias(", 'queues: Annotated[int, Knob(1, 5, help="priority queues")]=2'),
    ("lab.Optimus(", "interval: Annotated[float, Knob("),
    *((f"lab.{name}(", "Annotated[") for name in [*names_of_papers("policies")][:1]),
    ("lab.Cluster.homogeneous(", "nodes: int=70, gpus_per_node: int=8"),
    ("lab.generate(", "days: float=7.0"),
    ("lab.read(", "path: str | Path"),
    ("lab.Runtime(", "trees:"),
    ("lab.check_policy(", "policy: Policy | type[Policy]"),
    ("lab.knobs_of(", "-> dict[str, KnobInfo]"),
]
in_an_editor = pytest.mark.xdist_group("editor")  # asked once


@cache
def answers() -> dict[tuple[str, str], list]:
    """What an editor answers to all that is asked below."""
    asked = [("complete", text) for text in COMPLETED]
    asked += [("sign", call) for call in dict.fromkeys(call for call, _ in SIGNED)]
    asked += [("goto", f"lab.{name}") for name in lab.__all__]
    command = [sys.executable, str(HOME / "editor.py")]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True, cwd=HOME.parent)
    return dict(zip(asked, json.loads(done.stdout), strict=True))


@in_an_editor
def test_an_editor_completes_every_public_name():
    every, simu, readers, run, policy = (set(answers()["complete", text]) for text in COMPLETED)
    assert set(lab.__all__) <= every
    assert simu == {"simulate"} | {name for name in lab.__all__ if name.lower().startswith("simu")}
    assert "read_parquet" in readers
    assert "summary" in run
    assert "with_knobs" in policy


@in_an_editor
@pytest.mark.parametrize(("call", "shown"), SIGNED)
def test_an_editor_shows_signatures(call, shown):
    (signature,) = answers()["sign", call]
    assert shown in signature


@in_an_editor
@pytest.mark.parametrize("name", lab.__all__)
def test_an_editor_finds_where_a_public_name_is_defined(name):
    ((kind, module),) = answers()["goto", f"lab.{name}"]
    assert kind in ("function", "class")
    assert module == getattr(lab, name).__module__


def bare(function) -> list[str]:
    """Parameters without an annotation."""
    plain = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    asked = inspect.signature(function).parameters.values()
    return [p.name for p in asked if p.kind in plain and p.annotation is p.empty]


@pytest.mark.parametrize("home", [lab, sim, gym, problems], ids=lambda home: home.__name__)
def test_public_parameters_are_annotated(home):
    public = {name: getattr(home, name) for name in home.__all__}
    found = {name: bare(thing) for name, thing in public.items() if callable(thing)}
    for cls in (lab.Ordered, lab.Round):
        found |= {
            f"{cls.__name__}.{name}": bare(getattr(cls(), name)) for name in ("key", "allocate") if hasattr(cls, name)
        }
    assert not {name: missing for name, missing in found.items() if missing}


@pytest.mark.parametrize(
    "home", [lab, sim, traces, gym, widgets, *map(importlib.import_module, papers())], ids=lambda home: home.__name__
)
def test_every_name_of_a_stub_is_there(home):
    assert set(home.__all__) == set(dir(home))
    for name in home.__all__:
        assert getattr(home, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = home.no_such_name


def test_five_jobs_on_the_default_cluster_get_a_word(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"j{i},{i * 60},2,{i + 1}\n" for i in range(5))
    (tmp_path / "jobs.csv").write_text("id,when,GPUs,Hours\n" + rows)
    word = "csv:jobs.csv:job_id=id,submit=when,duration=Hours"
    assert main(["compare", "fifo", "srtf", "--trace", word, "--out", ""]) == 0
    said = capsys.readouterr()
    text = said.out + said.err
    assert (
        "All jobs together ask for 10 GPUs: none ever waits for others. Name a smaller cluster: --cluster 2x8." in text
    )
    assert "Policies know the true durations." in text
    assert "'Hours' is in h, as its name says" in text
    assert main(["compare", "fifo", "srtf", "--trace", word, "--cluster", "1x2", "--out", ""]) == 0
    assert "All jobs together" not in capsys.readouterr().out
