"""What tasks learn from each other.

How much faster the task of a column is trained from the result of the task of a row: measured pairs of fine-tuning tasks.
"""

# Group: Systems
# Notebook: 12_ymir
from gpuschedlab import plots
from gpuschedlab.papers.ymir.recipe import MergingCluster

figure = plots.figure(plots.pair_map(MergingCluster().with_knobs(method="target").gains(), "transfer"))
