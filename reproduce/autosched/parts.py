"""AutoSched without one of its parts: what benches compare it with, beside the package's own methods."""

from dataclasses import replace

from gpuschedlab.autosched.methods import METHODS, Method
from gpuschedlab.autosched.tuner.search import Tuner

WHOLE = METHODS["autosched"]
SHORT = {"iterations": 10, "check": 10}
PARTS = {
    "autosched": WHOLE,
    "no-causal": replace(WHOLE, doc="AutoSched without causal model, the same rounds", tuner=Tuner.thesis(causal=False)),
    "no-aggregator": replace(WHOLE, doc="AutoSched without trace aggregator", aggregate=False),
    "no-controller": Method(
        "AutoSched without search controller (neither), 10 rounds as in figures 6.9, 6.13 and 6.18", "generated",
        Tuner.thesis(causal=False, **SHORT), aggregate=False,
    ),
    "no-controller-40": Method("the same with 40 rounds", "generated", Tuner.thesis(causal=False), aggregate=False),
    "no-future": replace(WHOLE, doc="AutoSched without generated arrivals", future="existing"),
}  # fmt: skip
"""Methods by name, for `attach`."""
