"""Notebook 09: what was measured before a contest started."""

import polars as pl

from gpuschedlab import plots


def measured_before(samples: pl.DataFrame, choices: tuple[str, ...]) -> plots.Figure:
    """Reward of each configuration over the default's, at each instant of the past; a mark for each choice of the metric."""
    at = plots.Figure()
    for number, (choice, symbol) in enumerate(zip(choices, ("circle", "diamond", "x"))):
        rows = samples.filter((pl.col("metric") * (len(choices) - 1)).round() == number)
        rows = rows.select("segment", times=pl.col("reward").exp())
        look = {"mode": "markers", "marker_symbol": symbol, "name": f"metric: {choice}"}
        at.add_scatter(x=rows["segment"], y=rows["times"], **look)
    at.add_hline(y=1.0, line_dash="dash")
    at.update_xaxes(title="instant of the past", dtick=1)
    at.update_yaxes(title="times as good as the default", type="log", tickvals=[0.25, 0.5, 1.0, 1.25])
    return at.update_layout(title="Configurations measured before the start")
