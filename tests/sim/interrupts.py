"""Ctrl-C within runs of policies: `python tests/sim/interrupts.py COUNT SEED [POLICY ...]` prints what comes out of each, as JSON."""

import json
import signal
import sys
import warnings
from collections import Counter

import numpy as np
from wing import brief

from gpuschedlab import Cluster, Nodes, Scenario
from gpuschedlab.check.samples import elastic_sample
from gpuschedlab.policies import ALL

SOON = 0.15
"""Seconds within which the signal comes."""


def outcome(scenario: Scenario, policy, seconds: float) -> str:
    """Run a policy again and again until a signal comes: the exception that comes out, and what the policy does meanwhile."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            scenario.run(policy)
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def main(count: int, seed: int, names: list[str]):
    """Interrupt runs, policy by policy; each once before, so that all is compiled."""
    jobs, speeds = elastic_sample()
    scenario = Scenario(jobs, Cluster((Nodes("slow", 4, 4), Nodes("fast", 2, 4))), speeds=speeds)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    rng, found, names = np.random.default_rng(seed), Counter(), names or sorted(ALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(count):
            policy = brief(names[i % len(names)])
            if i < len(names):
                scenario.run(policy)
            found[f"{policy.name}: {outcome(scenario, policy, rng.uniform(0.001, SOON))}"] += 1
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
