"""Machine code for a wheel: `python -m machine_code FOLDER` compiles all that policies, figures and estimates need, for many processors.

`make dist` calls it. What a run with another placement rule, plan or log needs is compiled as well.
"""

import argparse
import os
import sys
from pathlib import Path

import polars as pl

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
    from gpuschedlab.policies import ALL

    compile_ahead(policies or list(ALL))
    compile_more()


def compile_more():
    """Compile what no policy with its usual knobs needs: plans, logs of decisions, warm starts."""
    import gpuschedlab as lab
    from gpuschedlab.check.samples import small_trace

    trace = small_trace()
    cluster = lab.Cluster.homogeneous(2, 8)
    for policy in (lab.Fifo(backfill="easy"), lab.Fifo(), lab.Tiresias()):
        lab.simulate(trace, cluster, policy, log=True)
    simulation = lab.Simulation(lab.Scenario(trace, cluster), lab.Fifo())
    simulation.advance(float(trace["submit"].median()))
    twin = simulation.under(lab.Tiresias())
    twin.run()
    unfinished = simulation.unfinished()
    rest = trace.filter((pl.col("submit") > simulation.now) | pl.col("job_id").is_in(unfinished["job_id"].to_list()))
    lab.Simulation(lab.Scenario(rest, cluster), lab.Fifo(), start=simulation.now, initial=unfinished).run()


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
