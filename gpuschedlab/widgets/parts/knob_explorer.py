"""Explorers of one thing with knobs: its controls, and a button that resets them; and of the runs of a recipe."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache as once
from typing import ClassVar

from gpuschedlab import plots
from gpuschedlab.comparison import place_of
from gpuschedlab.knobs import knobs_of
from gpuschedlab.metrics.like_weeks import MOST
from gpuschedlab.metrics.who_pays import Scope, compared
from gpuschedlab.sim.policy import Policy
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.weeks import Kept, pieces
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.controls import KnobControls, button, quiet, row
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from gpuschedlab.widgets.parts.explorer_state import Controls, Page
from gpuschedlab.widgets.parts.pair_explorer import PairExplorer, Pairing, Side

PAIR = (plots.Place("change", 320, least=220), plots.Place("story", words=True), plots.Place("table", words=True))
"""Places of two runs that are compared: dots, the story of a job, and a table."""


class KnobExplorer(BaseExplorer):
    """Base: a subclass gives `places`, `_compute`, which is given the knobs' values, and `_page`.

    Parameters
    ----------
    thing : Knobbed, optional
        Where the knobs begin; without it the result of `begin()`, if a subclass has that.
    cache : Cache, optional
        Cache of results.

    Examples
    --------
    >>> from gpuschedlab import Tiresias, plots
    >>> class Queues(KnobExplorer):
    ...     places = (plots.Place("queues", height=250),)
    ...     def _compute(self, policy):
    ...         return [float(i) for i in range(policy.queues)]
    ...     def _page(self, x):
    ...         return Page({"queues": plots.Lines("Queues", "number", "weight", x, {"all": x})})
    >>> explorer = Queues(Tiresias())
    >>> explorer.knobs["queues"].value = 3  # as a hand would move the slider
    >>> len(explorer.board.drawings["queues"].data[0]["x"])
    3
    """

    remembers = True
    front: tuple[str, ...] = ()
    """Knobs of the first row, by default the first four; the others are seen with *more*."""
    kept: ClassVar[dict[str, tuple]] = {}
    """Values of knobs, of which a page without a kernel holds each combination; (): all that there are."""

    def __init__(self, thing=None, cache: Cache | None = None):
        super().__init__(cache)
        self.knobs = KnobControls(self.begin() if thing is None else thing, self._changed)
        self._open()

    def _controls(self) -> Controls:
        begin_thing = self.knobs.thing
        _, folded_knobs = self.knobs.split(self.front)
        reset = button(self, "Reset knobs", "as in the beginning", lambda: self.knobs.show(begin_thing))
        return Controls(
            state=lambda: self.knobs.thing,
            row=[self.knobs.box],
            more=[row(folded_knobs, reset)],
            sliders=lambda: self.knobs.sliders,
            kept=self._kept_values,
            put=self._put_values,
        )

    def _kept_values(self) -> dict:
        """Dict of the values of the knobs in `kept`, and the present one, by their labels."""
        self._begin = self.knobs.thing
        infos = knobs_of(self._begin)
        kept_values = {}
        for info in (infos[knob_name] for knob_name in self.kept if knob_name in infos):
            present = info.value_of(self._begin)
            kept_choices = self.kept[info.name] or info.knob.choices
            kept_values[info.label] = (sorted({*kept_choices, present}), present)
        return kept_values

    def _put_values(self, kept_values: dict):
        """Move the knobs to some of these values."""
        begin_thing = self._begin
        wanted_knobs = {
            knob_name: kept_values.get(info.label, info.value_of(begin_thing))
            for knob_name, info in knobs_of(begin_thing).items()
        }
        with quiet(self):
            self.knobs.show(begin_thing.with_knobs(**type(begin_thing).project(wanted_knobs)))


@dataclass
class Lineup:
    """Policies of a recipe in an explorer.

    Parameters
    ----------
    names : list of str
        Names of those that are played.
    pair : callable
        Of the runs by name, return the names of the two that are compared, now and before.
    matters : callable
        Of a name, return the inputs of its run, besides the policy and the seed.
    """

    names: list[str]
    pair: Callable[[dict], list[str]]
    matters: Callable[[str], tuple]


class RunExplorer(PairExplorer, KnobExplorer):
    """Base of the explorers of a recipe: the outcome of its scenario under its policies; `self.runs` are the runs by name.

    A subclass gives `places`, with the dots, the story and the table of two runs (`PAIR`) among them, and adds to `_page` and
    `_lineup`, which are given the recipe.

    Parameters
    ----------
    recipe : Recipe, optional
        Where the knobs begin, by default at `begin()`.
    seed : int
        Seed of the scenario, and of whatever else is drawn.
    cache : Cache, optional
        Cache of runs.
    **knobs
        Knobs of the recipe that begin elsewhere; None: as it says.
    """

    idle: tuple[str, ...] = ()
    """Fields of the recipe that change what is shown, and no run."""
    measures: tuple[str, ...] = ("jct",)
    """What the head compares, first the system's own (`metrics.who_pays.compared`)."""

    def __init__(self, recipe: Recipe | None = None, seed: int = 0, cache: Cache | None = None, **knobs):
        self.seed, recipe = seed, recipe or self.begin()
        knobs = {knob_name: value for knob_name, value in knobs.items() if value is not None}
        super().__init__(recipe.with_knobs(**knobs), cache)

    remembers = False  # runs are, one by one

    def _weeks_of_recipe(self):
        """Return a tuple: a function that plays both sides in other weeks, or None, and whether it needs no click."""
        recipe = self.knobs.thing
        present_side, pinned_side = self.sides
        comparable = "jct" in self.measures and self.screen.whole.jobs
        if not recipe.drawn or not comparable or present_side.key == pinned_side.key:
            return None, False

        def play(most_weeks: int):
            kept_weeks = Kept(recipe)
            policy_pair = {side.name: recipe.policies[side.name] for side in (present_side, pinned_side)}
            for side in (present_side, pinned_side):
                kept_weeks.keep(policy_pair[side.name], self.seed, side.run)
            return pieces(kept_weeks, policy_pair, self.seed, most_weeks, thorough=most_weeks > MOST)

        return play, False

    def _lineup(self, recipe) -> Lineup:
        """Return the `Lineup`: policies that are played, which of them are compared, and the inputs of their runs."""

        def matters(policy_name: str) -> tuple:
            return self.matter_of(recipe)

        return Lineup(list(recipe.policies), lambda runs: [*runs, *runs][:2], matters)

    def matter_of(self, recipe) -> tuple:
        """Return a tuple of the values of a recipe that a run depends on, besides its policy and the seed."""
        recipe_fields = [(field.name, getattr(recipe, field.name)) for field in fields(recipe)]
        return tuple(
            field_value
            for field, field_value in recipe_fields
            if field not in self.idle and not isinstance(field_value, Policy)
        )

    def _compute(self, recipe):
        lineup = self._lineup(recipe)
        runs = {}
        cache_keys = {}
        scenario = once(lambda: recipe(self.seed))
        policies = recipe.policies
        for policy_name in lineup.names:
            cache_keys[policy_name] = (type(recipe), lineup.matters(policy_name), self.seed, policies[policy_name])
            runs[policy_name] = self.cache.get(
                cache_keys[policy_name], lambda policy_name=policy_name: scenario().run(policies[policy_name])
            ).value
        self.runs = runs
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())

        def side(policy_name):
            return Side(
                policy_name,
                policy_name,
                cache_keys[policy_name],
                runs[policy_name],
                lambda job: scenario().run(policies[policy_name], log=job),
            )

        screen_sides = tuple(map(side, lineup.pair(runs)))
        self._compare(Pairing(screen_sides, place_of(recipe), self._weeks_of_recipe, self._own_measures))
        return recipe

    def _page(self, recipe) -> Page:
        return Page(self._pair(), self._comparisons(), note=self._pair_note, after=self._begin_weeks)

    def _own_measures(self, record: dict) -> dict:
        """Add the measures of the head to the table of a record, and return the record, a dict."""
        record["table"]["own"] = [
            (comparison.measure, comparison.now, comparison.before) for comparison in self._comparisons()
        ]
        return record

    def _comparisons(self) -> tuple:
        """Return a tuple of both runs compared by each of `measures`, a `Difference` each."""
        recipe = self.knobs.thing
        runs = [side.run for side in self.sides]
        side_names = [side.name for side in self.sides]
        difference = self.screen.difference
        price = getattr(recipe, "price", None)
        if price is None:
            price = 1.0
        scope = Scope(self.screen.among, difference.of, self._place())
        differences = []
        for measure in self.measures:
            if measure == "jct":
                differences.append(difference)
            else:
                differences.append(compared(*runs, side_names, scope, measure=measure, prices=price))
        return tuple(differences)
