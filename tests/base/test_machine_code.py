"""Kept machine code that was harmed is compiled again, with one line of words; processes that start at once do not disturb each other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from package_files import PACKAGE

from gpuschedlab import _compiled

SUMS = """from gpuschedlab._compiled import njit

@njit
def total(values):
    found = 0
    for value in values:
        found += value
    return found
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Function that makes a compiled one anew, as a process that starts does, with its machine code in `tmp_path / "kept"`."""
    (tmp_path / "sums.py").write_text(SUMS)
    monkeypatch.setattr(_compiled, "cache_folder", lambda part: tmp_path / "kept" / part)
    monkeypatch.setattr(_compiled._Announcer, "said", 0.0)
    monkeypatch.setattr(_compiled, "EVERY", float("inf"))  # no words on what the rest of the process compiles

    def made():
        _compiled._say.cache_clear()
        names = {"__name__": "gpuschedlab.toys.sums"}
        exec(compile(SUMS, tmp_path / "sums.py", "exec"), names)
        return names["total"]

    return made


def loaded(function) -> int:
    """How many signatures came from the disk; all are called, and add up to 10 and 10.5."""
    assert function(np.arange(5)) == 10
    assert function(np.array([10.0, 0.5])) == 10.5
    return sum(function.stats.cache_hits.values())


def flipped(path: Path, place: int):
    raw = bytearray(path.read_bytes())
    raw[place] ^= 16
    path.write_bytes(raw)


HARMS = {
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "flipped in its middle": lambda path: flipped(path, path.stat().st_size // 2),
    "flipped in its checksum": lambda path: flipped(path, 0),
    "garbage": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "someone else's": lambda path: path.write_bytes(b"cos\nsystem\n(S'exit 1'\ntR."),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_harmed_file_is_as_none_and_is_replaced(tmp_path, capsys, kind, harm):
    def files():
        return _compiled._Files(str(tmp_path), "sums.total", "stamp")

    _compiled._say.cache_clear()
    files().save("signature", "code" * 100)
    assert files().load("signature") == "code" * 100
    HARMS[harm](next(tmp_path.glob(f"*.{kind}")))
    assert files().load("signature") is None
    assert "found damaged machine code" in capsys.readouterr().err
    files().save("signature", "new code")
    assert files().load("signature") == "new code"


@pytest.mark.compiled("is about machine code that is kept")
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_harmed_machine_code_is_compiled_again_with_one_line_of_words(make, tmp_path, capsys, kind):
    assert loaded(make()) == 0
    assert loaded(make()) == 2
    assert capsys.readouterr().err == ""
    for path in tmp_path.glob(f"kept/*/*/*.{kind}"):
        flipped(path, path.stat().st_size // 2)
    assert loaded(make()) == 0
    said = capsys.readouterr().err
    assert said.startswith("gpuschedlab: found damaged machine code in ")
    assert said.endswith("compiling it again, which may take a minute or two.\n")
    assert said.count("\n") == 1
    assert loaded(make()) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.compiled("is about machine code that is kept")
def test_machine_code_that_is_gone_is_compiled_again_without_a_word(make, tmp_path, capsys):
    loaded(make())
    next(tmp_path.glob("kept/*/*/*.nbc")).unlink()
    assert loaded(make()) == 1
    assert loaded(make()) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.compiled("is about machine code that is kept")
def test_machine_code_that_cannot_be_kept_is_compiled_at_each_start(make, tmp_path, capsys):
    (tmp_path / "kept").write_text("no folder")
    assert loaded(make()) == 0
    said = capsys.readouterr().err
    assert f"machine code cannot be kept in {tmp_path / 'kept'}: Not a directory; each start compiles it again." in said
    assert said.count("\n") == 1


def test_a_read_only_installation_keeps_its_machine_code_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    root = tmp_path / "gpuschedlab"
    root.mkdir()
    (root / "__pycache__").write_text("not to be written")
    found = _compiled.cache_folder.__wrapped__("sim", root)
    assert found.is_dir()
    assert found.is_relative_to(tmp_path / "user")
    (root / "__pycache__").unlink()
    assert _compiled.cache_folder.__wrapped__("sim", root).parent == root / "__pycache__"
    assert _compiled.cache_folder.__wrapped__("sim", root).name == found.name


def test_two_writers_of_two_signatures_do_not_share_a_file(tmp_path):
    """As when both read the index before either has written it: what one writes is never found under the other's signature."""
    first, second = (_compiled._Files(str(tmp_path), "sums.total", "stamp") for _ in range(2))
    write = first._save_data

    def late(name, data):
        second._load_index = dict
        second.save("second", "code of the second")
        write(name, data)

    first._save_data = late
    first.save("first", "code of the first")
    assert first.load("second") == "code of the second"
    assert first.load("first") in (None, "code of the first")


@pytest.mark.compiled("is about machine code that is kept")
def test_two_first_starts_at_once_both_work(tmp_path):
    package = tmp_path / "gpuschedlab"
    (package / "toys").mkdir(parents=True)
    shutil.copy(PACKAGE / "_compiled.py", package)
    for folder in (package, package / "toys"):
        (folder / "__init__.py").touch()
    (package / "toys" / "sums.py").write_text(SUMS)
    code = "import numpy as np; from gpuschedlab.toys.sums import total; print(total(np.arange(5)), total(np.array([10.0, 0.5])))"
    words = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    begun = [
        subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in begun:
        assert process.communicate(timeout=100) == ("10 10.5\n", "")
        assert process.returncode == 0
    assert len(list(package.glob("__pycache__/compiled-toys-*/*/*.nbc"))) >= 2
