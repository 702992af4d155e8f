"""Chapter 4 of the Sia thesis (Jayaram Subramanya, CMU 2025): COpter-Sia, LP* and POP."""

from functools import partial

from reproduce.papers.copter import parts, tail, trace
from reproduce.published.numbers import Number, Ours, mean
from reproduce.published.rows import Row
from reproduce.published.study import Study

SOLVERS = {"LP*": "relaxed", "POP": "pop-16", "COpter": "copter"}
METRICS = {"avg_jct": "avg_jct", "makespan": "makespan", "p99_solve": "p99"}
TRACES = {"LP*": ("40k", 40), "POP": ("10k", 10), "COpter": ("40k", 40)}
"""Workloads, and times 256 GPUs; in rounds as sampled for the larger, HiGHS takes 13 CPU s for POP's 16 parts, cut off at 2 units
of work each."""

SCALE = 40
QUICK_SCALE = 10
ROUNDS = 5
"""Times 256 GPUs; those of QUICK=1, which runs no whole trace."""


PARTS = {
    "changed_values": "figure 4.2",
    "integral_values": "figure 4.4",
    **dict.fromkeys(("solver_speedup", "warm_speedup", "total_speedup"), "figure 4.6"),
}
"""Measured values of sampled rounds, and the figure of each."""


def cheap(study: Study) -> dict[Number, Row]:
    """What sampled rounds give, among it how much faster COpter is."""
    return _parts(study)


def ours(study: Study) -> dict[Number, Row]:
    """Every number of the chapter that can be had."""
    return ({} if study.quick else _traces(study) | _tail(study)) | _parts(study)


def measured_by(number: Number) -> tuple[str, ...]:
    """Modules of the functions that measure a number."""
    return ({"table 4.1": trace, "figure 4.5": tail}.get(number.where, parts).__name__,)


def _parts(study: Study) -> dict[Number, Row]:
    """Figures 4.2, 4.4 and 4.6, on sampled rounds."""
    rows: dict[Number, Row] = {}
    for name, where in PARTS.items():
        policy = "COpter" if where == "figure 4.6" else "LP*"
        rows[Number(where, "40k jobs", policy, name)] = partial(_part, study, name)
    return rows | {Number("figure 4.6", "40k jobs", "COpter", "differential_speedup"): _no_differential}


def _part(study: Study, name: str) -> Ours:
    """A value of sampled rounds."""
    values = study.answer(parts.measure, (QUICK_SCALE if study.quick else SCALE, ROUNDS))[name]
    found = mean(dict(enumerate(values, 1)), word="round")
    return found._replace(note="Of 400 jobs on 2,560 GPUs.", whole=False) if study.quick else found


def _no_differential() -> str:
    return "Not measured here: there is no row of rounds that are built anew beside the same rounds edited."


def _tail(study: Study) -> dict[Number, Row]:
    """Figure 4.5: the slowest round over the 90th percentile of rounds."""
    return {Number("figure 4.5", "40k jobs", "COpter", "slowest_over_p90_solve"): partial(_slowest, study)}


def _slowest(study: Study) -> Ours:
    found = study.answer(tail.measure, (*TRACES["COpter"], SOLVERS["COpter"]))
    note = f"{1000 * found['slowest']:.0f} and {1000 * found['p90']:.0f} ms."
    return Ours(found["slowest"] / found["p90"], note)


def _traces(study: Study) -> dict[Number, Row]:
    """Table 4.1: whole traces, POP's smaller than the others'."""
    rows: dict[Number, Row] = {}
    for policy in SOLVERS:
        for metric, key in METRICS.items():
            rows[Number("table 4.1", "40k jobs", policy, metric)] = partial(_of_trace, study, policy, key)
    return rows


def _of_trace(study: Study, policy: str, key: str) -> float | str:
    """A figure of a whole trace; of POP's, which is smaller, a reason with the figure in it."""
    mine = study.answer(trace.measure, (*TRACES[policy], SOLVERS[policy]))
    if policy != "POP":
        return mine[key]
    same = study.answer(trace.measure, (*TRACES["POP"], SOLVERS["LP*"]))
    return f"Too long at this size; of the 10k set on 2,560 GPUs: {mine[key]:.3g}, LP* {same[key]:.3g}."
