"""Shards by vertices: sifting beside the simplex method and copter's spread answer, each on its own trajectory."""

import numpy as np

from reproduce.papers.copter.relaxations import timed

CASES = [
    (*size, loads, seed)
    for size in ((1024, 128), (2048, 256))
    for loads in ("stateless", "stateful")
    for seed in (0, 1, 2)
]
ROUNDS = 12
WAYS = {
    "simplex": ("highs", {"method": "simplex"}),
    "sift": ("sift", {}),
    "copter": ("copter", {"tol": 1e-3, "work": 20.0}),
}
MOVED = 1.6
UNEVEN = 0.101
COLD = 5.0
LATER = 10.0
SAME = 1e-9
"""Replicas moved over those of simplex and shim, at most; unevenness at most; times faster than simplex in the first round and later
ones, at least, from scratch on the same program; and how far the value of the sifted program may be from that of simplex."""


def measure(data_dir, shards: int, servers: int, loads: str, seed: int, rounds: int = ROUNDS) -> list[dict]:
    """A row a way: `moved` (mean), `uneven` (largest), CPU s of the linear program in the first round and later (median), and of the shim.

    `apart`: largest distance of sift's objective from simplex' on the same program, over 1 and the objective; `first_times`,
    `later_times`: how many times faster sifting is than simplex from scratch on sift's own programs (`basis_times`: than simplex
    from its basis of the round before).
    """
    from gpuschedlab.optim import Session, solve
    from gpuschedlab.papers.copter.shards.methods import random_fleet, zipf_loads
    from gpuschedlab.papers.copter.shards.program import fit_memory, shard_relaxed, unevenness

    load = zipf_loads(rounds, shards, loads == "stateful", rng=seed)
    rows = []
    for way, (solver, options) in WAYS.items():
        fleet, session, exact, seen = random_fleet(shards, servers, seed), Session(solver, **options), None, []
        for each in load:
            program = shard_relaxed(fleet, each)
            session.update(program)
            seconds, found = timed(session.solve)
            shim, (placed, share) = timed(lambda f=fleet, e=each, s=found: fit_memory(f, e, s.table))
            row = {
                "cpu": seconds,
                "shim": shim,
                "moved": int((placed & ~fleet.placed).sum()),
                "uneven": unevenness(each, share),
            }
            if way == "sift":
                exact = exact or Session("highs", method="simplex")
                exact.update(program)
                row["basis"], _ = timed(exact.solve)
                row["scratch"], best = timed(lambda p=program: solve(p, method="simplex"))
                row["apart"] = abs(found.objective - best.objective) / (1 + abs(best.objective))
            seen.append(row)
            fleet = fleet._replace(placed=placed)
        later = seen[1:]
        put = {"shards": shards, "servers": servers, "loads": loads, "seed": seed, "way": way}
        put |= {"moved": float(np.mean([r["moved"] for r in later])), "uneven": float(max(r["uneven"] for r in seen))}
        put |= {"first_cpu": seen[0]["cpu"], "later_cpu": float(np.median([r["cpu"] for r in later]))}
        put["shim_cpu"] = float(np.median([r["shim"] for r in later]))
        if way == "sift":
            put |= {"apart": max(r["apart"] for r in seen), "first_times": seen[0]["scratch"] / seen[0]["cpu"]}
            put["later_times"] = float(np.median([r["scratch"] / r["cpu"] for r in later]))
            put["basis_times"] = float(np.median([r["basis"] / r["cpu"] for r in later]))
        rows.append(put)
    return rows


def judge(rows: list[dict]) -> list[dict]:
    """By size and loads, over seeds: replicas moved over simplex', the largest unevenness and distance, times faster, and `ok`."""
    found = []
    for size, loads in dict.fromkeys(((r["shards"], r["servers"]), r["loads"]) for r in rows):
        mine = [r for r in rows if ((r["shards"], r["servers"]), r["loads"]) == (size, loads)]
        by = {way: [r for r in mine if r["way"] == way] for way in WAYS}
        moved = {way: float(np.mean([r["moved"] for r in own])) for way, own in by.items()}
        case = {
            "shards": size[0],
            "servers": size[1],
            "loads": loads,
            "moved": moved["sift"] / max(moved["simplex"], 1e-9),
        }
        case["copter_moved"] = moved["copter"] / max(moved["simplex"], 1e-9)
        case |= {key: max(r[key] for r in by["sift"]) for key in ("uneven", "apart")}
        case |= {
            key: float(np.median([r[key] for r in by["sift"]])) for key in ("first_times", "later_times", "basis_times")
        }
        ok = case["moved"] <= MOVED and case["uneven"] <= UNEVEN and case["apart"] <= SAME
        found.append(case | {"ok": bool(ok and case["first_times"] >= COLD and case["later_times"] >= LATER)})
    return found
