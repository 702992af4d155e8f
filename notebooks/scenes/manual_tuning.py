"""The ManualTuningExplorer: knobs of a recorded scheduler under one's own hand, and what its model predicts of them."""

import math
from html import escape
from itertools import pairwise

from gpuschedlab import plots
from gpuschedlab._extras import need
from gpuschedlab.autosched import Space
from gpuschedlab.autosched.controller import HOUR
from gpuschedlab.autosched.figures.knob_lanes import mark_at, short
from gpuschedlab.autosched.recording.player import difference
from gpuschedlab.knobs import knobs_of
from gpuschedlab.widgets.parts.controls import KnobControls, button, control, quiet, row
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from scenes.by_hand import NAME, compare, play, scenario_of, switches_of, table
from scenes.response_curves import flat_note, response_curves


class ManualTuningExplorer(BaseExplorer):
    """Tune a recorded scheduler by hand, beside AutoSched and the others; and see what the causal model predicts of each knob.

    Choose an hour, move the knobs, and *use* them: the line "me" is simulated with all switches so far. The table compares the
    jobs that ended under all lines. Response curves are those that the model predicted in that hour, around the knobs in force.

    Parameters
    ----------
    recording : Recording
        A contest that was played.

    Attributes
    ----------
    plan : tuple of (int, Policy)
        Hours (places in `recording.hours`) from which the line "me" has other knobs.
    knobs : KnobControls
        The sliders.

    Raises
    ------
    LabError
        The recorded scenario cannot be made again.

    Examples
    --------
    See notebooks/09_autosched.ipynb.
    """

    places = (
        *(plots.Place(name, 300, least=200) for name in ("race", "lanes")),
        plots.Place("curves", 420, wide=True, more=True),
    )

    def __init__(self, recording):
        super().__init__()
        self.recording, self.scenario = recording, scenario_of(recording)
        self.plan, self._earlier = (), []
        policy = self.scenario.fitted(recording.policy)
        self.space = Space(policy)
        infos = knobs_of(policy)
        self._lanes = Space(policy, [name for name, info in infos.items() if not info.optional])
        self.knobs = KnobControls(policy, self._changed)
        self._make_controls()
        self._open()

    def _make_controls(self):
        w, hours = need("ipywidgets"), self.recording.hours
        first, last = (round(hours[place].now / HOUR) for place in (0, -1))
        self.hour = control("IntSlider", "hour", 180, 34, min=first, max=last, value=first)
        self.use = button(self, "Use this now", "switch the line me to these knobs at this hour", self._use)
        follow = "give the line me the switches that AutoSched made up to this hour"
        self.follow = button(self, "As AutoSched", follow, self._follow)
        self.undo = button(self, "Undo", "take the last change of the line me back", self._undo)
        self.reset = button(self, "Reset", "no switch, and the sliders at their defaults", self._reset)
        self.hour.observe(self._changed, "value")
        buttons = row(self.hour, self.use, self.follow, self.undo, self.reset)
        used = [part for part in self.knobs.sliders if part.layout.display != "none"]  # no default where none is in use
        first = [name for name in ("metric", "queues", "pack_limit") if name in self.knobs.controls]
        self._left = w.VBox([buttons, *self.knobs.split(tuple(first)), marked(used)])

    # My line -----------------------------------------------------------------------------------------------

    @property
    def place(self) -> int:
        """Place of the hour that is shown, in `recording.hours`."""
        return self.hour.value - self.hour.min

    def _use(self):
        kept = [(place, policy) for place, policy in self.plan if place != self.place]
        self._go_on(sorted([*kept, (self.place, self.knobs.thing)], key=lambda switch: switch[0]))

    def _follow(self):
        made = switches_of(self.recording)
        self._go_on((place, policy) for place, policy in made if place <= self.place)

    def _go_on(self, plan):
        """Take another plan, if it can be simulated; the one before can be had back."""
        before, self.plan = self.plan, tuple(plan)
        try:
            self._show(self._compute())
        except BaseException:  # Ctrl-C among them
            self.plan = before
            raise
        self._earlier.append(before)
        self._enable()

    def _undo(self):
        self.plan = self._earlier.pop()
        self._show(self._compute())

    def _reset(self):
        with quiet(self):
            self.knobs.show(self.space.policy)
        self._go_on(())

    # Showing -----------------------------------------------------------------------------------------------

    def _compute(self):
        plan = self.plan
        return self.cache.get(plan, lambda: self._played(plan)).value

    def _played(self, plan):
        played = play(self.recording, plan, self.scenario)
        jct = (played.jct, self.recording.jobs["autosched"].to_numpy())
        return played, compare(self.recording, played), difference(self.scenario.trace, *jct, (NAME, "AutoSched"))

    def _numbers(self, answer) -> dict:
        played, _, _ = answer
        recording, now = self.recording, self.recording.hours[self.place].now
        time = recording.averages["time"]
        race = plots.race(
            time, {name: recording.averages[name] for name in recording.lines} | {NAME: played.average}
        ).draw()
        lines = {"default": (), "autosched": switches_of(recording), NAME: self.plan}
        lines = {name: self._from_start(switches) for name, switches in lines.items()}
        return {
            "race": race._replace(live=race.live | {"shapes": [mark_at(now)]}),
            "lanes": plots.knob_lanes(self._lanes, lines, now, time[-1], (*recording.lines, NAME)),
            "curves": self._curves(),
        }

    def _from_start(self, switches) -> list:
        """Instants (s) and policies, from the default at 0 on."""
        return [(0.0, self.space.policy), *((self.recording.hours[place].now, policy) for place, policy in switches)]

    def _curves(self):
        hour = self.recording.hours[self.place]
        lines = {"default": self.space.encode(self.space.policy), "in force": hour.after}
        lines["sliders"] = self.space.encode(self.knobs.thing)
        trials = [(trial.u, trial.reward) for trial in hour.trials if trial.fate == "measured"]
        graph, axes = self.recording.graph_at(self.place), zip(self.space.axes, hour.after, strict=True)
        notes = {a.name: flat_note(a, graph, hour.curves[a.name][0], u) for a, u in axes}
        title = f"Reward predicted at {hour.now / HOUR:.0f} h, times the default's<br>around the knobs in force"
        return response_curves(title, self.space, hour.curves, trials, lines, notes)

    def _show(self, answer):
        super()._show(answer)
        self._enable()

    def _enable(self):
        self.undo.disabled = not self._earlier

    def _below(self, answer) -> str:
        return table(answer[1])

    def _said(self, answer) -> tuple:
        return (answer[2],)

    def _words(self, answer) -> str:
        policies = [self.space.policy, *(policy for _, policy in self.plan)]
        uses = "; ".join(
            f"{self.hour.min + place} h: {changes(before, after)}"
            for (place, _), (before, after) in zip(self.plan, pairwise(policies), strict=True)
        )
        note = f"; {escape(self.knobs.note)}" if self.knobs.note else ""
        return f"Switches of {NAME}: {uses or 'none'}{note}."

    # Layout ------------------------------------------------------------------------------------------------

    def _sliders(self) -> list:
        return self.knobs.sliders

    def _kept(self) -> dict:
        hours = [self.hour.min, *(self.hour.min + place for place in self.recording.switches)]
        return (
            {"switches of AutoSched that are mine, too": ([*range(len(hours))], len(self.plan))}
            if len(hours) > 1
            else {}
        )

    def _put(self, values: dict):
        self.plan = tuple(switches_of(self.recording)[: next(iter(values.values()))])
        with quiet(self):
            self.hour.value = self.hour.min + (self.plan[-1][0] if self.plan else 0)

    def _controls(self) -> list:
        return [self._left]


def changes(before, after) -> str:
    """What a switch changes, in words."""
    changed = [(name, value) for name, value in after.knobs.items() if value != before.knobs[name]]
    return escape(", ".join(f"{name} {short(value)}" for name, value in changed)) or "nothing new"


def marked(sliders) -> object:
    """Mark the present value of each slider by a small stroke across it; returns the widget that holds the style."""
    # ipywidgets gives a slider no place for a mark, but takes classes: one for each hundredth of a range.
    rules = {}
    for slider in sliders:
        value = math.log10(slider.value) if hasattr(slider, "base") else slider.value
        share = round(100 * (value - slider.min) / max(slider.max - slider.min, 1e-9))
        slider.add_class(f"gpuschedlab-mark-{share}")
        rules[share] = f".gpuschedlab-mark-{share} .noUi-base::after {{ left: {share}% }}"
    w = need("ipywidgets")
    return w.HTML(f"<style>{' '.join(rules.values())}</style>", layout=w.Layout(display="none"))
