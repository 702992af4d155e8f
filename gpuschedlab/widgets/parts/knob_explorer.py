"""Explorers of one thing with knobs: its controls, and a button that resets them; and of the runs of a recipe."""

from dataclasses import fields
from functools import cache as once
from typing import ClassVar

from gpuschedlab import plots
from gpuschedlab.comparison import place_of
from gpuschedlab.knobs import knobs_of
from gpuschedlab.metrics.like_weeks import MOST
from gpuschedlab.metrics.who_pays import compared
from gpuschedlab.sim.policy import Policy
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.weeks import Kept, pieces
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.controls import KnobControls, button, quiet, row
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from gpuschedlab.widgets.parts.pair_explorer import PairExplorer, Side

PAIR = (plots.Place("change", 320, least=220), plots.Place("story", words=True), plots.Place("table", words=True))
"""Places of two runs that are compared: dots, the story of a job, and a table."""


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

    front: tuple[str, ...] = ()
    """Knobs of the first row, by default the first four; the others are seen with *more*."""
    kept: ClassVar[dict[str, tuple]] = {}
    """Values of knobs, of which a page without a kernel holds each combination; (): all that there are."""

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

    def _kept(self) -> dict:
        now = self._begin = self.knobs.thing
        infos = knobs_of(now)
        kept = {}
        for info in (infos[name] for name in self.kept if name in infos):
            values = {*(self.kept[info.name] or info.knob.choices), info.value_of(now)}
            kept[info.label] = (sorted(values), info.value_of(now))
        return kept

    def _put(self, values: dict):
        begin = self._begin
        wanted = {name: values.get(info.label, info.value_of(begin)) for name, info in knobs_of(begin).items()}
        with quiet(self):
            self.knobs.show(begin.with_knobs(**type(begin).project(wanted)))

    def _controls(self) -> list:
        return [self.knobs.box]

    def _rest(self) -> list:
        begin, (_, rest) = self.knobs.thing, self.knobs.split(self.front)
        reset = button(self, "Reset knobs", "as in the beginning", lambda: self.knobs.show(begin))
        return [row(rest, reset)]


class RunExplorer(PairExplorer, KnobExplorer):
    """Base of the explorers of a recipe: what its scenario becomes under its policies; `self.runs` are the runs by name.

    A subclass gives `places`, with the dots, the story and the table of two runs (`PAIR`) among them, and `_numbers`, `_two`, `_words`,
    which are given the recipe.

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
    measures: tuple[str, ...] = ("jct",)
    """What the head compares, first the system's own (`metrics.who_pays.compared`)."""

    def __init__(self, recipe: Recipe | None = None, seed: int = 0, cache: Cache | None = None, **knobs):
        self.seed, recipe = seed, recipe or self.begin()
        super().__init__(recipe.with_knobs(**{name: v for name, v in knobs.items() if v is not None}), cache)

    def _place(self) -> str:
        return place_of(self.knobs.thing)

    def _other_weeks(self):
        recipe = self.knobs.thing
        now, before = self.sides
        comparable = "jct" in self.measures and self.screen.whole.jobs
        if not recipe.drawn or not comparable or now.key == before.key:
            return None, False

        def play(most: int):
            kept = Kept(recipe)
            pair = {side.name: recipe.policies[side.name] for side in (now, before)}
            for side in (now, before):
                kept.keep(pair[side.name], self.seed, side.run)
            return pieces(kept, pair, self.seed, most, thorough=most > MOST)

        return play, False

    def _names(self, recipe) -> list[str]:
        """Names of the policies that are shown: all of the recipe's."""
        return list(recipe.policies)

    def _two(self, recipe) -> list[str]:
        """Names of the runs that are compared, now and before: the first two."""
        return [*self.runs, *self.runs][:2]

    def _matters(self, recipe, name: str) -> tuple:
        """What a run under a policy depends on, besides the policy and the seed: the scenario's fields of the recipe."""
        values = [(field.name, getattr(recipe, field.name)) for field in fields(recipe)]
        return tuple(v for field, v in values if field not in self.idle and not isinstance(v, Policy))

    def _compute(self):
        recipe = self.knobs.thing
        runs = {}
        keys = {}
        scenario = once(lambda: recipe(self.seed))
        policies = recipe.policies
        for name in self._names(recipe):
            keys[name] = (type(recipe), self._matters(recipe, name), self.seed, policies[name])
            runs[name] = self.cache.get(keys[name], lambda name=name: scenario().run(policies[name])).value
        self.runs = runs
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())

        def side(name):
            return Side(name, name, keys[name], runs[name], lambda job: scenario().run(policies[name], log=job))

        self._screen(tuple(map(side, self._two(recipe))))
        return recipe

    def _numbers(self, recipe) -> dict:
        return self._pair()

    def _record(self) -> dict:
        found = super()._record()
        found["table"]["own"] = [(d.measure, d.now, d.before) for d in self._said(self.knobs.thing)]
        return found

    def _said(self, recipe) -> tuple:
        runs, names = ([side[k] for side in self.sides] for k in (3, 0))
        d = self.screen.difference
        options = {"among": self.screen.among, "of": d.of, "prices": getattr(recipe, "price", 1.0)}
        options |= {"place": self._place()}
        return tuple(d if m == "jct" else compared(*runs, names, measure=m, **options) for m in self.measures)
