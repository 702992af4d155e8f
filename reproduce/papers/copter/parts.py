"""What each part of COpter saves, on sampled rounds of its thesis' mix of jobs."""

import copy

import numpy as np

from reproduce.papers.copter import mix
from reproduce.papers.copter.relaxations import timed

TIMES = 3
"""Times that each is solved; the least of their seconds counts, since what else runs takes caches."""


def least(action):
    """Least CPU seconds of an action that is repeated, and what it returns."""
    found = [timed(action) for _ in range(TIMES)]
    return min(seconds for seconds, _ in found), found[0][1]


def measure(data_dir, scale: int, rounds: int) -> dict[str, list[float]]:
    """Sampled rounds, each by itself: what changes from one to the next, and what each part of COpter saves of an interior point's time.

    `solver_speedup`: HiGHS' interior point over copter cold; `warm_speedup`: cold over warm; `total_speedup`: their product. All
    include building. The differential interface alone is not measured: see `ours`.
    """
    from gpuschedlab.optim import solve
    from gpuschedlab.optim.programs.shims import possible_cells, relaxed
    from gpuschedlab.papers.copter.solver.proximal import Copter

    of, room, rng = mix.mix(data_dir, scale), mix.capacity(scale), np.random.default_rng(0)
    jobs, warm = mix.sample(of, 40 * scale, rng), Copter()
    last = None
    seen = []
    for _ in range(rounds + 1):
        built, problem = timed(lambda jobs=jobs: mix.build(of, jobs, room, 0.5))
        laid, (cells, program) = timed(lambda p=problem: (c := possible_cells(p), relaxed(p, c)))
        ipm, exact = least(lambda p=program: solve(p, method="ipm"))
        cold, _ = least(lambda p=problem: Copter().solve(p))
        again = [copy.deepcopy(warm) for _ in range(TIMES - 1)]
        hot, found = timed(lambda p=problem: warm.solve(p))
        hot = min(hot, *(timed(lambda s=same, p=problem: s.solve(p))[0] for same in again))
        values = dict(zip(_named(jobs, cells, of), exact.x.round(6).tolist(), strict=True))
        if last is not None:
            some = values.keys() | last.keys()
            changed = sum(abs(values.get(k, 0.0) - last.get(k, 0.0)) > 1e-3 for k in some)
            whole = sum(min(x, 1 - x) <= 1e-6 for x in values.values()) + 40 * scale * of.padded - len(values)
            size = 40 * scale * of.padded
            seen.append((changed / size, whole / size, built + laid, ipm, cold, hot))
        last = values
        choice = np.where(found.table.max(axis=1) > 0.5, found.table.argmax(axis=1), -1)
        jobs = mix.next_round(of, jobs, choice, rng)
    return {
        "changed_values": [changed for changed, *_ in seen],
        "integral_values": [whole for _, whole, *_ in seen],
        "solver_speedup": [(build + ipm) / (build + cold) for *_, build, ipm, cold, _ in seen],
        "warm_speedup": [(build + cold) / (build + hot) for *_, build, _, cold, hot in seen],
        "total_speedup": [(build + ipm) / (build + hot) for *_, build, ipm, _, hot in seen],
    }


def _named(jobs, cells, of) -> list[tuple]:
    keys = jobs.key[cells.job]
    return list(zip(keys.tolist(), of.types[cells.config].tolist(), of.gpus[cells.config].tolist(), strict=True))
