"""Slurm and Kueue, sites, replays and what-if questions."""

PAGES = {
    "clusters": (
        "docs/systems/slurm.md",
        "docs/systems/slurm-checked.md",
        "docs/systems/kueue.md",
        "docs/howto/my-cluster.md",
        "notebooks/15_my_cluster.ipynb",
    ),
}
BUDGETS = {"site": "papers.clusters.site"}
NOTEBOOKS = {
    "site": [
        "from gpuschedlab.widgets import SiteExplorer",
        "explorer = SiteExplorer()\nexplorer",
    ],
}
