"""Compiling ahead: a small use of this paper's own compiled code."""

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.papers.clusters.explains.explanation import explain
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario


def use_compiled_code() -> None:
    """Explain the waiting in a log of two jobs, and share out a cluster among users by both formulas."""
    log = pl.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit": [0.0, 1.0],
            "gpus": [2, 2],
            "duration": [60.0, 60.0],
            "started": [0.0, 60.0],
            "nodelist": ["n1", "n1"],
        }
    )
    explain(Scenario(log, Cluster.homogeneous(1, 2)), Fifo())
    tree = ShareTree((("ml", "", "", 60), ("ml", "a", "", 1), ("ml", "b", "", 1)))
    for rule in ("tree", "classic"):
        tree.factors([240, 60], rule)
