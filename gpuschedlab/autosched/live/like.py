"""Races like one, of race_like seeds, played to their end: whether most races end like the one that is watched."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.autosched.live.race import DEFAULT, PAST, Race
from gpuschedlab.metrics.intervals import MedianInterval, median_interval
from gpuschedlab.metrics.like_weeks import FEWEST

FIRST = 10_000
"""Seed of the first race like one."""
SAME = 0.02
"""Gains up to here count as none."""
AGAINST = {DEFAULT: "the default", PAST: "the best constant of the past"}


@dataclass(frozen=True, eq=False)
class LikeRaces:
    """Gains of tuned lines over others, in races of several seeds.

    Parameters
    ----------
    goal : str
        Of `GOALS`.
    seeds : tuple of int
    gains : dict of str to (n,) array
        By line: how many times better the tuned line is when all jobs have ended.

    Examples
    --------
    >>> found = LikeRaces("average", tuple(range(6)), {"default": np.array([1.1, 1.05, 0.99, 1.08, 1.1, 1.07])})
    >>> print(found.sentence("default"))
    Tuned, the average job is done sooner than under the default in 5 of 6 such races: 1.08 times in the middle (95 %: 1.01 to 1.10).
    """

    goal: str
    seeds: tuple[int, ...]
    gains: dict[str, np.ndarray]

    def interval(self, name: str) -> MedianInterval:
        """Return the `MedianInterval` of the gains over a line, at 95 %; its ends are nan of fewer than six races."""
        return median_interval(self.gains[name])

    def sentence(self, name: str) -> str:
        """Say in a sentence in how many races the tuned line is better than another, and by how much; "" without races."""
        gains = self.gains[name]
        if not len(gains):
            return ""
        better = int((gains > 1).sum())
        interval = self.interval(name)
        sentence = f"Tuned, {GOALS[self.goal].better} than under {AGAINST.get(name, name)} in {better} of {len(gains)} such races"
        if np.isnan(interval.low):
            return f"{sentence}; from {FEWEST} on there is an interval."
        amount = f"{interval.median:.2f} times in the middle (95 %: {interval.low:.2f} to {interval.high:.2f})"
        if interval.low > 1 - SAME and interval.high < 1 + SAME:
            return f"{sentence}: {amount}. There is nothing in it."
        return f"{sentence}: {amount}."


def play_like(race: Race, count: int) -> Iterator[LikeRaces | None]:
    """Play races with the settings of one, from seed `FIRST` on, in pieces; yield None, and after each race `LikeRaces`."""
    seeds: list[int] = []
    race_gains: list[dict[str, float]] = []
    for seed in range(FIRST, FIRST + count):
        race_like = race.like(seed)
        yield None
        while not race_like.ended:
            for _ in race_like.hour():
                yield None
        race_gains.append(race_like.gains(np.inf))
        seeds.append(seed)
        yield LikeRaces(
            race.tuning.goal,
            tuple(seeds),
            {
                line_name: np.array([gains_of_race[line_name] for gains_of_race in race_gains])
                for line_name in race_gains[0]
            },
        )
