"""Output of long work as it goes: a bar on a terminal, elsewhere a line from time to time."""

import contextlib
import importlib.util
import sys
import threading
import time

EVERY = 5.0
"""Seconds until the first line where there is no terminal; each further one comes after twice as long."""


def next_line(begin: float, now: float) -> float:
    """Return the instant (s) of the next line of a phase that began at `begin` and has a line now: when it has taken twice as long.

    Examples
    --------
    >>> next_line(100.0, 105.0)
    110.0
    """
    return begin + 2 * (now - begin)


class Progress:
    """Prints lines on a stream, and below them how far the phase at hand is.

    A phase is announced when it begins. On a terminal (of standard error) a bar follows it; elsewhere, such as in a log file, a
    line after `EVERY` seconds says how far it is, and then one each time that it has taken twice as long: ten in an hour.
    """

    def __init__(self, stream):
        self.stream = stream
        self.bar = None

    def say(self, text: str, stream=None) -> None:
        """Print a line at once, above the bar; on another stream than its own, if one is given."""
        if self.bar is None:
            print(text, file=stream or self.stream, flush=True)
        else:
            self.bar.write(text, file=stream or self.stream)

    @contextlib.contextmanager
    def phase(self, name: str, total: float | None = None, unit: str = "", *, announced=True, each=lambda: None):
        """Context manager: show a phase; yields a function of how much of `total` is done (None: s); calls `each` each second."""
        if announced:
            self.say(name)
        bar_steps = 0.0
        ended = threading.Event()
        phase_begin = time.monotonic()
        self.bar = _bar(name, total, unit)

        def advance(steps_done: float) -> None:
            nonlocal bar_steps
            bar_steps = steps_done
            if self.bar is not None:
                self.bar.update(steps_done - self.bar.n)

        def watch() -> None:
            due = phase_begin + EVERY
            while not ended.wait(min(1.0, EVERY)):
                each()
                if self.bar is not None:
                    self.bar.refresh()
                elif time.monotonic() >= due:
                    due = next_line(phase_begin, time.monotonic())
                    steps_text = "" if total is None else f"{bar_steps:.0f} of {total:.0f} {unit}, "
                    self.say(f"{name}: {steps_text}{time.monotonic() - phase_begin:.0f} s so far")

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


def _bar(phase_name: str, total: float | None, unit: str):
    """Return a bar of `tqdm` on standard error; None if that is no terminal, or tqdm is not installed."""
    if not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        return None
    from gpuschedlab._extras import need

    tqdm = need("tqdm.auto", "progress bars").tqdm
    form = None if total is None else "{desc}: {percentage:3.0f}%|{bar}| {n:.0f} of {total:.0f} {unit}, {elapsed}"
    return tqdm(desc=phase_name, total=total, unit=unit, leave=False, bar_format=form or "{desc}: {elapsed}")
