"""A task of the suite."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuschedlab.sim.recipe_base import Recipe


@dataclass(frozen=True)
class Task:
    """A task of the suite.

    Parameters
    ----------
    name : str
    version : int
        Changes with everything that changes a number: figures of different versions are not compared.
    make : callable
        Makes the recipe.
    specialist : str
        Word of the policy that a paper made for such work.
    about : str
        What is special in it, in a few words.
    metric : str
        What counts (`gpuschedlab.metrics.METRICS`); lower is better.
    there : callable
        Whether what it needs is on this machine; where it is not, what it returns says how to get it.
    """

    name: str
    version: int
    make: Callable[[], Recipe]
    specialist: str
    about: str
    metric: str = "jct_mean"
    there: Callable[[], str] = lambda: ""
