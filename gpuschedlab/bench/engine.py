"""Seconds of the processor and memory of the engine, warm, each case in a process of its own.

A time is that of a whole `simulate` call: checks at the door, what the scenario prepares, and simulation; of rows `run_N`, that of
`Scenario.run` in a scenario that has run a policy before, and of rows `summary_N`, that and `Run.summary`. Beside another checkout,
the two are measured in turn, so that a machine of varying speed is as fast for each.
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
TURNS = 2
SLOWER = 1.1
"""Ratio of the processor's seconds to those of another checkout at which a case counts as slower."""
SHORT = 10_000
"""Jobs that are simulated, in as many runs as that takes, for one time of a run that is too short to be measured by itself."""
MEMORY = 4e9  # bytes, of the million-job cases

ORDERED = ("fifo", "sjf", "edf", "srtf", "tiresias", "themis", "lucid")
NODES = (1_000, 10_000)
JOBS = 30_000
AGAIN = {10: (0.8e-3, 2e-3), 500: (1.5e-3, 3e-3), 2_000: (4e-3, 6e-3), 10_000: (22e-3, 30e-3)}
"""Jobs, and the seconds allowed for a run of a scenario that has run before, without its summary and with it."""
DEARER = 2.0
"""Ratio of the seconds per job on the largest of so many nodes to those on the smallest that is allowed."""


class Case(NamedTuple):
    """What is simulated, and the processor's seconds and bytes allowed (None: for information).

    `days`: one job so long; `call`: "simulate", "run" (`Scenario.run` again) or "summary" (of such a run).
    """

    name: str
    policy: str
    jobs: int
    cluster: str
    load: float
    seconds: float | None = None
    memory: float | None = None
    speeds: bool = False
    days: float | None = None
    call: str = "simulate"


CASES = (
    Case("tiresias_10k", "tiresias", 10_000, "70x8", 0.9, 0.06),
    Case("tiresias_10k_overloaded", "tiresias", 10_000, "70x8", 1.1),
    Case("tiresias_10k_speeds", "tiresias", 10_000, "70x8", 0.9, speeds=True),
    Case("tiresias_100k", "tiresias", 100_000, "125x8", 0.9, 1.0),
    Case("fifo_million", "fifo", 1_000_000, "125x8", 0.9, 30.0, MEMORY),
    Case("tiresias_million", "tiresias", 1_000_000, "125x8", 0.9, 30.0, MEMORY),
    Case("themis_10k", "themis", 10_000, "70x8", 0.9),
    Case("lucid_10k_speeds", "lucid", 10_000, "70x8", 0.9, speeds=True),
    Case("tiresias_load_3", "tiresias", 10_000, "70x8", 3.0),
    Case("themis_load_3", "themis", 10_000, "70x8", 3.0, 0.2),
    Case("sia_one_long_job", "sia", 1, "16x4", 0.0, 1.0, days=50.0),
    Case("gavel_one_long_job", "gavel", 1, "16x4", 0.0, 1.0, days=50.0),
    *(
        Case(f"{call}_{jobs}", "tiresias", jobs, "70x8", 0.9, seconds, call=call)
        for jobs, allowed in AGAIN.items()
        for call, seconds in zip(("run", "summary"), allowed, strict=True)
    ),
    *(Case(f"{p}_{nodes}_nodes", p, JOBS, f"{nodes}x8", 0.9) for p in ORDERED for nodes in NODES),
)


def run(data_dir=None, beside: str | None = None) -> dict:
    """Measure every case.

    Parameters
    ----------
    data_dir : optional
        Not used.
    beside : path, optional
        Folder of another checkout of the package, which is measured in turn with this one.

    Returns
    -------
    dict
        `rows`: dicts with `name`, `value` (median; the processor's seconds, which other work on the machine
        does not lengthen), `unit`, `budget` (None: for information), `ok`, `runs` (all values), and `beside` and `ratio`,
        the median of the other checkout and this one's over it; `machine`; `ok`: whether every budget is kept, and
        nothing is slower by more than a tenth than beside it.
    """
    rows = [row for case in CASES for row in case_rows(case, beside)]
    rows += [_dearer(policy, rows) for policy in ORDERED]
    rows.append(_row("first_compile", [first_compile()], "s", None))
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "processor": _processor()}
    return {"bench": "engine", "rows": rows, "machine": machine, "ok": all(r["ok"] for r in rows)}


def case_rows(case: Case, beside: str | None = None, runs: int = RUNS) -> list[dict]:
    """Rows of one case: seconds, and peak memory where that is limited."""
    words = ["-c", Path(__file__).read_text(encoding="utf-8"), case.name, str(runs)]  # this file, in either checkout
    mine, other = [], []
    for _ in range(TURNS if beside else 1):
        mine.append(_python(words))
        if beside:
            try:
                other.append(_python(words, beside))
            except LabError as error:  # a case may need what the other checkout has not yet
                print(f"bench engine: {case.name} does not run in {beside}: {error}", file=sys.stderr)
    row = _row(case.name, [s for answer in mine for s in answer["cpu"]], "s", case.seconds)
    if other:
        before = statistics.median(s for answer in other for s in answer["cpu"])
        row |= {"beside": before, "ratio": row["value"] / before}
        row["ok"] &= row["ratio"] <= SLOWER
    if case.memory is None:
        return [row]
    return [row, _row(f"{case.name}_memory", [max(answer["memory"] for answer in mine)], "bytes", case.memory)]


def measure(case: Case, runs: int) -> dict:
    """Run a case in this process: the processor's seconds `cpu` (runs,) after one that warms up, and peak `memory` (bytes)."""
    from gpuschedlab import Cluster, Scenario, simulate
    from gpuschedlab.policies import ALL

    cluster, policy = Cluster.parse(case.cluster), ALL[case.policy]()
    trace = _trace(case, cluster.total_gpus)
    speeds = None
    if case.speeds:
        from gpuschedlab.speeds import default_speeds

        speeds = default_speeds(cluster)
    scenario = Scenario(trace, cluster, speeds=speeds)
    call = {
        "simulate": lambda: simulate(trace, cluster, policy, speeds=speeds),
        "run": lambda: scenario.run(policy),
        "summary": lambda: scenario.run(policy).summary(),
    }[case.call]
    times = 1 if case.call == "simulate" else max(1, SHORT // case.jobs)
    call()
    cpu = []
    for _ in range(runs):
        begin = time.process_time()
        for _ in range(times):
            call()
        cpu.append((time.process_time() - begin) / times)
    # Linux counts kB, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return {"cpu": cpu, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}


def _trace(case: Case, gpus: int):
    """Jobs of a case: generated, with arrivals a day as in a week of 10,000 on 560 GPUs, or one long job."""
    import polars as pl

    from gpuschedlab import generate

    if case.days is not None:
        return pl.DataFrame({"job_id": ["long"], "submit": [0.0], "gpus": [1.0], "duration": [case.days * 86_400.0]})
    days = 7 * case.jobs / 10_000 * 560 / gpus
    return generate("venus", days=days, jobs=case.jobs, load=case.load, cluster_gpus=gpus, rng=0)


def first_compile() -> float:
    """Processor's seconds of compiling the engine and one policy where nothing has been compiled before: a copy of the package."""
    code = "from gpuschedlab.bench.engine import warm; import time; warm(('fifo',)); print(time.process_time())"
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
    from gpuschedlab.parse import policy_of
    from gpuschedlab.policies import ALL

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


def _dearer(policy: str, rows: list[dict]) -> dict:
    """Row of how much dearer a job is on many nodes than on few."""
    few, many = ([r["value"] for r in rows if r["name"] == f"{policy}_{n}_nodes"] for n in (min(NODES), max(NODES)))
    return _row(f"{policy}_nodes", [many[0] / few[0]], "x", DEARER)


def _row(name: str, values: list[float], unit: str, budget: float | None) -> dict:
    value = statistics.median(values)
    row = {"name": name, "value": value, "unit": unit, "budget": budget}
    return row | {"ok": budget is None or value <= budget, "runs": values}


def _python(words: list[str], folder: str | None = None):
    """JSON that a fresh Python prints, started in a folder."""
    there = os.environ | ({"PYTHONPATH": str(folder)} if folder else {})
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=folder, env=there, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise LabError(
            f"bench engine: python {' '.join(w for w in words if len(w) < 99)} ended with {done.returncode}: {last}"
        )
    return json.loads(done.stdout)


def _processor() -> str:
    """Name of the processor, where the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"


if __name__ == "__main__":
    wanted = {case.name: case for case in CASES}[sys.argv[1]]
    print(json.dumps(measure(wanted, int(sys.argv[2]))))
