"""Ctrl-C within runs of policies and programs: `python tests/sim/interrupts.py COUNT SEED [NAME ...]`.

It prints what comes out of each, as JSON; COUNT 0: two of each. A name is that of a policy, of one with another
solver (`sia:solver=copter`), or of a compiled function of a paper (`compiled_of_papers.py`).
"""

import json
import signal
import sys
import time
import warnings
from collections import Counter
from functools import partial

import numpy as np
from brief_policies import brief
from compiled_of_papers import COMPILED

from gpuschedlab import Cluster, Nodes, Scenario
from gpuschedlab.check.samples import elastic_sample
from gpuschedlab.knobs import knobs_of
from gpuschedlab.policies import ALL

SOON = 0.15
"""Seconds of a run within which the signal comes, at most."""
LATER = 0.001
"""Seconds until it comes again, when it came within polars."""


def drawn(scenario: Scenario) -> dict:
    """What is interrupted, by name: each policy, with each of its solvers, and each compiled function of a paper."""
    policies = {name: brief(name) for name in ALL}
    for name in ALL:
        info = knobs_of(ALL[name]).get("solver")
        others = [choice for choice in info.knob.choices if choice != info.default] if info else ()
        policies |= {f"{name}:solver={choice}": brief(name, solver=choice) for choice in others}
    runs = {name: partial(scenario.run, policy) for name, policy in policies.items()}
    simulation = scenario.simulation(brief("fifo"))
    simulation.run()
    return runs | {f"{name} alone": partial(function, simulation) for name, function in COMPILED.items()}


def interrupt(_, frame):
    """Raise KeyboardInterrupt, but not within polars, which loses some and makes a TypeError of others: then a little later."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "polars":
            signal.setitimer(signal.ITIMER_REAL, LATER)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def outcome(run, seconds: float) -> str:
    """Run something again and again until a signal comes: the exception that comes out."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            run()
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def lasting(run) -> float:
    """Seconds that a first run takes, which compiles what is not yet compiled; at most `SOON`."""
    begin = time.perf_counter()
    run()
    return min(time.perf_counter() - begin, SOON)


def main(count: int, seed: int, names: list[str]):
    """Interrupt runs, one name after the other, within the time of a run of it."""
    jobs, speeds = elastic_sample()
    runs = drawn(Scenario(jobs.head(15), Cluster((Nodes("slow", 4, 4), Nodes("fast", 2, 4))), speeds=speeds))
    signal.signal(signal.SIGALRM, interrupt)
    rng = np.random.default_rng(seed)
    found = Counter()
    seconds = {}
    names = names or sorted(runs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(count or 2 * len(names)):
            name = names[i % len(names)]
            if name not in seconds:
                seconds[name] = lasting(runs[name])
            found[f"{name}: {outcome(runs[name], rng.uniform(0.001, 0.002 + seconds[name]))}"] += 1
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
