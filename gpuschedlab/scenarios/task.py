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
        Its peculiarity, in a few words.
    metric : str
        Metric that counts (`gpuschedlab.metrics.METRICS`); lower is better.
    there : callable
        Whether its data is on this machine; if not, the answer says how to get it.
    """

    name: str
    version: int
    make: Callable[[], Recipe]
    specialist: str
    about: str
    metric: str = "jct_mean"
    there: Callable[[], str] = lambda: ""
