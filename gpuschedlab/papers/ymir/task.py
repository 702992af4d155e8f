"""The task of fine-tuning jobs."""

from gpuschedlab.scenarios import recipe_of
from gpuschedlab.scenarios.task import Task

TASK = Task(
    "finetuning", 1, lambda: recipe_of("mergingcluster"), "ymir", "tasks on one foundation model that help each other"
)
