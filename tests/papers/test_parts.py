"""Policies of papers in parts of a cluster."""

import pytest
from policies_in_parts import policies_in_parts

from gpuschedlab.check import check_policy
from gpuschedlab.policies import Pop


@pytest.mark.parametrize("policy", [one for one in policies_in_parts() if not one.knobs.get("evictions")], ids=repr)
def test_pop_passes_the_battery_around_them(policy):
    check_policy(Pop(policy.with_knobs(interval=600.0), parts=4)).raise_if_failed()
