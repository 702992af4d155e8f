"""What notebooks show is text: nothing in it is taken as markup."""

import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.cli.text import metrics_table
from gpuschedlab.metrics import MetricTable
from gpuschedlab.metrics.display import column, duration
from gpuschedlab.optim.programs.program import Solution
from gpuschedlab.plots.kinds.style import spoken
from gpuschedlab.report.html_tables import written
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


@pytest.mark.parametrize("name", ["Run", "Comparison", "Sweep", "Speeds"])
def test_no_frame_is_shown_as_polars_prints_it(name):
    shown = displays()[name]._repr_html_()
    assert "<table" in shown
    assert 'class="dataframe"' not in shown
    assert not re.search(r">(null|f64|str|i64)<", shown)


def test_a_table_of_metrics_has_labels_and_units():
    frame = pl.DataFrame({"policy": ["a", "<b>"], "jct_mean": [8274.035, 18_726.0], "jct_median": [98.0, 23_538.0]})
    table = MetricTable(frame.with_columns(late=pl.Series([0.125, None]), preemptions=pl.Series([3, 1200])))
    assert str(table).splitlines() == [
        "policy  average JCT  median JCT    late  preemptions",
        "a             2.3 h    1.63 min  12.5 %            3",
        "<b>           5.2 h      6.54 h       -        1,200",
    ]
    html = table._repr_html_()
    assert "<td>2.3 h</td><td>1.63 min</td>" in html
    assert "&lt;b&gt;" in html
    assert "jct_mean" not in html


def test_a_comparison_is_shown_with_units():
    found = lab.compare(TRACE, CLUSTER, [lab.Fifo()])
    assert str(found.show(["jct_mean"])).split() == ["policy", "average", "JCT", "fifo", "10", "s"]
    assert "average JCT" in found._repr_html_()
    assert "average JCT" in repr(found)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 98.0, 5400.0, 28_116.0, 700_000.0])
def test_a_time_is_written_alike_in_tables_reports_and_explorers(seconds):
    frame = pl.DataFrame({"policy": ["a", "b"], "jct_mean": [seconds, 9e9]})
    cell, _ = column("jct_mean", [seconds, 9e9]).cells
    assert cell == duration(seconds) == written("jct_mean", seconds) == spoken(seconds)
    assert f" {cell}\n" in str(MetricTable(frame))
    assert f" {cell}\n" in f"{metrics_table(frame)}\n"


def test_values_of_metrics_as_they_are_read():
    values = {"jct_mean": 5400.0, "utilisation": 0.5, "preemptions": 12_000}
    assert [written(*value) for value in values.items()] == ["1.5 h", "50.0%", "12,000"]
