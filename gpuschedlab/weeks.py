"""Weeks like this one: two policies are played in weeks of other seeds, until the median week is known well enough."""

import math
from collections.abc import Callable, Iterator

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
    """Return a tuple of the seeds of weeks like that of a seed: itself, and those from 10,000 on.

    Examples
    --------
    >>> seeds_of(0, 4), seeds_of(10_001, 3)
    ((0, 10000, 10001, 10002), (10001, 10000, 10002))
    """
    other_seeds = [other_seed for other_seed in range(OTHERS, OTHERS + most) if other_seed != seed]
    return (seed, *other_seeds[: most - 1])


PIECES = 14
"""Pieces of a simulation at least: half a day each of a week."""
PIECE = 700
"""Jobs that come within a piece at most, on average: they take about a hundredth of a second."""


class Kept:
    """Figures of weeks that have been played, by policy and seed, and the scenarios of the last seeds.

    Parameters
    ----------
    recipe : Recipe
        Makes the week of a seed.
    scenarios : int
        How many scenarios are kept; one of 10,000 jobs takes 6 MB.
    """

    def __init__(self, recipe: Recipe | None = None, scenarios: int = 1):
        self.recipe = recipe
        self.scenarios = scenarios
        self.figures: dict = {}
        self._scenarios: dict = {}

    @property
    def noun(self) -> str:
        """Noun of the plays, a text ("weeks")."""
        return self.recipe.noun

    @property
    def empty(self) -> bool:
        """Whether each begins with an empty cluster."""
        return not getattr(self.recipe, "warm", True)

    def source(self, contender, seed: int) -> tuple:
        """Return a tuple: the key of the scenario of a contender and seed, and the function of a seed that makes it in pieces."""
        return (seed,), _at_once(self.recipe)

    def policy(self, contender) -> tuple:
        """Return a tuple: the policy of a contender, and its own estimator or None."""
        return parted(contender)

    def play(self, contender, seed: int) -> Iterator[None]:
        """Yield None at each pause while the week of a seed is played, and return its figures and the queue at the end."""
        policy, estimator = self.policy(contender)
        scenario_key, make = self.source(contender, seed)
        figures_key = (policy, repr(estimator), *scenario_key)
        if figures_key not in self.figures:
            if scenario_key not in self._scenarios:
                self._scenarios[scenario_key] = yield from make(seed)
            while len(self._scenarios) > self.scenarios:
                del self._scenarios[next(iter(self._scenarios))]
            scenario = self._scenarios[scenario_key]
            if estimator is not None:
                scenario = scenario.replace(estimator=estimator)
            run = yield from run_in_pieces(scenario, policy)
            self.figures[figures_key] = figures_of(run)
        return self.figures[figures_key]

    def keep(self, contender, seed: int, run: Run):
        """Keep the figures of a run that is there already."""
        policy, estimator = self.policy(contender)
        scenario_key, _ = self.source(contender, seed)
        figures_key = (policy, repr(estimator), *scenario_key)
        if figures_key not in self.figures:
            self.figures[figures_key] = figures_of(run)


def _at_once(recipe: Callable) -> Callable:
    """Return a function of a seed that makes a scenario in one piece, as an iterator."""

    def make(seed: int) -> Iterator[None]:
        scenario = recipe(seed)
        yield
        return scenario

    return make


def run_in_pieces(scenario, policy) -> Iterator[None]:
    """Yield None at each pause while jobs come, and return the `Run` of a policy at the end, as `scenario.run` does."""
    simulation = scenario.simulation(policy)
    yield
    last_submission = float(scenario.trace["submit"].max())
    end_of_run = last_submission if scenario.until is None else min(last_submission, scenario.until)
    piece_count = max(PIECES, math.ceil(scenario.trace.height / PIECE))
    for piece_number in range(1, piece_count):
        simulation.advance(end_of_run * piece_number / piece_count)
        yield
    run = simulation.run(scenario.until, last=True)
    yield
    return run


def parted(contender) -> tuple:
    """Return a policy and its own estimator, or None, as a tuple."""
    if isinstance(contender, tuple):
        return contender
    return contender, None


def figures_of(run: Run) -> tuple[dict[str, float], Queue]:
    """Return a tuple: a dict of mean and 99th percentile of times to finish (s) of jobs that count, and the `Queue` of a run."""
    jobs = run.columns("jobs")
    took = (jobs["end"] - jobs["submit"])[counted(jobs)]
    took = took[~np.isnan(took)]
    if not len(took):
        raise RunError("weeks: found no job that has ended; expected some. Play longer, or on more GPUs.")
    return {"jct": float(took.mean()), "p99": float(np.quantile(took, 0.99))}, queue_of(run)


def refine(kept: Kept, pair: dict, seed: int = 0, most: int = MOST, measure: str = "jct") -> Iterator[Weeks]:
    """Play two policies in weeks like that of a seed, one after another, and yield the `Weeks` so far after each.

    Parameters
    ----------
    kept : Kept
        Weeks that have been played are not played again.
    pair : dict of str to Policy or (Policy, Estimator)
        Two policies by name, now and before.
    seed : int
        Of the week that is shown.
    most : int
        Weeks at most; no more are played once there are six and the interval is within 15 %.
    measure : str
        "jct" or "p99".
    """
    return (weeks for weeks in pieces(kept, pair, seed, most, measure) if weeks is not None)


def pieces(
    kept: Kept, pair: dict, seed: int = 0, most: int = MOST, measure: str = "jct", thorough: bool = False
) -> Iterator[Weeks | None]:
    """Play as `refine` does, and yield after each hundredth of a second or so: None, or the `Weeks` so far.

    Of each week the second policy, with which others are compared, is played first. With `thorough` all weeks are played.
    """
    figures: dict[str, list] = {policy_name: [] for policy_name in pair}
    queues = []
    seeds = seeds_of(seed, most)
    policy_names = tuple(pair)
    for week_number, week in enumerate(seeds, 1):
        pair_queues = {}
        for policy_name in reversed(policy_names):
            times_to_finish, pair_queues[policy_name] = yield from kept.play(pair[policy_name], week)
            figures[policy_name].append(times_to_finish[measure])
        queues.append(tuple(pair_queues[policy_name] for policy_name in policy_names))
        means = [np.array(figures[policy_name]) for policy_name in policy_names]
        weeks = Weeks(policy_names, seeds[:week_number], *means, tuple(queues), measure, kept.noun, kept.empty)
        yield weeks
        if week_number >= FEWEST and weeks.enough and not thorough:
            return


def weeks_like(recipe: Recipe, pair: dict, seed: int = 0, most: int = MOST, measure: str = "jct") -> Weeks:
    """Play two policies in weeks like that of a seed, and return the result of all of them, `Weeks`.

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
    *_, all_weeks = refine(Kept(recipe), pair, seed, most, measure)
    return all_weeks


def of_comparison(
    recipe: Recipe, contenders: dict, runs: dict[str, Run], seed: int, most: int, headline: str = ""
) -> Weeks | None:
    """Return the `Weeks` like this one of the two policies that a comparison's sentence names; None without two."""
    *_, all_weeks = refine_comparison(recipe, contenders, runs, seed, most, headline)
    return all_weeks


def refine_comparison(
    recipe: Recipe, contenders: dict, runs: dict[str, Run], seed: int, most: int, headline: str = ""
) -> Iterator[Weeks | None]:
    """Yield the `Weeks` like this one after each week that is played; None once if there are not two policies."""
    compared_names = pair_of(runs, headline=headline)
    if len(compared_names) < 2:
        yield None
        return
    kept_weeks = Kept(recipe)
    for policy_name in compared_names:
        kept_weeks.keep(contenders[policy_name], seed, runs[policy_name])
    yield from refine(kept_weeks, {policy_name: contenders[policy_name] for policy_name in compared_names}, seed, most)


__all__ = ["Weeks", "weeks_like"]
