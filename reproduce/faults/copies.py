"""Private copies of the tree, in which faults are planted and tests run."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from mutations import Mutation
from near import PACKAGE, ROOT, function_at

from gpuschedlab._compiled.code_files import cache_folder

LEFT_OUT = (".git", ".venv", "build", "runs", ".hypothesis", ".pytest_cache", "compiled-*")
CPU = {"near": 25, "test": 2400, "all": 4800}
"""Seconds of the processor after which the tests are stopped."""
HANGS = 600
"""Seconds after which a test in a group's run hangs."""


class Found(NamedTuple):
    """What a run of tests says: names in their order, seconds of those that passed, and what runs at its end where it was stopped."""

    failed: list[str]
    passed: dict[str, float]
    running: str
    calls: dict[str, list]


def compiled(path: str) -> bool:
    """Whether a file has functions that are compiled, or is of the engine."""
    return path.startswith("sim/engine/") or bool(
        re.search(r"^\s*@njit|^    def key\(now, job", (PACKAGE / path).read_text(), re.MULTILINE)
    )


def there(fault: Mutation) -> Mutation | None:
    """The fault where its place is now; None: it is gone."""
    file = PACKAGE / fault.path
    return fault.located(file.read_text()) if file.exists() else None


def apart(faults: list[Mutation]) -> list[Mutation]:
    """Faults that can be planted together: of those whose places overlap, the first."""
    found = {}
    for fault in faults:
        here = there(fault)
        if all(f.path != here.path or f.end <= here.begin or here.end <= f.begin for f in found.values()):
            found[fault] = here
    return list(found)


def _copied(source: str, to: str):
    """Copy a file with its date, unless it is there as it is."""
    mine = Path(source)
    its = Path(to)
    if not its.exists() or mine.stat().st_mtime_ns != its.stat().st_mtime_ns or mine.read_bytes() != its.read_bytes():
        shutil.copy2(source, to)


class Copy:
    """A private copy of the tree, with the machine code of the sources as they are."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.package = folder / "gpuschedlab"
        new = not folder.exists()
        # What differs is copied anew: a run that was ended leaves its faults in their places.
        leave = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT, folder, ignore=leave, symlinks=True, dirs_exist_ok=True, copy_function=_copied)
        for kept in (PACKAGE / "__pycache__").glob("compiled-*") if new else ():
            if kept.name == self._machine_code(kept.name.split("-")[1], PACKAGE):
                shutil.copytree(kept, self.package / "__pycache__" / kept.name, dirs_exist_ok=True)
        self.sound = self._kept()

    def _kept(self) -> set[str]:
        """Folders of machine code of the sources as they are; others are removed."""
        found = set()
        for folder in (self.package / "__pycache__").glob("compiled-*"):
            if folder.name == self._machine_code(folder.name.split("-")[1], self.package):
                found.add(folder.name)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return found

    @staticmethod
    def _machine_code(part: str, package: Path) -> str:
        """Name of the folder of machine code of a part, for the sources as they are."""
        part = "sim" if part == "engine" else part.replace(".", "/")
        return cache_folder.__wrapped__(part, package).name

    def plant(self, faults: list[Mutation]) -> dict[Path, tuple[str, int]]:
        """Put faults in their places; returns the sound texts, and their dates."""
        sound = {}
        for path in {fault.path for fault in faults}:
            file = self.package / path
            text = file.read_text()
            sound[file] = text, file.stat().st_mtime_ns
            places = [fault.located(text) for fault in faults if fault.path == path]
            for fault in sorted(places, key=lambda fault: -fault.begin):
                text = fault.applied(text)
            file.write_text(text)
        return sound

    def keep_machine_code(self, faults: list[Mutation]):
        """Kernels that no fault is in need no compiling: their machine code serves the changed sources as well."""
        real = [f for f in faults if compiled(f.path) or function_at(there(f)) is None]
        for name in self.sound:
            part = name.split("-")[1]
            changed = self._machine_code(part, self.package)
            if changed != name and not any(self._concerns(part, fault.path) for fault in real):
                old, new = (self.package / "__pycache__" / folder for folder in (name, changed))
                shutil.copytree(old, new, copy_function=os.link, dirs_exist_ok=True)

    @staticmethod
    def _concerns(part: str, path: str) -> bool:
        """Whether machine code of a part may be made of a file."""
        common = ("cluster/", "speeds/", "sim/", "policies/")
        return path.startswith((part.replace(".", "/") + "/", *common))

    def take_out(self, sound: dict):
        """Sound texts in their places again, with their dates: machine code is kept by them."""
        for file, (text, dated) in sound.items():
            file.write_text(text)
            os.utime(file, ns=(dated, dated))
        self.sound = self._kept()

    def run(self, faults: list[Mutation], words: list[str], stage: str = "near", **how) -> Found:
        """Run tests with faults planted, which are taken out again."""
        sound = self.plant(faults)
        try:
            if not how.get("interpreted"):
                self.keep_machine_code(faults)
            return self._tests(words, stage, **how)
        finally:
            self.take_out(sound)

    def _tests(self, words, stage, interpreted=False, workers=0, first=False, skip=(), places=(), seconds=0) -> Found:
        """Run tests: `first`: until one fails; `skip`: all but these; `places`: functions whose calls are listed."""
        log = self.folder / "build" / f"{time.monotonic_ns()}.log"
        log.parent.mkdir(exist_ok=True)
        log.touch()
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (self.folder, self.folder / "reproduce/faults"))),
            "NUMBA_DISABLE_JIT": str(int(interpreted)),
            "FAULTS_LOG": str(log),
        }
        env |= {"GPUSCHEDLAB_ALL_TESTS": "1"} if stage == "all" else {}
        for name, what in (("SKIP", list(skip)), ("PLACES", list(places))):
            if what:
                file = log.with_suffix(f".{name}")
                file.write_text(json.dumps(what))
                env |= {f"FAULTS_{name}": str(file)}
        # A busy machine catches no fault: nothing is timed, but what hangs ends the process.
        command = [sys.executable, "-m", "pytest", "-q", "-p", "record", "-p", "no:cacheprovider", "--tb=no"]
        command += ["-n", str(workers), "--dist", "loadgroup"] if workers else []
        command += ["--reruns=0", "--timeout=0", "--continue-on-collection-errors", *(["-x"] if first else [])]
        command += ["-o", f"faulthandler_timeout={HANGS}", "-o", "faulthandler_exit_on_timeout=true"]
        limit = int(seconds or CPU[stage])
        done = subprocess.run(
            [*command, *words], cwd=self.folder, env=env, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
        )  # fmt: skip
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for file in log.parent.glob(f"{log.stem}.*"):
            file.unlink()
        failed = list(dict.fromkeys(line["failed"] for line in lines if "failed" in line))
        passed = {
            line["passed"]: line["seconds"] for line in lines if "passed" in line and line["passed"] not in failed
        }
        running = next((line["begin"] for line in reversed(lines) if "begin" in line), "nothing")
        ended = done.returncode in (0, 1, 2, 5) and (lines or done.returncode == 5)
        calls = {line["test"]: line["calls"] for line in lines if "test" in line}
        if not ended and not failed and not lines:
            running = done.stdout[-2000:] + done.stderr[-2000:]
        return Found(failed, passed, "" if ended or running in failed else running, calls)
