"""The batteries that every policy and estimator passes, here and those of your own."""

from gpuschedlab.check.estimator_battery import check_estimator
from gpuschedlab.check.policy_battery import check_policy
from gpuschedlab.check.report import Check, CheckReport
from gpuschedlab.check.samples import small_trace

__all__ = ["Check", "CheckReport", "check_estimator", "check_policy", "small_trace"]
