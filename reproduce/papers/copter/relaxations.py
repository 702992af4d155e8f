"""copter beside HiGHS' interior point on the relaxations of rounds: cold, and warm after a share of the jobs was replaced."""

import time

import numpy as np

from reproduce.papers.copter import mix

TOLERANCES = (2e-3, 1e-4, 1e-6)
CASES = ((40, 0.5), (40, -0.5), (100, 0.5))
"""Times 256 GPUs, and fairness power."""

ROUNDS = 6
"""The first of them is not counted as warm."""

LEAST = {
    40: {2e-3: (3.5, 2.5, 10.0), 1e-4: (3.0, 0.0, 8.0), 1e-6: (0.0, 0.0, 0.0)},
    100: {2e-3: (5.0, 2.5, 10.0), 1e-4: (4.0, 0.0, 8.0), 1e-6: (0.0, 0.0, 0.0)},
}
"""Times faster, at least: cold than HiGHS as it is, cold than HiGHS without crossover at 1e-3, warm than HiGHS as it is."""

WHOLE = 6.0
"""Times faster, at least: a whole warm round (edits, solve, shim) than building and HiGHS."""

LOST = {2e-3: np.inf, 1e-4: 5e-3, 1e-6: 2e-3}
"""Share of the best bound that a round may lose after the shim."""


def measure(data_dir, scale: int, power: float) -> list[dict]:
    """Rows by tolerance, medians over rounds: CPU seconds and ratios, evaluations, `lost` and `broken` (largest) of the program.

    `ipm` is HiGHS as it is (with presolve and crossover), `bare` without either at a tolerance of 1e-3; `whole` is a warm round
    from the worth of the cells to whole choices, against building the program and `ipm`.
    """
    from gpuschedlab.optim import EditedProgram, Session
    from gpuschedlab.optim.programs.shims import possible_cells, relaxed
    from gpuschedlab.optim.solvers.highs import Highs
    from gpuschedlab.papers.copter.solver.proximal import Copter

    of = mix.mix(data_dir, scale)
    room = mix.capacity(scale)
    rng = np.random.default_rng(scale)
    jobs = mix.sample(of, 40 * scale, rng)
    prices = Session("prices")
    warm = {
        tol: (Copter(tol=tol), EditedProgram(dict(enumerate(room.tolist()))), Copter(tol=tol)) for tol in TOLERANCES
    }
    seen: dict[float, list] = {tol: [] for tol in TOLERANCES}
    Copter().solve(small := mix.build(of, jobs, room, power))  # what is compiled at the first use
    Highs(method="ipm").solve(relaxed(small, possible_cells(small)))
    for _ in range(ROUNDS):
        problem = mix.build(of, jobs, room, power)
        laid, (cells, program) = timed(lambda p=problem: (c := possible_cells(p), relaxed(p, c)))
        ipm, exact = timed(lambda p=program: Highs(method="ipm").solve(p))
        bare, _ = timed(lambda p=program: Highs(method="ipm", crossover=False, ipm_optimality_tolerance=1e-3).solve(p))
        prices.update(problem)
        best = prices.solve()
        at = problem.kinds[cells.config].astype(np.uint32)
        val = problem.gpus[cells.config].astype(float)
        parts = (problem.keys.tolist(), cells.first, program.c, at, val, problem.mandatory)
        for tol, (solver, edited, rounds) in warm.items():
            cold, found = timed(lambda p=program, t=tol: (s := Copter(tol=t), s.solve(p)))
            edited.put_requests(*parts)
            hot, _ = timed(lambda s=solver, e=edited: e.solved_by(s))
            whole, answer = timed(lambda s=rounds, p=problem: s.solve(p))
            rows = program.A @ found[1].x
            seen[tol].append({
                "cold": cold, "warm": hot, "ipm": ipm, "bare": bare, "cold_over_ipm": ipm / cold, "cold_over_bare": bare / cold,
                "warm_over_ipm": ipm / hot, "whole": (laid + ipm) / whole, "cold_evaluations": found[0].trace[-1].evaluations,
                "warm_evaluations": solver.trace[-1].evaluations, "lost": 1 - found[1].objective / exact.objective,
                "broken": float(((rows - program.row_upper) / program.row_upper).max()), "round_lost": 1 - answer.objective / best.bound,
            })  # fmt: skip
        choice = np.where(best.table.max(axis=1) > 0.5, best.table.argmax(axis=1), -1)
        jobs = mix.next_round(of, jobs, choice, rng)
    return [{"gpus": 256 * scale, "power": power, "tol": tol} | summary(scale, tol, rows) for tol, rows in seen.items()]


def summary(scale: int, tol: float, rows: list[dict]) -> dict:
    """Medians, the largest of what is lost and broken, and whether all is as `LEAST`, `WHOLE` and `LOST` ask."""
    later = rows[1:]
    row = {key: float(np.median([each[key] for each in (rows if "cold" in key else later)])) for key in rows[0]}
    row |= {key: max(each[key] for each in rows) for key in ("lost", "broken")}
    cold, bare, warm = LEAST[scale][tol]
    ok = row["cold_over_ipm"] >= cold and row["cold_over_bare"] >= bare and row["warm_over_ipm"] >= warm
    ok &= row["whole"] >= WHOLE and row["round_lost"] <= LOST[tol]
    ok &= row["lost"] <= tol and row["broken"] <= tol
    ok &= not warm or 2 * row["warm_evaluations"] <= row["cold_evaluations"]
    return row | {"ok": bool(ok)}


def timed(action) -> tuple[float, object]:
    """CPU seconds of an action, and what it returns."""
    begin = time.process_time()
    answer = action()
    return time.process_time() - begin, answer
