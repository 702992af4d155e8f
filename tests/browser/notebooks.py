"""The notebooks that are opened: one explorer each, small, so that what is seen is the page and not the simulator."""

import pytest
from wing import said

TRACE = 'lab.generate("venus", days=1, jobs=600, load=0.9, cluster_gpus=48, rng=0)'
NOTEBOOKS = {
    "explorer": [
        f"import gpuschedlab as lab\nfrom gpuschedlab.widgets import Explorer\ntrace = {TRACE}",
        "cluster = lab.Cluster.homogeneous(6, 8)\n"
        "explorer = Explorer(trace, cluster, [lab.Fifo, lab.Tiresias, lab.Srtf])\nexplorer",
    ],
    "trace": [
        "from scenes.arrivals import TraceExplorer",
        'explorer = TraceExplorer(preset="philly", days=2, gpus=64)\nexplorer',
    ],
    "cluster": [
        "from scenes.placement import ClusterExplorer\nfrom gpuschedlab.widgets import SmallCluster",
        'explorer = ClusterExplorer(SmallCluster(nodes=3).with_knobs(placement="buddy"), jobs=60)\nexplorer',
    ],
} | said("NOTEBOOKS")
"""Cells of each notebook, by the explorer that it shows."""


def needs(name: str):
    """Mark of a test that opens a notebook which shows an explorer of a paper."""
    return pytest.mark.skipif(name not in NOTEBOOKS, reason=f"there is no explorer {name}")


LESSONS = {name: sum(cell.endswith("\nexplorer") for cell in cells) for name, cells in NOTEBOOKS.items()}
"""How many explorers each notebook shows."""

WEEK = [
    "import gpuschedlab as lab\nfrom ipywidgets.widgets.widget import _instances\nfrom gpuschedlab.widgets import Explorer\n"
    'trace = lab.generate("venus", days=7, jobs=10_000, load=0.9, cluster_gpus=560, rng=0)',
    "explorer = Explorer(trace, lab.Cluster.homogeneous(70, 8), [lab.Fifo, lab.Tiresias])\nexplorer",
    "print(len(_instances), 'widgets')",
]
"""A week of 10,000 jobs on 70 nodes, FIFO pinned, and how many widgets the kernel holds."""

RECORDED = said("RECORDED")
"""A recorded contest, which a page plays by itself."""
