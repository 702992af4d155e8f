"""Recipes of scenarios: those that belong to no paper are here, that of a paper is `recipe.py` in the paper's folder.

A recipe is one file, and is found by being there: `recipes()` has them by name.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from gpuschedlab.cluster import Cluster
from gpuschedlab.estimators import Estimator
from gpuschedlab.knobs import texts_of
from gpuschedlab.parse import estimator_of, loaded_of_papers, made
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe


@cache
def recipes() -> dict[str, type[Recipe]]:
    """Dict of `Recipe` classes by the names that the command line takes, in lower case: ``smallcluster``, ``week``, ...

    Examples
    --------
    >>> {"ownfile", "smallcluster", "week"} <= set(recipes())
    True
    """
    own_modules = [
        importlib.import_module(f"{__name__}.{own_part.name}") for own_part in pkgutil.iter_modules(__path__)
    ]
    modules = {module.__name__: module for module in (*own_modules, *loaded_of_papers("recipe"))}
    classes = (member for module in modules.values() for member in vars(module).values())
    recipe_classes = [
        recipe_class
        for recipe_class in classes
        if isinstance(recipe_class, type) and issubclass(recipe_class, Recipe) and recipe_class.__module__ in modules
    ]
    return {cls.__name__.lower(): cls for cls in sorted(recipe_classes, key=lambda cls: cls.__name__)}


def aliases() -> dict[str, str]:
    """Dict of words that stand for a recipe with some knobs, and those in full: ``lpt-medium``."""
    return {
        alias: f"{recipe_name}:{options}"
        for recipe_name, cls in recipes().items()
        for alias, options in cls.aliases.items()
    }


def recipe_of(text: str | Mapping[str, object]):
    """Make a `Recipe` from a word, or from a dict of its name as `recipe` and its knobs.

    Parameters
    ----------
    text : str or mapping
        NAME[:KNOB=VALUE,...]: a name of `recipes()`, a word of `aliases()`, FILE.py:CLASS, or FILE.py.

    Returns
    -------
    Recipe

    Raises
    ------
    TraceError
        No such recipe or knob, or a value out of range.

    Examples
    --------
    >>> from gpuschedlab.parse import word_of
    >>> small = recipe_of("smallcluster:nodes=3,placement=buddy")
    >>> small.nodes, small.policy.placement, word_of(small)
    (3, 'buddy', 'smallcluster:placement=buddy,nodes=3')
    >>> recipe_of(small.to_dict()) == small
    True
    """
    if isinstance(text, Mapping):
        return with_values(
            recipe_of(text["recipe"]),
            {knob_name: knob_value for knob_name, knob_value in text.items() if knob_name != "recipe"},
        )
    recipe_name, colon, options = text.partition(":")
    if recipe_name not in recipes() and recipe_name in aliases():
        recipe_name = aliases()[recipe_name]
        colon = "," if options else ""
    return made(f"{recipe_name}{colon}{options}", recipes(), Recipe, "recipe")


def with_values(recipe: Recipe, values: Mapping[str, object]) -> Recipe:
    """Return a copy of a `Recipe` with texts and knobs changed.

    A cluster or an estimator that it has no text for stands instead of its own.
    """
    texts = {
        changed_name: changed_value
        for changed_name, changed_value in values.items()
        if changed_name in texts_of(recipe)
    }
    read = {"cluster": Cluster.parse, "estimator": estimator_of}
    parts_instead = {
        changed_name: read[changed_name](values[changed_name])
        for changed_name in read
        if changed_name in values and changed_name not in texts
    }
    knobs = {
        changed_name: changed_value
        for changed_name, changed_value in values.items()
        if changed_name not in {*texts, *parts_instead}
    }
    changed = replace(recipe, **texts).with_knobs(**knobs)
    return Instead(changed, **parts_instead) if parts_instead else changed


@dataclass(frozen=True)
class Instead(Recipe):
    """A recipe whose scenario has another cluster, or another estimator, than its own."""

    recipe: Recipe
    cluster: Cluster | None = None
    estimator: Estimator | None = None

    policies = property(lambda self: self.recipe.policies)
    metrics = property(lambda self: self.recipe.metrics)
    price = property(lambda self: self.recipe.price)
    drawn = property(lambda self: self.recipe.drawn)
    noun = property(lambda self: self.recipe.noun)
    warm = property(lambda self: getattr(self.recipe, "warm", 14.0))

    def about(self, scenario: Scenario) -> dict[str, object]:
        """Return the recipe's dict of texts about a scenario."""
        return self.recipe.about(scenario)

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the recipe's `Scenario` with its parts changed."""
        parts_instead = {"cluster": self.cluster, "estimator": self.estimator}
        return self.recipe(seed).replace(
            **{part_name: part_instead for part_name, part_instead in parts_instead.items() if part_instead is not None}
        )


__all__ = ["Recipe", "aliases", "recipe_of", "recipes"]
