"""Chapter 5 of the COpter thesis (Jayaram Subramanya, CMU 2025): shards and traffic, on stand-ins for what it does not give."""

from itertools import product

from published.numbers import Number, Ours
from published.study import Study

from papers.copter import methods

QUICK = {"shards": (128, 16), "routers": 100, "demands": 1500}
"""Sizes that QUICK=1 runs."""

FLOWS = {"poisson": "figure 5.5", "bimodal": "figure 5.6"}
WAYS = {"top": "lp-top", "pop-16": "pop-16", "copter": "copter"}

FEW = (128, 16)
LOADS = ("stateful", "stateless")
"""Shards and servers of which every way is measured."""

BALANCED = {"e-store": "heuristic", "relaxed": "lp-relaxed", "copter": "copter", "pop-4": "pop-4", "exact": "exact"}
"""Ways of balancing, by the names in the table."""

EXACT = Number("figure 5.2", "128 shards, stateful", "lp-relaxed", "times_faster_than_exact")
SPEED = Number("figure 5.3", "1024 shards, stateful", "copter", "times_faster_than_lp_relaxed")
UNEVEN = Number("figure 5.2", "1024 shards, stateful", "copter", "uneven")


def ours(study: Study) -> dict[Number, float | str | Ours]:
    """Every number of the chapter that can be had."""
    return _shards(study) | _balanced(study, BALANCED) | _flows(study)


def cheap(study: Study) -> dict[Number, float | str | Ours]:
    """Moves and balance of a few shards, but by the program in whole numbers."""
    return _balanced(study, [way for way in BALANCED if way != "exact"])


def measured_by(number: Number) -> tuple[str, ...]:
    """Module of the functions that measure a number."""
    return (methods.__name__,)


def _balanced(study: Study, ways) -> dict[Number, Ours]:
    """Figure 5.2 on fewer shards: how many are moved, and what is left uneven, in each way."""
    cases = list(product(LOADS, ways))
    found = {}
    answers = study.measured(methods.measure_few, [(*FEW, *case) for case in cases])
    for (loads, way), row in zip(cases, answers, strict=True):
        for metric, field in (("shard_moves", "moved"), ("uneven", "uneven")):
            number = Number("figure 5.2", f"{FEW[0]} shards, {loads}", BALANCED[way], metric)
            found[number] = Ours(row[field], f"Of {FEW[0]} shards and {FEW[1]} servers.")
    return found


def _shards(study: Study) -> dict:
    """Figures 5.2 and 5.3, on fewer shards."""
    size = QUICK["shards"] if study.quick else (1024, 128)
    cases = [(*QUICK["shards"], "relaxed"), (*QUICK["shards"], "exact"), (*size, "relaxed"), (*size, "copter")]
    few, exact, relaxed, copter = study.measured(methods.measure_shards, cases)
    part = f"Of {size[0]} shards and {size[1]} servers."
    return {
        EXACT: Ours(exact["seconds"] / few["seconds"], "Of 128 shards and 16 servers."),
        SPEED: Ours(relaxed["seconds"] / copter["seconds"], part, whole=not study.quick),
        UNEVEN: Ours(copter["uneven"], part, whole=not study.quick),
    }


def _flows(study: Study) -> dict:
    """Figures 5.5 and 5.6, on the generated network."""
    size = (QUICK["demands"], QUICK["routers"]) if study.quick else (None, None)
    found: dict = {}
    for (kind, where), rows in zip(
        FLOWS.items(), study.measured(methods.measure_flows, [(kind, *size) for kind in FLOWS]), strict=True
    ):
        part = f"Of {QUICK['demands']} demands on {QUICK['routers']} routers." if study.quick else "Of 20,000 demands."
        for row in rows:
            if row["way"] in WAYS:
                number = Number(where, f"Kdl, {kind}", WAYS[row["way"]], "flow_over_lp_all")
                known = Ours(row["of_all"], part, whole=not study.quick) if "of_all" in row else row["failed"]
                found[number] = known
    return found
