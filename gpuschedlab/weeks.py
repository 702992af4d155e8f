"""Weeks like this one: two policies are played in weeks of other seeds, until the median week is known well enough."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.columns import counted
from gpuschedlab.metrics.like_weeks import FEWEST, FIGURES, MOST, Weeks
from gpuschedlab.metrics.queue_growth import Queue, queue_of
from gpuschedlab.metrics.who_pays import pair_of
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sim.run import Run

OTHERS = 10_000
"""Seed of the first of the other weeks."""


def seeds_of(seed: int, most: int = MOST) -> tuple[int, ...]:
    """Return the seeds of weeks like that of a seed: itself, and those from 10,000 on.

    Examples
    --------
    >>> seeds_of(0, 4), seeds_of(10_001, 3)
    ((0, 10000, 10001, 10002), (10001, 10000, 10002))
    """
    others = [other for other in range(OTHERS, OTHERS + most) if other != seed]
    return (seed, *others[: most - 1])


@dataclass
class Kept:
    """Figures of weeks that have been played, by policy and seed; a scenario is kept until the next seed is asked for.

    Parameters
    ----------
    recipe : Recipe
        Makes the week of a seed.
    """

    recipe: Recipe
    figures: dict = field(default_factory=dict)
    _seed: int | None = None
    _scenario: object = None

    def scenario(self, seed: int):
        """Return the scenario of a seed."""
        if seed != self._seed:
            self._scenario = self.recipe(seed)
            self._seed = seed
        return self._scenario

    def played(self, contender, seed: int) -> tuple[dict[str, float], Queue]:
        """Return the figures and the queue of a policy, or of a pair of a policy and its estimator, in the week of a seed."""
        (policy, estimator) = parted(contender)
        key = (policy, repr(estimator), seed)
        if key not in self.figures:
            scenario = self.scenario(seed)
            if estimator is not None:
                scenario = scenario.replace(estimator=estimator)
            self.figures[key] = figures_of(scenario.run(policy))
        return self.figures[key]

    def keep(self, contender, seed: int, run: Run):
        """Keep what a run says that is there already."""
        (policy, estimator) = parted(contender)
        self.figures.setdefault((policy, repr(estimator), seed), figures_of(run))


def parted(contender) -> tuple:
    """Return a policy and its own estimator, or None."""
    if isinstance(contender, tuple):
        return contender
    return contender, None


def figures_of(run: Run) -> tuple[dict[str, float], Queue]:
    """Return mean and 99th percentile of the times to finish (s) of the jobs that count, and the queue of a run."""
    jobs = run.columns("jobs")
    took = (jobs["end"] - jobs["submit"])[counted(jobs)]
    took = took[~np.isnan(took)]
    if not len(took):
        raise RunError("weeks: found no job that has ended; expected some. Play longer, or on more GPUs.")
    return {"jct": float(took.mean()), "p99": float(np.quantile(took, 0.99))}, queue_of(run)


def refine(kept: Kept, pair: dict, seed: int = 0, most: int = MOST, measure: str = "jct") -> Iterator[Weeks]:
    """Play two policies in weeks like that of a seed, one after another, and yield what all of them say after each.

    Parameters
    ----------
    kept : Kept
        What has been played is not played again.
    pair : dict of str to Policy or (Policy, Estimator)
        Two policies by name, now and before.
    seed : int
        Of the week that is shown.
    most : int
        Weeks at most; no more are played once there are six and the interval is within 15 %.
    measure : str
        "jct" or "p99".
    """
    figures: dict[str, list] = {name: [] for name in pair}
    queues = []
    seeds = seeds_of(seed, most)
    empty = not getattr(kept.recipe, "warm", True)
    for number, week in enumerate(seeds, 1):
        pair_queues = []
        for name, contender in pair.items():
            times, queue = kept.played(contender, week)
            figures[name].append(times[measure])
            pair_queues.append(queue)
        queues.append(tuple(pair_queues))
        means = [np.array(values) for values in figures.values()]
        weeks = Weeks(tuple(pair), seeds[:number], *means, tuple(queues), measure, kept.recipe.noun, empty)
        yield weeks
        if number >= FEWEST and weeks.enough:
            return


def weeks_like(recipe: Recipe, pair: dict, seed: int = 0, most: int = MOST, measure: str = "jct") -> Weeks:
    """Play two policies in weeks like that of a seed, and return what all of them say.

    Parameters
    ----------
    recipe : Recipe
        Makes the week of a seed.
    pair : dict of str to Policy or (Policy, Estimator)
        Two policies by name, now and before: how many times sooner jobs are done under the first.
    seed, most, measure
        As of `refine`.

    Returns
    -------
    Weeks
        Of six weeks or more, unless fewer are asked for.

    Raises
    ------
    RunError
        There are not two policies, not one week, or there is no such measure.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> day = lab.recipe_of("week:cluster=4x8,days=1,jobs=200")
    >>> found = weeks_like(day, {"srtf": lab.Srtf(), "easy": lab.Fifo(backfill="easy")}, most=3)
    >>> len(found.seeds), found.kind, found.ratios.shape
    (3, 'few', (3,))
    """
    if len(pair) != 2 or most < 1 or measure not in FIGURES:
        raise RunError(
            f"weeks: found {len(pair)} policies, {most} weeks and measure {measure!r}; expected two policies by name, 1 week or more, "
            f"and one of {', '.join(FIGURES)}."
        )
    *_, last = refine(Kept(recipe), pair, seed, most, measure)
    return last


def of_comparison(
    recipe: Recipe, contenders: dict, runs: dict[str, Run], seed: int, most: int, headline: str = ""
) -> Weeks | None:
    """Return what weeks like this one say of the two policies that a comparison's sentence names; None without two."""
    *_, last = refine_comparison(recipe, contenders, runs, seed, most, headline)
    return last


def refine_comparison(
    recipe: Recipe, contenders: dict, runs: dict[str, Run], seed: int, most: int, headline: str = ""
) -> Iterator[Weeks | None]:
    """Yield what weeks like this one say after each week that is played; None once if there are not two policies."""
    names = pair_of(runs, headline=headline)
    if len(names) < 2:
        yield None
        return
    kept = Kept(recipe)
    for name in names:
        kept.keep(contenders[name], seed, runs[name])
    yield from refine(kept, {name: contenders[name] for name in names}, seed, most)


__all__ = ["Weeks", "weeks_like"]
