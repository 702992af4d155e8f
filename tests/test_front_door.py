"""What a newcomer meets first: a quick command line, and names that an editor completes."""

import json
import subprocess
import sys

import pytest

from gpuschedlab.bench import imports
from gpuschedlab.cli import main
from gpuschedlab.cli.parser import COMMANDS, make_parser


def loaded(code: str) -> set[str]:
    """Packages that a fresh Python has loaded after some code."""
    code = f"import contextlib, io, sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def helped(*words: str) -> str:
    """Code that asks for help."""
    return f"""
from gpuschedlab.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
    main({[*words, "--help"]!r})
assert "usage: gpuschedlab" in out.getvalue()
"""


def test_help_loads_nothing_that_is_slow():
    assert not loaded(helped()) & {"numpy", "polars", "numba", "scipy"}
    assert not loaded(helped("bench")) & {"polars", "numba", "scipy"}
    assert not loaded(helped("trace")) & {"numba", "scipy"}


def test_a_policy_does_not_load_the_engine():
    code = "from gpuschedlab import Tiresias\nfrom gpuschedlab.knobs import knobs_of\nknobs_of(Tiresias)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert "gpuschedlab.sim.policy" in done.stdout.split()
    assert not {"gpuschedlab.sim.simulation", "gpuschedlab.sim.engine.events"} & set(done.stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_of_its_own(name, capsys):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: gpuschedlab {name}")
    assert COMMANDS[name][1:12] in said


def test_the_bench_of_imports_ends_with_1_when_a_budget_is_missed(capsys, monkeypatch):
    for over, code in ((0.4, 0), (0.6, 1)):
        spent = {("-c", "pass"): 0.1, ("-m", "gpuschedlab", "--help"): 0.1 + over}
        monkeypatch.setattr(imports, "seconds", lambda words, spent=spent: spent.get(words, 0.15))
        assert main(["bench", "imports", "--json"]) == code
        rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
        assert rows["help"]["value"] == pytest.approx(over)
        assert rows["help"]["ok"] is (code == 0)
        assert rows["import"]["ok"] is True
