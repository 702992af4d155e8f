"""The books of a run, added up again from its frames alone: what holds however far it went, and under however many policies."""

import math

import polars as pl

from gpuschedlab.check.laws import BOOKS, first_wrong, reserved_times
from gpuschedlab.check.recount import progress_adds_up
from gpuschedlab.sim import Policy, Round, Run, Scenario


def books_add_up(
    run: Run, scenario: Scenario, policy: Policy | tuple[tuple[float, Policy], ...], most: int | None = None
) -> str | None:
    """Report the first account of a run from the beginning of its trace that does not add up; None: all do."""
    # Of a simulation that was switched, `policy` has the instants (s) from which on each policy was in force. The progress of
    # `most` jobs at most is followed, spread evenly over the trace; None: of all.
    policies = ((0.0, policy),) if isinstance(policy, Policy) else policy
    own = getattr(policies[0][1], "laws", ()) if len(policies) == 1 else ()
    problems = (law(run, scenario.cluster) for law in (*BOOKS, *own))
    found = next(filter(None, problems), None) or reservations_are_given_back(run, policies)
    return found or progress_adds_up(run, scenario, policies, most)


def reservations_are_given_back(run: Run, policies: tuple[tuple[float, Policy], ...]) -> str | None:
    """A policy that orders jobs reserves nothing, and gives back what the policy before it had reserved."""
    ends = [since for since, _ in policies[1:]] + [math.inf]
    for (since, policy), end in zip(policies, ends, strict=True):
        if not isinstance(policy, Round):
            kept = reserved_times(run).filter(pl.col("gpus") > 0, pl.col("start") < end, pl.col("end") > since)
            message = f"{policy.name}, from t={since:g} s on, has {{gpus:g}} GPUs of {{gpu_type}} reserved as {{name}}"
            if problem := first_wrong(kept, message + " at t={start:g} s; expected none"):
                return problem
