"""On which nodes of a cluster the jobs of a log ran, by the names in their node lists."""

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.traces.logs.hosts import hosts

NOWHERE = pl.List(pl.Int64)


def places_of(site: Recipe, cluster: Cluster, jobs: pl.DataFrame) -> pl.Series:
    """Return a Series of lists: the numbers of each job's nodes, in the cluster's order; empty if they are not known.

    The site's files number them; without files the names that the log has so far are those of the first nodes, if all nodes are alike.
    """
    empty = pl.Series("nodes", [[]] * jobs.height, dtype=NOWHERE)
    if "nodelist" not in jobs.columns or jobs["nodelist"].null_count() == jobs.height:
        return empty
    texts = jobs["nodelist"].drop_nulls().unique()
    try:
        names_of = {nodelist: hosts(nodelist, "nodelist") for nodelist in texts}
    except TraceError:  # names of another notation
        return empty
    numbers = site.node_numbers(cluster) or _numbered(site, cluster)
    node_numbers = []
    for nodelist in jobs["nodelist"].to_list():
        node_names = names_of.get(nodelist, ())
        all_numbered = all(node_name in numbers for node_name in node_names)
        node_numbers.append([numbers[node_name] for node_name in node_names] if all_numbered else [])
    return pl.Series("nodes", node_numbers, dtype=NOWHERE)


def _numbered(site: Recipe, cluster: Cluster) -> dict[str, int]:
    """Return a dict: numbers of the nodes that the log names, by name.

    It is empty if they are more than the cluster's, or these are not alike.
    """
    if len(cluster.groups) > 1:
        return {}
    nodelists = site.log.trace["nodelist"].drop_nulls()
    texts = nodelists.unique()
    node_names = sorted({node_name for nodelist in texts for node_name in hosts(nodelist, "nodelist")})
    if len(node_names) > cluster.total_nodes:
        return {}
    return {node_name: i for i, node_name in enumerate(node_names)}
