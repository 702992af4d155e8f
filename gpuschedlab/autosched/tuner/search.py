"""The tuner (algorithm 3): search alone, and the causal search as printed."""

import inspect
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

import numpy as np

from gpuschedlab.autosched.causal.model import BATCH
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.autosched.tuner.rounds import Search
from gpuschedlab.autosched.tuner.samplers import SAMPLERS
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed


@dataclass(frozen=True)
class Tuner(Knobbed):
    """Search a policy's knobs on a forecast: `Tuner()` by search alone, `Tuner.thesis()` with a causal model, as printed.

    Algorithm 3. (1) Sample a configuration; (2) project it on ranges and constraints, and on the scope; (3) predict its reward
    with the causal model, and with probability `epsilon` reject it if that is at most `gamma` times the best; (4) measure it; (5)
    update sampler and model; (6) what-if: narrow the scope.

    With `causal` the model is asked in every round of every search: steps 3, 5 and 6. Without, no model is used or learnt, and the
    steps are 1, 2 and 4. After the first `alone` rounds a part `spread` of the others goes all over the box, to points of a Latin
    hypercube; then the sampler begins anew. `options` are further arguments of the sampler.

    Differs from the paper in
    -------------------------
    `Tuner.thesis()`: rewards are ratios to a reference configuration on the same forecast (the policy's defaults), so that the model
    of one time holds at another; the reference and the configuration in force are measured first; hints come
    before. A configuration that was measured before is not measured again. `Tuner()`: no model, since with as many rounds nothing
    that was tried with one finds better than BlueFin, which has the first 40 rounds. T is larger, and half of the other rounds are
    spread over the box, since BlueFin's steps rarely leave the neighbourhood; it then begins at the best.

    References
    ----------
    AutoSched thesis, section 6.4.3.1, algorithm 3; 6.5.2 for T.
    """

    raises: ClassVar = EstimatorError
    iterations: Annotated[int, Knob(0, 1e6, tuned=(1, 400), help="rounds T of a wide search")] = 200
    check: Annotated[int, Knob(0, 1e6, tuned=(0, 40), help="rounds of a check, between wide searches")] = 4
    causal: Annotated[bool, Knob(help="whether the causal model is asked, in every round")] = False
    sampler: Annotated[str, Knob(choices=SAMPLERS.keys(), help="what proposes configurations")] = "bluefin"
    epsilon: Annotated[float, Knob(0, 1, help="probability that a bad prediction leads to rejection")] = 0.93
    gamma: Annotated[float, Knob(1e-9, 1e9, log=True, tuned=(0.1, 10), help="relax factor")] = 0.95
    start: Annotated[bool, Knob(help="whether what is measured before round 1 counts for the best of step 3")] = True
    batch: Annotated[float, Knob(1e-4, 1e6, log=True, help="measurements, or part of all, until it is fitted")] = BATCH
    alone: Annotated[int, Knob(0, 1e6, tuned=(0, 200), help="rounds, at first, before any is spread")] = 40
    spread: Annotated[float, Knob(0, 1, help="part of the rounds spread over the whole box")] = 0.5
    scope: Annotated[str, Knob(choices=("options", "none"), help="what step 6 narrows")] = "options"
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        if self.options:
            try:
                SAMPLERS[self.sampler]([0], **self.options)
            except TypeError as error:
                parameters = ", ".join(inspect.signature(SAMPLERS[self.sampler]).parameters)
                raise EstimatorError(
                    f"Tuner: found options {self.options} of {self.sampler}: {error}; expected some of {parameters}."
                ) from None

    @classmethod
    def thesis(cls, **options) -> Self:
        """Return a `Tuner` of algorithm 3 as printed; the documentation of AutoSched has a table of how each line is read.

        The paper leaves some things open; they are knobs: `epsilon` stays at 0.93; `scope` is "options", the text's narrowed
        sampled options. The model is the one that is given.
        """
        printed = {"causal": True, "iterations": 40, "check": 40, "start": False, "alone": 0, "spread": 0.0}
        return cls(**printed | {"batch": 1} | options)

    def tune(self, *given, **options) -> Tuning:
        """Run the whole search, and return its `Tuning`; arguments as for `steps`."""
        *_, whole_tuning = self.steps(*given, **options)
        return whole_tuning

    def steps(
        self, probe: Probe, space: Space, current, *, hints=(), model=None, rng=0, wide: bool = True
    ) -> Iterator[Tuning]:
        """Yield the search, a `Tuning`, after each round, the same object, one trial longer.

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
            For a `causal` search. Without it nothing is predicted, rejected or fixed.
        rng : int or numpy.random.Generator
        wide : bool
            Whether it is a wide search, or a check.
        """
        search = Search(self, probe, space, model, np.random.default_rng(rng))
        begin_seconds = time.perf_counter()
        iterations = self.check
        if wide:
            iterations = self.iterations
        for _ in search.rounds(current, list(hints), iterations):
            search.found.seconds += time.perf_counter() - begin_seconds
            yield search.found
            begin_seconds = time.perf_counter()
