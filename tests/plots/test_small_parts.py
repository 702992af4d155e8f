"""What small internal functions of figures and of speeds return."""

from gpuschedlab.plots.nodes.gpu_cells import _runs_of
from gpuschedlab.plots.sweep_figures import _uneven
from gpuschedlab.speeds.spread import _grid


def test_neighbouring_bits():
    assert _runs_of(0b1100110) == [(1, 3), (5, 7)]


def test_values_that_a_linear_axis_cannot_show():
    assert _uneven([0.0, 0.1, 0.3, 1.0, 3.0, 10.0])
    assert not _uneven([1.0, 2.0, 4.0, 8.0])


def test_nodes_and_gpus_in_use():
    nodes, gpus = _grid(2, nodes=2, gpus=4)
    assert (nodes.tolist(), gpus.tolist()) == ([1, 1, 2, 2, 2], [1, 2, 2, 3, 4])
