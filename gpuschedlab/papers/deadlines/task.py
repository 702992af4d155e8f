"""The task of jobs with deadlines."""

from gpuschedlab.scenarios import recipe_of
from gpuschedlab.scenarios.task import Task

TASK = Task(
    "deadlines",
    1,
    lambda: recipe_of("smallleases:jobs=120"),
    "unisched",
    "jobs with strict, soft and no deadlines",
    "slo_violation",
)
