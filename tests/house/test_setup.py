"""The set-up's cheap facts: lock, environment, one-way imports, docstrings, optional parts."""

import os
import re
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import binder
import pytest
import yaml
from package_files import files_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gpuschedlab import _data
from gpuschedlab._extras import EXTRAS, UNBOUND, need
from gpuschedlab.cli.commands.compare import LINEUP
from gpuschedlab.errors import LabError, MissingExtra

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()
PYTHONS = ("3.11", "3.12", "3.13")


def locked() -> list[tuple[Requirement, str]]:
    """Each entry of the lock: its requirement, and the lines of its hashes."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", "\n" + "\n".join(LOCK.splitlines()))[1:]
    return [(Requirement(e.split("\\\n")[0].strip()), e) for e in entries]


def on(python: str) -> dict[str, Version]:
    """Versions that the lock gives a Python on Linux."""
    where = {
        "python_version": python,
        "python_full_version": f"{python}.8",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    found = {}
    for requirement, _ in locked():
        if requirement.marker is None or requirement.marker.evaluate(where):
            assert canonicalize_name(requirement.name) not in found, f"{requirement.name} is locked twice for {python}"
            (pin,) = requirement.specifier
            found[canonicalize_name(requirement.name)] = Version(pin.version)
    return found


def asked() -> list[Requirement]:
    """Everything that pyproject.toml asks for, in all its groups and extras but `arena`, a rival that is not in the lock."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    lists = [project["dependencies"], *(extras[name] for name in extras if name != "arena")]
    lists += [*PYPROJECT["dependency-groups"].values(), PYPROJECT["build-system"]["requires"]]
    return [Requirement(text) for texts in lists for text in texts if not text.startswith("gpuschedlab[")]


@pytest.mark.xdist_group("together")
def test_groups_of_tests_keep_to_one_worker(request):
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not sent to workers by group; make test does")
    assert request.node.nodeid.endswith("@together"), "pytest-xdist sends the tests of a group to any worker"


def test_lock_has_hashes_and_no_addresses():
    assert len(locked()) > 100
    for requirement, lines in locked():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", lines), f"{requirement.name} has no hash"
        assert [pin.operator for pin in requirement.specifier] == ["=="], requirement
        assert requirement.url is None
    assert "://" not in LOCK
    for line in LOCK.splitlines():
        assert not re.search(r"(^|\s)(-i|-f|--index-url|--extra-index-url|--find-links|-e)\b|(^|\s)/", line), line


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_gives_each_python_what_pyproject_asks(python):
    found = on(python)
    stepped_over = {
        Requirement(text).name: Requirement(text) for text in PYPROJECT["tool"]["uv"]["override-dependencies"]
    }
    for requirement in [*asked(), *stepped_over.values()]:
        wanted = stepped_over.get(requirement.name, requirement)
        name = canonicalize_name(wanted.name)
        assert name in found, f"{name} is not in the lock: make lock"
        assert found[name] in wanted.specifier, f"{name} {found[name]} is locked; pyproject.toml asks for {wanted}"


def test_lock_gives_all_pythons_the_same_versions():
    found = [on(python) for python in PYTHONS]
    versions = {name: {str(some[name]) for some in found if name in some} for some in found for name in some}
    differ = {name: each for name, each in versions.items() if len(each) > 1}
    assert not differ, "numbers would differ by Python: bound them in pyproject.toml, tool.uv, constraint-dependencies"


def test_lock_leaves_out_what_is_excluded():
    names = {canonicalize_name(requirement.name) for requirement, _ in locked()}
    excluded = set(PYPROJECT["tool"]["uv"]["exclude-dependencies"])
    assert excluded >= {"torch", "nvidia-nccl-cu12"}
    assert not names & excluded
    assert not [name for name in names if name.startswith("nvidia-") or name in ("triton", "ortools")]


def test_environment_and_post_build_make_the_same():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    wanted = {text.partition("=")[0].partition(">")[0]: text for text in environment["dependencies"]}
    assert set(wanted) == {"python", "pip"}, "all else comes from requirements.lock, through postBuild"
    assert wanted["python"].removeprefix("python=") in PYTHONS
    script = (ROOT / "postBuild").read_text()
    assert "uv" in on("3.12"), "postBuild installs what uv the lock pins"
    for option in ("--no-deps", "--ignore-requires-python", "--require-hashes", "-r requirements.lock"):
        assert option in script
    makefile = (ROOT / "Makefile").read_text()
    assert "./postBuild packages" in makefile
    assert "warm $(COMPILED)" in makefile
    compared = {word.partition(":")[0].partition("@")[0] for word in LINEUP}
    assert set(re.search(r"^COMPILED := (.+)$", makefile, flags=re.M)[1].split()) >= compared


def test_binder_is_built_with_the_python_of_the_environment(monkeypatch):
    asked = []
    monkeypatch.setattr(binder.shutil, "which", lambda _: None)
    monkeypatch.setattr(binder, "python_of", asked.append)
    with pytest.raises(SystemExit, match="found neither conda nor Python 3"):
        binder.prefix_of(ROOT)
    assert asked == [re.search(r"python=(\S+)", (ROOT / "environment.yml").read_text())[1]]


def test_workflows_try_wheels_and_binder_by_make():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert jobs["wheels"]["strategy"]["matrix"]["python"] == list(PYTHONS)
    for name in ("wheels", "binder"):
        assert f"make {name}" in jobs[name]["steps"][-1]["run"]
        assert re.search(rf"^{name}: ", (ROOT / "Makefile").read_text(), flags=re.M)


@pytest.mark.parametrize("name", ["postBuild", ".ci/run"])
def test_scripts_can_run(name):
    script = ROOT / name
    assert script.stat().st_mode & stat.S_IXUSR, f"{name} is not executable: chmod +x {name}"
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PYPROJECT["project"]["version"]
    newest = re.search(r"^## (\d.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1]
    assert newest == f"{citation['version']} ({citation['date-released']})"
    assert citation["license"] == PYPROJECT["project"]["license"] == "BSD-3-Clause"
    lowest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    assert lowest == PYTHONS[0]
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py" + lowest.replace(".", "")


def test_extras_say_what_pyproject_says():
    imported = {"scikit-learn": "sklearn", "causal-learn": "causallearn", "ipython": "IPython", "pillow": "PIL"}
    extras = PYPROJECT["project"]["optional-dependencies"]
    for extra, (_, packages) in EXTRAS.items():
        brought = {imported.get(Requirement(t).name, Requirement(t).name) for t in extras[extra]}
        assert set(packages) <= brought, f"_extras.EXTRAS[{extra!r}] names what the extra does not bring"
    pins = [f"{name}=={version}" for name, version in UNBOUND.items()]
    assert PYPROJECT["dependency-groups"]["causalnex"] == pins
    lines = (ROOT / "docs" / "install.md").read_text() + (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert lines.count(f"pip install --no-deps --ignore-requires-python {' '.join(pins)}") == 2
    (everything,) = extras["all"]
    # causalnex holds back pandas and setuptools for a package that most will not install; arena brings a rival of mip's CBC.
    assert Requirement(everything).extras == set(extras) - {"all", "causalnex", "arena"}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            "causalnex.network",
            'causal networks need causalnex: pip install "gpuschedlab[causalnex]", then pip install --no-deps '
            "--ignore-requires-python causalnex==0.12.2 pgmpy==0.1.19",
        ),
        ("plotly.graph_objects", 'plots need plotly: pip install "gpuschedlab[plots]"'),
        ("sklearn.ensemble", 'learned estimators need sklearn: pip install "gpuschedlab[estimators]"'),
        ("highspy", 'the optimisation solvers need highspy: pip install "gpuschedlab[optim]"'),
        ("pooch", 'downloads of published traces need pooch: pip install "gpuschedlab[traces]"'),
        ("networkx", 'causal graphs need networkx: pip install "gpuschedlab[causal]"'),
        ("IPython.display", 'explorers and notebooks need IPython: pip install "gpuschedlab[lab]"'),
        ("yaml", "some parts need yaml: pip install pyyaml"),
    ],
)
def test_a_missing_part_is_told_in_one_line(monkeypatch, module, message):
    for loaded in [name for name in sys.modules if name.partition(".")[0] == module.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    with pytest.raises(MissingExtra) as told:
        need(module)
    assert str(told.value) == message


def test_a_broken_part_is_told_with_its_cause(monkeypatch, tmp_path):
    (tmp_path / "half_there.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingExtra, match="No module named 'not_there_at_all'"):
        need("half_there", "examples")


CORE_ONLY = """
import importlib, pkgutil, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
import gpuschedlab
for name in getattr(gpuschedlab, "__all__", ()):
    getattr(gpuschedlab, name)
for found in pkgutil.walk_packages(gpuschedlab.__path__, "gpuschedlab."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""


def test_every_module_imports_with_the_core_alone():
    optional = {package for _, packages in EXTRAS.values() for package in packages}
    optional |= {"pyarrow", "matplotlib", "networkx", "pytest", "hypothesis", "yaml", "IPython"}
    code = CORE_ONLY.replace("OPTIONAL", repr(optional))
    # What is looked for is imports; compiling the engine would take a minute.
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr


def test_import_of_the_package_is_light():
    code = "import sys, gpuschedlab; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    optional = {package for _, packages in EXTRAS.values() for package in packages}
    heavy = {"numba", "llvmlite", "scipy", "matplotlib", "IPython"} | optional
    assert not set(loaded.stdout.split()) & heavy


def test_shipped_files_are_found_and_missing_ones_told():
    files = [path for path in _data.folder().rglob("*") if path.is_file()]
    for file in files:
        name = file.relative_to(_data.folder()).as_posix()
        assert _data.path(name) == file
        assert file.stat().st_size < 1_000_000, f"data/{name} is large for a file that every installation carries"
    with pytest.raises(LabError, match=r"no shipped file 'nothing\.csv'"):
        _data.path("nothing.csv")


def test_a_wheel_holds_the_shipped_files(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    there = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(there)
    there_are = [p for p in (ROOT / "data").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    shipped = {p.relative_to(ROOT / "data").as_posix() for p in there_are if p.name != "make.py"}
    found = {
        p.relative_to(there / "gpuschedlab/_data_files").as_posix()
        for p in there.rglob("_data_files/**/*")
        if p.is_file()
    }
    assert shipped == found, "what makes the files stays in the checkout"
    assert {p.name.removesuffix(".dist-info").partition("-")[0] for p in there.iterdir()} == {"gpuschedlab"}
    typed = {p.relative_to(ROOT) for p in files_of(ROOT / "gpuschedlab", ".pyi", ".typed")}
    assert {Path("gpuschedlab/py.typed"), Path("gpuschedlab/__init__.pyi")} <= typed
    assert not [path for path in typed if not (there / path).is_file()], "without them, editors complete nothing"
    code = f"from gpuschedlab._data import path; print(*map(path, {sorted(shipped)!r}), sep='\\n')"
    told = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(there)},
    )
    assert told.stdout.split() == [str(there / "gpuschedlab" / "_data_files" / name) for name in sorted(shipped)]
