"""Tasks of papers in the suite."""

import pytest
from present import here
from task_digest import digest_of

from gpuschedlab.parse import policy_of
from gpuschedlab.suite import TASKS
from gpuschedlab.suite.standing import least_jct
from gpuschedlab.suite.tasks import OF_PAPERS

DIGESTS = {
    "deadlines": (1, 120, "3x8:v100", 3954939.0, 499.0, 442583.0),
    "finetuning": (1, 42, "2x4:v100", 285169.306, 76.0, 132035.868),
    "goodput": (1, 60, "4x4:slow,2x4:fast", 228872.897, 130.0, 240000.0),
    "prompts": (1, 213, "2x8:a100-80gb", 139059.92, 445.0, 7869.039),
}
PAPERS = {"deadlines": "deadlines", "finetuning": "ymir", "goodput": "sia", "prompts": "prompttuner"}
"""Paper of each task."""
OURS = [task for task in TASKS if task.name in OF_PAPERS]


@pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
def test_a_task_is_the_same_one_tomorrow(task):
    """Whoever changes one gives it a new version."""
    assert digest_of(task) == DIGESTS[task.name]


@pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
def test_no_policy_beats_the_bound_of_a_task(task):
    scenario = task.make()(0)
    bound = least_jct(scenario)
    assert (bound is None) == (task.name != "deadlines")
    for word in ("fifo", "srtf", "tiresias", "lucid") if bound else ():
        assert scenario.run(policy_of(word)).summary()["jct_mean"] >= bound * (1 - 1e-9), word


def test_tasks_have_their_order():
    assert [task.name for task in OURS] == [name for name in OF_PAPERS if here(PAPERS[name])]
