"""Controls of the causal lab: the question, the world in which the log was made, and the method that answers."""

import numpy as np

from gpuschedlab.autosched.lab.backends import MODELS
from gpuschedlab.autosched.lab.sentences import value_words
from gpuschedlab.autosched.lab.world import IntervalWorld, knobs_offered
from gpuschedlab.knobs import KnobInfo, knobs_of
from gpuschedlab.policies import Fifo, Sjf, Srtf, Themis, Tiresias
from gpuschedlab.sim.policy import Policy
from gpuschedlab.widgets.parts.controls import KnobControls, control, quiet, row

FRONT = ("preset", "lowest_load", "highest_load", "restart", "objective", "by_load", "strictness")
"""Knobs of the world that are always seen; the others are seen with *more*."""
POLICIES = {
    "Tiresias": Tiresias(),
    "Gittins": Tiresias(metric="gittins"),
    "Themis": Themis(),
    "Easy": Fifo(backfill="easy"),
    "Sjf": Sjf(),
    "Srtf": Srtf(),
}
"""Policies of which a knob can be set, by the names in the menu."""


class WorldPanel:
    """Sliders and menus of an `IntervalWorld`, and the value that is asked about.

    Parameters
    ----------
    owner : CausalLab
        Answers to a control that moved.
    world : IntervalWorld
        Where they begin.

    Attributes
    ----------
    do : ipywidgets.SelectionSlider
        The value that the knob is set to, by its place.
    backend : ipywidgets.Dropdown
        Who answers on the graph.
    first, rest : list of widgets
        Seen at once, and with *more*.
    """

    def __init__(self, owner, world: IntervalWorld):
        self._owner = owner
        self._begin = world
        self.knobs = KnobControls(world, owner._changed)
        self._make_menus()
        self.do = control("SelectionSlider", "do", 400, 150, options=[("", 0)]).add_class("gpuschedlab-do")
        self.do.observe(owner._changed, "value")
        front_knobs, folded_knobs = self.knobs.split(FRONT)
        follows = self.knobs["by_load"].parts[0]
        follows.indent = False  # its words need the room
        self.first = [row(self.do, self.policy, self.knob).add_class("gpuschedlab-asked"), front_knobs]
        self.rest = [folded_knobs]

    def _make_menus(self):
        begin_world = self._begin
        owner = self._owner
        self.policies = dict(POLICIES)
        policy_names = [policy_name for policy_name, policy in POLICIES.items() if policy == begin_world.policy]
        if not policy_names:
            self.policies = {type(begin_world.policy).__name__: begin_world.policy} | self.policies
            policy_names = [type(begin_world.policy).__name__]
        help_policy = "under which the intervals of the log are played"
        self.policy = control(
            "Dropdown", "policy", 160, 44, options=list(self.policies), value=policy_names[0], tooltip=help_policy
        )
        self.knob = control("Dropdown", "knob", 220, 40, tooltip="that the operator sets", options=[""])
        self.backend = control(
            "Dropdown", "answered by", None, 84, options=list(MODELS), tooltip="who answers on the graph"
        )
        self._offer_knobs(begin_world.knob)
        self.policy.observe(self._other_policy, "value")
        self.knob.observe(owner._changed, "value")
        self.backend.observe(owner._changed, "value")

    def _offer_knobs(self, begin_knob: str = ""):
        """Offer the knobs of the policy, and choose one."""
        infos = knobs_offered(self.policies[self.policy.value])
        with quiet(self._owner):
            self.knob.options = [(info.words, knob_name) for knob_name, info in infos.items()]
            if begin_knob in infos:
                self.knob.value = begin_knob

    def _other_policy(self, change):
        self._offer_knobs(self.knob.value)
        self._owner._changed()

    @property
    def world(self) -> IntervalWorld:
        """`IntervalWorld` that the controls say."""
        begin_world = self._begin
        world = self.knobs.thing
        policy: Policy = self.policies[self.policy.value]
        if (policy, self.knob.value) == (begin_world.policy, begin_world.knob):
            return world
        return world.of(policy, self.knob.value)

    @property
    def info(self) -> KnobInfo:
        """`KnobInfo` of the knob that is set: its declaration."""
        return knobs_of(self.policies[self.policy.value])[self.knob.value]

    @property
    def setting(self) -> int:
        """Index of the value that is asked about."""
        return self.do.value

    def offer(self, world: IntervalWorld, values: np.ndarray):
        """Let the slider offer the values of the knob (entries of a log) but the lowest, which they are compared with.

        It stays where it is as far as that is offered, and begins at the highest.
        """
        unit = world.info.knob.unit
        setting_texts = [f"{value_words(world.value(entry))} {unit}".rstrip() for entry in values]
        options = [(setting_text, setting_number) for setting_number, setting_text in enumerate(setting_texts)]
        if len(options) > 2:  # a slider in a browser needs two places
            options = options[1:]
        if self.do.options == tuple(options):
            return
        highest = len(options) - 1
        index = highest
        if self.do.index < len(self.do.options) - 1:
            index = min(self.do.index, highest)
        with quiet(self._owner):
            self.do.options = options
            self.do.index = index
            self.do.description = f"do: {self.info.words}"
