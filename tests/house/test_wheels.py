"""The package as an index would get it: metadata, addresses from the one setting, and the core in an empty environment."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import wheels
from packaging.metadata import Metadata
from packaging.requirements import Requirement

pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return wheels.build(tmp_path_factory.mktemp("wheels") / "dist")


def page(repository: str, monkeypatch) -> dict:
    """Metadata of the package for a repository."""
    monkeypatch.setenv("GITHUB_REPOSITORY", repository)
    said = subprocess.run([sys.executable, "-m", "hatchling", "metadata"], capture_output=True, check=True, cwd=ROOT)
    return json.loads(said.stdout)


def test_what_the_wheel_says_of_itself_is_valid(wheel):
    with zipfile.ZipFile(wheel) as packed:
        (named,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        told = Metadata.from_email(packed.read(named), validate=True)
        assert {Path(name).name for name in packed.namelist() if "/licenses/" in name} == {"LICENSE", "LICENSE-plotly"}
    assert str(told.version) == PYPROJECT["project"]["version"]
    assert set(told.provides_extra) == set(EXTRAS)
    assert told.description_content_type == "text/markdown"
    assert told.license_expression == "BSD-3-Clause"
    assert len(told.keywords) >= 4
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.13"} <= set(told.classifiers)


def test_machine_code_goes_into_a_wheel_of_this_platform_alone(tmp_path, monkeypatch):
    code = tmp_path / "code" / "compiled-engine-0123456789abcdef" / "advance.machine"
    code.parent.mkdir(parents=True)
    code.write_bytes(b"code")
    monkeypatch.setenv("GPUSCHEDLAB_MACHINE_CODE", str(tmp_path / "code"))
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "dist")]
    subprocess.run(words, capture_output=True, check=True, cwd=ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert wheel.name.split("-")[2:4] == [python, python]
    assert not wheel.name.endswith("-any.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert f"gpuschedlab/_compiled/machine_code/{code.parent.name}/{code.name}" in packed.namelist()


@pytest.mark.parametrize("repository", ["", "Owner/name"])
def test_addresses_come_from_the_one_setting(monkeypatch, repository):
    told = page(repository, monkeypatch)
    links = re.findall(r"\]\(([^)]+)\)", told["readme"]["text"])
    if not repository:
        assert not told.get("urls")
        assert not [link for link in links if not link.startswith("https://")], "they lead nowhere on an index"
        return
    assert told["urls"]["Repository"] == "https://github.com/Owner/name"
    assert told["urls"]["Documentation"] == "https://owner.github.io/name"
    assert "https://raw.githubusercontent.com/Owner/name/HEAD/docs/report.png" in links
    assert "https://github.com/Owner/name/blob/HEAD/docs/systems/autosched.md" in links


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_setting_wins_over_what_the_workflow_says(hook, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "c/d")
    for own, found in (("a/b", "a/b"), ("", "c/d")):
        (tmp_path / "pyproject.toml").write_text(f'[tool.gpuschedlab]\nrepository = "{own}"\n')
        assert hook.repository(tmp_path) == found


def test_only_links_to_files_change(hook):
    text = "![a](b.png)\n\n[c](d.md) [e](https://f) [g](#h)\n"
    assert hook.readme(text, "") == "c [e](https://f) [g](#h)\n"
    assert hook.readme(text, "o/n").endswith("[c](https://github.com/o/n/blob/HEAD/d.md) [e](https://f) [g](#h)\n")


def test_every_extra_is_tried():
    assert set(wheels.TRIED) == {"core", *EXTRAS}
    (everything,) = EXTRAS["all"]
    assert set(wheels.TRIED["all"]["also"]) == Requirement(everything).extras


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_core_simulates_in_an_empty_environment_and_says_what_is_missing(wheel, tmp_path):
    """All that the core requires is there for pip; `make wheels` installs from the index, in the workflow too."""
    found = wheels.attempt(wheel, sys.executable, "core", tmp_path / "core", lent=True)
    assert not found.wrong
    assert 100 < found.megabytes < 1000
