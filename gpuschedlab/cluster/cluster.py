"""Clusters: groups of alike nodes, and the outages that they suffer."""

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

import numpy as np

from gpuschedlab._knob import check_kind, check_number, random_generator, tuple_of
from gpuschedlab.errors import MOST_GPUS, ClusterError

PER_NODE = "a whole number, 1 to 64"


@dataclass(frozen=True)
class Nodes:
    """A group of alike nodes.

    Parameters
    ----------
    gpu_type : str
        Name of the GPU type.
    nodes : int
        How many nodes, at least 1.
    gpus_per_node : int
        GPUs on each, 1 to 64.
    partitions : tuple of str, optional
        Partitions, or virtual clusters, that they are in: jobs that name others (columns `partitions`, or else `vc`) do not run here.

    Examples
    --------
    >>> Nodes("v100", 2, 8).kind, Nodes("v100", 2, 8, ("main", "debug")).kind
    ('v100', 'v100@debug+main')
    """

    gpu_type: str
    nodes: int
    gpus_per_node: int
    partitions: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Name made of the GPU type and the partitions, by which schedulers tell nodes apart."""
        return self.gpu_type + "@" * bool(self.partitions) + "+".join(self.partitions)

    def __post_init__(self):
        check_kind(self.gpu_type, str, ClusterError, "Nodes.gpu_type", "a name, such as 'v100'")
        names = self.partitions
        if isinstance(names, str):
            names = (names,)
        names = tuple_of(names, str, ClusterError, f"Nodes {self.gpu_type!r}.partitions", "names of partitions")
        object.__setattr__(self, "partitions", tuple(sorted(set(names))))
        if wrong := [name for name in self.partitions if not name or set(name) & set("@+,:")]:
            raise ClusterError(
                f"Nodes {self.gpu_type!r}.partitions: found partition {wrong[0]!r}; expected a name without any of @ + , :"
            )
        who = f"Nodes {self.gpu_type!r}"
        check_number(self.nodes, ClusterError, f"{who}.nodes", "a whole number, at least 1", low=1, whole=True)
        check_number(self.gpus_per_node, ClusterError, f"{who}.gpus_per_node", PER_NODE, low=1, whole=True)
        if self.gpus_per_node > 64:
            raise ClusterError(f"{who}.gpus_per_node: found {self.gpus_per_node}; expected {PER_NODE}.")


def bare(kind: str) -> str:
    """Return the name of the GPU type of a kind of nodes (`Nodes.kind`)."""
    return kind.partition("@")[0]


@dataclass(frozen=True)
class Outage:
    """Node `node` is down from `start` to `end` (s); `end` may be `inf`."""

    node: int
    start: float
    end: float = math.inf


@dataclass(frozen=True)
class Window(Outage):
    """An outage, such as maintenance, of which plans know from `announced` (s) on.

    A plan (`backfill="plan"`, "easy") starts no job on the node that by its estimate would run into the window; one that ends when it
    begins is allowed. Other policies meet it as any outage.

    Examples
    --------
    >>> Window(node=0, start=100.0, end=200.0).announced
    0.0
    """

    announced: float = 0.0


@dataclass(frozen=True)
class Cluster:
    """The hardware that a trace runs on: node groups, numbered in order, and their outages.

    Parameters
    ----------
    groups : tuple of Nodes
        At least one.
    events : tuple of Outage, optional
        When nodes are down; a `Window` is known beforehand.

    Raises
    ------
    ClusterError
        No groups, or an outage of a node that does not exist or that ends before it starts.

    Examples
    --------
    >>> cluster = Cluster((Nodes("v100", 2, 8), Nodes("t4", 3, 4)))
    >>> cluster.total_gpus, cluster.gpu_types, cluster.capacity.tolist()
    (28, ('v100', 't4'), [16, 12])
    """

    groups: tuple[Nodes, ...]
    events: tuple[Outage, ...] = ()

    def __post_init__(self):
        parts = {"groups": (Nodes, "groups of nodes"), "events": (Outage, "outages of nodes")}
        for name, (kind, noun) in parts.items():
            expected = f"a tuple of {noun} ({kind.__name__})"
            own = tuple_of(getattr(self, name), kind, ClusterError, f"Cluster.{name}", expected)
            object.__setattr__(self, name, own)
        if not self.groups:
            raise ClusterError(
                "Cluster.groups: found no nodes; expected at least one group, such as Nodes('v100', 70, 8)."
            )
        if self.total_gpus > MOST_GPUS:
            raise ClusterError(f"Cluster: found {self.total_gpus:,} GPUs; expected at most {MOST_GPUS:,}.")
        for e in self.events:
            for name in ("node", "start", "end"):
                check_number(
                    getattr(e, name), ClusterError, f"{e}.{name}", "a number", whole=name == "node", finite=False
                )
            if not 0 <= e.node < self.total_nodes:
                raise ClusterError(f"{e}: expected a node from 0 to {self.total_nodes - 1}.")
            if not 0 <= e.start < e.end:
                raise ClusterError(f"{e}: expected 0 <= start < end, in seconds.")
            if isinstance(e, Window) and not e.announced >= 0:
                raise ClusterError(f"{e}: expected 0 <= announced, in seconds.")

    @classmethod
    def homogeneous(cls, nodes: int = 70, gpus_per_node: int = 8, gpu_type: str = "v100") -> "Cluster":
        """Make a `Cluster` of one group."""
        return cls((Nodes(gpu_type, nodes, gpus_per_node),))

    @classmethod
    def parse(cls, text: str) -> "Cluster":
        """Read a `Cluster` from ``70x8``, ``6x4:aws,2x8:dgx`` (nodes x GPUs, type) or ``4x8:v100@main+debug`` (partitions)."""
        groups = []
        for group_word in text.split(","):
            group_size, _, gpu_type = group_word.partition(":")
            nodes_and_gpus = re.fullmatch(r"\s*(\d{1,9})\s*x\s*(\d{1,9})\s*", group_size)
            gpu_type, at_sign, partitions = gpu_type.strip().partition("@")
            if not nodes_and_gpus:
                raise ClusterError(
                    f"cluster {text!r}: found {group_word!r}; expected NODESxGPUS[:TYPE], such as 70x8:v100."
                )
            groups.append(
                Nodes(
                    gpu_type or "v100",
                    int(nodes_and_gpus[1]),
                    int(nodes_and_gpus[2]),
                    tuple(partitions.split("+")) if at_sign else (),
                )
            )
        return cls(tuple(groups))

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """Tuple of GPU types in order of first appearance; nodes of other partitions are of another type (`Nodes.kind`)."""
        return tuple(dict.fromkeys(group.kind for group in self.groups))

    @cached_property
    def node_type(self) -> np.ndarray:
        """Array (N,): index into `gpu_types` of each node."""
        return np.repeat(
            [self.gpu_types.index(group.kind) for group in self.groups], [group.nodes for group in self.groups]
        )

    @cached_property
    def node_gpus(self) -> np.ndarray:
        """Array (N,) of the GPUs of each node."""
        return np.repeat([group.gpus_per_node for group in self.groups], [group.nodes for group in self.groups])

    @cached_property
    def capacity(self) -> np.ndarray:
        """Array (T,) of the GPUs of each type, all nodes up."""
        return np.bincount(self.node_type, weights=self.node_gpus, minlength=len(self.gpu_types)).astype(int)

    @cached_property
    def largest_nodes(self) -> tuple[np.ndarray, ...]:
        """Tuple of arrays, one per GPU type: the GPUs of its largest node, of its two largest, and so on to all of its nodes."""
        gpus_of_type = (self.node_gpus[self.node_type == type_number] for type_number in range(len(self.gpu_types)))
        return tuple(np.cumsum(np.sort(gpus)[::-1]) for gpus in gpus_of_type)

    def fewest_nodes(self, kind: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """Return an array of the fewest nodes of GPU types, by index, that hold so many GPUs when they are empty; at least 1.

        Beyond the GPUs of a type, as many as if it had more nodes like its largest.

        Examples
        --------
        >>> Cluster.parse("1x8:v100,2x4:v100").fewest_nodes(0, np.array([8, 9, 16, 24])).tolist()
        [1, 2, 3, 4]
        """
        kind, gpus = np.broadcast_arrays(kind, np.asarray(gpus, float))
        node_count = np.empty(gpus.shape, np.int64)
        for type_number, gpus_of_largest in enumerate(self.largest_nodes):
            mine = gpus[kind == type_number] - 1e-9
            beyond = np.maximum(0, np.ceil((mine - gpus_of_largest[-1]) / gpus_of_largest[0]))
            node_count[kind == type_number] = (
                np.minimum(np.searchsorted(gpus_of_largest, mine) + 1, len(gpus_of_largest)) + beyond
            )
        return node_count

    @property
    def total_nodes(self) -> int:
        """Number of nodes, up or down."""
        return sum(group.nodes for group in self.groups)

    @property
    def total_gpus(self) -> int:
        """Number of GPUs, up or down."""
        return sum(group.nodes * group.gpus_per_node for group in self.groups)

    def with_failures(self, mtbf: float, mttr: float, until: float, rng: int | np.random.Generator = 0) -> "Cluster":
        """Return a `Cluster` with random outages: exponential times between failures and to repair, each node by itself.

        Parameters
        ----------
        mtbf, mttr : float
            Mean seconds between failures of a node, and to its repair; both > 0.
        until : float
            No failure starts after this time (s).
        rng : int or numpy.random.Generator
            Seed.
        """
        if not (mtbf > 0 and mttr > 0):
            raise ClusterError(f"with_failures: found mtbf={mtbf}, mttr={mttr}; expected both > 0 s.")
        rng = random_generator(rng, ClusterError, "with_failures: rng")
        outages = []
        for node in range(self.total_nodes):
            start = rng.exponential(mtbf)
            while start < until:
                end = start + rng.exponential(mttr)
                outages.append(Outage(node, start, end))
                start = end + rng.exponential(mtbf)
        return replace(self, events=self.events + tuple(sorted(outages, key=lambda o: (o.start, o.node))))

    def __str__(self):
        return ",".join(f"{group.nodes}x{group.gpus_per_node}:{group.kind}" for group in self.groups)

    def _repr_html_(self):
        group_rows = "".join(
            f"<tr><td>{'</td><td>'.join(escape(str(cell)) for cell in group_cells)}</td></tr>"
            for group_cells in (
                (group.kind, group.nodes, group.gpus_per_node, group.nodes * group.gpus_per_node)
                for group in self.groups
            )
        )
        table_head = "<tr><th>GPU type</th><th>nodes</th><th>GPUs a node</th><th>GPUs</th></tr>"
        return f"<table>{table_head}{group_rows}</table><p>{self.total_gpus} GPUs, {len(self.events)} outages</p>"
