"""Warm pools.

GPUs of each LLM's warm pool over time under PromptTuner: in use, idle, warming up.
"""

# Group: Systems
# Notebook: 13_prompttuner
import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.papers.prompttuner.jobs import PromptJobs
from gpuschedlab.papers.prompttuner.recipe import PromptLab

run = PromptLab(PromptJobs("medium"), 16)(0).run(lab.PromptTuner())

figure = plots.figure(plots.pools(run, "PromptTuner"))
