"""Windows of a site as windows of the nodes of a cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import Window
from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.files.description import Window as Closed
from gpuschedlab.traces.logs.instants import UNIX


def from_zero(window: Closed, zero: float | None, site: str) -> Closed:
    """Return a window in seconds of the trace, a `Closed`; one by dates follows the log's clock.

    Raises
    ------
    TraceError
        The window is by dates, and the log of the site has none: `zero`, its trace's zero in seconds since 1970, is None.
    """
    if window.end < UNIX:
        return window
    if zero is None:
        raise TraceError(f"site {site}: found a window by dates; expected seconds, as the log has no dates.")
    instants = {}
    for instant_name in ("start", "end", "announced"):
        instant = getattr(window, instant_name)
        if instant >= UNIX:
            instant -= zero
        instants[instant_name] = instant
    return replace(window, **instants)


def windows_on(cluster: Cluster, windows: Iterable[Closed], numbers: Mapping[str, int]) -> tuple[Window, ...]:
    """Return a tuple of `Window` in seconds of the trace, one for each node; those for some users alone are left out.

    `numbers` has the place in the cluster of nodes by name; a window that names no node is one of all.
    """
    of_nodes = []
    for window in windows:
        if window.users or not window.end > 0:
            continue
        nodes = range(cluster.total_nodes)
        if window.nodes:
            nodes = [numbers[node_name] for node_name in window.nodes if node_name in numbers]
        for node in nodes:
            of_nodes.append(Window(node, max(window.start, 0.0), window.end, max(window.announced, 0.0)))
    return tuple(of_nodes)
