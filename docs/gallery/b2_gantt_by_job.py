"""Jobs as lanes.

The same with a row for each job: when it waited, when it ran, and where it was preempted.
"""

# Group: What happened on the cluster
# Notebook: 02_policies
import polars as pl

import gpuschedlab as lab
from gpuschedlab import plots

hours = pl.DataFrame(
    {"job_id": list("ABCDE"), "submit": [0.0, 1, 1, 2, 3], "gpus": [4.0, 1, 2, 4, 1], "duration": [5.0, 2, 3, 1, 4]}
)
trace = hours.with_columns(pl.col("submit", "duration") * 3600)
run = lab.simulate(trace, lab.Cluster.homogeneous(nodes=1, gpus_per_node=4), lab.Srtf())

figure = plots.plot_gantt(run, start=0, end=12 * 3600, by="job_id")
