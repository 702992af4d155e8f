"""Chapter 5 of the COpter thesis (Jayaram Subramanya, CMU 2025): shards and traffic, on stand-ins for what it does not give."""

from published.numbers import Number, Ours
from published.study import Study

from papers.copter import methods

QUICK = {"shards": (128, 16), "routers": 100, "demands": 1500}
"""Sizes that QUICK=1 runs."""

FLOWS = {"poisson": "figure 5.5", "bimodal": "figure 5.6"}
WAYS = {"top": "lp-top", "pop-16": "pop-16", "copter": "copter"}

EXACT = Number("figure 5.2", "128 shards, stateful", "lp-relaxed", "times_faster_than_exact")
SPEED = Number("figure 5.3", "1024 shards, stateful", "copter", "times_faster_than_lp_relaxed")
UNEVEN = Number("figure 5.2", "1024 shards, stateful", "copter", "uneven")


def ours(study: Study) -> dict[Number, float | str | Ours]:
    """Every number of the chapter that can be had."""
    return _shards(study) | _flows(study)


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
