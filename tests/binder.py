"""Build what Binder builds, in a clean tree: the Python of environment.yml, postBuild, and the first simulation.

`make binder` prints seconds and MB. Where there is conda it reads environment.yml; elsewhere a virtual environment of the same Python
stands in for it. All lies in build/binder, and is removed at the end.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from wheels import ROOT, processor, python_of, run

FOLDER = ROOT / "build" / "binder"
FIRST = (
    "import gpuschedlab as lab; lab.simulate(lab.generate('venus', days=1, jobs=100, load=0.9, cluster_gpus=48, rng=0), \
lab.Cluster.homogeneous(6, 8), lab.Tiresias())"
)


def prefix_of(tree: Path) -> Path:
    """Make the environment that environment.yml describes; its folder."""
    prefix = FOLDER / "prefix"
    file = tree / "environment.yml"
    if conda := shutil.which("conda"):
        run([conda, "env", "create", "--quiet", "--prefix", str(prefix), "--file", str(file)], tree)
        return prefix
    version = re.search(r"python=(\d+\.\d+)", file.read_text())[1]
    python = python_of(version)
    if python is None:
        sys.exit(f"make binder: found neither conda nor Python {version}; environment.yml asks for it. Install one.")
    print(f"no conda: a virtual environment of Python {version} stands in for environment.yml", flush=True)
    run([python, "-m", "venv", str(prefix)], tree)
    return prefix


def megabytes(folder: Path) -> int:
    """Size of a folder's files."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) // 10**6


def main() -> int:
    """Build, simulate, and print what it took."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    tree = FOLDER / "tree"
    tree.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=packed, check=True)
    prefix = prefix_of(tree)
    env = os.environ | {"PATH": f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(prefix)}
    env.pop("PYTHONPATH", None)
    steps = {"postBuild": ["./postBuild"], "first simulation": [str(prefix / "bin" / "python"), "-c", FIRST]}
    for name, words in steps.items():
        begin = time.monotonic()
        used = processor()
        subprocess.run(words, cwd=tree, env=env, check=True)
        print(f"{name}: {time.monotonic() - begin:.0f} s, {processor() - used:.0f} of the processor", flush=True)
    print(f"environment: {megabytes(prefix)} MB; tree with machine code: {megabytes(tree)} MB")
    shutil.rmtree(FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
