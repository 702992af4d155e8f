"""The ManualTuningExplorer: knobs of a recorded scheduler under one's own hand, and what its model predicts of them."""

from html import escape
from itertools import pairwise

import numpy as np

from gpuschedlab import plots
from gpuschedlab._extras import need
from gpuschedlab.autosched import Space
from gpuschedlab.autosched.controller import HOUR
from gpuschedlab.autosched.figures.knob_lanes import mark_at, short
from gpuschedlab.autosched.figures.response_curves import flat_note
from gpuschedlab.autosched.recording.by_hand import NAME, compare, play, scenario_of, sentence, switches_of, table
from gpuschedlab.autosched.recording.hour import POINTS
from gpuschedlab.autosched.recording.what_if import EDITS, changed_sides, context_at, curves_of, graph_at, model_at
from gpuschedlab.knobs import knobs_of
from gpuschedlab.widgets.parts.controls import button, control, marked, row
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from gpuschedlab.widgets.parts.knob_controls import KnobControls, quiet

FORCE, SLIDERS = "the knobs in force", "my sliders"
"""What the other knobs are while one moves along its curve."""


class ManualTuningExplorer(BaseExplorer):
    """Tune a recorded scheduler by hand, beside AutoSched and the others; and see what the causal model predicts of each knob.

    Choose an hour, move the knobs, and *use* them: the line "me" is simulated with all switches so far. The table compares the
    jobs that ended under all lines. Response curves are those that were recorded, around the knobs in force; or, of a model
    learnt anew from the recorded samples, around the sliders, and along a graph with edges forbidden or forced.

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

    places = (plots.Place("race", 240), plots.Place("lanes", 240), plots.Place("curves", 300, wide=True))

    def __init__(self, recording):
        super().__init__()
        self.recording, self.scenario = recording, scenario_of(recording)
        self.plan, self.edits, self._earlier = (), {}, []
        policy = self.scenario.fitted(recording.policy)
        self.space = Space(policy)
        infos = knobs_of(policy)
        self._lanes = Space(policy, [name for name, info in infos.items() if not info.optional])
        self.knobs = KnobControls(policy, self._changed)
        self._make_controls()
        self._open()

    def _make_controls(self):
        w, hours, names = need("ipywidgets"), self.recording.hours, graph_at(self.recording, self.space, 0).layers.names
        first, last = (round(hours[place].now / HOUR) for place in (0, -1))
        self.hour = control("IntSlider", "hour", 180, 34, min=first, max=last, value=first)
        self.use = button(self, "Use this now", "switch the line me to these knobs at this hour", self._use)
        follow = "give the line me the switches that AutoSched made up to this hour"
        self.follow = button(self, "As AutoSched", follow, self._follow)
        self.undo = button(self, "Undo", "take the last change of the line me back", self._undo)
        self.reset = button(self, "Reset", "no switch, and the sliders at their defaults", self._reset)
        self.around = control("Dropdown", "curves around", 250, 96, options=[FORCE, SLIDERS])
        self.cause = control("Dropdown", "edge from", 190, 68, options=names[:-1])
        self.effect = control("Dropdown", "to", 140, 20, options=names[::-1])
        self.edit = control("Dropdown", "is", 100, 18, options=EDITS)
        self.table, self.answer = w.HTML(), w.HTML()
        self.answer.add_class("gpuschedlab-answer")
        for part in (self.hour, self.around):
            part.observe(self._changed, "value")
        for part in (self.cause, self.effect):
            part.observe(lambda _: self._show_edge(), "value")
        self.edit.observe(lambda _: self._edge_changed(), "value")
        buttons = row(self.hour, self.use, self.follow, self.undo, self.reset)
        used = [part for part in self.knobs.sliders if part.layout.display != "none"]  # no default where none is in use
        self._left = w.VBox([buttons, self.knobs.box, marked(used)])
        self._left.add_class("gpuschedlab-left")
        self._pickers = row(self.around, self.cause, self.effect, self.edit, self.answer)
        self._pickers.add_class("gpuschedlab-pickers")

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
        return played, *compare(self.recording, played)

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
        recording, hour = self.recording, self.recording.hours[self.place]
        mine, own = self.space.encode(self.knobs.thing), self.around.value == SLIDERS
        lines = {"default": self.space.encode(self.space.policy), "in force": hour.after}
        trials = [(trial.u, trial.reward) for trial in hour.trials if trial.fate == "measured"]
        graph, curves, sentence = graph_at(recording, self.space, self.place), hour.curves, ""
        if own or self.edits:
            model = self._model(self.edits)
            context, at = context_at(recording, self.space, self.place), mine if own else hour.after
            graph, curves = model.graph, curves_of(model, at, context, POINTS)
            mean, low, high = (float(np.exp(each[0])) for each in model.predict([[*at, *context]]))
            sentence = f"<b>{mean:.2f}</b> times the default's reward with {self.around.value} (8 of 10: {low:.2f} to {high:.2f})"
        if own:
            lines["sliders"] = mine
        if self.edits:
            changed, every = changed_sides(self._model({}), model)
            spelt = ", ".join(f"{edit} {cause} &rarr; {effect}" for (cause, effect), edit in self.edits.items())
            sentence += f"; {spelt}: {changed:,} of {every:,} measured configurations are predicted on the other side of the default"
        self.answer.value = sentence
        base = mine if own else hour.after
        notes = {a.name: flat_note(a, graph, curves[a.name][0], u) for a, u in zip(self.space.axes, base, strict=True)}
        title = f"Reward predicted at {hour.now / HOUR:.0f} h, times the default's<br>around {self.around.value}"
        return plots.response_curves(title, self.space, curves, trials, lines, notes)

    def _model(self, edits: dict):
        """Model of the hour shown, kept."""
        place, key = self.place, ("model", self.place, *sorted(edits.items()))
        return self.cache.get(key, lambda: model_at(self.recording, self.space, place, edits)).value

    def _show(self, answer):
        super()._show(answer)
        _, rows, _ = answer
        self.table.value = table(rows)
        self._enable()

    def _enable(self):
        self.undo.disabled = not self._earlier

    def _words(self, answer) -> str:
        _, _, found = answer
        policies = [self.space.policy, *(policy for _, policy in self.plan)]
        uses = "; ".join(
            f"{self.hour.min + place} h: {changes(before, after)}"
            for (place, _), (before, after) in zip(self.plan, pairwise(policies), strict=True)
        )
        note = f"; {escape(self.knobs.note)}" if self.knobs.note else ""
        return f"<b>{sentence(found)}</b>. Switches of {NAME}: {uses or 'none'}{note}"

    # The graph ---------------------------------------------------------------------------------------------

    def _show_edge(self):
        """Let the third choice say what holds of the edge that is chosen."""
        with quiet(self):
            self.edit.value = self.edits.get((self.cause.value, self.effect.value), "free")

    def _edge_changed(self):
        """Forbid, force or free the edge that is chosen; one that cannot be is left as it was, and the box says why."""
        if not self._quiet:
            self.guarded(self._edit_edge)

    def _edit_edge(self):
        edge, before = (self.cause.value, self.effect.value), self.edits
        self.edits = {e: edit for e, edit in before.items() if e != edge}
        if self.edit.value != "free":
            self.edits[edge] = self.edit.value
        try:
            self._draw({"curves": self._curves()})
        except BaseException:
            self.edits = before
            self._show_edge()
            raise

    # Layout ------------------------------------------------------------------------------------------------

    def _sliders(self) -> list:
        return self.knobs.sliders

    def _note(self) -> str:
        return f"{super()._note()}{self.table.value}"

    def _controls(self) -> list:
        return [self._left, self.table, self._pickers]


def changes(before, after) -> str:
    """What a switch changes, in words."""
    changed = [(name, value) for name, value in after.knobs.items() if value != before.knobs[name]]
    return escape(", ".join(f"{name} {short(value)}" for name, value in changed)) or "nothing new"
