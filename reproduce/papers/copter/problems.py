"""Chapter 5 of the COpter thesis (Jayaram Subramanya, CMU 2025): shards and traffic, on stand-ins for what it does not give."""

from functools import partial
from itertools import product

from reproduce.papers.copter import methods
from reproduce.published.numbers import Number, Ours
from reproduce.published.rows import Row
from reproduce.published.study import Study

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


def ours(study: Study) -> dict[Number, Row]:
    """Every number of the chapter that can be had."""
    return _shards(study) | _balanced(study, BALANCED) | _flows(study)


def cheap(study: Study) -> dict[Number, Row]:
    """Moves and balance of a few shards, but by the program in whole numbers."""
    return _balanced(study, [way for way in BALANCED if way != "exact"])


def measured_by(number: Number) -> tuple[str, ...]:
    """Module of the functions that measure a number."""
    return (methods.__name__,)


def _balanced(study: Study, ways) -> dict[Number, Row]:
    """Figure 5.2 on fewer shards: how many are moved, and what is left uneven, in each way."""
    rows = {}
    for loads, way in product(LOADS, ways):
        for metric, key in (("shard_moves", "moved"), ("uneven", "uneven")):
            number = Number("figure 5.2", f"{FEW[0]} shards, {loads}", BALANCED[way], metric)
            rows[number] = partial(_balance, study, loads, way, key)
    return rows


def _balance(study: Study, loads: str, way: str, key: str) -> Ours:
    """A figure of few shards in one way."""
    found = study.answer(methods.measure_few, (*FEW, loads, way))
    return Ours(found[key], f"Of {FEW[0]} shards and {FEW[1]} servers.")


def _shards(study: Study) -> dict[Number, Row]:
    """Figures 5.2 and 5.3, on fewer shards."""
    size = QUICK["shards"] if study.quick else (1024, 128)
    return {
        EXACT: partial(_times_faster, study, QUICK["shards"], "exact", "relaxed", whole=True),
        SPEED: partial(_times_faster, study, size, "relaxed", "copter", whole=not study.quick),
        UNEVEN: partial(_uneven, study, size),
    }


def _times_faster(study: Study, size: tuple[int, int], slow: str, fast: str, whole: bool) -> Ours:
    """How many times faster one way is than another."""
    a, b = (study.answer(methods.measure_shards, (*size, way))["seconds"] for way in (slow, fast))
    return Ours(a / b, _of_shards(size), whole=whole)


def _uneven(study: Study, size: tuple[int, int]) -> Ours:
    """What COpter leaves uneven."""
    found = study.answer(methods.measure_shards, (*size, "copter"))
    return Ours(found["uneven"], _of_shards(size), whole=not study.quick)


def _of_shards(size: tuple[int, int]) -> str:
    return f"Of {size[0]} shards and {size[1]} servers."


def _flows(study: Study) -> dict[Number, Row]:
    """Figures 5.5 and 5.6, on the generated network."""
    rows = {}
    for (kind, where), (way, name) in product(FLOWS.items(), WAYS.items()):
        if kind == "bimodal" and way == "pop-16":
            continue  # the thesis has POP in figure 5.5 alone
        rows[Number(where, f"Kdl, {kind}", name, "flow_over_lp_all")] = partial(_flow, study, kind, way)
    return rows


def _flow(study: Study, kind: str, way: str) -> Ours | str:
    """Share of all demands' flow that one way sends."""
    size = (QUICK["demands"], QUICK["routers"]) if study.quick else (None, None)
    row = next(one for one in study.answer(methods.measure_flows, (kind, *size)) if one["way"] == way)
    if "failed" in row:
        return row["failed"]
    part = f"Of {QUICK['demands']} demands on {QUICK['routers']} routers." if study.quick else "Of 20,000 demands."
    return Ours(row["of_all"], part, whole=not study.quick)
