"""The CopterExplorer: two rounds of Sia's program, the second solved cold and warm."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab import plots
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.metrics.sentence import Amount
from gpuschedlab.metrics.who_pays import counted
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer

EVALUATIONS = Amount("evaluations", "the second round takes", "{:,.0f} evaluations", "with")
TYPES, SIZES = 3, np.array([1, 2, 4, 8, 16])


@dataclass(frozen=True)
class SimilarRounds(Knobbed):
    """Two rounds with concave speed-ups, different for each job and type; a share of the jobs is replaced between them.

    Examples
    --------
    >>> first, second = SimilarRounds(jobs=20, replaced=0.5).programs()
    >>> first.shape, int((first.keys != second.keys).sum())
    ((20, 15), 10)
    """

    replaced: Annotated[float, Knob(0, 1, step=0.01, help="share of the jobs that are new in the second round")] = 0.05
    jobs: Annotated[int, Knob(10, 400, step=10, help="jobs of a round")] = 120
    room: Annotated[float, Knob(0.5, 8, step=0.5, unit="GPUs per job", help="GPUs of all types, for each job")] = 3.0
    seed: Annotated[int, Knob(0, 99, help="of the jobs")] = 0

    def programs(self) -> tuple:
        """The two rounds, as `MultipleChoice`."""
        from gpuschedlab.optim import MultipleChoice
        from gpuschedlab.problems import sia_utility

        rng = np.random.default_rng(self.seed)
        kinds, gpus = np.repeat(np.arange(TYPES), len(SIZES)), np.tile(SIZES, TYPES)
        pace = rng.uniform(1, 4, (2, self.jobs, TYPES))[:, :, kinds]
        speed = pace * gpus ** rng.uniform(0.4, 0.95, (2, self.jobs, 1))
        new = rng.permutation(self.jobs) < round(self.replaced * self.jobs)
        speed[1, ~new] = speed[0, ~new]
        keys = np.arange(self.jobs)
        capacity = np.full(TYPES, max(round(self.room * self.jobs / TYPES), 1))
        parts = [(sia_utility(s, gpus, decimals=-1), kinds, gpus, capacity) for s in speed]
        every = zip(parts, (keys, np.where(new, keys + self.jobs, keys)), strict=True)
        return tuple(MultipleChoice(*part, keys=key) for part, key in every)


class CopterExplorer(KnobExplorer):
    """Watch the residuals of copter fall, cold and warm, as more or fewer jobs are replaced; parameters as for `KnobExplorer`.

    Examples
    --------
    >>> explorer = CopterExplorer(SimilarRounds(jobs=20))
    >>> explorer.knobs["replaced"].value = 0.0
    >>> explorer.evaluations["warm"] < explorer.evaluations["cold"]
    True
    """

    places = (
        *(plots.Place(name, 340, least=220) for name in ("residuals", "prices")),
        plots.Place("gap", 340, more=True),
    )
    kept: ClassVar = {"replaced": (0.0, 0.02, 0.05, 0.2, 1.0), "room": (1.0, 3.0)}

    begin = SimilarRounds

    def _answer(self, thing: SimilarRounds) -> tuple:
        return residuals(thing), price_map(thing)

    def _numbers(self, answer) -> dict:
        traces, prices = answer
        self.evaluations = {name: trace[-1].evaluations for name, trace in traces.items()}
        return {"residuals": trace_lines(traces, "worst"), "prices": prices, "gap": trace_lines(traces, "primal")}

    def _words(self, answer) -> str:
        traces, _ = answer
        each = "; ".join(f"{name} {len(t)} steps, {t[-1].evaluations:.0f} evaluations" for name, t in traces.items())
        return f"Second round: {each}."

    def _said(self, answer) -> tuple:
        both = (answer[0][name][-1].evaluations for name in ("warm", "cold"))
        return (counted(EVALUATIONS, *both, ("a warm start", "a cold one")),)


def residuals(rounds: SimilarRounds, tol: float = 1e-5) -> dict:
    """Residuals (`optim.copter.Residuals`) of the second round, step by step, solved cold and warm."""
    from gpuschedlab.papers.copter.solver.proximal import Copter

    first, second = rounds.programs()
    warm, cold = Copter(tol=tol), Copter(tol=tol)
    warm.solve(first)
    warm.solve(second)
    cold.solve(second)
    return {"cold": cold.trace, "warm": warm.trace}


def trace_lines(traces: dict, what: str):
    """Residuals over evaluations of the dual as `plots.Lines`: powers of ten, each from the step that was last done."""
    count = np.arange(1, int(max(trace[-1].evaluations for trace in traces.values())) + 1)
    values = {}
    for name, trace in traces.items():
        done = np.searchsorted([r.evaluations for r in trace], count, side="right")
        line = np.log10([np.nan, *(max(getattr(r, what), 1e-12) for r in trace)])[done]
        values[name] = np.where(count <= trace[-1].evaluations, line, np.nan)
    words = {"worst": "All residuals", "primal": "GPUs beyond their number"}[what] + ", second round"
    return plots.Lines(words, "evaluations of the dual", "largest, power of ten", count, values)


def copter_prices(problem, tol: float = 1e-5) -> np.ndarray:
    """Prices of the types after each proximal step of copter (steps + 1, T), from nothing."""
    from gpuschedlab.optim.programs.shims import possible_cells, relaxed
    from gpuschedlab.papers.copter.solver.proximal import Copter

    program, path = relaxed(problem, possible_cells(problem)), [np.zeros(len(problem.capacity))]
    for steps in range(1, 30):
        found = Copter(tol=tol, steps=steps).solve(program)
        path.append(np.maximum(found.duals[-len(problem.capacity) :], 0.0))
        if found.status == "optimal":
            break
    return np.array(path)


def descent_prices(problem, moves: int = 30) -> np.ndarray:
    """Prices (k, T) of a coordinate descent on the bound: one price after the other goes to its best, until none moves."""
    from scipy.optimize import minimize_scalar

    from gpuschedlab.optim.programs.shims import possible_cells
    from gpuschedlab.papers.copter.solver.rounds import bound_at

    cells, prices, path = possible_cells(problem), np.zeros(len(problem.capacity)), []
    highest, best = float(np.nanmax(problem.utility / problem.gpus)), bound_at(problem, cells, prices)
    while len(path) < moves and (len(path) < 2 or np.abs(prices - path[-2]).max() > 1e-5 * highest):
        path.append(prices.copy())
        at = np.eye(len(prices))[(len(path) - 1) % len(prices)]
        found = minimize_scalar(
            lambda p, at=at, y=prices: bound_at(problem, cells, np.where(at > 0, p, y)),
            bounds=(0.0, highest), method="bounded", options={"xatol": 1e-6 * highest},
        )  # fmt: skip
        if found.fun < best:
            prices, best = np.where(at > 0, found.x, prices), found.fun
    return np.array([*path, prices])


def price_map(rounds: SimilarRounds, size: int = 48):
    """The bound over the prices of two GPU types, and two ways down to the least one, as `plots.Landscape`."""
    from gpuschedlab.optim import MultipleChoice
    from gpuschedlab.optim.programs.shims import possible_cells
    from gpuschedlab.papers.copter.solver.rounds import bound_at

    every = rounds.programs()[1]
    mine = every.kinds < 2
    problem = MultipleChoice(every.utility[:, mine], every.kinds[mine], every.gpus[mine], every.capacity[:2])
    cells = possible_cells(problem)
    paths = {"copter": copter_prices(problem), "one price at a time": descent_prices(problem)}
    top = 1.15 * np.concatenate(list(paths.values())).max(axis=0) + 1e-6
    x, y = (np.linspace(0.0, end, size) for end in top)
    bound = np.array([[bound_at(problem, cells, np.array([p, q])) for p in x] for q in y])
    least = min(bound.min(), *(bound_at(problem, cells, path[-1]) for path in paths.values()))
    above = np.log10(np.maximum(bound / max(least, 1e-12) - 1, 1e-4))
    words = ("Two types alone: bound by prices", "price of type 0", "price of type 1", "above least, 10^")
    return plots.Landscape(*words, x, y, np.round(4 * above) / 4, paths)
