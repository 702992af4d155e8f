"""Each estimator with drawn knobs, around drawn ones, passes the battery of estimators on few jobs."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from strategies import strategy_of

from gpuschedlab.check import check_estimator
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.estimators import ALL, Runtime
from gpuschedlab.estimators.base import Around

HISTORY = recurring_sample(60, rng=0)
JOBS = recurring_sample(20, rng=1)
EXAMPLES = 4
FEW_TREES = {"trees": 5, "depth": 2}


def brief(estimator):
    """The estimator, which grows few trees, and asks for no fitted tasks without any."""
    if getattr(estimator, "method", "") == "fitted" and estimator.fitted is None:
        estimator = estimator.with_knobs(method="target")
    if isinstance(estimator, Around):
        inside = brief(getattr(estimator, estimator.inner))
        return replace(estimator, **{estimator.inner: inside})
    if isinstance(estimator, Runtime):
        return estimator.with_knobs(**FEW_TREES)
    return estimator


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_drawn_estimator_passes_the_battery(name):
    @settings(max_examples=EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(strategy_of(ALL[name]))
    def law(estimator):
        check_estimator(brief(estimator), history=HISTORY, jobs=JOBS).raise_if_failed()

    law()
