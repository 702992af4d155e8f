"""Each class that users make has a strategy of its arguments, so that the laws of constructors hold of it."""

import pytest
from present import whole
from strategies.public_classes import OTHERS, called_in_examples, is_received, public_classes
from strategies.registry import classes, with_knobs


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_each_class_that_users_make_has_a_strategy():
    users_make = {name for name, cls in public_classes().items() if not is_received(cls)}
    with_strategy = {cls.__name__ for cls in classes()}
    assert users_make - OTHERS.keys() <= with_strategy
    assert not OTHERS.keys() & with_strategy
    assert users_make >= OTHERS.keys(), "listed with a reason, and no example makes it"


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_the_rule_tells_classes_that_users_make():
    """By examples on both sides: a rule that took all for received would ask for no strategy."""
    assert {"Cluster", "Speeds", "Scenario", "Program", "BlueFin", "SchedulingEnv"} <= called_in_examples()
    assert not {"Run", "View", "Solution", "Report"} & called_in_examples()
    assert len(with_knobs()) >= 50
