"""Chapter 5 of the COpter thesis (Jayaram Subramanya, CMU 2025): shards and traffic, on stand-ins for what it does not give."""

from gpuschedlab.optim.solve import SOLVERS
from published.copter import methods as problems
from published.numbers import Number, Ours
from published.study import Study

QUICK = {"shards": (128, 16), "routers": 100, "demands": 1500}
"""Sizes that QUICK=1 runs."""

FLOWS = {"poisson": "figure 5.5", "bimodal": "figure 5.6"}
WAYS = {"top": "lp-top", "pop-16": "pop", "copter": "copter"}

EXACT = Number("figure 5.2", "1024 shards, stateful", "lp-relaxed", "times_faster_than_exact")
SPEED = Number("figure 5.3", "2048 shards, stateful", "copter", "times_faster_than_lp_relaxed")
UNEVEN = Number("figure 5.2", "1024 shards, stateful", "copter", "uneven")


def ours(study: Study) -> dict[Number, float | str | Ours]:
    """Every number of the chapter that can be had."""
    return _shards(study.quick) | _flows(study.quick)


def _shards(quick: bool) -> dict:
    """Figures 5.2 and 5.3, on fewer shards."""
    small = _rows((128, 16), ("relaxed", "exact"))
    found = {
        EXACT: Ours(small["exact"]["seconds"] / small["relaxed"]["seconds"], "Of 128 shards and 16 servers."),
        SPEED: _missing() or "",
        UNEVEN: _missing() or "",
    }
    if not _missing():
        size = QUICK["shards"] if quick else (1024, 128)
        rows = _rows(size, ("relaxed", "copter"))
        part = f"Of {size[0]} shards and {size[1]} servers."
        found[SPEED] = Ours(rows["relaxed"]["seconds"] / rows["copter"]["seconds"], part, whole=not quick)
        found[UNEVEN] = Ours(rows["copter"]["uneven"], part, whole=not quick)
    return found


def _rows(size: tuple[int, int], ways: tuple[str, ...]) -> dict[str, dict]:
    return {way: problems.shard_row(*size, "stateful", way) for way in ways}


def _flows(quick: bool) -> dict:
    """Figures 5.5 and 5.6, on the generated network."""
    found: dict = {}
    size = {"demands": QUICK["demands"], "nodes": QUICK["routers"]} if quick else {}
    for kind, where in FLOWS.items():
        left_out = {"pop-16"} if kind == "bimodal" else set()
        left_out |= {"copter"} if _missing() else set()
        ways = ("all", *(way for way in WAYS if way not in left_out))
        rows = {row["way"]: row for row in problems.flow_rows(kind, ways, **size)}
        for way, policy in WAYS.items():
            if (kind, way) == ("bimodal", "pop-16"):
                continue  # no number is printed
            number = Number(where, f"Kdl, {kind}", policy, "flow_over_lp_all")
            part = f"Of {QUICK['demands']} demands on {QUICK['routers']} routers." if quick else "Of 20,000 demands."
            found[number] = _share(rows.get(way), part, not quick)
    return found


def _share(row: dict | None, part: str, whole: bool) -> Ours | str:
    """Share of the largest flow, or why there is none."""
    if row is None:
        return _missing()
    return Ours(row["of_all"], part, whole=whole) if "of_all" in row else row["failed"]


def _missing() -> str:
    """Why there is nothing of copter."""
    return "" if "copter" in SOLVERS else "there is no solver 'copter'"
