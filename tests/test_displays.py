"""What notebooks show is text: nothing in it is taken as markup."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.metrics import MetricTable
from gpuschedlab.optim.program import Solution
from gpuschedlab.sweep.result import COLUMNS, NAMES, Sweep

EVIL = "<img src=x onerror=alert(1)>"
CLUSTER = lab.Cluster.homogeneous(1, 8, EVIL)
TRACE = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [10.0]})


@dataclass(frozen=True)
class Named(lab.Fifo):
    """A policy with markup in its name."""

    @property
    def name(self):
        return EVIL


def sweep_frame() -> pl.DataFrame:
    names = {name: [EVIL] for name in NAMES} | {"seed": [0]}
    return pl.DataFrame(names | {name: [1.0] for name in COLUMNS})


def displays() -> dict:
    run = lab.simulate(TRACE, CLUSTER, Named())
    speeds = pl.DataFrame({"model": ["m"], "gpu_type": [EVIL], "n_gpus": [1], "rate": [1.0]})
    return {
        "Cluster": CLUSTER,
        "Run": run,
        "Scenario": lab.Scenario(TRACE, CLUSTER),
        "Comparison": replace(lab.compare(TRACE, CLUSTER, {EVIL: Named()}), failed={f"b{EVIL}": f"c{EVIL}"}),
        "Sweep": Sweep(sweep_frame(), failed={EVIL: EVIL}),
        "Speeds": lab.Speeds.from_frame(speeds),
        "Solution": Solution(np.zeros(1), EVIL, 0.0, 0.0, 0.0, EVIL),
    }


@pytest.mark.parametrize("name", ["Cluster", "Run", "Scenario", "Comparison", "Sweep", "Speeds", "Solution"])
def test_names_and_messages_are_escaped(name):
    shown = displays()[name]._repr_html_()
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_a_table_of_metrics_has_labels_and_units():
    frame = pl.DataFrame({"policy": ["a", "<b>"], "jct_mean": [8274.035, 18_726.0], "jct_median": [98.0, 23_538.0]})
    table = MetricTable(frame.with_columns(late=pl.Series([0.125, None]), preemptions=pl.Series([3, 1200])))
    assert str(table).splitlines() == [
        "policy  average JCT  median JCT    late  preemptions",
        "a            2.30 h      98.0 s  12.5 %            3",
        "<b>          5.20 h      6.54 h       -        1,200",
    ]
    html = table._repr_html_()
    assert "<td>2.30 h</td><td>98.0 s</td>" in html
    assert "&lt;b&gt;" in html
    assert "jct_mean" not in html


def test_a_comparison_is_shown_with_units():
    found = lab.compare(TRACE, CLUSTER, [lab.Fifo()])
    assert str(found.show(["jct_mean"])).split() == ["policy", "average", "JCT", "fifo", "10.0", "s"]
    assert "average JCT" in found._repr_html_()
    assert "average JCT" in repr(found)
