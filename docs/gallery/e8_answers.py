"""Answers from a log.

What an operator's log says of a knob, beside forks of the simulation that answer the same question.
"""

# Group: Systems
# Notebook: 11_arena
import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import Rule, operate

cluster = lab.Cluster.homogeneous(4, 8)
trace = lab.generate("venus", days=7, load=1.0, cluster_gpus=32, rng=0)
scenario = lab.Scenario(trace.filter(trace["gpus"] <= 16), cluster, delays=lab.Delays(restart=60.0))
log = operate(scenario, Rule(lab.Tiresias(), "thresholds", (1e3, 1e6)))
brief = log.oracle(hold=7200.0, jobs=7200.0)
found = {"nothing held fixed": (log.estimate("naive"), brief), "load held fixed": (log.estimate(), brief)}

figure = plots.figure(plots.answers(found))
