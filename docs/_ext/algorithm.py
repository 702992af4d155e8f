"""Algorithm 3 of the AutoSched thesis, line by line: what is printed, and how it is read."""

from typing import NamedTuple


class Line(NamedTuple):
    """Lines of algorithm 3: their numbers, what is printed, how it is read where print leaves it open, and the knobs of it."""

    lines: str
    printed: str
    read: str
    knobs: tuple[str, ...] = ()


ALGORITHM = (
    Line(
        "1 to 4", "epsilon in (0, 1); gamma = 0.95; maximum iterations T; R^max = -infinity",
        "T = 40 (6.5.2), epsilon has no published value. Rewards need a unit: the reference is measured before round 1, as is "
        "what is in force where it is another, and both are counted; they do not count for R^max, so that round 1 is measured",
        ("iterations", "check", "epsilon", "gamma", "start"),
    ),
    Line(
        "5", "sample with BlueFin",
        "from the configuration in force; a category by a softmax, for BlueFin moves numbers only",
        ("sampler", "alone", "spread"),
    ),
    Line("6", "project on the constraints W", "W holds the policy's constraints and, from line 16, the scope's"),
    Line(
        "7 to 9", "skip the round if the predicted reward is at most gamma R^max, with probability epsilon",
        "both are ratios to the reference; a skipped round reports nothing to BlueFin or to the model",
        ("causal",),
    ),
    Line("10, 11", "measure; report the reward to BlueFin", "what was measured before is reported, and not measured again"),
    Line(
        "12, 13", "update the causal model, R^max and C^max",
        "after each measurement; the method `autosched` fits its model once its rows have grown by 1 %", ("batch",),
    ),
    Line(
        "14 to 16", "what does not exceed the best by what-if analysis is fixed in the next rounds (text: sampled options are "
        "narrowed in the next round)",
        "a sampled value that the model puts below gamma times the best, the other axes at the best, is put back to the best's",
        ("scope",),
    ),
)  # fmt: skip
"""Algorithm 3 line by line; every knob of the tuner but the sampler's own `options` stands in one of them."""
