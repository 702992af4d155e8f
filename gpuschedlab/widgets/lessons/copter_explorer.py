"""The CopterExplorer: two rounds of Sia's program, the second solved cold and warm."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab import plots
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer

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

    places = (plots.Place("residuals", 380, wide=True), plots.Place("gap", 300))

    begin = SimilarRounds

    def _answer(self, thing: SimilarRounds) -> dict:
        return residuals(thing)

    def _numbers(self, traces) -> dict:
        self.evaluations = {name: trace[-1].evaluations for name, trace in traces.items()}
        return {"residuals": trace_lines(traces, "worst"), "gap": trace_lines(traces, "primal")}

    def _words(self, traces) -> str:
        each = "; ".join(f"{name} {len(t)} steps, {t[-1].evaluations:.0f} evaluations" for name, t in traces.items())
        return f"Second round: {each}."


def residuals(rounds: SimilarRounds, tol: float = 1e-5) -> dict:
    """Residuals (`optim.copter.Residuals`) of the second round, step by step, solved cold and warm."""
    from gpuschedlab.optim.copter.solver import Copter

    first, second = rounds.programs()
    warm, cold = Copter(tol=tol), Copter(tol=tol)
    warm.solve(first)
    warm.solve(second)
    cold.solve(second)
    return {"cold": cold.trace, "warm": warm.trace}


def trace_lines(traces: dict, what: str):
    """Residuals over proximal steps as `plots.Lines`: powers of ten."""
    steps = max(len(trace) for trace in traces.values())
    values = {}
    for name, trace in traces.items():
        line = np.full(steps, np.nan)
        line[: len(trace)] = np.log10([max(getattr(r, what), 1e-12) for r in trace])
        values[name] = line
    words = {"worst": "All residuals", "primal": "GPUs and jobs beyond their rows"}[what] + ", second round"
    return plots.Lines(words, "proximal step", "largest, power of ten", np.arange(1, steps + 1), values)
