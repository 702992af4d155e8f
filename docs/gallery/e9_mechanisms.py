"""Mechanisms from a log.

What the attempts in an operator's log show of restart delay, placement, failures and predictions, each with its interval.
"""

# Group: Systems
# Notebook: 10_causal
import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import twin
from gpuschedlab.estimators import Noisy

cluster = lab.Cluster.homogeneous(8, 8)
trace = lab.generate("venus", days=7, load=1.1, cluster_gpus=64, rng=4)
trace = trace.filter(trace["gpus"] <= 32)
trace = trace.with_columns(predicted=Noisy(error=0.5).predict(trace))
real = lab.Scenario(trace, cluster, delays=lab.Delays(restart=900.0))
believed = real.replace(delays=lab.Delays(restart=60.0))
found = twin(real.run(lab.Tiresias(thresholds=(1e5,))), believed)

figure = plots.figure(plots.mechanisms(found))
