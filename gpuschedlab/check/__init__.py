"""The batteries that every policy and estimator passes, here and those of your own.

`laws` holds what is true of every run; `policy_battery` and `estimator_battery` the batteries; `report` what they answer;
`samples` what they run on.
"""

from gpuschedlab.check.estimator_battery import check_estimator
from gpuschedlab.check.policy_battery import check_policy
from gpuschedlab.check.report import Check, CheckReport
from gpuschedlab.check.samples import small_trace

__all__ = ["Check", "CheckReport", "check_estimator", "check_policy", "small_trace"]
