"""Free GPUs, node by node, in which a policy tries placements before it decides anything; compiled."""

import numpy as np

from gpuschedlab._compiled import njit, records
from gpuschedlab.cluster.cluster import Cluster
from gpuschedlab.cluster.node_index import NODE, SLOTS, NodeIndex, hold, index_nodes
from gpuschedlab.cluster.placement import BUDDY, RULES, find_nodes, take_cell
from gpuschedlab.errors import ClusterError


class FreeGpus:
    """Free GPUs of a cluster, in which jobs are placed by a rule as the simulator would place them."""

    def __init__(
        self,
        cluster: Cluster,
        rule: str = "consolidate",
        free: np.ndarray | None = None,
        up: np.ndarray | None = None,
        mask: np.ndarray | None = None,
    ):
        if rule not in RULES:
            raise ClusterError(f"FreeGpus: found rule {rule!r}; expected one of {sorted(RULES)}.")
        self.rule = RULES[rule]
        self.nodes = records(np.zeros(cluster.total_nodes, NODE))
        self.nodes["size"] = cluster.node_gpus * SLOTS
        self.nodes["type"] = self.nodes["pool"] = cluster.node_type
        self.nodes["free"] = self.nodes["size"] if free is None else np.rint(np.asarray(free) * SLOTS)
        if up is not None:
            self.nodes["down"] = ~np.asarray(up, bool)
        if mask is not None:
            self.nodes["mask"] = mask
        self.index = NodeIndex(self.nodes, *index_nodes(self.nodes, len(cluster.gpu_types)))
        self._node, self._slots = (np.zeros(cluster.total_nodes + 1, np.int32) for _ in range(2))

    @property
    def free(self) -> np.ndarray:
        """Array (N,) of the free GPUs of each node that is up."""
        return np.where(self.nodes["down"] == 0, self.nodes["free"] / SLOTS, 0.0)

    def fits(self, gpus: np.ndarray, usable: np.ndarray | None = None) -> np.ndarray:
        """Return an array (k,) of bools: whether each of some demands, in GPUs, could be placed now if it came alone."""
        usable = np.ones((len(gpus), len(self.index.sizes)), bool) if usable is None else usable
        return _fits(self.index, _slots_of(gpus), usable, self.rule, self._node, self._slots)

    def take(self, gpus: float, usable: np.ndarray | None = None) -> np.ndarray:
        """Place one demand on the first GPU type that has room, hold its GPUs, and return an array (k, 2) of nodes and GPUs."""
        usable = np.ones(len(self.index.sizes), bool) if usable is None else usable
        node_count = _take(self.index, int(_slots_of(gpus)), usable, self.rule, self._node, self._slots)
        return np.column_stack([self._node[:node_count].astype(float), self._slots[:node_count] / SLOTS])

    def hold(self, rows: np.ndarray) -> bool:
        """Hold GPUs on nodes that are named, if they are up and free; return whether they are."""
        return _hold(self.index, np.ascontiguousarray(rows, float))


def _slots_of(gpus):
    """Return an array of GPUs in the unit in which they are counted."""
    return np.ceil(np.asarray(gpus, float) * SLOTS - 1e-6).astype(np.int64)


@njit
def _place(P, slots, usable, rule, out_node, out_slots):
    """Choose nodes of the first type that has room; return how many, 0: no fit."""
    for pool in range(P.sizes.shape[0]):
        if usable[pool]:
            node_count = find_nodes(P, pool, slots, rule, True, out_node, out_slots)
            if node_count > 0:
                return node_count
    return 0


@njit
def _fits(P, demands, usable, rule, out_node, out_slots):
    demand_fits = np.zeros(demands.shape[0], np.bool_)
    for i in range(demands.shape[0]):
        equal_demand = 0
        while (
            demands[equal_demand] != demands[i] or (usable[equal_demand] != usable[i]).any()
        ):  # equal demands fit alike
            equal_demand += 1
        if equal_demand < i:
            demand_fits[i] = demand_fits[equal_demand]
        else:
            node_count = _place(P, demands[i], usable[i], rule, out_node, out_slots)
            demand_fits[i] = node_count > 0
    return demand_fits


@njit
def _take(P, slots, usable, rule, out_node, out_slots):
    node_count = _place(P, slots, usable, rule, out_node, out_slots)
    node_order = np.argsort(out_node[:node_count])
    out_node[:node_count] = out_node[:node_count][node_order]
    out_slots[:node_count] = out_slots[:node_count][node_order]
    for i in range(node_count):
        node = out_node[i]
        if rule == BUDDY:
            take_cell(P.nodes, node, out_slots[i])
        hold(P.nodes, P.count, P.member, node, out_slots[i])
    return node_count


@njit
def _hold(P, node_rows):
    slots = np.ceil(node_rows[:, 1] * SLOTS - 1e-6).astype(np.int64)
    for i in range(node_rows.shape[0]):
        node = int(node_rows[i, 0])
        if P.nodes[node].down > 0 or P.nodes[node].free < slots[i]:
            for held_row in range(i):
                hold(P.nodes, P.count, P.member, int(node_rows[held_row, 0]), -slots[held_row])
            return False
        hold(P.nodes, P.count, P.member, node, slots[i])
    return True
