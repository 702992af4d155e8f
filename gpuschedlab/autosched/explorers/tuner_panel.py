"""Controls of the TunerLab: the jobs to come, the way of tuning, and the reader's wheel."""

from gpuschedlab._extras import need
from gpuschedlab.autosched.live.days import LiveDays
from gpuschedlab.autosched.live.settings import LiveTuning
from gpuschedlab.policies import Lucid, Themis, Tiresias
from gpuschedlab.widgets.parts.controls import KnobControls, button, close_all, control, quiet, row

POLICIES = {"Tiresias": Tiresias(), "Themis": Themis(), "Lucid": Lucid()}
"""Policies that can be tuned, by the names in the menu."""
DAYS = ("preset", "load", "drift", "restart")
TUNING = ("way", "evaluations", "goal", "belief")
"""Knobs that are seen at once; the others are seen with *more*."""


class TunerPanel:
    """Buttons that play, sliders of `LiveDays` and `LiveTuning`, the policy, and the knobs by which a reader steers.

    Parameters
    ----------
    owner : TunerLab
        Is called when a control moves.
    days, tuning : LiveDays, LiveTuning
        Where they begin.

    Attributes
    ----------
    play, wheel : ipywidgets.ToggleButton
    policy : ipywidgets.Dropdown
    days, tuning, knobs : KnobControls
    first, rest : list of widgets
        Seen at once, and with *more*.
    """

    def __init__(self, owner, days: LiveDays, tuning: LiveTuning):
        widgets = need("ipywidgets")
        auto = widgets.Layout(width="auto")
        self._owner = owner
        self.play = widgets.ToggleButton(description="Play", tooltip="play on, hour by hour", layout=auto)
        self.step = button(owner, "One hour", "play one hour", owner.play_one_hour)
        self.again = button(owner, "From the start", "begin again, with the present settings", owner.begin_again)
        self.like = button(owner, "6 such races", "play races of other seeds to their end", owner.play_races_like_it)
        self.wheel = widgets.ToggleButton(
            description="Take the wheel", tooltip="steer the tuned line yourself, by the knobs below", layout=auto
        )
        self.policy = control(
            "Dropdown", "policy", 160, 44, options=list(POLICIES), tooltip="policy whose knobs are tuned"
        )
        self.days = KnobControls(days, owner._changed)
        self.tuning = KnobControls(tuning, owner._changed)
        first_days, rest_days = self.days.split(DAYS)
        first_tuning, rest_tuning = self.tuning.split(TUNING)
        self.steering = widgets.Box([], layout=widgets.Layout(display="none"))
        self.offer_knobs(POLICIES[self.policy.value])
        for slider in (*self.days.sliders, *self.tuning.sliders):
            slider.continuous_update = (
                False  # another trace, or the past's best constant, is too much for each step of a hand
            )
        self.policy.observe(owner._changed, "value")
        self.play.observe(owner._play_moved, "value")
        self.wheel.observe(owner._wheel_moved, "value")
        buttons = row(self.play, self.step, self.again, self.like, self.wheel, self.policy)
        self.first = [buttons, first_tuning, first_days, self.steering]
        self.rest = [rest_tuning, rest_days]

    def offer_knobs(self, policy):
        """Show the knobs of a policy for the wheel."""
        self.knobs = KnobControls(policy, self._owner._steered)
        front_knobs, folded_knobs = self.knobs.split(())
        earlier = self.steering.children
        self.steering.children = [front_knobs, folded_knobs]
        close_all(list(earlier))

    def show_wheel(self, held: bool):
        """Show the reader's knobs while the reader steers."""
        with quiet(self._owner):
            self.wheel.value = held
        self.wheel.description = "Give it back" if held else "Take the wheel"
        self.steering.layout.display = None if held else "none"

    def disable(self, ended: bool):
        """Nothing can be played once all jobs have come."""
        self.play.disabled = ended
        self.step.disabled = ended
        self.wheel.disabled = ended
