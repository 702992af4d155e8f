"""The causal tuner (algorithm 3): how it searches, line by line, and the algorithm as printed."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np

from gpuschedlab.autosched.causal.model import BATCH
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.autosched.tuner.rounds import Search
from gpuschedlab.autosched.tuner.samplers import SAMPLERS
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed


class Line(NamedTuple):
    """Lines of algorithm 3: their numbers, what is printed, how it is read where print leaves it open, and the knobs of it."""

    lines: str
    printed: str
    read: str
    knobs: tuple[str, ...] = ()


ALGORITHM = (
    Line(
        "1 to 4", "epsilon in (0, 1); gamma = 0.95; maximum iterations T; R^max = -infinity",
        "T = 40 (6.5.2), epsilon has no published value. Rewards need a unit: the reference is measured before round 1, as is "
        "what is in force where it is another, and both are counted; they do not count for R^max, so that round 1 is measured",
        ("iterations", "check", "epsilon", "gamma", "start"),
    ),
    Line(
        "5", "sample with BlueFin",
        "from the configuration in force; a category by a softmax, for BlueFin moves numbers only",
        ("sampler", "alone", "spread", "pool"),
    ),
    Line("6", "project on the constraints W", "W holds the policy's constraints and, from line 16, the scope's"),
    Line(
        "7 to 9", "skip the round if the predicted reward is at most gamma R^max, with probability epsilon",
        "both are ratios to the reference; a skipped round reports nothing to BlueFin or to the model",
        ("reject", "doubt"),
    ),
    Line("10, 11", "measure; report the reward to BlueFin", "what was measured before is reported, and not measured again"),
    Line("12, 13", "update the causal model, R^max and C^max", "after each measurement", ("batch",)),
    Line(
        "14 to 16", "what does not exceed the best by what-if analysis is fixed in the next rounds (text: sampled options are "
        "narrowed in the next round)",
        "\"options\": a sampled value that the model puts below gamma times the best, the other axes at the best, is put back "
        "to the best's; \"axes\": an axis along which nothing better is predicted is fixed for good; \"round\": anew each round",
        ("scope", "margin"),
    ),
)  # fmt: skip
"""Algorithm 3 line by line; every knob of the tuner but the sampler's own `options` stands in one of them."""


@dataclass(frozen=True)
class Tuner(Knobbed):
    """Search a policy's knobs on a forecast.

    Algorithm 3. (1) Sample a configuration; (2) project it on ranges and constraints, and on the scope; (3) predict its
    reward with the causal model, and with probability `epsilon` reject it if that is at most `gamma` times the best;
    (4) measure it; (5) update sampler and model; (6) what-if: narrow the scope. The search ends after its rounds, or
    when every axis is fixed.

    Parameters
    ----------
    iterations, check : int
        Rounds T of a wide search, and of a check, which is what the controller does between wide searches.
    sampler, options : str, dict
        One of `SAMPLERS`, and its further arguments.
    epsilon, gamma : float
        Probability with which a bad prediction leads to rejection, and relax factor.
    start : bool
        Whether the reference, the configuration in force and hints count for the best so far, which step 3 compares with.
    batch : int
        Measurements after which the model is fitted again.
    margin : float
        What-if analysis: range of the predicted logarithm of the reward within which an axis does not matter.
    alone : int
        Rounds, at first, of the sampler alone: none is spread, rejected or narrowed, with a model or without.
    spread, pool : float, int
        Part of the rounds after these that are spread over the whole box rather than sampled: with a model its favourites of
        `pool` points of a Latin hypercube, without one a Latin hypercube of as many. Then the sampler begins anew.
    doubt : bool
        Whether steps 3 and 6 allow for the model's errors: step 3 takes the predicted reward of the best where that is less, as one
        beyond what the model predicts would reject all others; step 6 takes the 90 % point of the prediction.
    reject : bool
        Whether step 3 is taken at all.
    scope : {"axes", "round", "options", "none"}
        Step 6, as `ALGORITHM` says.

    Differs from the paper in
    -------------------------
    Rewards are ratios to a reference configuration on the same forecast (the policy's defaults), so that what the model
    learnt at one time holds at another; the reference and the configuration in force are measured first. In few rounds
    nothing that was tried finds better than BlueFin alone, which has the first 40. T is larger, and half of the other rounds
    are spread over the box, since BlueFin's steps rarely leave the neighbourhood; it then begins at the best. Hints come
    before. A configuration that was measured before is not measured again. `doubt`, `start`, `batch`. `Tuner.thesis()` is the
    algorithm as printed, and `ALGORITHM` says how each line is read.

    References
    ----------
    AutoSched thesis, section 6.4.3.1, algorithm 3; 6.5.2 for T.
    """

    raises: ClassVar = EstimatorError
    iterations: Annotated[int, Knob(0, 1e6, tuned=(1, 400), help="rounds of a wide search")] = 200
    check: Annotated[int, Knob(0, 1e6, tuned=(0, 40), help="rounds of a check")] = 4
    sampler: Annotated[str, Knob(choices=SAMPLERS.keys(), help="what proposes configurations")] = "bluefin"
    epsilon: Annotated[float, Knob(0, 1, help="probability that a bad prediction leads to rejection")] = 0.93
    gamma: Annotated[float, Knob(1e-9, 1e9, log=True, tuned=(0.1, 10), help="relax factor")] = 0.95
    start: Annotated[bool, Knob(help="whether what is measured before round 1 counts for the best so far")] = True
    batch: Annotated[int, Knob(1, 1e6, log=True, help="measurements after which the model is fitted again")] = BATCH
    margin: Annotated[float, Knob(-1e9, 1e9, tuned=(0, 0.1), help="logarithm of the reward that does not matter")] = (
        2e-3
    )
    alone: Annotated[int, Knob(0, 1e6, tuned=(0, 200), help="rounds, at first, of the sampler alone")] = 40
    spread: Annotated[float, Knob(0, 1, help="part of the rounds spread over the whole box")] = 0.5
    pool: Annotated[int, Knob(1, 1e6, log=True, tuned=(16, 1024), help="points of which the favourites are")] = 256
    doubt: Annotated[bool, Knob(help="whether steps 3 and 6 allow for the model's errors")] = True
    reject: Annotated[bool, Knob(help="whether bad predictions are rejected (step 3)")] = True
    scope: Annotated[str, Knob(choices=("axes", "round", "options", "none"), help="what step 6 narrows")] = "axes"
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        if self.options:
            try:
                SAMPLERS[self.sampler]([0], **self.options)
            except TypeError as error:
                raise EstimatorError(f"Tuner: found options {self.options} of {self.sampler}: {error}.") from None

    @classmethod
    def thesis(cls, **options) -> Self:
        """Algorithm 3 as printed; `ALGORITHM` has a row for each line.

        What print leaves open is a knob: `epsilon` stays at 0.93; `scope` is "options", the text's narrowed sampled options, with
        "axes" and "round" as other readings; `margin` and `NEAR` are ours. The model is the one that is given.
        """
        printed = {"iterations": 40, "check": 40, "start": False, "alone": 0, "spread": 0.0}
        printed |= {"doubt": False, "batch": 1, "scope": "options"}
        return cls(**printed | options)

    def tune(self, *given, **options) -> Tuning:
        """Run the whole search; arguments as for `steps`."""
        *_, last = self.steps(*given, **options)
        return last

    def steps(
        self, probe: Probe, space: Space, current, *, hints=(), model=None, rng=0, wide: bool = True
    ) -> Iterator[Tuning]:
        """Yield the search after each round, the same object, one trial longer.

        Parameters
        ----------
        probe : Probe
            Measures configurations.
        space : Space
            Its policy is the reference.
        current : Policy
            Configuration in force.
        hints : iterable of Policy
            Configurations measured first, whatever is predicted, such as the best of the last wide search.
        model : CausalModel, optional
            Without it nothing is predicted, rejected or fixed.
        rng : int or numpy.random.Generator
        wide : bool
            Whether it is a wide search, or a check.
        """
        search, begin = Search(self, probe, space, model, np.random.default_rng(rng)), time.perf_counter()
        for _ in search.rounds(current, list(hints), self.iterations if wide else self.check):
            search.found.seconds += time.perf_counter() - begin
            yield search.found
            begin = time.perf_counter()
