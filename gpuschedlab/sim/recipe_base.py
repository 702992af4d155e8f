"""Recipes: knobs and a seed make a scenario."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab._knob import check_seed
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import Noisy, Oracle
from gpuschedlab.knobs import Knob, Knobbed, texts_of, word_of
from gpuschedlab.sim.policy import Policy
from gpuschedlab.sim.scenario import Scenario

Load = Annotated[float, Knob(0.3, 3, step=0.05, help="GPU-time demanded, over what is there")]
Jobs = Annotated[int, Knob(1, 100_000, log=True, help="jobs that come")]
Nodes = Annotated[int, Knob(1, 64, help="nodes of the cluster")]


def arriving(gpus: np.ndarray, duration: np.ndarray, gap: np.ndarray, busy: float) -> pl.DataFrame:
    """Return a trace (frame) of jobs that come at random: exponential gaps, from uniform numbers `gap`, keep `busy` GPUs busy."""
    gaps = -np.log1p(-gap)
    submit = np.cumsum(gaps) / gaps.sum() * float((gpus * duration).sum()) / busy
    job_ids = [f"{i}" for i in range(len(gpus))]
    return pl.DataFrame({"job_id": job_ids, "submit": submit.round(0), "gpus": gpus, "duration": duration})


def errors_of(noisy: Noisy, seed: int) -> Noisy | None:
    """Return knowledge in the scenario of a seed: a `Noisy` with errors drawn anew, or None (the truth) without errors."""
    return replace(noisy, rng=seed) if noisy.error else None


@dataclass(frozen=True)
class Recipe(Knobbed):
    """Base of a frozen dataclass that makes a scenario of its knobs and a seed; a subclass gives `scenario(seed)`.

    Explorers, sweeps, notebooks and `gpuschedlab compare --on` take one. Its fields are knobs, or things that have knobs
    themselves: a field `policy: Annotated[Ymir, Holds(("threshold",))] = Ymir()` gives the recipe the policy's `threshold`.
    `recipe.to_dict()` says all of it as a plain dict, `parse.word_of(recipe)` in one word, which a link, a parameter of
    papermill and a cell of a sweep write down.

    Attributes
    ----------
    policies : mapping of str to Policy
        Policies that it is meant to compare, by name; none: any.
    aliases : mapping of str to str
        Short words, each with the options that it stands for ("load=low").
    metrics : tuple of str
        Columns that a comparison shows; none: the usual ones.
    price : float or None
        Dollars per GPU-hour, if GPUs have a price.
    drawn : bool
        Whether another seed makes another scenario like it, rather than another part of a log.
    noun : str
        Name of its scenarios ("weeks").
    came_in : mapping of str to Report
        If it reads a log, as `intake`: rows taken in, and rows left out.

    Raises
    ------
    TraceError
        A knob is out of range.

    Examples
    --------
    >>> from gpuschedlab.cluster import Cluster
    >>> @dataclass(frozen=True)
    ... class Twins(Recipe):
    ...     jobs: Jobs = 2
    ...     def scenario(self, seed=0):
    ...         ids = [str(i) for i in range(self.jobs)]
    ...         return Scenario(pl.DataFrame({"job_id": ids, "submit": 0.0, "gpus": 1, "duration": 60.0}), Cluster.parse("1x8"))
    >>> Twins(jobs=3)(seed=1).trace.height, Twins(jobs=3).knobs
    (3, {'jobs': 3})
    """

    raises: ClassVar = TraceError
    aliases: ClassVar[Mapping[str, str]] = {}
    metrics: ClassVar[tuple[str, ...]] = ()
    price: ClassVar[float | None] = None
    drawn: ClassVar[bool] = True
    noun: ClassVar[str] = "scenarios"
    came_in: ClassVar[Mapping[str, object]] = {}

    def scenario(self, seed: int = 0) -> Scenario:
        """Make the `Scenario` of a seed: the same knobs and seed make the same one."""
        raise NotImplementedError

    def __call__(self, seed: int = 0) -> Scenario:
        """Make the scenario of a seed. Raise TraceError for a seed that is no whole number, or negative."""
        check_seed(seed, TraceError, f"{type(self).__name__}: seed")
        return self.scenario(seed)

    def to_dict(self) -> dict:
        """Return a dict of its name, its knobs and its texts, from which `lab.recipe_of` makes it again."""
        return {"recipe": type(self).__name__.lower()} | self.knobs | texts_of(self)

    @property
    def policies(self) -> Mapping[str, Policy]:
        """Mapping by name of each `Policy` that it is meant to compare; empty unless a recipe says otherwise."""
        return {}

    def about(self, scenario: Scenario) -> dict[str, object]:
        """Describe a scenario of it in a dict of texts: its trace, its history, and the knowledge of policies about durations."""
        summary = (type(self).__doc__ or "").strip().partition("\n")[0].rstrip(".")
        past = "nothing" if scenario.history is None else f"{scenario.history.height:,} jobs before"
        estimator_word = word_of(scenario.estimator or Oracle())
        return {
            "trace": f"{word_of(self)} (seed {scenario.seed}): {summary}",
            "history": past,
            "estimator": estimator_word,
        }
