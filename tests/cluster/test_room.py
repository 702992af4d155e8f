"""Where GPUs are free, by hand: the index of nodes, and the room that a round takes from."""

import numpy as np

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.cluster.node_index import LARGEST, NODE, index_nodes


def test_nodes_are_counted_by_the_gpus_that_are_free_on_them():
    nodes = np.zeros(3, NODE)
    nodes["free"] = (800, 200, 800)
    nodes["size"] = 800
    count, member, sizes = index_nodes(nodes, 1)
    assert (count[0, 8], f"{member[8, 0]:03b}", sizes[0, 8], sizes[0, LARGEST]) == (2, "101", 3, 8)


def test_room_is_what_is_left():
    room = FreeGpus(Cluster.homogeneous(2, 4), "consolidate", free=np.array([3.0, 2.0]))
    assert room.fits(np.array([2.0, 3.0, 4.0])).tolist() == [True, True, False]
    assert room.take(2.0).tolist() == [[1.0, 2.0]]
    assert room.fits(np.array([3.0])).tolist() == [True]
