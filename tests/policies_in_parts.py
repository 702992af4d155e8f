"""Policies of papers that may serve parts of a cluster, each part by itself (`Pop`)."""

from present import here

from gpuschedlab.policies import ALL


def policies_in_parts() -> list:
    """Policies with the knobs that change how they serve; an empty list where no paper of theirs is here."""
    policies = []
    if here("gavel"):
        policies.append(ALL["gavel"]())
    if here("sia"):
        policies += [ALL["sia"](), ALL["sia"](evictions=True), ALL["sia"](solver="highs")]
    return policies
