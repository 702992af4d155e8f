"""Steps of single rounds: recorded from the policies' own code, equal to their answers, and shown by one player."""

import pytest

from gpuschedlab.errors import RunError
from gpuschedlab.policies.steps import Case, Step
from gpuschedlab.widgets import StepPlayer

# The merger ------------------------------------------------------------------------------------------------


# Algorithms 1 and 2 ----------------------------------------------------------------------------------------


# The player ------------------------------------------------------------------------------------------------


def test_a_player_without_steps_is_refused():
    with pytest.raises(RunError, match="StepPlayer: found 1 cases, 1 without steps"):
        StepPlayer(("line",), [Case("empty", ("a",), [])])
    with pytest.raises(RunError, match="found 0 cases"):
        StepPlayer(("line",), [])
    text = StepPlayer(("a < b",), [Case("<b>", ("a",), [Step(1, "<i>", "</script>", [("x",)])])])._repr_html_()
    assert "<i>" not in text
    assert "&lt;i&gt;" in text


# Figures ---------------------------------------------------------------------------------------------------


# The explorer ----------------------------------------------------------------------------------------------
