"""Recipes of no paper under the names that explorers give them; those of papers come with the papers (`_faces`)."""

from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.scenarios.week import Generated, Shape, bend

__all__ = ["Generated", "Shape", "SmallCluster", "bend"]
