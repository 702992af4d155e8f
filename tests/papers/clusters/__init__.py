"""Slurm and Kueue, sites, replays and what-if questions."""

BUDGETS = {"site": "papers.clusters.site"}
NOTEBOOKS = {
    "site": [
        "from gpuschedlab.widgets import SiteExplorer",
        "explorer = SiteExplorer()\nexplorer",
    ],
}
