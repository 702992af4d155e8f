"""A closed loop's decisions as rows of text, printed as they come."""

HOUR = 3600.0
TOGETHER = 6
"""Most decisions of one row."""
SEEN = 1.005
"""Gain from which on a configuration counts as better: 1.01 with two decimals."""
WIDTHS = {"method": 13, "hours": 12, "decisions": 9, "measured": 8, "best gain": 9}
LEGEND = (
    "best gain: how many times as good as the configuration in force the best one is, as measured on the forecast; where\n"
    "that is above the threshold, as measured again on others. If it still is, the scheduler switches."
)


def header() -> str:
    """Return the explanation of the columns, once, and the line of their names, as text."""
    return LEGEND + "\n\n" + _line(dict(zip(WIDTHS, WIDTHS)), "outcome")


class Rows:
    """Rows of one method's decisions, from the values of the tuned knobs at the beginning on."""

    def __init__(self, method: str, knobs: dict):
        self.method = method
        self.knobs = dict(knobs)
        self.calm = []

    def add(self, decision) -> list[str]:
        """Return a list of the lines that a decision completes, often empty: a switch's own, and before it that of calm ones."""
        if not decision.switched:
            self.calm.append(decision)
            if len(self.calm) < TOGETHER:
                return []
            return self.rest()
        return [*self.rest(), self._row([decision], self._outcome(decision))]

    def rest(self) -> list[str]:
        """Return a list of one line for the decisions that have none yet; empty if there are none."""
        if not self.calm:
            return []
        calm = self.calm
        self.calm = []
        if not any(decision.measured for decision in calm):
            reason = "no jobs in the forecast"
        elif max(decision.gain for decision in calm) < SEEN:
            reason = "no better configuration"
        else:
            reason = "gain below the threshold"
        return [self._row(calm, f"kept: {reason}")]

    def _row(self, decisions: list, outcome: str) -> str:
        """Return the line of decisions that follow one another, as text."""
        hours = f"{decisions[0].now / HOUR:.1f}"
        if len(decisions) > 1:
            hours += f" to {decisions[-1].now / HOUR:.1f}"
        cells = {
            "method": self.method,
            "hours": hours,
            "decisions": len(decisions),
            "measured": sum(decision.measured for decision in decisions),
            "best gain": f"{max(decision.gain for decision in decisions):.2f}",
        }
        return _line(cells, outcome)

    def _outcome(self, decision) -> str:
        """The changes of a switch, in words."""
        knobs_before = self.knobs
        knobs_after = {
            knob_name: value for knob_name, value in decision.policy.knobs.items() if knob_name in knobs_before
        }
        changed = [knob_name for knob_name in knobs_after if knobs_after[knob_name] != knobs_before[knob_name]]
        changes = [
            f"{knob_name} {_value(knobs_before[knob_name])} -> {_value(knobs_after[knob_name])}"
            for knob_name in changed
        ]
        self.knobs = knobs_after
        if decision.cause == "burst":
            return f"switched (burst of arrivals): {', '.join(changes)}"
        return f"switched: {', '.join(changes)}"


def _value(value) -> str:
    """Value of a knob as a string of a few characters."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, bool | str):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _line(cells: dict, outcome: str) -> str:
    """Columns of text to the left, of numbers to the right."""
    decision_cells = []
    for column_name, column_width in WIDTHS.items():
        if column_name in ("method", "hours"):
            decision_cells.append(f"{cells[column_name]:<{column_width}}")
        else:
            decision_cells.append(f"{cells[column_name]:>{column_width}}")
    return "  ".join([*decision_cells, outcome])
