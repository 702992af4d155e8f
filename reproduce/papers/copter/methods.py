"""Shards and traffic (COpter thesis, chapter 5): each way of solving rounds, and what it costs."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import OutOfTime
from reproduce.papers.copter import vertices
from reproduce.published.kept import measure_all

SHARDS = {
    (128, 16): ("e-store", "relaxed", "copter", "pop-4", "exact"),
    (1024, 128): ("e-store", "relaxed", "copter", "pop-16"),
}
"""Ways of balancing by shards and servers."""

FLOWS = {"poisson": ("all", "copter", "top", "pop-16"), "bimodal": ("all", "copter", "top", "pop-16")}
"""Ways of allocating flow by kind of demands."""

CONSTANTS = {
    "shard_rounds": 6,
    "flow_rounds": 2,
    "skip": 1,
    "z": (0.2, 0.8),
    "slack": 0.05,
    "room": 2.0,
    "shard_sizes": (1, 3),
    "routers": 754,
    "links": 895,
    "capacity_mbps": 1000.0,
    "paths": 4,
    "demands": 20_000,
    "poisson_mean_mbps": 400.0,
    "poisson_decay": 0.6,
    "bimodal_bands_mbps": ((0.0, 0.5), (2.0, 2.5)),
    "change": 0.1,
}
"""All that the thesis does not give, stated by us; the rounds are fewer than its 100 and 20."""

OPTIONS = {
    "all": {"method": "simplex", "work": 40.0},
    "relaxed": {"method": "simplex"},
    "copter": {"tol": 1e-3, "work": 20.0},
    "top": {"method": "simplex"},
    "exact": {"gap": 1e-2, "work": 20.0},
    "pop": {"gap": 1e-2, "work": 1.0},
    "flow pop": {"method": "simplex"},
    "e-store": {},
}
"""Of the solvers, by way. copter is the relaxed program, or all flows, by the solver of that name."""

QUICK_FLOWS = (2_000, 200)
"""Demands and routers of a quick run."""

QUICK_WORK = 5e-5
"""Share of their work that solvers of shards have in a quick run, so that limits strike."""

TIMES = {"seconds", "longest", "cpu", "times"}
"""Words in names of times."""

LEAST = 0.99
"""Share of HiGHS' flow that copter must reach."""


def run(data_dir: str | Path | None = None, quick: bool = False) -> dict:
    """Balance shards and allocate flows in each way; if quick, of the smaller sizes, with limits of work that stop some.

    Returns
    -------
    dict
        `answers`: a digest of all that is not a time, which is the same on any machine under any load;
        `constants`; `shards`: dicts with `shards, servers, loads, way`, and means over rounds of `ShardRound`'s fields;
        `flows`: dicts with `demands, way, of_all` (share of HiGHS' flow; if it found none in its work, of the best proven
        bound), and means of `FlowRound`'s fields, or `failed`: why there are none; `vertices`, `vertex_rows`: as of that
        module; `ok`: every answer is feasible, copter's flow is at least `LEAST` of that, and sifting is as asked.
    """
    from gpuschedlab.optim.solve import SOLVERS

    known = "copter" in SOLVERS
    shards = [
        shard_row(*size, loads, way, share=QUICK_WORK if quick else 1.0)
        for size, ways in list(SHARDS.items())[: 1 if quick else None]
        for loads in ("stateless", "stateful")
        for way in ways
        if known or way != "copter"
    ]
    small = QUICK_FLOWS if quick else ()
    flows = [
        row
        for kind, ways in FLOWS.items()
        for row in flow_rows(kind, [w for w in ways if known or w != "copter"], *small)
    ]
    ok = all(row["over"] <= 1 + 1e-9 for row in shards) and all(row.get("excess", 0) <= 1e-9 for row in flows)
    ok &= all(row.get("of_all", 0) >= LEAST for row in flows if row["way"] == "copter")
    cases = vertices.CASES[:1] if quick else vertices.CASES
    rows = [row for part in measure_all("vertices", vertices.measure, data_dir, cases, workers=1) for row in part]
    judged = vertices.judge(rows)
    ok &= all(case["ok"] for case in judged)
    found = {"constants": CONSTANTS, "shards": shards, "flows": flows, "vertices": judged, "vertex_rows": rows}
    return found | {"answers": digest([shards, flows, rows]), "ok": bool(ok)}


def digest(tables: list[list[dict]]) -> str:
    """Of rows, without what is a time."""
    kept = [[{key: v for key, v in row.items() if not TIMES & set(key.split("_"))} for row in rows] for rows in tables]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def shard_row(shards: int, servers: int, loads: str, way: str, rounds=CONSTANTS["shard_rounds"], share=1.0) -> dict:
    """One way of balancing shards, with a share of its work: means over rounds but the first `skip`."""
    from gpuschedlab.papers.copter.shards.methods import balance, random_fleet, zipf_loads

    load = zipf_loads(rounds, shards, loads == "stateful", rng=1)
    name, solver = ("relaxed", "copter") if way == "copter" else (way, "highs")
    options = dict(OPTIONS[way.partition("-")[0] if "pop" in way else way])
    if "work" in options:
        options["work"] *= share
    found = balance(random_fleet(shards, servers), load, name, solver, **options)
    return {"shards": shards, "servers": servers, "loads": loads, "way": way} | _means(found, worst=("over",))


def flow_rows(
    kind: str, ways: Iterable[str], demands: int = CONSTANTS["demands"], nodes: int = CONSTANTS["routers"]
) -> list[dict]:
    """Ways of allocating flow for one kind of demands: means over rounds but the first `skip`."""
    from gpuschedlab.papers.copter.traffic.methods import allocate_flow
    from gpuschedlab.papers.copter.traffic.networks import generated_network
    from gpuschedlab.papers.copter.traffic.program import network_routes

    network = generated_network(nodes, nodes * CONSTANTS["links"] // CONSTANTS["routers"])
    pairs, asked = some_demands(network, kind, demands)
    routes = network_routes(network, pairs, CONSTANTS["paths"])
    rows = []
    for way in ways:
        name, solver = ("all", "copter") if way == "copter" else (way, "highs")
        row = {"demands": kind, "pairs": len(pairs), "way": way}
        options = OPTIONS["flow pop" if "pop" in way else way]
        try:
            found = allocate_flow(routes, network.capacity, asked, name, solver, **options)
        except OutOfTime as error:
            rows.append(row | {"failed": str(error)})
        else:
            rows.append(row | _means(found, worst=("excess",)))
    best = min((row["bound"] for row in rows if "flow" in row), default=float("nan"))
    return [row | {"of_all": row["flow"] / best} if "flow" in row else row for row in rows]


def measure_shards(data_dir, shards: int, servers: int, way: str) -> dict:
    """Rounds of stateful shards in one way."""
    return shard_row(shards, servers, "stateful", way)


def measure_few(data_dir, shards: int, servers: int, loads: str, way: str) -> dict:
    """Rounds of either loads in one way."""
    return shard_row(shards, servers, loads, way)


def measure_flows(data_dir, kind: str, demands: int | None, nodes: int | None) -> list[dict]:
    """One kind of demands in each way; of bimodal ones by POP no number is printed."""
    ways = ("all", "top", "copter") if kind == "bimodal" else FLOWS[kind]
    return flow_rows(kind, ways, **({"demands": demands, "nodes": nodes} if demands else {}))


def poisson_demands(
    network, count: int, mean: float, decay: float = 0.9, rng: int | np.random.Generator = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Make pairs (count, 2) and their demands (count,), Mb/s, the largest of Poisson numbers: `mean` falls by `decay` with each link more.

    So it is in Narayanan et al., SOSP'21 (POP), which gives no constants, nor does the thesis.
    """
    from scipy.sparse.csgraph import shortest_path

    graph = sp.csr_array((np.ones(len(network.heads)), network.heads, network.starts), shape=(network.nodes,) * 2)
    hops = shortest_path(graph, unweighted=True)
    pairs = np.argwhere((hops > 0) & np.isfinite(hops))
    demand = np.random.default_rng(rng).poisson(mean * decay ** (hops[tuple(pairs.T)] - 1)).astype(float)
    order = np.argsort(-demand, kind="stable")[:count]
    return pairs[order], demand[order]


def some_demands(network, kind: str, demands: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (n, 2) of routers, and their demands by round (rounds, n)."""
    from gpuschedlab.papers.copter.traffic.networks import bimodal_demands, changed_demands

    if kind == "poisson":
        pairs, first = poisson_demands(network, demands, CONSTANTS["poisson_mean_mbps"], CONSTANTS["poisson_decay"])
    else:
        pairs, first = bimodal_demands(network, demands, *CONSTANTS["bimodal_bands_mbps"])
    rng = np.random.default_rng(0)
    asked = [first]
    while len(asked) < CONSTANTS["flow_rounds"]:
        asked.append(changed_demands(asked[-1], rng, CONSTANTS["change"]))
    return pairs, np.array(asked)


def _means(rounds, worst: tuple[str, ...]) -> dict:
    """Means of the fields of rounds but the first, the largest of some, and how many were solved to optimality."""
    kept = rounds[CONSTANTS["skip"] :]
    row = {}
    for field in (f for f in rounds[0]._fields if f != "status"):
        values = [getattr(r, field) for r in (rounds if field in worst else kept)]
        row[field] = float(max(values) if field in worst else np.mean(values))
    return row | {"optimal": sum(r.status == "optimal" for r in kept), "rounds": len(kept)}
