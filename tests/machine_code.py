"""Machine code for a wheel: `python -m machine_code FOLDER` compiles all that policies, figures and estimates need, for many processors.

`make dist` calls it. What a run with another placement rule, plan or log needs is compiled as well.
"""

import argparse
import os
import sys
from pathlib import Path

from gpuschedlab._compiled.code_files import PORTABLE_CPU, PORTABLE_FEATURES


def compile_into(folder: Path, policies: list[str]):
    """Compile everything anew into a folder; for the processor that the environment names to numba."""
    from gpuschedlab._compiled import code_files

    def inside(part: str) -> Path:
        made = folder / code_files.folder_name(part, code_files.package_folder())
        made.mkdir(parents=True, exist_ok=True)
        return made

    code_files.cache_folder = inside
    from gpuschedlab.cli.commands.warm import compile_ahead
    from gpuschedlab.cli.small_uses import small_uses
    from gpuschedlab.policies import ALL

    compile_ahead(policies or list(ALL), small_uses())


def main(words: list[str]) -> int:
    """Compile in a process of its own: numba reads for which processor when it is imported."""
    parser = argparse.ArgumentParser(prog="machine_code", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the machine code goes")
    parser.add_argument("policies", nargs="*", help="policies to compile for (default: all)")
    args = parser.parse_args(words)
    features = ",".join(f"+{name}" for name in PORTABLE_FEATURES)
    portable = {"NUMBA_CPU_NAME": PORTABLE_CPU, "NUMBA_CPU_FEATURES": features}
    if any(os.environ.get(name) != value for name, value in portable.items()):
        os.execve(sys.executable, [sys.executable, "-m", "machine_code", *words], os.environ | portable)
    compile_into(args.folder.resolve(), args.policies)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
