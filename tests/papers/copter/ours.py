"""Chapter 4 of the Sia thesis (Jayaram Subramanya, CMU 2025): COpter-Sia, LP* and POP."""

from published.numbers import Number, Ours, mean
from published.study import Study

from papers.copter import parts, tail, trace

SOLVERS = {"LP*": "relaxed", "POP": "pop-16", "COpter": "copter"}
METRICS = {"avg_jct": "avg_jct", "makespan": "makespan", "p99_solve": "p99"}
TRACES = {"LP*": ("40k", 40), "POP": ("10k", 10), "COpter": ("40k", 40)}
"""Workloads, and times 256 GPUs; in rounds as sampled for the larger, HiGHS takes 13 CPU s for POP's 16 parts, cut off at 2 units
of work each."""

SCALE = 40
QUICK_SCALE = 10
ROUNDS = 5
"""Times 256 GPUs; those of QUICK=1, which runs no whole trace."""


def cheap(study: Study) -> dict[Number, float | str | Ours]:
    """What sampled rounds give, among it how much faster COpter is."""
    return _parts(study)


def ours(study: Study) -> dict[Number, float | str | Ours]:
    """Every number of the chapter that can be had."""
    return ({} if study.quick else _traces(study) | _tail(study)) | _parts(study)


def measured_by(number: Number) -> tuple[str, ...]:
    """Modules of the functions that measure a number."""
    return ({"table 4.1": trace, "figure 4.5": tail}.get(number.where, parts).__name__,)


def _parts(study: Study) -> dict[Number, float | str | Ours]:
    """Figures 4.2, 4.4 and 4.6, on sampled rounds."""
    found: dict = {}
    (one,) = study.measured(parts.measure, [(QUICK_SCALE if study.quick else SCALE, ROUNDS)])
    for name, values in one.items():
        where = {"changed_values": "figure 4.2", "integral_values": "figure 4.4"}.get(name, "figure 4.6")
        policy = "COpter" if where == "figure 4.6" else "LP*"
        found[Number(where, "40k jobs", policy, name)] = mean(dict(enumerate(values, 1)), word="round")
    found[Number("figure 4.6", "40k jobs", "COpter", "differential_speedup")] = (
        "Rounds are built from templates of possible configurations in a few milliseconds: there is nothing to save."
    )
    if not study.quick:
        return found
    part = "Of 400 jobs on 2,560 GPUs."
    return {n: v if isinstance(v, str) else v._replace(note=part, whole=False) for n, v in found.items()}


def _tail(study: Study) -> dict[Number, Ours]:
    """Figure 4.5: the slowest round over the 90th percentile of rounds."""
    (found,) = study.measured(tail.measure, [(*TRACES["COpter"], SOLVERS["COpter"])])
    note = f"{1000 * found['slowest']:.0f} and {1000 * found['p90']:.0f} ms."
    return {
        Number("figure 4.5", "40k jobs", "COpter", "slowest_over_p90_solve"): Ours(
            found["slowest"] / found["p90"], note
        )
    }


def _traces(study: Study) -> dict:
    """Table 4.1: whole traces, POP's smaller than the others'; kept where `make bench BENCH=trace` keeps its own."""
    cases = [(*TRACES[policy], solver) for policy, solver in SOLVERS.items()]
    rows = trace.measured(study.data, [*cases, (*TRACES["POP"], SOLVERS["LP*"])])
    found: dict = {}
    for policy, row in zip(SOLVERS, rows, strict=False):
        for metric, ours_ in METRICS.items():
            less = f"Too long at this size; of the 10k set on 2,560 GPUs: {row[ours_]:.3g}, LP* {rows[-1][ours_]:.3g}."
            found[Number("table 4.1", "40k jobs", policy, metric)] = less if policy == "POP" else row[ours_]
    return found
