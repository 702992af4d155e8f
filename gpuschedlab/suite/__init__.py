"""The suite: fixed tasks with fixed seeds, on which a policy stands beside others, and a card that says where it wins and loses.

`tasks` lists them, `standing` runs a policy on all and compares, `bound` bounds every schedule, `card` writes the page.
"""

from gpuschedlab.scenarios.task import Task
from gpuschedlab.suite.card import write_card
from gpuschedlab.suite.standing import Standing, stand
from gpuschedlab.suite.tasks import TASKS

__all__ = ["TASKS", "Standing", "Task", "stand", "write_card"]
