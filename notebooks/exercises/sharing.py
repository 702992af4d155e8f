"""Exercises on merged jobs, warm pools, deadlines and reservations (notebooks 12 to 15)."""

from itertools import combinations

import numpy as np
import polars as pl

from exercises.verdict import Mistake, call, checked, compare, number, require


@checked
def pair_worth(answer) -> str:
    """12: what it is worth to run one job after another whose result it starts from, against the simulator.

    Parameters
    ----------
    answer : callable
        ``worth(first, second, factor)``: sum of both completion times apart, the shorter job first, over that as a pair. Alone
        they take `first` and `second` seconds; after the first, the second takes `factor` times less.
    """
    for first, second, factor in (
        (10.0, 20.0, 2.0),
        (20.0, 10.0, 2.0),
        (30.0, 60.0, 1.0),
        (5.0, 80.0, 4.0),
        (40.0, 15.0, 0.5),
    ):
        apart, pair = _times(sorted([first, second])), _times([first, second / factor])
        found = number(call(answer, first, second, factor))
        mistakes = {
            "Apart, the shorter job goes first, whichever it is.": sum(_times([first, second])) / sum(pair),
            "That compares the last ends. Both jobs count: add up both completion times.": apart[-1] / pair[-1],
            "That is the pair over apart; expected it the other way round: above 1, merging is worth it.": (
                sum(pair) / sum(apart)
            ),
            "The second job waits for the first: its completion time has both durations.": (
                (first + second) / (first + second / factor)
            ),
        }
        case = f"{first:g} s, {second:g} s and factor {factor:g}"
        right = sum(apart) / sum(pair)
        compare(found, right, mistakes, f"For {case} found {found:.3f}; the simulator says {right:.3f}.")
    return "As two simulated jobs on one GPU, in five cases."


def _times(durations) -> list[float]:
    """Completion times (s) of jobs of one GPU, in this order."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies import Fifo
    from gpuschedlab.sim import simulate

    n = len(durations)
    columns = {"job_id": [f"{i}" for i in range(n)], "submit": [0.0] * n, "gpus": [1] * n}
    trace = pl.DataFrame(columns | {"duration": list(map(float, durations))})
    return simulate(trace, Cluster.homogeneous(1, 1), Fifo()).jobs["end"].to_list()


@checked
def pool_bill(answer) -> str:
    """13: GPU-seconds that a warm pool of one GPU spends without work, against a count second by second.

    Parameters
    ----------
    answer : callable
        ``bill(gaps, window, cold)``: idle and warm-up seconds, given the gaps (n,) in s between the end of each job and the
        next, the window in s after which the GPU leaves the pool, and the seconds of a cold start.
    """
    rng = np.random.default_rng(5)
    for window, cold in ((60, 50), (15, 50), (0, 20), (1000, 30)):
        gaps = rng.integers(1, 200, 20) + 0.5
        found, right = number(call(answer, gaps, float(window), float(cold))), _counted(gaps, window, cold)
        long = gaps > window
        mistakes = {
            "A GPU that has left the pool costs nothing until the next job: a gap is idle for the window at most.": float(
                gaps.sum() + cold * long.sum()
            ),
            "Idle time is right; the cold starts after long gaps are missing.": float(np.minimum(gaps, window).sum()),
            "A job after a short gap finds the GPU warm: only gaps longer than the window cost a cold start.": float(
                np.minimum(gaps, window).sum() + cold * len(gaps)
            ),
            "Idle time before the GPU leaves is paid for, too.": float(gaps[~long].sum() + cold * long.sum()),
        }
        say = f"Window {window} s, cold start {cold} s: found {found:g} GPU-seconds, counted {right:g}."
        compare(found, right, mistakes, say)
    return "As counted second by second, with four windows."


def _counted(gaps: np.ndarray, window: int, cold: int) -> float:
    """GPU-seconds (in halves) of a GPU that is idle for at most `window`, and warms up for the next job."""
    spent, step = 0.0, 0.5
    for gap in gaps:
        idle, warm = 0.0, True
        for _ in range(round(gap / step)):
            warm = warm and idle < window
            idle += step * warm
        spent += idle + (0 if warm else cold)
    return spent


@checked
def admitted(answer) -> str:
    """14: as many jobs as can be in time on one node, against all subsets.

    Parameters
    ----------
    answer : callable
        ``admit(need, due)``: indices of the jobs to admit. Each takes the whole node for `need` leases, and must have ended
        when `due` leases are over; all are there from the start (Moore, 1968).
    """
    rng = np.random.default_rng(6)
    cases = [([6, 2, 2, 2], [6, 7, 7, 7])]
    cases += [(rng.integers(1, 7, 8).tolist(), rng.integers(3, 20, 8).tolist()) for _ in range(8)]
    for need, due in cases:
        found = call(answer, list(need), list(due))
        try:
            chosen = sorted({int(i) for i in found})
        except (TypeError, ValueError) as raised:
            raise Mistake(f"Found {found!r}; expected indices of jobs.") from raised
        n = len(need)
        require(all(0 <= i < n for i in chosen), f"Found {chosen}; the jobs are 0 to {n - 1}.")
        late = _late(chosen, need, due)
        case = f"Need {need}, due {due}: "
        require(late is None, f"{case}with jobs {chosen}, job {late} is late, even with the earliest deadline first.")
        most = max(k for k in range(n + 1) if any(_late(c, need, due) is None for c in combinations(range(n), k)))
        require(
            len(chosen) == most,
            f"{case}jobs {chosen} are in time, but {most} can be. When one is late, which of those before it is dearest?",
        )
    return f"The most that can be in time, in {len(cases)} cases."


def _late(jobs, need, due) -> int | None:
    """First job that is late when these run by deadline; None if all are in time."""
    now = 0
    for i in sorted(jobs, key=lambda i: due[i]):
        now += need[i]
        if now > due[i]:
            return i
    return None


@checked
def reserved(answer) -> str:
    """15: when a plan promises a job its start, against the simulator.

    Parameters
    ----------
    answer : callable
        ``promised(free, running, need)``: the earliest instant (s) at which `need` GPUs are free, of which `free` are so now; `running`
        is a list of (limit, GPUs), the seconds until each job's time limit, and the GPUs that it holds.
    """
    cases = [(2, [(50.0, 1), (10.0, 4), (30.0, 2), (90.0, 8)], 7), (0, [(10.0, 1), (20.0, 6), (30.0, 1)], 8)]
    cases += [(1, [(40.0, 3), (40.0, 2), (90.0, 8)], 5)]
    for free, running, need in cases:
        found, right = number(call(answer, free, list(running), need)), _promised(free, running, need)
        case = f"{free} free, running {running}, {need} needed: "
        require(
            found <= right or found != max(limit for limit, _ in running),
            f"{case}that waits for all jobs, but at {right:g} s enough GPUs are free.",
        )
        late = _promised(0, running, need) if need <= sum(gpus for _, gpus in running) else right
        mistakes = {f"{case}the {free} GPUs that are free now count, too.": late}
        compare(
            found, right, mistakes, f"{case}found {found:g} s; the simulator says {right:g} s. Which job ends first?"
        )
    return f"As the simulator says, in {len(cases)} cases."


def _promised(free: int, running, need: int) -> float:
    """Start (s) of the last job of a queue on one node, behind jobs that run as long as they may."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies import Fifo
    from gpuschedlab.sim import simulate

    limits, gpus = map(list, zip(*running, (1.0, need), strict=True))
    columns = {"job_id": [f"{i}" for i in range(len(gpus))], "submit": [0.0] * len(gpus)}
    trace = pl.DataFrame(columns | {"gpus": gpus, "duration": limits})
    return float(simulate(trace, Cluster.homogeneous(1, free + sum(gpus[:-1])), Fifo()).jobs["start"][-1])
