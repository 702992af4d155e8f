"""A policy that answers at random, with everything that an answer may hold, and what it is run on."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab import Allocation, Cluster, Delays, Nodes, Outage, Round, Speeds

MODELS = ("a", "b", "c")


def speeds() -> Speeds:
    """Each model runs on 1, 2 and 4 GPUs of two types; any two may share, merge or follow each other."""
    rows = [
        {"model": m, "gpu_type": t, "n_gpus": g, "progress": end, "rate": (1 + i) * g**0.7 * (1 + k) / (1 + (end > 50))}
        for i, m in enumerate(MODELS)
        for k, t in enumerate(("slow", "fast"))
        for g in (1, 2, 4)
        for end in (50.0, np.inf)
    ]
    pairs = {(x, y): 0.4 + 0.2 * (x < y) + 0.1 * (x == y) for x in MODELS for y in MODELS}
    other = {pair: 2.5 * value for pair, value in pairs.items()}
    return Speeds.from_frame(pl.DataFrame(rows), sharing=pairs, merged=other, transfer=other)


def trace(rng) -> pl.DataFrame:
    n = 25
    return pl.DataFrame(
        {
            "job_id": [f"{i:02}" for i in range(n)],
            "submit": np.cumsum(rng.integers(0, 40, n)).astype(float),
            "gpus": rng.choice([1.0, 2.0, 4.0], n),
            "duration": np.ones(n),
            "target": rng.integers(20, 400, n).astype(float),
            "model": rng.choice(MODELS, n),
        }
    )


@dataclass(frozen=True)
class Dice(Round):
    """Answers at random."""

    seed: int = 0
    interval: float = 0.0
    free_moves: bool = False
    on_event: bool = True
    placement: str = "pack"

    def allocate(self, view):
        rng = np.random.default_rng((self.seed, int(view.now * 1e6)))
        n = len(view)
        types = len(view.capacity)
        kind = rng.integers(0, types, n)
        gpus = rng.choice([0.0, 1.0, 2.0, 4.0], n)
        room = view.capacity.copy()
        reserved = np.floor(rng.uniform(0, 1, types) * room / 3)
        room -= reserved
        keep = rng.random(n) < 0.5
        kind = np.where(keep & view.running, view.gpu_type, kind)
        gpus = np.where(keep & view.running, view.running_gpus, gpus)
        merged = rng.random(n) < 0.5
        kind, gpus, partner = self.dealt(rng, kind, gpus, room)
        source = np.where((rng.random(n) < 0.1) & (n > 0), view.index[0] if n else 0, -1)
        source = np.where(view.has_run(source), source, -1)
        return Allocation(
            kind,
            gpus,
            nodes=self.nodes(view, rng, kind, gpus, partner) if rng.random() < 0.5 else None,
            partner=partner,
            merged=merged & (partner >= 0),
            source=source,
            profiling=rng.random(n) < 0.15,
            delay=rng.choice(["", "warm", "cold"], n),
            reserved={"pool": reserved},
            wake=view.now + float(rng.integers(1, 30)),
        )

    @staticmethod
    def dealt(rng, kind, gpus, room):
        """Types, GPUs and partners of jobs that get what they drew while there is room, or share with one before them."""
        types = kind.tolist()
        counts = gpus.tolist()
        left = room.tolist()
        partner = [-1] * len(types)
        for i, count in enumerate(counts):
            hosts = [h for h in range(i) if counts[h] > 0 and partner[h] < 0 and h not in partner]
            if hosts and rng.random() < 0.3:
                partner[i] = int(rng.choice(hosts))
                counts[i] = counts[partner[i]]
                types[i] = types[partner[i]]
            elif count <= left[types[i]]:
                left[types[i]] -= count
            else:
                counts[i] = 0.0
        return np.array(types, int), np.array(counts, float), np.array(partner, int)

    def nodes(self, view, rng, kind, gpus, partner):
        """All jobs on nodes drawn at random; those that do not fit on any are left to the rule, as all others then are."""
        free = np.where(view.up, view.cluster.node_gpus, 0).astype(float)
        rows = []
        for i in np.flatnonzero((gpus > 0) & (partner < 0)):
            left = gpus[i]
            for node in rng.permutation(len(free)):
                take = min(left, free[node]) if view.cluster.node_type[node] == kind[i] else 0
                if take:
                    rows.append((i, node, take))
                    free[node] -= take
                    left -= take
            if left:
                return None
        return rows


def parts(seed: int):
    rng = np.random.default_rng(seed)
    outages = tuple(Outage(int(rng.integers(0, 5)), float(t), float(t + 37)) for t in rng.integers(0, 900, 6))
    cluster = Cluster((Nodes("slow", 3, 4), Nodes("fast", 2, 4)), outages)
    delays = Delays(restart=4, switch=2, checkpoint=30, kinds={"warm": 1, "cold": {"a": 9, "*": 5}})
    return trace(rng), cluster, {"speeds": speeds(), "delays": delays}
