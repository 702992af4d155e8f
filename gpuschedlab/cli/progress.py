"""What long work prints as it goes: a bar on a terminal, elsewhere a line from time to time; a closed loop's decisions as rows."""

import contextlib
import importlib.util
import sys
import threading
import time

EVERY = 5.0
"""Seconds between lines where there is no terminal."""

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


class Progress:
    """Prints lines on a stream, and below them how far the phase at hand is.

    A phase is announced when it begins. On a terminal (of standard error) a bar follows it; elsewhere, such as in a log
    file, a line every `EVERY` seconds says how far it is.

    Examples
    --------
    >>> progress = Progress(sys.stdout)
    >>> with progress.phase("offline phase", 2, "instants") as advance:
    ...     advance(1)
    offline phase
    """

    def __init__(self, stream):
        self.stream, self.bar = stream, None

    def say(self, text: str, stream=None) -> None:
        """Print a line at once, above the bar; on another stream than its own, if one is given."""
        if self.bar is None:
            print(text, file=stream or self.stream, flush=True)
        else:
            self.bar.write(text, file=stream or self.stream)

    @contextlib.contextmanager
    def phase(self, name: str, total: float | None = None, unit: str = "", *, announced=True, each=lambda: None):
        """Show a phase until the block ends; yields a function that takes how much of `total` is done, in the plural of a unit.

        Where the total is unknown, seconds are shown; `announced` says whether the name is printed when the phase begins. `each`
        is called once a second.
        """
        if announced:
            self.say(name)
        done, ended, begin = 0.0, threading.Event(), time.monotonic()
        self.bar = _bar(name, total, unit)

        def advance(count: float) -> None:
            nonlocal done
            done = count
            if self.bar is not None:
                self.bar.update(count - self.bar.n)

        def watch() -> None:
            said = begin
            while not ended.wait(min(1.0, EVERY)):
                each()
                if self.bar is not None:
                    self.bar.refresh()
                elif time.monotonic() - said >= EVERY:
                    said, part = time.monotonic(), "" if total is None else f"{done:.0f} of {total:.0f} {unit}, "
                    self.say(f"{name}: {part}{time.monotonic() - begin:.0f} s so far")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield advance
        finally:
            ended.set()
            watcher.join()
            if self.bar is not None:
                self.bar.close()
                self.bar = None


def _bar(name: str, total: float | None, unit: str):
    """Bar on standard error; None where that is no terminal, or tqdm is not installed."""
    if not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        return None
    from gpuschedlab._extras import need

    tqdm = need("tqdm.auto", "progress bars").tqdm
    form = None if total is None else "{desc}: {percentage:3.0f}%|{bar}| {n:.0f} of {total:.0f} {unit}, {elapsed}"
    return tqdm(desc=name, total=total, unit=unit, leave=False, bar_format=form or "{desc}: {elapsed}")


def header() -> str:
    """Explanation of the columns, once, and their names.

    Examples
    --------
    >>> print(header().splitlines()[-1])
    method         hours         decisions  measured  best gain  outcome
    """
    return LEGEND + "\n\n" + _line(dict(zip(WIDTHS, WIDTHS)), "outcome")


class Rows:
    """Rows of one method's decisions, from the values of the tuned knobs at the beginning on."""

    def __init__(self, method: str, knobs: dict):
        self.method, self.knobs, self.calm = method, dict(knobs), []

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
        calm, self.calm = self.calm, []
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
    """Value of a knob in a few characters.

    Examples
    --------
    >>> _value((3250.4, 1.5e6)), _value(0.25), _value("time")
    ('(3,250, 1,500,000)', '0.25', 'time')
    """
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
