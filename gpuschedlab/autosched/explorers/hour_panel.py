"""Events of an hour of the TunerLab: the hour that the reader points at, the seven stages, and the words of one."""

from html import escape

from gpuschedlab import plots
from gpuschedlab._extras import need
from gpuschedlab.autosched.hours.race_hours import RaceHours
from gpuschedlab.autosched.hours.stages import STAGES
from gpuschedlab.autosched.live.choice import Choice
from gpuschedlab.autosched.live.line import HOUR
from gpuschedlab.autosched.live.race import Race
from gpuschedlab.plots.kinds.style import HIDDEN
from gpuschedlab.widgets.parts.controls import control, quiet, row

PLACES = (
    plots.Place("stage", 330, wide=True, least=330),
    plots.Place("stage_left", 300, least=300),
    plots.Place("stage_right", 300, least=300),
)
"""A stage has one figure as wide as the grid, or two beside each other."""
CLOSED = "none"


class HourPanel:
    """A slider of decided hours, a button a stage, and the stage's sentence.

    Parameters
    ----------
    owner : TunerLab
        Its `_hour_moved` is called when a control moves.
    race : Race

    Attributes
    ----------
    place : int or None
        Number of the decision that is shown; None: none is.
    hours : RaceHours
    hour, stage : ipywidgets widgets
    box : ipywidgets.Box
    """

    def __init__(self, owner, race: Race):
        widgets = need("ipywidgets")
        self._owner = owner
        self.hour = control(
            "SelectionSlider", "what happened at", 330, 110, options=[CLOSED], tooltip="hour of a decision; or click a dot of a figure"
        )  # fmt: skip
        stage_names = [f"{stage_number} {stage.name}" for stage_number, stage in enumerate(STAGES, 1)]
        self.stage = widgets.ToggleButtons(options=stage_names, tooltips=[stage.asks for stage in STAGES])
        self.stage.add_class("gpuschedlab-policy")
        self.words = widgets.HTML().add_class("gpuschedlab-said")
        bar = row(self.hour, self.stage).add_class("gpuschedlab-strip")
        self.box = widgets.VBox([bar, self.words]).add_class("gpuschedlab-hour")
        self.begin(race)
        self.hour.observe(owner._hour_moved, "value")
        self.stage.observe(owner._hour_moved, "value")

    @property
    def place(self) -> int | None:
        """Number of the decision that is shown; None: none is."""
        if not self.hour.index:
            return None
        return self.hour.index - 1

    def begin(self, race: Race):
        """Begin with another race: no hour is shown."""
        self.hours = RaceHours(race)
        with quiet(self._owner):
            self.hour.options = [CLOSED]
            self.hour.index = 0
        self.offer()

    def offer(self):
        """Offer the hours that were decided by now; the one that is shown stays."""
        options = [CLOSED, *(hour_name(record.choice) for record in self.hours.race.kept)]
        index = self.hour.index
        if len(options) != len(self.hour.options):
            with quiet(self._owner):
                self.hour.options = options
                self.hour.index = index

    def point(self, place: int | None, stage: int | None = None):
        """Show a decision by its number, None: none; and a stage of it, 0 to 6, by default the one that was shown."""
        with quiet(self._owner):
            self.hour.index = 0 if place is None else place + 1
            if stage is not None:
                self.stage.index = stage

    def point_at(self, instant: float):
        """Show the last decision up to an instant (s), or the first."""
        earlier_decisions = [
            decision_number
            for decision_number, record in enumerate(self.hours.race.kept)
            if record.choice.at <= instant
        ]
        if self.hours.race.kept:
            self.point(max(earlier_decisions, default=0))

    def numbers(self) -> dict:
        """Return a dict of the numbers of the figures of the stage that is shown; the places of the others are left out."""
        stage_numbers = dict.fromkeys((figure_place.name for figure_place in PLACES), HIDDEN)
        if self.place is None:
            return stage_numbers
        figures = list(STAGES[self.stage.index].numbers(self.hours, self.place).values())
        stage_places = ["stage"]
        if len(figures) > 1:
            stage_places = ["stage_left", "stage_right"]
        return stage_numbers | dict(zip(stage_places, figures, strict=True))

    @property
    def html(self) -> str:
        """HTML of the hour, the question of its stage, and the answer; "" while no hour is shown."""
        if self.place is None:
            return ""
        stage = STAGES[self.stage.index]
        sentence = stage.sentence(self.hours, self.place)
        return f"<p><b>{escape(self.hour.value)}. {escape(stage.asks)}</b> {escape(sentence)}</p>"

    def show(self):
        """Say which hour is shown; the buttons of the stages are seen while an hour is."""
        self.offer()
        self.words.value = self.html
        self.stage.layout.display = "none" if self.place is None else None

    def busiest(self) -> int | None:
        """Number of the decision in which most was measured again, after the first if there are others; None without decisions."""
        decisions = self.hours.race.kept
        if not decisions:
            return None
        later = range(min(1, len(decisions) - 1), len(decisions))
        return max(later, key=lambda decision_number: sum(map(len, decisions[decision_number].decision.again.values())))


def hour_name(choice: Choice) -> str:
    """Return the hour of a choice, and whether it switched, as text.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> hour_name(SimpleNamespace(at=7200.0, switched=True))
    '2 h: switched'
    """
    done = "switched" if choice.switched else "kept"
    return f"{choice.at / HOUR:.0f} h: {done}"


def instant_of(race: Race, figure: str, trace: int, point: int) -> float | None:
    """Instant (s) of the decision that a point of a figure belongs to; None if the figure has no such points."""
    if figure == "course":
        return HOUR * point  # of the hour at whose end the point is
    if figure != "promises":
        return None
    choices = race.choices
    if trace < 2:
        choices = [choice for choice in choices if choice.switched == (trace == 1)]
    return choices[point].at
