"""No plot is narrower than a reader can use, in a page of 800 pixels: figures take the width that their panels and scales need."""

import numpy as np
import pytest

import gpuschedlab as lab
from gpuschedlab import plots

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

WIDTHS = """() => Array.from(document.querySelectorAll('.js-plotly-plot'), (plot) =>
  Object.values(plot._fullLayout._plots).map(({ xaxis }) => Math.round(xaxis._length)))"""
"""Widths (pixels) of each figure's panels."""


def test_no_panel_is_under_240_pixels_in_a_page_of_800(page, tmp_path):
    trace = lab.generate("venus", days=1, jobs=80, load=0.5, cluster_gpus=32, rng=0)
    run = lab.simulate(trace.filter(trace["gpus"] <= 32), lab.Cluster.homogeneous(4, 8), lab.Fifo())
    x = np.linspace(-1, 1, 9)
    bowl = plots.figure(plots.Landscape("Bowl", "x", "y", "height", x, x, x**2 + x[:, None] ** 2))
    narrow = [plots.plot_jct_cdf(run), plots.plot_load_over_time(run)]
    figures = plots.Figures([*narrow, plots.plot_slowdown_by_size(run), bowl], columns=2)
    file = plots.write_page(figures, tmp_path / "figures.html")
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot .xaxislayer-above').length >= 4")
    widths = page.evaluate(WIDTHS)
    assert len(widths) == 4
    assert min(min(each) for each in widths) >= 240, widths
    assert max(widths[0]) < 400, "figures that have room stand beside each other"
