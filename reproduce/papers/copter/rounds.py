"""Rounds of Sia's program on COpter's cluster: building and solving, by each solver, from 512 to 102,400 GPUs."""

import resource
import time
from pathlib import Path

import numpy as np

from reproduce.papers.copter import mix, relaxations
from reproduce.published.kept import measure_all

POWERS = (-0.5, 0.5)
"""Sia's fairness power, and the one of COpter's artifact."""

CASES = {2: 20, 10: 20, 40: 12, 100: 12, 400: 6}
"""Times 256 GPUs, and rounds."""

FILES = ("profiles", "reference")
"""Folders of the reference data that rounds depend on."""

PEERS = {
    2: ("highs", "copter", "relaxed", "pop-4"),
    10: ("copter", "relaxed", "pop-4", "pop-16"),
    40: ("copter", "relaxed", "pop-4", "pop-16"),
}
PEER_ROUNDS = 2
PART_WORK = 2.0
"""Rounds that the others solve, and the work of each of POP's parts, which HiGHS rarely closes to 1e-4 in less."""

SECONDS = {100: 0.25, 400: 1.5, 2: 1.0}
GAP = {2: 1e-4, 10: 1e-3, 40: 1e-3, 100: 1e-3, 400: 1e-3}
MEMORY = 3.0
"""Budgets: CPU s of a round (p99), proven gap, GB."""


def run(data_dir: str | Path | None = None) -> dict:
    """Solve streams of similar rounds, warm from one to the next (see `mix` for how they are sampled).

    Each size and power is kept when it is done, so that a bench that was interrupted goes on.

    Returns
    -------
    dict
        `rounds`: a dict for each size, power and solver, with `gpus, jobs, padded, possible` (cells), `build, solve` (CPU s,
        median), `p50, p99` (of both), `gap` (largest, to the solver's own bound), `lost` (mean, of the best bound), and
        `ok` where there is a budget; `relaxations`: as of that module; `peak_gb`; `ok`.

    Raises
    ------
    LabError
        There is no reference data.
    """
    cases = [(scale, power) for scale in CASES for power in POWERS]
    # One at a time: seconds are what is asked.
    parts = measure_all("rounds", measure, data_dir, cases, workers=1, files=FILES)
    rows = [row for part in parts for row in part["rounds"]]
    peak = max(part["peak_gb"] for part in parts)
    parts = measure_all("rounds-relaxed", relaxations.measure, data_dir, relaxations.CASES, workers=1, files=FILES)
    relaxed = [row for part in parts for row in part]
    ok = peak < MEMORY and all(row.get("ok", True) for row in (*rows, *relaxed))
    return {"rounds": rows, "relaxations": relaxed, "peak_gb": peak, "ok": ok}


def measure(data_dir, scale: int, power: float) -> dict:
    """`rounds` of one size and power, and `peak_gb` of the process until then."""
    rows = measure_rounds(data_dir, scale, power)
    return {"rounds": rows, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def measure_rounds(data_dir, scale: int, power: float, rounds: int | None = None) -> list[dict]:
    """A stream of rounds of one size by `prices`, and its first ones by the others."""
    from gpuschedlab.optim import Session
    from gpuschedlab.optim.programs.shims import possible_cells

    of = mix.mix(data_dir, scale)
    room = mix.capacity(scale)
    rng = np.random.default_rng(scale)
    rounds = rounds or CASES[scale]
    names = ("prices", *PEERS.get(scale, ()))
    sessions = {name: Session(name, **_limit(name)) for name in names}
    seen: dict[str, list] = {name: [] for name in sessions}
    jobs = mix.sample(of, 40 * scale, rng)
    cells = []
    warmed = mix.build(of, jobs, room, power)
    for name in sessions:
        if not name.startswith("pop"):
            _solved(Session(name), warmed, 0.0)  # what is loaded and compiled at the first use
    for r in range(rounds):
        begin = time.process_time()
        problem = mix.build(of, jobs, room, power)
        built = time.process_time() - begin
        cells.append(len(possible_cells(problem).job))
        for name, session in sessions.items():
            if name == "prices" or r < PEER_ROUNDS:
                seen[name].append(_solved(session, problem, built))
        best = seen["prices"][-1]
        jobs = mix.next_round(of, jobs, best["choice"], rng)
    frame = {"gpus": 256 * scale, "power": power, "jobs": 40 * scale, "padded": 40 * scale * of.padded}
    frame["possible"] = int(np.mean(cells))
    return [frame | _figures(name, found, seen["prices"], scale) for name, found in seen.items()]


def _limit(name: str) -> dict:
    return {"work": PART_WORK} if name.startswith("pop") else {}


def _solved(session, problem, built: float) -> dict:
    """One round by one solver: CPU seconds, objective, bound and choice."""
    begin = time.process_time()
    session.update(problem)
    found = session.solve()
    taken = time.process_time() - begin
    table = found.table
    choice = np.where(table.max(axis=1, initial=0.0) > 0.5, table.argmax(axis=1), -1)
    trace = getattr(session._worker, "trace", None)
    answer = {"build": built, "solve": taken, "objective": found.objective, "bound": found.bound, "gap": found.gap}
    return answer | {"choice": choice, "steps": len(trace) if trace else 0}


def _figures(name: str, found: list[dict], best: list[dict], scale: int) -> dict:
    total = [each["build"] + each["solve"] for each in found]
    bounds = [min(b["bound"], each["bound"]) for b, each in zip(best, found, strict=False)]
    row = {"solver": name, "rounds": len(found), "build": float(np.median([each["build"] for each in found]))}
    row |= {"solve": float(np.median([each["solve"] for each in found]))}
    row |= {"p50": float(np.median(total)), "p99": float(np.quantile(total, 0.99))}
    gaps = [each["gap"] for each in found]
    row["gap"] = float(max(gaps)) if np.isfinite(gaps).all() else None
    row["lost"] = float(np.mean([1 - each["objective"] / b for each, b in zip(found, bounds, strict=True)]))
    if name == "copter":
        row["steps"] = float(np.mean([each["steps"] for each in found]))
    if name == "prices":
        row["ok"] = bool(row["gap"] <= GAP[scale] and row["p99"] <= SECONDS.get(scale, np.inf))
    return row
