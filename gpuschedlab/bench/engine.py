"""Seconds and memory of the engine, warm, each case in a process of its own.

A time is that of a whole `simulate` call: checks at the door, simulation, and the frames of the run.
"""

import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from gpuschedlab.errors import LabError

RUNS = 5
MEMORY = 4e9  # bytes, of the million-job cases


class Case(NamedTuple):
    """What is simulated, and the seconds and bytes allowed (None: for information)."""

    name: str
    policy: str
    jobs: int
    cluster: str
    load: float
    seconds: float | None = None
    memory: float | None = None
    speeds: bool = False


CASES = (
    Case("tiresias_10k", "tiresias", 10_000, "70x8", 0.9, 0.06),
    Case("tiresias_10k_overloaded", "tiresias", 10_000, "70x8", 1.1),
    Case("tiresias_10k_speeds", "tiresias", 10_000, "70x8", 0.9, speeds=True),
    Case("tiresias_100k", "tiresias", 100_000, "125x8", 0.9, 1.0),
    Case("fifo_million", "fifo", 1_000_000, "125x8", 0.9, 30.0, MEMORY),
    Case("tiresias_million", "tiresias", 1_000_000, "125x8", 0.9, 30.0, MEMORY),
)
IMPORT_SECONDS = 0.5
CODE = {
    "import": "import gpuschedlab",
    "import_simulate": "from gpuschedlab import simulate",
}


def run(data_dir=None) -> dict:
    """Measure every case.

    Parameters
    ----------
    data_dir : optional
        Not used.

    Returns
    -------
    dict
        `rows`: dicts with `name`, `value` (median), `unit`, `budget` (None: for information), `ok`, `runs` (all
        values), and `cpu`, the median of the processor's seconds, which other work on the machine does not lengthen;
        `machine`; `ok`: whether every budget is kept.
    """
    rows = [row for case in CASES for row in case_rows(case)]
    rows.append(_row("import", imports("import"), "s", IMPORT_SECONDS))
    rows.append(_row("import_simulate", imports("import_simulate"), "s", None))
    rows.append(_row("first_compile", [first_compile()], "s", None))
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "processor": _processor()}
    return {"bench": "engine", "rows": rows, "machine": machine, "ok": all(r["ok"] for r in rows)}


def case_rows(case: Case, runs: int = RUNS) -> list[dict]:
    """Rows of one case: seconds, and peak memory where that is limited."""
    told = _python(["-m", "gpuschedlab.bench.engine", case.name, str(runs)])
    rows = [_row(case.name, told["seconds"], "s", case.seconds) | {"cpu": statistics.median(told["cpu"])}]
    if case.memory is not None:
        rows.append(_row(f"{case.name}_memory", [told["memory"]], "bytes", case.memory))
    return rows


def measure(case: Case, runs: int) -> dict:
    """Run a case in this process: `seconds` and `cpu` (runs,) after one that warms up, and peak `memory` (bytes)."""
    from gpuschedlab import Cluster, generate, simulate
    from gpuschedlab.speeds import default_speeds
    from gpuschedlab.words import policy_of

    cluster, policy = Cluster.parse(case.cluster), policy_of(case.policy)
    # Longer traces for more jobs: arrivals a day as in a week of 10,000 on 560 GPUs.
    days = 7 * case.jobs / 10_000 * 560 / cluster.total_gpus
    trace = generate("venus", days=days, jobs=case.jobs, load=case.load, cluster_gpus=cluster.total_gpus, rng=0)
    speeds = default_speeds(cluster) if case.speeds else None
    simulate(trace, cluster, policy, speeds=speeds)
    seconds, cpu = [], []
    for _ in range(runs):
        begin, worked = time.perf_counter(), time.process_time()
        simulate(trace, cluster, policy, speeds=speeds)
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - worked)
    # Linux counts kB, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "cpu": cpu, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}


def imports(name: str, runs: int = RUNS) -> list[float]:
    """Seconds (runs,) that an import takes, each in a fresh process, after one that fills the disk's cache."""
    code = f"import time; t = time.perf_counter(); {CODE[name]}; print(time.perf_counter() - t)"
    return [_python(["-c", code]) for _ in range(runs + 1)][1:]


def first_compile() -> float:
    """Seconds of compiling the engine and one policy where nothing has been compiled before: a copy of the package."""
    code = "from gpuschedlab.bench.engine import warm; print(sum(warm(('fifo',)).values()))"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(__file__).resolve().parent.parent
        shutil.copytree(here, Path(folder) / here.name, ignore=shutil.ignore_patterns("__pycache__", "_data_files"))
        return _python(["-c", code], folder)


def warm(words: tuple[str, ...] = ()) -> dict[str, float]:
    """Compile the engine and the keys of some policies, by default of all, and what figures need: seconds by name.

    What is compiled is kept on disk, so that the next process loads it.
    """
    import polars as pl

    begin = time.perf_counter()
    from gpuschedlab import Cluster, plots, simulate
    from gpuschedlab.policies import ALL
    from gpuschedlab.words import policy_of

    seconds = {"engine": time.perf_counter() - begin}
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1, 1], "duration": [9.0, 9.0]})
    for word in words or ALL:
        begin = time.perf_counter()
        run = simulate(trace, Cluster.homogeneous(4, 4), policy_of(word))
        seconds[word] = time.perf_counter() - begin
    if not words:
        begin = time.perf_counter()
        plots.gantt(run)
        plots.seats(run)
        seconds["figures"] = time.perf_counter() - begin
    return seconds


def _row(name: str, values: list[float], unit: str, budget: float | None) -> dict:
    value = statistics.median(values)
    row = {"name": name, "value": value, "unit": unit, "budget": budget}
    return row | {"ok": budget is None or value <= budget, "runs": values}


def _python(words: list[str], folder: str | None = None):
    """JSON that a fresh Python prints, started in a folder."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise LabError(f"bench engine: python {' '.join(words[:3])} ended with {done.returncode}: {last}")
    return json.loads(done.stdout)


def _processor() -> str:
    """Name of the processor, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"


if __name__ == "__main__":
    wanted = {case.name: case for case in CASES}[sys.argv[1]]
    print(json.dumps(measure(wanted, int(sys.argv[2]))))
