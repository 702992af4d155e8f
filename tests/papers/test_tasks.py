"""Tasks of papers in the suite."""

import pytest
from task_digest import digest_of
from wing import said

from gpuschedlab.parse import policy_of
from gpuschedlab.suite import TASKS
from gpuschedlab.suite.standing import least_jct
from gpuschedlab.suite.tasks import OF_PAPERS

OURS = [task for task in TASKS if task.name in OF_PAPERS]


@pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
def test_a_task_is_the_same_one_tomorrow(task):
    """Whoever changes one gives it a new version."""
    assert digest_of(task) == said("TASKS")[task.name]


@pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
def test_no_policy_beats_the_bound_of_a_task(task):
    scenario = task.make()(0)
    bound = least_jct(scenario)
    assert (bound is None) == (task.name != "deadlines")
    for word in ("fifo", "srtf", "tiresias", "lucid") if bound else ():
        assert scenario.run(policy_of(word)).summary()["jct_mean"] >= bound * (1 - 1e-9), word


def test_tasks_have_their_order():
    assert [task.name for task in OURS] == [name for name in OF_PAPERS if name in said("TASKS")]
