"""Public names of `widgets`, by module; loaded at first use."""

from .autosched_explorer import AutoSchedExplorer as AutoSchedExplorer
from .cache import Cache as Cache
from .cluster_explorer import ClusterExplorer as ClusterExplorer
from .explorer import Explorer as Explorer
from .scan import find_errors as find_errors
from .shape import Shape as Shape, bend as bend
from .small_cluster import SmallCluster as SmallCluster
from .sources import Generated as Generated
from .trace_explorer import TraceExplorer as TraceExplorer
