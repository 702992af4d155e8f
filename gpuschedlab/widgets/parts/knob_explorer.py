"""Explorers of one thing with knobs: its controls, and a button that resets them; and of the runs of a recipe."""

from dataclasses import fields
from functools import cache as once

from gpuschedlab.sim.policy import Policy
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.controls import KnobControls, button, row
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer


class KnobExplorer(BaseExplorer):
    """Base: a subclass gives `places`, `_answer` or `_compute`, `_numbers` and `_words`; `self.knobs.thing` is what the controls say.

    Parameters
    ----------
    thing : Knobbed, optional
        Where the knobs begin; without it what `begin()` returns, if a subclass has that.
    cache : Cache, optional
        Where results are kept.

    Examples
    --------
    >>> from gpuschedlab import Tiresias, plots
    >>> class Queues(KnobExplorer):
    ...     places = (plots.Place("queues", height=250),)
    ...     _answer = lambda self, policy: [float(i) for i in range(policy.queues)]
    ...     _numbers = lambda self, x: {"queues": plots.Lines("Queues", "number", "weight", x, {"all": x})}
    >>> explorer = Queues(Tiresias())
    >>> explorer.knobs["queues"].value = 3  # as a hand would move the slider
    >>> len(explorer.board.drawings["queues"].data[0]["x"])
    3
    """

    def __init__(self, thing=None, cache: Cache | None = None):
        super().__init__(cache)
        self.knobs = KnobControls(self.begin() if thing is None else thing, self._changed)
        self._open()

    def _answer(self, thing):
        """What `_numbers` and `_words` are given, computed from the thing alone: it is kept; abstract."""
        raise NotImplementedError

    def _compute(self):
        thing = self.knobs.thing
        answer = self.cache.get((type(self), thing), lambda: self._answer(thing))
        self.seconds = answer.seconds
        return answer.value

    def _sliders(self) -> list:
        return self.knobs.sliders

    def _controls(self) -> list:
        begin = self.knobs.thing
        reset = button(self, "Reset knobs", "as in the beginning", lambda: self.knobs.show(begin))
        return [row(self.knobs.box, reset)]


class RunExplorer(KnobExplorer):
    """Base of the explorers of a recipe: what its scenario becomes under its policies; `self.runs` are the runs by name.

    A subclass gives `places`, `_numbers` and `_words`; these two are given the recipe.

    Parameters
    ----------
    recipe : Recipe, optional
        Where the knobs begin, by default at `begin()`.
    seed : int
        Seed of the scenario, and of whatever else is drawn.
    cache : Cache, optional
        Where runs are kept.
    **knobs
        Knobs of the recipe that begin elsewhere; None: as it says.
    """

    idle: tuple[str, ...] = ()
    """Fields of the recipe that change what is shown, and no run."""

    def __init__(self, recipe: Recipe | None = None, seed: int = 0, cache: Cache | None = None, **knobs):
        self.seed, recipe = seed, recipe or self.begin()
        super().__init__(recipe.with_knobs(**{name: v for name, v in knobs.items() if v is not None}), cache)

    def _names(self, recipe) -> list[str]:
        """Names of the policies that are shown: all of the recipe's."""
        return list(recipe.policies)

    def _matters(self, recipe, name: str) -> tuple:
        """What a run under a policy depends on, besides the policy and the seed: the scenario's fields of the recipe."""
        values = [(field.name, getattr(recipe, field.name)) for field in fields(recipe)]
        return tuple(v for field, v in values if field not in self.idle and not isinstance(v, Policy))

    def _compute(self):
        recipe, runs = self.knobs.thing, {}
        scenario, policies = once(lambda: recipe(self.seed)), recipe.policies
        for name in self._names(recipe):
            key = (type(recipe), self._matters(recipe, name), self.seed, policies[name])
            runs[name] = self.cache.get(key, lambda name=name: scenario().run(policies[name])).value
        self.runs = runs
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())
        return recipe
