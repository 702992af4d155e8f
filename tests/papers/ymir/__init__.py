"""Ymir (paper, thesis) on the workloads of the Titan artifact."""

SOURCES = {"ymir": "papers.ymir.ours"}
TITLES = {"ymir": "Ymir (paper, thesis, artifact)"}
TABLES = {"titan": "papers.ymir.artifact_runs", "zoo": "papers.ymir.zoo"}
BUDGETS = {"merges": "papers.ymir.merges"}
BRIEF = {"ymir": {"interval": 600.0}}
NOTEBOOKS = {
    "ymir": [
        "from gpuschedlab.widgets import YmirExplorer",
        "explorer = YmirExplorer(nodes=1, hours=2.0)\nexplorer",
    ],
}


def _known():
    """What tasks give each other, as it is."""
    from gpuschedlab.estimators import Transfers

    return Transfers(method="oracle")


ESTIMATORS = {"ymir": _known}
