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


def _round(policy, view, units, merging, solution) -> Round:
    singles = units.members[: len(units.closed)]
    unit_names = []
    modes = []
    for members in units.members:
        member_tasks = [_task(view, i) for i in members[0]]
        members_words = f"{len(members)} x " if len(members) > 1 else ""
        unit_names.append(members_words + " + ".join(member_tasks))
        if len(member_tasks) == 2:
            first_row = int(view.index[members[0][0]])
            mode = view.memory.partner[first_row][1]
            modes.append(f"{MODES[mode]}, made before")
        else:
            modes.append("alone")
    candidate_pairs = []
    for (a, b, mode), why, *numbers in units.table.candidates(singles, units.closed, policy):
        pair = f"{_task(view, singles[a][0][0])} + {_task(view, singles[b][0][0])}"
        candidate_pairs.append((pair, MODES[mode], why, *numbers))
    unit_names += [pair_name for pair_name, _, why, *_ in candidate_pairs if not why]
    modes += [mode for _, mode, why, *_ in candidate_pairs if not why]
    closed = {unit_name: why for unit_name, why in zip(unit_names, units.closed) if why}
    pairs = (np.concatenate([units.seconds, units.pair_seconds]), np.concatenate([units.gain, units.pair_gain]))
    return Round(
        view.now, unit_names, modes, *pairs, candidate_pairs, closed, merging, solution, policy.threshold, policy.gap
    )


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
    rival_solutions = []
    x = np.round(solution.x)
    for column in np.flatnonzero(x):
        upper = np.array(program.upper)
        upper[column] = x[column] - 1
        rival_solutions.append(solve(replace(program, upper=upper), gap=gap, presolve="off"))
    return max(rival_solutions, key=lambda each: each.objective, default=None)


def case_of(found: Round) -> Case:
    """Return a recorded round as a `Case`: its steps."""
    merging = found.made
    program_row, config = found.made.columns()
    cost = np.concatenate([merging.cost, merging.pair_cost])
    column_cells = [_cells(found, r, k, cost[r, k]) for r, k in zip(program_row, config)]
    pruned = []
    tests = []
    pair_row = len(merging.count)  # rows of pairs follow those of classes
    for pair_name, mode, why, seconds, gain in found.candidates:
        if why and gain is None:
            pruned_rows = [(pair_name, mode, "", "", "", "", f"left out: {why}")]
            best_gains = ""
        else:
            poor = [k for k in np.flatnonzero(~np.isnan(gain)) if not gain[k] >= found.threshold]
            left_out = f"left out: TranWt < {found.threshold:g}"
            pruned_rows = [
                (pair_name, mode, f"{merging.gpus[k]:g}", spell(seconds[k]), f"{gain[k]:.2f}", "", left_out)
                for k in poor
            ]
            known_gains = np.flatnonzero(~np.isnan(gain))
            best_gains = ", ".join(f"{gain[k]:.2f} on {merging.gpus[k]:g}" for k in known_gains)
            best_gains = f": TranWt {best_gains} GPUs" if best_gains else ": no GPUs for it"
        chosen_columns = [] if why else np.flatnonzero(program_row == pair_row).tolist()
        pair_row += not why
        lit = (
            *chosen_columns,
            *range(len(column_cells) + len(pruned), len(column_cells) + len(pruned) + len(pruned_rows)),
        )
        pair_verdict = (
            f"Left out: {why}." if why else f"{len(chosen_columns)} columns for it, {len(pruned_rows)} left out."
        )
        tests.append((3 if why else 2, f"{pair_name}, {mode}{best_gains}.", pair_verdict, lit))
        pruned += pruned_rows
    return _told(found, column_cells, pruned, tests)


def _cells(recorded: Round, r: int, k: int, cost: float) -> tuple[str, ...]:
    column_words = (recorded.names[r], recorded.modes[r], f"{recorded.made.gpus[k]:g}", spell(recorded.seconds[r, k]))
    gain = "" if recorded.modes[r] == "alone" else f"{recorded.gain[r, k]:.2f}"
    return (*column_words, gain, f"{cost:.3f}", "")


def _told(recorded: Round, column_cells, pruned, tests) -> Case:
    """Return the `Case` from the rows of the columns, of pairs left out, and the tests of pairs (line, read, decided, lit)."""
    bare = [(*cells[:5], "", "") for cells in column_cells]
    all_cells = column_cells + pruned
    singles = [n for n, cells in enumerate(column_cells) if cells[1] == "alone"]
    waiting = int(recorded.made.count.sum())
    closed = "; ".join(f"{task_name}: {why}" for task_name, why in recorded.closed.items())
    read = f"{waiting} jobs and pairs in {len(recorded.made.count)} rows; {recorded.made.room.sum():g} GPUs."
    steps = [Step(1, read, f"Not to be merged: {closed or 'none'}.", bare + _early(pruned, 0), tuple(singles))]
    for line, *step_words, lit in tests:
        early_pairs = _early(pruned, max(lit, default=0) + 1 - len(column_cells))
        steps.append(Step(line, *step_words, bare + early_pairs, lit))
    step_words = f"{len(column_cells)} columns; {len(pruned)} left out."
    steps.append(
        Step(4, "The slowdown of each column, over its gain.", step_words, all_cells, tuple(range(len(column_cells))))
    )
    x = np.round(recorded.solution.x).astype(int)
    chosen = [(*c[:-1], f"chosen, {n} x" if n > 1 else "chosen") if n else c for c, n in zip(column_cells, x)]
    _, configs = recorded.made.columns()
    used = int(x @ recorded.made.gpus[configs])
    step_words = (
        f"{x.sum()} columns on {used} of {recorded.made.room.sum():g} GPUs; they save {recorded.solution.objective:.3f} "
        "against waiting."
    )
    lit = tuple(np.flatnonzero(x).tolist())
    steps.append(
        Step(5, f"{len(column_cells)} columns, their costs, and what waiting costs.", step_words, chosen + pruned, lit)
    )
    y = x
    step_words = "There is no other plan."
    rival = second_best(recorded.made, recorded.solution)
    if rival is not None:
        y = np.round(rival.x).astype(int)
        apart = recorded.solution.objective - rival.objective
        close = apart < recorded.gap * abs(recorded.solution.objective)
        near = f" (less than the gap that is allowed, {recorded.gap:g} of it)" if close else ""
        step_words = f"It saves {rival.objective:.3f}: {apart:.3f} less{near}."
    both = [(*cells[:-1], _beside(n, m)) for cells, n, m in zip(column_cells, x, y)]
    lit = tuple(np.flatnonzero(x != y).tolist())
    steps.append(Step(6, "The same program, with less of one chosen column.", step_words, both + pruned, lit))
    return Case(f"{recorded.now / 60:.0f} min", HEAD, steps)


def _beside(n: int, m: int) -> str:
    """Return a text for a column that is n times in the plan chosen, and m times in the second best."""
    if n and m and n != m:
        return f"chosen {n} x, second best {m} x"
    return ("chosen" if m else "chosen; not in the second best") if n else "in the second best" if m else ""


def _early(pruned, seen: int) -> list:
    """Return a list of the pairs (tuples) left out, as far as they were tested."""
    return [cells if n < seen else (*cells[:2], *[""] * 5) for n, cells in enumerate(pruned)]


def cases_of(rounds: list[Round], most: int = 8) -> tuple[list[Case], int]:
    """Return a tuple: a list of the `Case` of each round with the most pairs, in order of time, and the index of the one with most."""
    pair_counts = [(len(recorded.made.first), len(recorded.candidates)) for recorded in rounds]
    busiest = sorted(range(len(rounds)), key=lambda n: pair_counts[n], reverse=True)[:most]
    shown_rounds = sorted(busiest)
    return [case_of(rounds[n]) for n in shown_rounds], shown_rounds.index(busiest[0]) if shown_rounds else 0
