"""Try the wheel as a user gets it: in an empty environment of each Python, each extra alone, installed by plain pip.

`make wheels` (`PYTHONS="3.11 3.13"`, `EXTRAS="core plots"`: some) builds the sdist, from it the wheel, and for each pair makes an
environment in build/wheels, installs by the commands that the message of a missing part prints, imports what the extra brings and
every module, simulates, runs what wheels.toml says, and removes the environment. What passed with the same wheel is kept,
and not tried again. The core alone is tried with the simulator compiled.
"""

import argparse
import hashlib
import importlib.metadata
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from gpuschedlab._extras import EXTRAS, commands
from reproduce.published.answers import Answers

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "wheels"
TABLE = Path(__file__).with_suffix(".toml")
TRIED = tomllib.loads(TABLE.read_text())
FIRST = TRIED.pop("first")
PYTHONS = ("3.11", "3.12", "3.13")
LONGEST = 1800
"""Seconds after which a step is given up."""


class Tried(NamedTuple):
    """What came of an extra: seconds of the processor, MB of the environment, what is wrong ("" where nothing is)."""

    seconds: int
    megabytes: int
    wrong: str = ""


def build(folder: Path) -> Path:
    """Make the sdist, and the wheel from what the sdist holds; path of the wheel."""
    shutil.rmtree(folder, ignore_errors=True)
    hatch = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "--target"]
    run([*hatch, "sdist"], ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    run([*hatch, "wheel"], unpacked)
    shutil.rmtree(unpacked)
    (wheel,) = folder.glob("*.whl")
    return wheel


def python_of(version: str) -> str | None:
    """Path of a Python of a version, on PATH or of pyenv; None without."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = [found for name in (f"python{version}", "python3", "python") if (found := shutil.which(name))]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in [*on_path, *map(str, sorted(root.glob(f"versions/{version}.*/bin/python")))]:
        said = subprocess.run([path, "-c", ask], capture_output=True, text=True)
        if said.stdout.strip() == version:
            return path
    return None


def attempt(wheel: Path, python: str, extra: str, folder: Path, compiled: bool = False, lent: bool = False) -> Tried:
    """Install an extra into an empty environment, and run what the table says of it.

    `lent`: pip asks no index. It finds what the core requires as links to the packages of the Python that runs this, so that
    600 MB are not written again; `python` is then of the same version.
    """
    begin = processor()
    size = 0
    wrong = ""
    shutil.rmtree(folder, ignore_errors=True)
    there = folder / "here"
    venv = folder / "venv"
    there.mkdir(parents=True)
    try:
        run([python, "-m", "venv", "--without-pip", str(venv)], there)
        (site,) = venv.glob("lib/python*/site-packages")
        if lent:
            (metadata,) = (path for path in zipfile.Path(wheel).iterdir() if path.name.endswith(".dist-info"))
            lend(importlib.metadata.PathDistribution(metadata).requires, site)
        for line in commands(extra) if extra != "core" else ("pip install gpuschedlab",):
            pip, *words = _of_wheel(line, wheel)
            into = ["--python", str(venv / "bin" / "python")]
            words += ["--no-index"] if lent else []
            run([sys.executable, "-m", pip, *into, *words, "--progress-bar", "off"], there)
        files = (Path(parent, name) for parent, _, names in os.walk(site, followlinks=True) for name in names)
        size = sum(file.stat().st_size for file in files) // 10**6
        for code in codes(extra):
            run([str(venv / "bin" / "python"), "-I", "-c", code], there, compiled)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or error.stdout or b"").decode(errors="replace").strip()
        (folder.parent / f"{folder.name}.log").write_text(f"{shlex.join(error.cmd)}\n{said}\n")
        wrong = (said.splitlines() or [str(error)])[-1]
    shutil.rmtree(folder, ignore_errors=True)
    return Tried(round(processor() - begin), size, wrong)


def lend(requirements: list[str], site: Path):
    """Link the packages that the core requires, and what those require, into an environment's folder of packages."""
    for line in requirements:
        needed = Requirement(line)
        if needed.marker and not needed.marker.evaluate({"extra": ""}):
            continue
        package = importlib.metadata.distribution(needed.name)
        for name in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(package.locate_file(name))
        lend(package.requires or [], site)


def codes(extra: str) -> list[str]:
    """What is run for an extra: all modules are imported; then its code and that of those that it names, each after what it brings."""
    names = [extra, *TRIED[extra].get("also", ())]
    brought = {name: "".join(f"import {package}\n" for package in EXTRAS.get(name, ("", ()))[1]) for name in names}
    return [FIRST["modules"]] + [f"{FIRST['code']}\n{brought[name]}\n{TRIED[name]['code']}" for name in names]


def _of_wheel(line: str, wheel: Path) -> list[str]:
    """Words of a command, with the wheel in the place of the package's name."""
    return [f"{wheel}{word[11:]}" if word.startswith("gpuschedlab") else word for word in shlex.split(line)]


def run(words: list[str], folder: Path, compiled: bool = True):
    """Run a command in a folder; without compiling, the simulator is plain Python, which takes less on forty jobs."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env |= {"PIP_NO_COMPILE": "1"} | ({} if compiled else {"NUMBA_DISABLE_JIT": "1"})
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, timeout=LONGEST)


def processor() -> float:
    """Seconds of the processor that commands have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Try all pairs, and print a line for each."""
    parser = argparse.ArgumentParser(prog="make wheels", description=__doc__.partition("\n")[0])
    parser.add_argument("--pythons", nargs="*", metavar="VERSION", help=f"default: {' '.join(PYTHONS)}")
    parser.add_argument("--extras", nargs="*", choices=TRIED, metavar="EXTRA", help=f"default: {' '.join(TRIED)}")
    given = parser.parse_args()
    pythons = {version: python_of(version) for version in given.pythons or PYTHONS}
    if missing := [version for version, path in pythons.items() if path is None]:
        parser.error(f"found no Python {', '.join(missing)}; expected it on PATH or in pyenv. Leave it out by PYTHONS.")
    wheel = build(FOLDER / "dist")
    source = hashlib.sha256(wheel.read_bytes() + TABLE.read_bytes()).hexdigest()
    kept = Answers(FOLDER / "tried.jsonl")
    print(f"{wheel.name}\n{'Python':8}{'extra':12}{'CPU s':>8}{'MB':>7}  ran", flush=True)
    failed = False
    for version, path in pythons.items():
        for extra in given.extras or TRIED:
            case = (version, extra)
            if (source, case) in kept.known:
                found = Tried(*kept.known[source, case])
            else:
                found = attempt(wheel, path, extra, FOLDER / f"{version}-{extra}", extra == "core")
                if not found.wrong:
                    kept.keep(source, case, found)
            failed |= bool(found.wrong)
            said = f"WRONG: {found.wrong} ({FOLDER / f'{version}-{extra}.log'})" if found.wrong else TRIED[extra]["ran"]
            print(f"{version:8}{extra:12}{found.seconds:8}{found.megabytes:7}  {said}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
