"""UniSched (Gao et al.; Gao, PhD thesis, NTU 2025, chapter 5) and Chronus, on the workloads of the Chronus artifact."""

from functools import partial
from itertools import product

from reproduce.papers.deadlines.curve_errors import curve_errors
from reproduce.papers.deadlines.lease_runs import ARTIFACT, DAY, measure
from reproduce.published.committed import FOLDER, read_measured
from reproduce.published.numbers import Number, Ours, as_ours, mean
from reproduce.published.rows import Row, given
from reproduce.published.study import Study

AWARE = ("hydra", "genie", "threesigma")
LEARNING = ("themis", "optimus")
OTHERS = ("fifo", "edf", "srtf", "tiresias", "triagededf", "urgent", "chronus")
"""Not compared in the paper, or by differences only."""

BARE = "unisched, no profiling"
PARTS = (BARE, "unisched, profiling first", "chronus, 10-minute leases")
VARIANTS = ("nothing ahead", "rounded leases", "suspensions ignored")
WORSE = ("fifo", "tiresias", "themis")
"""UniSched violates fewer deadlines than these on each workload, with profiling and without."""

LEASES = (5, 20, 30, 60)
OBSERVED = f"days={300 * 60 / DAY!r}"
AS_RUN = {"SLO": "days=2", "MIX1": "days=2", "MIX2": OBSERVED}
"""What the artifact of Chronus was run on: jobs of the first 48 hours, or of 300 minutes."""

DENSITY = (0.8, 1.6)
SEEDS = (0, 1, 2)
"""Of what is drawn at random; the artifact's workloads are single ones, as in the paper."""

CHEAP = ("fifo", "edf", "srtf", "tiresias", "themis", "hydra")
"""Policies that `cheap` runs on MIX1; UniSched takes a quarter of a minute there."""

SMALL = tuple(product(("T360",), ("unisched", BARE)))
"""Workloads of a few hundred jobs, and policies that `cheap` runs on them."""

UNISCHED = Number("figure 6a", "MIX1", "unisched", "violation")

QUICK = ("unisched", BARE, "chronus", "edf", "srtf", "hydra", *WORSE)
"""Policies that QUICK=1 runs, on MIX1."""


class Runs:
    """Answers of `measure` by case.

    Parameters
    ----------
    study : Study
    some : iterable of tuple
        These cases alone; default: all, or those of QUICK=1.
    known : dict
        Answers that are not measured, by case.
    """

    def __init__(self, study: Study, some=(), known=None):
        self.study = study
        self.some = frozenset(some or (_quick() if study.quick else ()))
        self.known = known or {}

    def of(self, setting: str, name: str, policy: str) -> dict | None:
        """Answer of a case; None where it is left out."""
        case = (setting, name, policy)
        if case in self.known:
            return self.known[case]
        return None if self.some and case not in self.some else self.study.answer(measure, case)

    def pair(self, key: str, one: tuple, other: tuple, change=None) -> Ours | str | None:
        """A figure of one case against that of another: their ratio, or `change` of them, with both in the note."""
        drawn = [seed for seed in SEEDS if not seed or is_drawn(one) or is_drawn(other)]
        each = {}
        pairs = {}
        for seed in drawn:
            a = self.of(*seeded(one, seed))
            b = self.of(*seeded(other, seed))
            if a is None or b is None:
                return None
            if failed := a.get("failed") or b.get("failed"):
                return f"could not be run: {failed}"
            a = a[key]
            b = b[key]
            if change is None and not b:
                return f"no ratio: {a:.3g} against {b:.3g}."
            each[seed] = change(a, b) if change else a / b
            pairs[seed] = f"{a:.3g} against {b:.3g}"
        note = f"{'; '.join(pairs.values())}."
        return mean(each, note, "seed") if len(each) > 1 else Ours(each[0], note)

    def one(self, key: str, *case) -> Ours | float | str | None:
        """A figure of a case; the mean over seeds where it is drawn."""
        each = {}
        for seed in [seed for seed in SEEDS if not seed or is_drawn(case)]:
            found = self.of(*seeded(case, seed))
            if found is None:
                return None
            if "failed" in found:
                return f"could not be run: {found['failed']}"
            each[seed] = found[key]
        return mean(each, word="seed") if len(each) > 1 else each[0]


def is_drawn(case: tuple[str, str, str]) -> bool:
    """Whether something of a case (setting, workload, policy) is drawn at random: its jobs, deadlines, noise or requests."""
    setting, name, _ = case
    return name not in ARTIFACT or "noise" in setting or "hostile" in setting


def seeded(case: tuple[str, str, str], seed: int) -> tuple[str, str, str]:
    """A case with a seed, where something of it is drawn.

    Examples
    --------
    >>> seeded(("noise=0.2", "MIX1", "edf"), 1), seeded(("", "MIX1", "edf"), 1)
    (('noise=0.2 seed=1', 'MIX1', 'edf'), ('', 'MIX1', 'edf'))
    """
    setting, name, policy = case
    return (f"{setting} seed={seed}".strip(), name, policy) if seed and is_drawn(case) else case


def _quick():
    """Cases of QUICK=1."""
    yield from (("", "MIX1", policy) for policy in QUICK)


def _dense(density: float) -> str:
    return f"days=4 density={density}"


def ours(study: Study) -> dict[Number, Row]:
    """Every number of the table that can be measured; QUICK=1 runs MIX1 under some policies."""
    return _rows(Runs(study))


def cheap(study: Study) -> dict[Number, Row]:
    """UniSched on few jobs; violations of others on MIX1, over its committed ones; Chronus as its artifact was run; errors on curves."""
    cases = [("", "MIX1", policy) for policy in CHEAP]
    cases += [seeded(("", *case), seed) for case, seed in product(SMALL, SEEDS)]
    cases += [(setting, name, "chronus") for name, setting in AS_RUN.items() if name != "SLO"]
    runs = Runs(study, cases, {("", "MIX1", "unisched"): {"violation": _committed(UNISCHED)}})
    rows = given(curve_errors(study.data)) | _chronus(runs) | _stand_ins(runs)
    return rows | {number: row for number, row in _compared(runs).items() if number.metric == "violation_over_unisched"}


def _committed(number: Number) -> float:
    """Value of a row that was measured before."""
    return as_ours(read_measured(FOLDER / "unisched.csv").found[number]).value


def _rows(runs: Runs) -> dict[Number, Row]:
    """All rows, the slow ones last: those whose cases are left out are None."""
    rows = given(curve_errors(runs.study.data)) | _chronus(runs) | _selector(runs) | _estimator(runs)
    return rows | _stand_ins(runs) | _compared(runs)


def _compared(runs: Runs) -> dict[Number, Row]:
    """Figures 6a, 6b and 8, and the policies that the paper does not compare."""
    found = {}
    for policy, name in product((*PARTS, *OTHERS, *LEARNING, *AWARE), ARTIFACT):
        beside = policy not in (*AWARE, *LEARNING)
        placed = policy == "chronus" and name != "SLO"
        pair = ("", name, policy), ("", name, "unisched")
        for where, other, key, over in (
            ("figure 6a", "figure 12a", "violation", "violation_over_unisched"),
            ("figure 6b", "figure 12b", "best_effort", "best_effort_jct_over_unisched"),
        ):
            if name != "SLO" or key == "violation":
                where = other if placed else "not in the paper" if beside else where
                found[Number(where, name, policy, over)] = partial(runs.pair, key, *pair)
    for name in ARTIFACT:
        found[Number("figure 8", name, "unisched", "suspensions")] = partial(
            runs.one, "suspensions", "", name, "unisched"
        )
    for name in ("MIX1", "MIX2"):
        found[UNISCHED._replace(workload=name)] = partial(runs.one, "violation", "", name, "unisched")
    return found


def _estimator(runs: Runs) -> dict[Number, Row]:
    """Figures 9a to 9d: what the estimator's parts are worth."""
    unified = ("", "MIX1", "unisched")
    apart = ("", "MIX1", "unisched, reserved profiler")
    found = {
        Number("figure 9a", "MIX1", "unisched", "longest_profiling_wait"): partial(runs.one, "wait", *unified),
        Number("figure 9a", "MIX1", apart[2], "longest_profiling_wait"): partial(runs.one, "wait", *apart),
        Number("figure 9a", "MIX1", apart[2], "violation_over_unified"): partial(
            runs.pair, "violation", apart, unified
        ),
        Number("figure 9b", "helios", "unisched", "less_violation_by_iterations"): partial(
            str,
            "not measured: jobs with performance criteria need curves of their own at this scale; the estimator is "
            "measured in figure 7",
        ),
    }
    for x in (1, 4):
        setting = "" if x == 1 else f"delays={x}"
        pair = (setting, "MIX1", BARE), (setting, "MIX1", "unisched, suspensions ignored")
        number = Number("figure 9c", f"MIX1, delays x {x}", BARE, "violation_over_suspensions_ignored")
        found[number] = partial(runs.pair, "violation", *pair)
    for x in (0.2, 0.4, 0.8):
        pair = (f"noise={x}", "MIX1", BARE), ("", "MIX1", BARE)
        found[Number("figure 9d", f"MIX1, noise {x:.0%}", BARE, "more_violation_than_exact")] = partial(
            runs.pair, "violation", *pair, _more
        )
    return found


def _more(a: float, b: float) -> float:
    return a - b


def _selector(runs: Runs) -> dict[Number, Row]:
    """Figures 10 and 11, and what parts of ours cost."""
    bare = ("", "MIX1", BARE)
    found = {}
    for m in LEASES:
        other = ("", "MIX1", f"unisched, {m}-minute leases")
        found[Number("figure 10a", "MIX1", other[2], "more_violation_than_10_min")] = partial(
            runs.pair, "violation", other, bare, _more
        )
    for x in (0.2, 0.6):
        one, other = ((f"hostile={x}", "MIX2", p) for p in (BARE, "unisched, consolidated"))
        number = Number("figure 11", f"MIX2, hostile {x:.0%}", BARE, "violation_over_consolidated")
        found[number] = partial(runs.pair, "violation", one, other)
    free = ("delays=0", "MIX1", BARE)
    found[Number("not in the paper", "MIX1, no start delays", BARE, "less_violation")] = partial(
        runs.pair, "violation", bare, free, _more
    )
    for name in VARIANTS:
        other = ("", "MIX1", f"unisched, {name}")
        found[Number("not in the paper", "MIX1", other[2], "more_violation")] = partial(
            runs.pair, "violation", other, bare, _more
        )
        found[Number("not in the paper", "MIX1", other[2], "best_effort_jct_ratio")] = partial(
            runs.pair, "best_effort", other, bare
        )
    found[Number("figure 10d", "MIX2", "unisched", "longest_round")] = partial(
        runs.one, "round", "", "MIX2", "unisched"
    )
    return found | {
        Number("bound of ours", "MIX1", "unisched", "cpu_time"): partial(runs.one, "seconds", "", "MIX1", "unisched")
    }


def _chronus(runs: Runs) -> dict[Number, Row]:
    """Figure 12, and what the artifact of Chronus did when it was run."""
    found = {}
    for name, setting in AS_RUN.items():
        for metric, key in (("violation", "violation"), ("best_effort_jct", "best_effort"), ("avg_jct", "all")):
            if not (name == "SLO" and key == "best_effort") and not (name == "MIX2" and key == "all"):
                found[Number("artifact, as run", name, "chronus", metric)] = partial(
                    runs.one, key, setting, name, "chronus"
                )
    for name in ("MIX1", "MIX2"):
        pair = ("", name, "chronus"), ("", name, BARE)
        found[Number("figure 12a", name, "chronus", "more_violation_than_selector")] = partial(
            runs.pair, "violation", *pair, _more
        )
        found[Number("figure 12b", name, "chronus", "best_effort_jct_over_selector")] = partial(
            runs.pair, "best_effort", *pair
        )
    pair = ("", "MIX1", "chronus"), ("", "MIX1", "unisched")
    number = Number("figure 12a", "MIX1", "chronus", "more_violation_than_unisched")
    found[number] = partial(runs.pair, "violation", *pair, _more)
    return found


def _stand_ins(runs: Runs) -> dict[Number, Row]:
    """Figures 6c and 6d, and table III, on jobs of Venus."""
    found = {}
    for x, policy in product(DENSITY, ("genie", "optimus")):
        pair = (_dense(x), "venus MIX2", policy), (_dense(x), "venus MIX2", "unisched")
        name = f"venus MIX2, density {x:.0%}"
        found[Number("figure 6c", name, policy, "violation_over_unisched")] = partial(runs.pair, "violation", *pair)
        found[Number("figure 6d", name, policy, "best_effort_jct_over_unisched")] = partial(
            runs.pair, "best_effort", *pair
        )
    for name, policy in product(("T360", "T720"), ("unisched", BARE)):
        found[Number("table III", name, policy, "violation")] = partial(runs.one, "violation", "", name, policy)
        found[Number("table III", name, policy, "avg_jct")] = partial(runs.one, "all", "", name, policy)
    return found
