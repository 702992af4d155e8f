"""GPUs of elastic jobs over time.

Sia gives jobs more and fewer GPUs of two types as others come and go; a lane is a job, its shade the number of GPUs.
"""

# Group: Systems
# Notebook: 05_sia
import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab import plots

cluster = lab.Cluster.parse("2x4:slow,1x4:fast")
rows = [
    ("net", kind, nodes, gpus, pace * gpus**0.7 * 0.9 ** (nodes - 1), 4000.0)
    for kind, pace in (("slow", 1.0), ("fast", 2.5))
    for gpus in range(1, 9)
    for nodes in range(-(-gpus // 4), min(gpus, 2) + 1)
]
columns = ["model", "gpu_type", "n_nodes", "n_gpus", "rate", "progress"]
speeds = lab.Speeds.from_frame(pl.DataFrame(rows, schema=columns, orient="row"))
jobs = {"job_id": [f"job {i}" for i in range(12)], "submit": np.sort(np.random.default_rng(0).uniform(0, 3000, 12))}
trace = pl.DataFrame(jobs | {"model": "net", "gpus": 1.0, "duration": 4000.0, "switch": 30.0})

figure = plots.figure(plots.job_lanes(lab.simulate(trace, cluster, lab.Sia(), speeds=speeds)))
