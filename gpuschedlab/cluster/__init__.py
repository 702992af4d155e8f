"""The hardware of jobs: nodes, GPU types, outages, and the rules that place jobs on them."""

from gpuschedlab.cluster.cluster import Cluster, Nodes, Outage, Window
from gpuschedlab.cluster.placement import RULES

__all__ = ["RULES", "Cluster", "Nodes", "Outage", "Window"]
