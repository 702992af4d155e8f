"""Examples of small internal functions: what they say is printed is printed."""

import pytest
from typed import failures

EXAMPLES = [
    (
        "gpuschedlab.autosched.decision_rows",
        """\
>>> _value((3250.4, 1.5e6)), _value(0.25), _value("time")
('(3,250, 1,500,000)', '0.25', 'time')""",
    ),
    (
        "gpuschedlab.autosched.forecast.arrivals",
        """\
>>> day = np.cos(np.arange(48) * 2 * np.pi / 24)
>>> bool(np.allclose(periodic_part(5 + day + 0.1 * (np.arange(48) == 7), terms=1), 5 + day, atol=0.01))
True""",
    ),
    (
        "gpuschedlab.autosched.forecast.ranges",
        """\
>>> range_of([0.0, 300.0, 1e6]).tolist()
[0, 1, 5]""",
    ),
    (
        "gpuschedlab.autosched.tuner.measure",
        """\
>>> round(weighed({"jct": 100.0, "fair": 0.25}, (1, 1)), 9)
20.0""",
    ),
]
"""Module, and what is typed and printed there."""


@pytest.mark.parametrize(("module", "typed"), EXAMPLES)
def test_what_is_typed_prints_what_is_said(module, typed):
    assert failures(module, typed) == 0
