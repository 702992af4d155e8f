"""Policies as tests run them: those that search for long search briefly."""

from gpuschedlab.policies import ALL

BRIEF = {
    "optimus": {"interval": 300.0},
    "pollux": {"interval": 300.0, "population": 10, "generations": 10},
    "threesigma": {"interval": 300.0, "horizon": 8, "window": 16},
    "ymir": {"interval": 600.0},
}
"""Knobs with which a policy searches briefly."""


def brief(name: str, **knobs):
    """Policy of a name; one that searches for long does so briefly."""
    return ALL[name](**BRIEF.get(name, {}) | knobs)
