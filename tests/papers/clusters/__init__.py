"""Slurm and Kueue, sites, replays and what-if questions."""

PAGES = {
    "clusters": (
        "docs/systems/slurm.md",
        "docs/systems/slurm-checked.md",
        "docs/systems/kueue.md",
        "docs/howto/my-cluster.md",
        "docs/measured/explains.json",
        "notebooks/15_my_cluster.ipynb",
        "notebooks/scenes/site.py",
    ),
}


def _queues(rng, cluster) -> dict:
    """Queues of two cohorts or none, which lend and take back; jobs of others are in the first."""
    from gpuschedlab.papers.clusters.queues import Queue

    def some(share):
        return tuple((kind, int(n)) for kind, n in zip(cluster.gpu_types, cluster.capacity) if rng.random() < share)

    if rng.random() < 0.3:
        return {}
    cohorts = ("", "one", "one")
    reclaim = ("Never", "LowerPriority", "Any")
    within = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
    nominal = dict(zip(cluster.gpu_types, (int(n) for n in cluster.capacity)))
    parts = {kind: int(rng.integers(1, n + 1)) for kind, n in nominal.items()}
    own = (parts, {kind: nominal[kind] - n for kind, n in parts.items()})
    queues = tuple(
        Queue(
            f"v{i}", cohorts[rng.integers(3)], tuple(own[i].items()), some(0.2), some(0.2), bool(rng.random() < 0.3),
            reclaim[rng.integers(3)], within[rng.integers(3)],
        )
        for i in range(2)
    )  # fmt: skip
    return {"queues": queues, "priorities": (("u0", 2.0), ("u1", 1.0))}


DRAWN = {"kueue": _queues}
BUDGETS = {"site": "papers.clusters.site"}
TABLES = {"explains": "papers.clusters.explains"}
NOTEBOOKS = {
    "site": [
        "from gpuschedlab.widgets import SiteExplorer",
        "explorer = SiteExplorer()\nexplorer",
    ],
}
