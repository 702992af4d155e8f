"""Words on standard error while the simulator is compiled: which part, why, how far, and how long it will still take."""

import threading
import time
from functools import cache

from numba.core import event

from gpuschedlab._compiled.code_files import damaged, say

EVERY = 5.0
"""Seconds between words on how far compiling is."""

LINKING = 0.25
"""Time that linking and optimising an entry takes, as a share of making the IR of all that it calls; measured on the entries of FIFO,
Tiresias and EASY."""

ENOUGH = 2_000
"""Bytes of bytecode after which the pace so far is believed."""

SMALL = 20
"""Functions up to which an entry is compiled without words."""


def size_of(function) -> int:
    """Return the length of a function's bytecode, to which the time to compile it is nearly proportional."""
    return len(function.__code__.co_code)


def functions_within(dispatcher) -> dict:
    """Return a dict of a compiled function and all that it calls, at any depth: dispatchers by the functions of Python."""
    reached = {dispatcher.py_func: dispatcher}
    waiting = [dispatcher.py_func]
    for function in waiting:
        for global_name in function.__code__.co_names:
            callee = function.__globals__.get(global_name)
            python = getattr(callee, "py_func", None)
            if python is not None and python not in reached:
                reached[python] = callee
                waiting.append(python)
    return reached


class Progress:
    """How far compiling one entry is."""

    pace = 0.0006
    """Seconds per byte of bytecode, of the whole process so far; at first those of a processor of 2023."""

    def __init__(self, dispatcher):
        self.functions = functions_within(dispatcher)
        self.begin = time.monotonic()
        self.ready = {function for function, callee in self.functions.items() if getattr(callee, "inner", None)}
        self.size = sum(map(size_of, self.functions))
        self.work = sum(size_of(function) for function in self.functions if function not in self.ready)
        self.done = 0
        self.last = self.begin

    def add(self, function):
        """Count a function as done, if it was not yet."""
        if function in self.functions and function not in self.ready:
            self.ready.add(function)
            self.done += size_of(function)
            self.last = time.monotonic()

    def seconds_left(self, now: float) -> float:
        """Return an estimate of the seconds until the entry is compiled."""
        if self.done > ENOUGH:
            Progress.pace = (self.last - self.begin) / self.done
        expected = Progress.pace * (self.work + LINKING * self.size)
        return max(1.0, expected - (now - self.begin))

    def words(self, now: float) -> str:
        """Return a sentence on how far compiling is."""
        compiled_count = f"compiled {len(self.ready)} of {len(self.functions)} functions of the simulator"
        return f"{compiled_count} in {now - self.begin:.0f} s; about {self.seconds_left(now):.0f} s left."


class Announcer(event.Listener):
    """Says, before the first function of the simulator is compiled (not loaded), that this takes a while, and then how far it is."""

    def __init__(self):
        self.explained = False
        self.depth = 0
        self.progress = None
        self.ended = threading.Event()
        self.spoken = 0.0

    def on_start(self, event) -> None:
        """Begin to follow the outermost function that is compiled."""
        dispatcher = event.data["dispatcher"]
        self.depth += 1
        if self.depth > 1 or not of_engine(dispatcher.py_func):
            return
        progress = Progress(dispatcher)
        if len(progress.functions) <= SMALL:
            return
        self.progress = progress
        if not self.explained and not damaged:  # of damaged files it was said that they are compiled again
            self.spoken = time.monotonic()
            say(
                "compiling the simulator, since no machine code is kept for these sources, numba, Python and processor; "
                "half a minute, once."
            )
        self.explained = True
        self.ended = threading.Event()
        # LLVM optimises for seconds without a word to numba: a thread speaks meanwhile.
        threading.Thread(target=self._follow, args=(self.progress, self.ended), daemon=True).start()

    def on_end(self, event) -> None:
        """Count the function as done; the outermost ends the words."""
        self.depth -= 1
        if self.progress is not None:
            self.progress.add(event.data["dispatcher"].py_func)
        if self.depth == 0 and self.progress is not None:
            self.progress = None
            self.ended.set()

    def _follow(self, progress: Progress, ended: threading.Event):
        while not ended.wait(max(0.1, self.spoken + EVERY - time.monotonic())):
            clock = time.monotonic()
            if clock - self.spoken >= EVERY:
                self.spoken = clock
                say(progress.words(clock))


def of_engine(function) -> bool:
    """Return whether a function belongs to the simulator."""
    return str(function.__module__).startswith("gpuschedlab.sim.engine")


@cache
def announce() -> Announcer:
    """Follow the compilations of this process from now on; return the `Announcer`, the same at each call."""
    announcer = Announcer()
    event.register("numba:compile", announcer)
    return announcer
