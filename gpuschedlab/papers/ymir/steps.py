"""One round of the merger, step by step: the columns of its program, those left out, the plan chosen and the second best."""

from dataclasses import dataclass, field, replace

import numpy as np

from gpuschedlab.optim import Solution, solve
from gpuschedlab.papers.ymir.merged import Merges
from gpuschedlab.papers.ymir.policy import Ymir
from gpuschedlab.papers.ymir.program import Merging
from gpuschedlab.policies.steps import Case, Step, spell
from gpuschedlab.sim.simulation import Simulation

LISTING = (
    "the jobs: classes of equal ones that wait, those that run, pairs that were made",
    "for each two tasks, in time and in space: TranWt (3.15, 3.16)",
    "    leave the pair out where TranWt < threshold",
    "cost of each column: slowdown / TranWt (3.9)",
    "choose columns of the least cost: each job once, no more GPUs than there are (3.10 to 3.14)",
    "the second best: solve again with less of one chosen column",
)
"""Listing of a round; `Step.line` counts from 1."""

HEAD = ("jobs", "merged", "GPUs", "seconds", "TranWt", "cost", "")
MODES = ("in time", "in space")


@dataclass(frozen=True)
class Round:
    """A solved program: its instant (s); names, modes, seconds and gains (., K) of its rows; the pairs tested, and who is in none.

    candidates : (pair, mode, why it is left out, seconds, gain); closed : why, by name.
    """

    now: float
    names: list[str]
    modes: list[str]
    seconds: np.ndarray
    gain: np.ndarray
    candidates: list
    closed: dict[str, str]
    made: Merging
    solution: Solution
    threshold: float
    gap: float


@dataclass
class _Recorded(Merges):
    rounds: list = field(default_factory=list)


@dataclass(frozen=True)
class _Recorder(Ymir):
    """Ymir itself, which keeps the programs that it solves."""

    def begin(self) -> _Recorded:
        return _Recorded()

    def solved(self, view, units, made) -> Solution:
        solution = super().solved(view, units, made)
        view.memory.rounds.append(_round(self, view, units, made, solution))
        return solution


def recorded_rounds(scenario, policy: Ymir) -> list[Round]:
    """Run a scenario under Ymir, and return a list of `Round`: every program that it solved, in order."""
    simulation = Simulation(scenario, _Recorder(**policy.knobs))
    simulation.run()
    return simulation.memory.rounds


def _round(policy, view, units, made, solution) -> Round:
    singles = units.members[: len(units.closed)]
    names = []
    modes = []
    for members in units.members:
        each = [_task(view, i) for i in members[0]]
        count = f"{len(members)} x " if len(members) > 1 else ""
        names.append(count + " + ".join(each))
        if len(each) == 2:
            row = int(view.index[members[0][0]])
            mode = view.memory.partner[row][1]
            modes.append(f"{MODES[mode]}, made before")
        else:
            modes.append("alone")
    found = []
    for (a, b, mode), why, *numbers in units.table.candidates(singles, units.closed, policy):
        pair = f"{_task(view, singles[a][0][0])} + {_task(view, singles[b][0][0])}"
        found.append((pair, MODES[mode], why, *numbers))
    names += [name for name, _, why, *_ in found if not why]
    modes += [mode for _, mode, why, *_ in found if not why]
    closed = {name: why for name, why in zip(names, units.closed) if why}
    pairs = (np.concatenate([units.seconds, units.pair_seconds]), np.concatenate([units.gain, units.pair_gain]))
    return Round(view.now, names, modes, *pairs, found, closed, made, solution, policy.threshold, policy.gap)


def _task(view, i: int) -> str:
    """Task of a job; one that runs has its name beside it, others wait in classes."""
    task = (view.model_name(i) or view.job_id(i)).rpartition("@")[2]
    return f"{task} ({view.job_id(i)} runs)" if view.running[i] else task


def second_best(made: Merging, solution: Solution, gap: float = 1e-9) -> Solution | None:
    """Return the `Solution` of the best plan that has less of some column of the plan chosen; None if there is none.

    It is the best of one program for each such column.

    Any other plan has less of some of them, or has them all and more, which does not pay.
    """
    program = made.program()
    found = []
    x = np.round(solution.x)
    for column in np.flatnonzero(x):
        upper = np.array(program.upper)
        upper[column] = x[column] - 1
        found.append(solve(replace(program, upper=upper), gap=gap, presolve="off"))
    return max(found, key=lambda each: each.objective, default=None)


def case_of(found: Round) -> Case:
    """Return a recorded round as a `Case`: its steps."""
    made = found.made
    row, config = found.made.columns()
    cost = np.concatenate([made.cost, made.pair_cost])
    table = [_cells(found, r, k, cost[r, k]) for r, k in zip(row, config)]
    pruned = []
    tests = []
    mine = len(made.count)  # rows of pairs follow those of classes
    for name, mode, why, seconds, gain in found.candidates:
        if why and gain is None:
            rows = [(name, mode, "", "", "", "", f"left out: {why}")]
            best = ""
        else:
            poor = [k for k in np.flatnonzero(~np.isnan(gain)) if not gain[k] >= found.threshold]
            out = f"left out: TranWt < {found.threshold:g}"
            rows = [(name, mode, f"{made.gpus[k]:g}", spell(seconds[k]), f"{gain[k]:.2f}", "", out) for k in poor]
            known = np.flatnonzero(~np.isnan(gain))
            best = ", ".join(f"{gain[k]:.2f} on {made.gpus[k]:g}" for k in known)
            best = f": TranWt {best} GPUs" if best else ": no GPUs for it"
        kept = [] if why else np.flatnonzero(row == mine).tolist()
        mine += not why
        lit = (*kept, *range(len(table) + len(pruned), len(table) + len(pruned) + len(rows)))
        said = f"Left out: {why}." if why else f"{len(kept)} columns for it, {len(rows)} left out."
        tests.append((3 if why else 2, f"{name}, {mode}{best}.", said, lit))
        pruned += rows
    return _told(found, table, pruned, tests)


def _cells(found: Round, r: int, k: int, cost: float) -> tuple[str, ...]:
    words = (found.names[r], found.modes[r], f"{found.made.gpus[k]:g}", spell(found.seconds[r, k]))
    gain = "" if found.modes[r] == "alone" else f"{found.gain[r, k]:.2f}"
    return (*words, gain, f"{cost:.3f}", "")


def _told(found: Round, table, pruned, tests) -> Case:
    """Return the `Case` from the rows of the columns, of pairs left out, and the tests of pairs (line, read, decided, lit)."""
    bare = [(*cells[:5], "", "") for cells in table]
    rows = table + pruned
    singles = [n for n, cells in enumerate(table) if cells[1] == "alone"]
    waiting = int(found.made.count.sum())
    closed = "; ".join(f"{name}: {why}" for name, why in found.closed.items())
    read = f"{waiting} jobs and pairs in {len(found.made.count)} rows; {found.made.room.sum():g} GPUs."
    steps = [Step(1, read, f"Not to be merged: {closed or 'none'}.", bare + _early(pruned, 0), tuple(singles))]
    for line, *said, lit in tests:
        seen = _early(pruned, max(lit, default=0) + 1 - len(table))
        steps.append(Step(line, *said, bare + seen, lit))
    said = f"{len(table)} columns; {len(pruned)} left out."
    steps.append(Step(4, "The slowdown of each column, over its gain.", said, rows, tuple(range(len(table)))))
    x = np.round(found.solution.x).astype(int)
    chosen = [(*c[:-1], f"chosen, {n} x" if n > 1 else "chosen") if n else c for c, n in zip(table, x)]
    _, configs = found.made.columns()
    used = int(x @ found.made.gpus[configs])
    said = f"{x.sum()} columns on {used} of {found.made.room.sum():g} GPUs; they save {found.solution.objective:.3f} against waiting."
    lit = tuple(np.flatnonzero(x).tolist())
    steps.append(Step(5, f"{len(table)} columns, their costs, and what waiting costs.", said, chosen + pruned, lit))
    y = x
    said = "There is no other plan."
    other = second_best(found.made, found.solution)
    if other is not None:
        y = np.round(other.x).astype(int)
        apart = found.solution.objective - other.objective
        close = apart < found.gap * abs(found.solution.objective)
        near = f" (less than the gap that is allowed, {found.gap:g} of it)" if close else ""
        said = f"It saves {other.objective:.3f}: {apart:.3f} less{near}."
    both = [(*cells[:-1], _beside(n, m)) for cells, n, m in zip(table, x, y)]
    lit = tuple(np.flatnonzero(x != y).tolist())
    steps.append(Step(6, "The same program, with less of one chosen column.", said, both + pruned, lit))
    return Case(f"{found.now / 60:.0f} min", HEAD, steps)


def _beside(n: int, m: int) -> str:
    """Return a text for a column that is n times in the plan chosen, and m times in the second best."""
    if n and m and n != m:
        return f"chosen {n} x, second best {m} x"
    return ("chosen" if m else "chosen; not in the second best") if n else "in the second best" if m else ""


def _early(pruned, seen: int) -> list:
    """Return a list of pairs left out, as far as they were tested."""
    return [cells if n < seen else (*cells[:2], *[""] * 5) for n, cells in enumerate(pruned)]


def cases_of(rounds: list[Round], most: int = 8) -> tuple[list[Case], int]:
    """Return a tuple: a list of the `Case` of each round with the most pairs, in order of time, and the index of the one with most."""
    count = [(len(found.made.first), len(found.candidates)) for found in rounds]
    busiest = sorted(range(len(rounds)), key=lambda n: count[n], reverse=True)[:most]
    shown = sorted(busiest)
    return [case_of(rounds[n]) for n in shown], shown.index(busiest[0]) if shown else 0
