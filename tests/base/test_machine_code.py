"""Kept machine code that was harmed is compiled again, with one line of words; processes that start at once do not disturb each other."""

import importlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from package_files import PACKAGE

from gpuschedlab._compiled import code_files
from gpuschedlab.cli.small_uses import small_uses

SUMS = """from gpuschedlab._compiled import njit

@njit
def add(total, value):
    return total + value

@njit
def total(values):
    found = 0
    for value in values:
        found = add(found, value)
    return found
"""
KINDS = ("ir", "machine")


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Function that makes a compiled one anew, as a process that starts does, with its machine code in `tmp_path / "kept"`."""
    (tmp_path / "sums.py").write_text(SUMS)
    monkeypatch.setattr(code_files, "cache_folder", lambda part: tmp_path / "kept" / part)

    def made():
        code_files.say.cache_clear()
        module = type(sys)("gpuschedlab.toys.sums")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(SUMS, tmp_path / "sums.py", "exec"), module.__dict__)
        return module.total

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
def test_a_harmed_file_is_as_none_and_is_replaced(tmp_path, capsys, harm):
    path = tmp_path / "sums.total.ir"
    code_files.say.cache_clear()
    code_files.write(path, "code" * 100)
    assert code_files.intact(path) == "code" * 100
    HARMS[harm](path)
    assert code_files.intact(path) is None
    assert "found damaged machine code" in capsys.readouterr().err
    code_files.write(path, "new code")
    assert code_files.intact(path) == "new code"


@pytest.mark.compiled("is about machine code that is kept")
def test_harmed_code_is_compiled_again_with_one_line_of_words(make, tmp_path, capsys):
    assert loaded(make()) == 0
    assert loaded(make()) == 2
    assert capsys.readouterr().err == ""
    for path in tmp_path.glob("kept/*/*.*"):
        flipped(path, path.stat().st_size // 2)
    assert loaded(make()) == 0
    said = capsys.readouterr().err
    assert said.startswith("gpuschedlab: found damaged machine code in ")
    assert said.endswith("compiling it again, which may take a minute.\n")
    assert said.count("\n") == 1
    assert loaded(make()) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.compiled("is about machine code that is kept")
def test_code_that_is_gone_is_made_again_without_a_word(make, tmp_path, capsys):
    """Machine code of the IR that is left, and IR of the source."""
    loaded(make())
    for kind, hits in (("machine", 2), ("ir", 2), ("*", 0)):
        for path in tmp_path.glob(f"kept/*/*.{kind}"):
            path.unlink()
        assert loaded(make()) == hits
    for path in tmp_path.glob("kept/*/*.add-*.ir"):
        path.unlink()
    for path in tmp_path.glob("kept/*/*.machine"):
        path.unlink()
    assert loaded(make()) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.compiled("is about machine code that is kept")
def test_code_that_cannot_be_kept_is_compiled_at_each_start(make, tmp_path, capsys):
    (tmp_path / "kept").write_text("no folder")
    assert loaded(make()) == 0
    said = capsys.readouterr().err
    assert f"machine code cannot be kept in {tmp_path / 'kept'}: Not a directory; each start compiles it again." in said
    assert said.count("\n") == 1


@pytest.mark.compiled("is about machine code that is kept")
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights of files as Unix has them")
@pytest.mark.parametrize("rights", [0o777, 0o775])
def test_code_where_others_can_write_is_not_read(make, tmp_path, capsys, monkeypatch, rights):
    loaded(make())
    (folder,) = tmp_path.glob("kept/*")
    os.chmod(folder, rights)
    if rights == 0o775 and os.geteuid() == 0:
        os.chown(folder, 0, 54321)
    elif rights == 0o775:
        pytest.skip("only root can give a folder to a group of others")
    code_files.trusted.cache_clear()
    assert loaded(make()) == 0
    assert "is not read: others can write there" in capsys.readouterr().err
    os.chmod(folder, 0o700)
    code_files.trusted.cache_clear()
    assert loaded(make()) == 2


def test_a_read_only_installation_keeps_its_machine_code_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    root = tmp_path / "gpuschedlab"
    root.mkdir()
    (root / "__pycache__").write_text("not to be written")
    found = code_files.cache_folder.__wrapped__("sim", root)
    assert found.is_dir()
    assert found.is_relative_to(tmp_path / "user")
    (root / "__pycache__").unlink()
    assert code_files.cache_folder.__wrapped__("sim", root).parent == root / "__pycache__"
    assert code_files.cache_folder.__wrapped__("sim", root).name == found.name


def test_two_writers_of_one_file_do_not_share_a_draft(tmp_path, monkeypatch):
    """One that is half way while another begins and ends: what is found is what one of them wrote."""
    path = tmp_path / "sums.total.ir"
    real = pickle.dumps

    def late(content, protocol):
        monkeypatch.setattr(code_files.pickle, "dumps", real)
        code_files.write(path, "code of the second")
        assert code_files.intact(path) == "code of the second"
        return real(content, protocol)

    monkeypatch.setattr(code_files.pickle, "dumps", late)
    code_files.write(path, "code of the first")
    assert code_files.intact(path) == "code of the first"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def package_of_sums(tmp_path: Path) -> Path:
    """A package with what compiles functions, and the sums."""
    package = tmp_path / "gpuschedlab"
    shutil.copytree(PACKAGE / "_compiled", package / "_compiled", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "toys").mkdir(parents=True)
    for folder in (package, package / "toys"):
        (folder / "__init__.py").touch()
    (package / "toys" / "sums.py").write_text(SUMS)
    return package


CALLS = "import numpy as np; from gpuschedlab.toys.sums import total; print(total(np.arange(5)), total(np.array([10.0, 0.5])))"


def begin(tmp_path: Path, code: str) -> subprocess.Popen:
    words = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, cwd=tmp_path, env=environment, text=True, **pipes)


@pytest.mark.compiled("is about machine code that is kept")
def test_two_first_starts_at_once_both_work(tmp_path):
    package = package_of_sums(tmp_path)
    for process in [begin(tmp_path, CALLS) for _ in range(2)]:
        assert process.communicate(timeout=100) == ("10 10.5\n", "")
        assert process.returncode == 0
    assert len(list(package.glob("__pycache__/compiled-toys-*/*.machine"))) == 2
    assert len(list(package.glob("__pycache__/compiled-toys-*/*.ir"))) == 5


@pytest.mark.compiled("is about machine code that is kept")
def test_a_numba_that_lacks_a_name_compiles_by_itself_and_says_so(tmp_path):
    """Here it lacks the object by which memory is managed, of which only late linking asks in that module."""
    package = package_of_sums(tmp_path)
    code = f"import numba, numba.core.runtime.nrt as nrt; numba.njit(lambda x: x)(1); del nrt.rtsys; {CALLS}"
    more = "; from gpuschedlab._compiled import compile_now; from gpuschedlab.toys.sums import add; import ctypes; "
    more += "made = compile_now(add, numba.int64(numba.int64, numba.int64)); "
    more += "print(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(made.address)(2, 3), type(add).__name__)"
    out, err = begin(tmp_path, code + more).communicate(timeout=100)
    assert out == "10 10.5\n5 CPUDispatcher\n", err
    assert err.count("\n") == 1
    assert "is not one that was tried" in err
    assert not list(package.glob("__pycache__/compiled-toys-*/*"))


@pytest.mark.compiled("is about machine code that is kept")
def test_one_signature_serves_whole_numbers_of_any_size(make):
    """What compiled code calls is compiled once for literals and signed whole numbers; unsigned ones and floats are apart."""
    total = make()
    for kind in (np.int8, np.int32, np.int64, np.uint8, np.float64):
        assert total(np.arange(5).astype(kind)) == 10
    add = sys.modules["gpuschedlab.toys.sums"].add
    assert {str(arguments) for arguments in add.inner} >= {"(int64, int64)"}
    assert len(add.inner) < 5
    assert not add.overloads  # nobody called it from Python


@pytest.mark.compiled("is about machine code that is kept")
def test_compiled_functions_are_pickled_by_name():
    from gpuschedlab.sim.engine.events import advance

    assert pickle.loads(pickle.dumps(advance)) is advance


COUNTED = f"""
from numba.core import event
class Listener(event.Listener):
    compiled = 0
    def on_start(self, event):
        Listener.compiled += 1
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
{CALLS}
print(Listener.compiled)
"""


@pytest.mark.compiled("is about machine code that is kept")
@pytest.mark.skipif(not code_files.runs_portable_code(), reason="a processor for which no machine code is shipped")
def test_shipped_code_is_loaded_for_its_sources_and_versions_alone(tmp_path, monkeypatch):
    """Code for many processors, from the machine code or its IR; what is shipped for other sources or a folder of others is not."""
    package = package_of_sums(tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CPU_NAME", code_files.PORTABLE_CPU)
        patch.setenv("NUMBA_CPU_FEATURES", ",".join(f"+{name}" for name in code_files.PORTABLE_FEATURES))
        out, _ = begin(tmp_path, COUNTED).communicate(timeout=100)
    assert out == "10 10.5\n5\n"
    (made,) = package.glob("__pycache__/compiled-toys-*")
    shipped = package / "_compiled" / code_files.SHIPPED / made.name

    def compiled() -> int:
        """Functions that a process with an empty cache compiles."""
        shutil.rmtree(package / "__pycache__", ignore_errors=True)
        out, err = begin(tmp_path, COUNTED).communicate(timeout=100)
        assert out.startswith("10 10.5\n"), err
        return int(out.split()[-1])

    shutil.copytree(made, shipped)
    assert compiled() == 0
    for_others = shipped.rename(shipped.with_name("compiled-toys-0123456789abcdef"))
    assert compiled() == 5
    for_others.rename(shipped)
    for path in shipped.glob("*.machine"):
        path.unlink()
    assert compiled() == 0
    os.chmod(shipped, 0o777)
    assert compiled() == 5


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        ("numba", "__version__", "0.68.99"),
        ("llvmlite", "__version__", "0.50.99"),
        ("sys.implementation", "cache_tag", "cpython-399"),
        ("sysconfig", "get_platform", lambda: "linux-riscv64"),
        ("numba.config", "BOUNDSCHECK", 1),
    ],
)
def test_code_of_another_numba_llvmlite_python_or_platform_has_another_folder(monkeypatch, owner, name, value):
    here = code_files.folder_name("sim", PACKAGE)
    assert here == code_files.folder_name("sim", PACKAGE)
    monkeypatch.setattr(f"gpuschedlab._compiled.code_files.{owner}.{name}", value)
    assert code_files.folder_name("sim", PACKAGE) != here


@pytest.mark.compiled("logs of decisions, warm starts, solvers")
@pytest.mark.parametrize(
    ("part_name", "module", "function_name"),
    [
        ("decisions", "gpuschedlab.sim.engine.warm_start", "reinsert"),
        ("speeds", "gpuschedlab.speeds.codes", "rates_of"),
        ("clusters, other code", "gpuschedlab.papers.clusters.explains.sweep", "_swept"),
        ("copter, other code", "gpuschedlab.papers.copter.solver.kernels", "project"),
        ("autosched, other code", "gpuschedlab.autosched.forecast.features", "_gather"),
    ],
)
def test_what_is_compiled_beside_policies_is_what_no_policy_needs(part_name, module, function_name):
    small_uses()[part_name]()
    compiled = getattr(importlib.import_module(module), function_name)
    assert compiled.overloads or compiled.inner
