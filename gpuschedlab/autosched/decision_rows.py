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
    """Explanation of the columns, once, and their names."""
    return LEGEND + "\n\n" + _line(dict(zip(WIDTHS, WIDTHS)), "outcome")


class Rows:
    """Rows of one method's decisions, from the values of the tuned knobs at the beginning on."""

    def __init__(self, method: str, knobs: dict):
        self.method = method
        self.knobs = dict(knobs)
        self.calm = []

    def add(self, decision) -> list[str]:
        """Rows that a decision completes: its own where it switches, before it that of those without one."""
        if not decision.switched:
            self.calm.append(decision)
            return self.rest() if len(self.calm) == TOGETHER else []
        return [*self.rest(), self._row([decision], self._outcome(decision))]

    def rest(self) -> list[str]:
        """Row of the decisions that have none yet."""
        if not self.calm:
            return []
        calm = self.calm
        self.calm = []
        best = max(d.gain for d in calm)
        why = "no better configuration" if best < SEEN else "gain below the threshold"
        return [self._row(calm, "kept: " + (why if any(d.measured for d in calm) else "no jobs in the forecast"))]

    def _row(self, decisions: list, outcome: str) -> str:
        first, last = (f"{d.now / HOUR:.1f}" for d in (decisions[0], decisions[-1]))
        cells = {
            "method": self.method,
            "hours": first if len(decisions) == 1 else f"{first} to {last}",
            "decisions": len(decisions),
            "measured": sum(d.measured for d in decisions),
            "best gain": f"{max(d.gain for d in decisions):.2f}",
        }
        return _line(cells, outcome)

    def _outcome(self, decision) -> str:
        now = {k: v for k, v in decision.policy.knobs.items() if k in self.knobs}
        changes = [f"{k} {_value(self.knobs[k])} -> {_value(v)}" for k, v in now.items() if v != self.knobs[k]]
        self.knobs = now
        why = " (burst of arrivals)" if decision.cause == "burst" else ""
        return f"switched{why}: {', '.join(changes)}"


def _value(value) -> str:
    """Value of a knob in a few characters."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, bool | str):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(cells: dict, outcome: str) -> str:
    """Columns of text to the left, of numbers to the right."""
    texts = ("method", "hours")
    parts = [f"{cells[k]:<{w}}" if k in texts else f"{cells[k]:>{w}}" for k, w in WIDTHS.items()]
    return "  ".join([*parts, outcome])
