"""Words of the policy that `gpuschedlab compare` has in its table when none is named."""

LINEUP = ("gavel:objective=max_min",)
