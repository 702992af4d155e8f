"""Plant small faults and see which tests catch them: `python tests/faults/plant.py --seed 0 --count 60`.

Each fault is planted alone, in a private copy of the tree; the tests nearest to its file run first, wider ones after them, until one
fails or runs out of CPU time. Where compiling would cost minutes, the first tests run without (NUMBA_DISABLE_JIT=1). What has been
measured is kept in a file: an interrupted command goes on where it was.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from mutations import Mutation, mutations_of

ROOT = Path(__file__).resolve().parents[2]
AREAS = {
    "engine": ("sim/engine/**/*.py",),
    "metrics": ("metrics/*.py",),
    "estimators": ("estimators/*.py", "policies/*/estimators/*.py"),
    "policies": tuple(
        f"policies/{name}.py" for name in ("sia/policy", "deadlines/unisched", "ymir/policy", "prompttuner/policy")
    ),
    "optim": ("optim/**/*.py",),
}
"""Files in which faults are planted, in equal shares."""
INTERPRETED, COMPILED = "interpreted", "compiled"
FIRST = {
    "engine": [
        (INTERPRETED, "test_policies test_round_answers test_simulation test_laws test_progress"),
        (COMPILED, "test_golden"),
    ],
    "metrics": [(COMPILED, "test_metrics test_cost test_numbers test_laws")],
    "estimators": [(COMPILED, "test_estimators test_noisy test_unknown_models")],
    "policies": [(COMPILED, "test_golden")],
    "optim": [(COMPILED, "test_optim test_optim_prices test_optim_sessions test_solvers_agree")],
}
OF_FILE = {
    "papers/prompttuner/estimators": "test_prompt_bank",
    "papers/ymir/estimators": "test_ymir_estimators",
    "estimators/learning_curve": "test_unisched_estimators",
    "estimators/runtime": "test_unisched_estimators",
    "estimators/ensemble": "test_unisched_estimators",
    "estimators/bootstrap": "test_sia_jobs",
    "papers/sia": "test_sia test_sia_jobs",
    "papers/deadlines": "test_unisched",
    "papers/ymir/policy": "test_ymir test_ymir_laws",
    "papers/prompttuner/policy": "test_prompttuner",
    "papers/copter/relaxation": "test_copter test_copter_rounds",
    "optim/partition": "test_problems",
    "metrics/attainment": "test_slo_workloads",
}
"""Tests that are nearer to a file than those of its area, by the beginning of its path."""
WIDER = {
    "engine": "test_round_fuzz test_exact test_properties test_check test_explain",
    "metrics": "test_golden test_fixed_order test_displays test_explain test_prompttuner test_sia_jobs test_simulation",
    "estimators": "test_check test_scenario test_ymir test_optimus test_sia_jobs test_exact",
    "policies": "test_check test_answer_laws test_properties test_compared",
    "optim": "test_copter test_copter_rounds test_problems test_shards test_traffic test_sia test_gavel test_leases test_unisched",
}


def chosen(seed: int, count: int) -> list[tuple[str, Mutation]]:
    """So many faults, drawn in turn from the areas; one a line."""
    rng, package, drawn = np.random.default_rng(seed), ROOT / "gpuschedlab", []
    pools = {}
    for area, patterns in AREAS.items():
        files = sorted({path for pattern in patterns for path in package.glob(pattern)})
        faults = [fault for path in files for fault in mutations_of(path, package)]
        pools[area] = [faults[i] for i in rng.permutation(len(faults))]
    lines = set()
    while len(drawn) < count and any(pools.values()):
        for area, pool in pools.items():
            while pool and (pool[0].path, pool[0].line) in lines:
                pool.pop(0)
            if pool and len(drawn) < count:
                lines.add((pool[0].path, pool[0].line))
                drawn.append((area, pool.pop(0)))
    return drawn


def stages(area: str, path: str) -> list[tuple[str, list[str]]]:
    """What to run, in turn: how, and which files of tests; each file once."""
    near = " ".join(tests for begin, tests in OF_FILE.items() if path.startswith(begin))
    found = [(COMPILED, near)] * bool(near) + FIRST[area] + [(COMPILED, WIDER[area])]
    seen, out = set(), [(COMPILED, [f"gpuschedlab/{path}"])] if area != "engine" else []
    for mode, names in found:
        files = [f"tests/{name}.py" for name in names.split() if (mode, name) not in seen]
        seen |= {(mode, name) for name in names.split()}
        out.append((mode, [file for file in files if (ROOT / file).exists()]))
    return out


def located(fault: Mutation, text: str) -> Mutation:
    """The fault where its place is now, in a file that was edited since it was drawn.

    Raises
    ------
    ValueError
        The place is gone.
    """
    places = [found.start() for found in re.finditer(re.escape(fault.before), text)]
    if not places:
        raise ValueError(f"{fault.name}: {fault.path} has no such place any more.")
    begin = min(places, key=lambda place: abs(place - fault.begin))
    return fault._replace(begin=begin, end=begin + len(fault.before))


class Copy:
    """A private copy of the tree, in which one fault at a time is planted."""

    def __init__(self, folder: Path, python: str, cpu: float):
        self.folder, self.python, self.cpu = folder, python, cpu
        self.sound = self.known()
        if not folder.exists():
            shutil.copytree(
                ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "build", ".hypothesis", "*.pyc")
            )
        self.sound = self.known()

    def known(self) -> set[Path]:
        """Folders of machine code."""
        return set((self.folder / "gpuschedlab/__pycache__").glob("compiled-*"))

    def run(self, mode: str, files: list[str], skipped: list[str]) -> tuple[str | None, float]:
        """First test that fails (or "out of time"), None: all pass; and the CPU time (s)."""
        env = os.environ | {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{self.folder / 'tests'}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        env["NUMBA_DISABLE_JIT"] = "1" if mode == INTERPRETED else "0"
        command = [
            self.python,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "--reruns=0",
            "--timeout=0",  # a busy machine catches no fault
        ]
        command += [*(f"--deselect={test}" for test in skipped), *files]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        limit = (int(self.cpu), int(self.cpu) + 5)
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode in (0, 5):
            return None, spent
        failed = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return (failed[1] if failed else f"out of time or died ({done.returncode})"), spent

    def plant(self, fault: Mutation, area: str, kept: dict) -> dict:
        """Plant a fault, run tests until one fails that passes without it, and take it out again."""
        path, total = self.folder / "gpuschedlab" / fault.path, 0.0
        sound, dated = path.read_text(), path.stat().st_mtime_ns
        for mode, files in stages(area, fault.path):
            caught = ""
            while caught == "":
                path.write_text(located(fault, sound).applied(sound))
                try:
                    caught, spent = self.run(mode, files, kept["skipped"])
                finally:
                    path.write_text(sound)
                    os.utime(path, ns=(dated, dated))  # machine code is kept by it
                    for folder in self.known() - self.sound:
                        shutil.rmtree(folder, ignore_errors=True)
                    for folder in self.sound:
                        with contextlib.suppress(FileNotFoundError):  # one of older sources, which no test needed
                            os.utime(folder)
                total += spent
                if caught and "::" in caught and not self.passes(mode, caught, kept):
                    caught = ""
                elif caught and "::" not in caught and not self.ends(mode, files, kept):
                    caught = None
            if caught:
                break
        return {"area": area, "caught": caught, "mode": mode if caught else "", "cpu": round(total, 1)}

    def ends(self, mode: str, files: list[str], kept: dict) -> bool:
        """Whether tests end within the CPU time without any fault: if they do not, that they end early says nothing."""
        known, key = kept.setdefault("ends", {}), f"{mode} {' '.join(files)}"
        if key not in known:
            known[key] = "::" in (self.run(mode, files, kept["skipped"])[0] or "::")
            self.sound |= self.known()
        return known[key]

    def passes(self, mode: str, test: str, kept: dict) -> bool:
        """Whether a test passes without any fault; one that does not says nothing, and is left out from then on."""
        if f"{mode} {test}" not in kept["sound"]:
            if self.run(mode, [test], [])[0] is not None:
                kept["skipped"].append(test)
                return False
            self.sound |= self.known()
            kept["sound"].append(f"{mode} {test}")
        return True


def main() -> int:
    """Plant the faults of a seed that are not in the results yet, and list all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--results", type=Path, help="default: build/faults-SEED.json")
    parser.add_argument("--copy", type=Path, default=ROOT / "build/faults-copy", help="where the private copy goes")
    parser.add_argument("--cpu", type=float, default=600.0, help="CPU seconds of one run of tests")
    parser.add_argument("--only", choices=AREAS, nargs="+", default=list(AREAS), help="areas to plant in now")
    parser.add_argument("--list", action="store_true", help="only list the faults")
    parser.add_argument("--again", action="store_true", help="plant those again that nothing caught")
    given = parser.parse_args()
    results = given.results or ROOT / f"build/faults-{given.seed}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(results.read_text()) if results.exists() else {"sound": [], "skipped": [], "faults": {}}
    if "drawn" not in kept:
        kept["drawn"] = chosen(given.seed, given.count)
        results.write_text(json.dumps(kept))
    faults = [(area, Mutation(*drawn)) for area, drawn in kept["drawn"]]
    if given.list:
        print("\n".join(f"{fault.name}: {kept['faults'].get(fault.name, {}).get('caught')}" for _, fault in faults))
        return 0
    copy = Copy(given.copy, sys.executable, given.cpu)

    def keep():
        results.write_text(json.dumps(kept, indent=1))

    for area, fault in faults:
        known = kept["faults"].get(fault.name)
        if area in given.only and (known is None or (given.again and not known["caught"])):
            begin = time.strftime("%H:%M")
            kept["faults"][fault.name] = copy.plant(fault, area, kept)
            keep()
            found = kept["faults"][fault.name]
            print(
                f"{begin} {fault.name}\n    {found['caught'] or 'SURVIVES'} ({found['mode']}, {found['cpu']} CPU s)",
                flush=True,
            )
    found = [kept["faults"][fault.name]["caught"] for _, fault in faults if fault.name in kept["faults"]]
    print(f"{sum(map(bool, found))} of {len(found)} caught; {len(faults) - len(found)} not planted yet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
