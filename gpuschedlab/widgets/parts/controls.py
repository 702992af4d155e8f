"""Controls with their names, buttons that show their errors, and controls made from knobs, kept to the constraints; and their end."""

import math
from contextlib import contextmanager

from gpuschedlab._extras import need
from gpuschedlab.knobs import KnobInfo, knobs_of


def control(kind: str, name: str, width: int | None, label: int, **more):
    """Return a control, a widget of ipywidgets, with its name beside it."""
    ipywidgets = need("ipywidgets")
    control_look = {
        "style": {"description_width": f"{label}px"},
        "layout": ipywidgets.Layout(width=f"{width}px" if width else "auto"),
    }
    return getattr(ipywidgets, kind)(description=name, **control_look, **more)


def button(owner, name: str, help: str, answer, **more):
    """Return a `Button` of an explorer: a click calls `answer()`, and its errors are shown in the explorer's box."""
    ipywidgets = need("ipywidgets")
    clicked_button = ipywidgets.Button(description=name, tooltip=help, layout=ipywidgets.Layout(width="auto"), **more)
    clicked_button.on_click(lambda _: owner.guarded(answer))
    return clicked_button


def row(*parts):
    """Return a `Box` of widgets beside each other, or below each other if there is little room."""
    ipywidgets = need("ipywidgets")
    return ipywidgets.Box(parts, layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center"))


def close_all(thing, closed: set | None = None):
    """Close a widget and all widgets that it holds: children, layouts, styles."""
    widget = need("ipywidgets").Widget
    closed = set() if closed is None else closed
    if isinstance(thing, list | tuple):
        for widget_part in thing:
            close_all(widget_part, closed)
    elif isinstance(thing, widget) and id(thing) not in closed:
        closed.add(id(thing))
        for trait_name in thing.keys:
            close_all(getattr(thing, trait_name), closed)
        thing.close()


def nice_step(low: float, high: float, parts: int = 100) -> float:
    """Largest of 1, 2, 5 times a power of ten that divides a range into at least `parts` steps."""
    wide = (high - low) / parts
    if wide <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(wide))
    multiple = max(step_multiple for step_multiple in (1, 2, 5) if step_multiple * power <= wide * (1 + 1e-9))
    return float(f"{multiple * power:.1g}")


def step_to(value: float, low: float, high: float, parts: int = 100) -> float:
    """Step that divides a range into about so many parts, with a value on its grid: a browser moves a value beside the grid."""
    step = (high - low) / parts
    steps = round((value - low) / step)
    return (value - low) / steps if steps else step


def _part(kind: str, info: KnobInfo, control_label: str, **more):
    """Return the control (a widget) of a knob, or of a part of it, as wide as its place in the grid."""
    tooltip_end = "; at the end of the slider without a limit" * info.knob.unlimited
    tooltip_end += f" (knob {info.name})" if info.knob.words else ""
    return control(kind, control_label, None, 84, tooltip=f"{control_label}: {info.knob.help}{tooltip_end}", **more)


def _slider(info: KnobInfo, value: float, slider_label: str):
    """Return the slider (a widget) of one number: logarithmic, whole or plain, as the knob says."""
    k = info.knob
    value = min(value, k.high)
    if k.log and k.high > k.low:
        low = math.log10(k.low)
        high = math.log10(k.high)
        form = ".3s" if k.low >= 1 else ".3"
        # Bounds a hair wide, or the ends themselves would be refused for their last digit.
        bounds = {"min": low - 1e-12, "max": high + 1e-12, "step": step_to(math.log10(value), low, high)}
        return _part("FloatLogSlider", info, slider_label, value=value, base=10, readout_format=form, **bounds)
    if info.kind == "int":
        step = int(k.step or max(1, nice_step(k.low, k.high, 200)))
        return _part("IntSlider", info, slider_label, value=int(value), min=int(k.low), max=int(k.high), step=step)
    step = k.step or nice_step(k.low, k.high)
    return _part("FloatSlider", info, slider_label, value=value, min=k.low, max=k.high, step=step, readout_format=",.6")


@contextmanager
def quiet(owner):
    """Context manager: an owner of controls, who has a flag `_quiet`, does not answer to those that are moved meanwhile."""
    quiet_before = owner._quiet
    owner._quiet = True
    try:
        yield
    finally:
        owner._quiet = quiet_before


class Control:
    """The widgets of one knob, and its value in the knob's own terms."""

    def __init__(self, info: KnobInfo, value):
        self.info = info
        self._given = {}
        if info.kind == "bool":
            self.parts = [_part("Checkbox", info, info.label, value=value, indent=True)]
        elif info.kind == "choice":
            menu_options = [(str(knob_choice), knob_choice) for knob_choice in info.knob.choices]
            self.parts = [_part("Dropdown", info, info.label, options=menu_options, value=value)]
        elif info.kind == "floats":
            slider_labels = [
                info.label.replace(info.words, info.words_at(knob_place)) for knob_place in range(info.knob.many)
            ]
            self.parts = [
                _slider(info, value[0] if value else info.knob.low, slider_label) for slider_label in slider_labels
            ]
        else:
            self.parts = [_slider(info, info.knob.low if value is None else value, info.label)]
        if info.optional:  # a box beside it, ticked where there is a value
            self.parts.append(_part("Checkbox", info, f"with {info.words}", value=value is not None, indent=True))
        self.value = value

    @property
    def sliders(self) -> list:
        """List of the parts that can follow the hand while it moves."""
        return [control_part for control_part in self.parts if hasattr(control_part, "continuous_update")]

    def _read(self, slider):
        """Return the value (a number) of a part: as given, or, once moved, without the digits that a slider's step leaves."""
        given_value = self._given.get(slider)
        slider_value = float(f"{slider.value:.3g}")
        if given_value is not None and math.isclose(slider.value, given_value, rel_tol=1e-9, abs_tol=1e-12):
            return given_value
        if self.info.knob.unlimited and slider.value >= self.info.knob.high * (1 - 1e-9):
            return math.inf
        return slider_value if self.info.kind == "floats" else self.info.clip(slider_value)

    @property
    def value(self):
        """Value of the widgets, in the knob's own type: float, int, bool, choice, tuple of floats, or None."""
        if self.info.optional and not self.parts[-1].value:
            return None
        if self.info.kind in ("bool", "choice"):
            return self.parts[0].value
        if self.info.kind == "floats":
            visible = [part for part in self.parts if part.layout.display != "none"]
            return self.info.clip(tuple(self._read(part) for part in visible))
        return self._read(self.parts[0])

    @value.setter
    def value(self, value):
        """Show a value."""
        if self.info.optional:
            self.parts[-1].value = value is not None
            if value is not None:
                self._given[self.parts[0]] = self.parts[0].value = value
            return
        part_values = list(value) if self.info.kind == "floats" else [value]
        for i, part in enumerate(self.parts):
            part.layout.display = None if i < len(part_values) else "none"
            if i < len(part_values):
                if part in self.sliders:
                    self._given[part] = part_values[i]
                part.value = min(part_values[i], self.info.knob.high) if self.info.knob.unlimited else part_values[i]


class KnobControls:
    """The controls of all knobs of a policy, or of anything else with knobs."""

    def __init__(self, thing, changed=None):
        self._base = thing
        self._changed = changed
        self._quiet = False
        self.controls = {knob_name: Control(info, info.value_of(thing)) for knob_name, info in knobs_of(thing).items()}
        self.note = ""
        control_parts = [control_part for knob_control in self.controls.values() for control_part in knob_control.parts]
        for control_part in control_parts:
            control_part.observe(self._moved, "value")
        self.box = row(*control_parts).add_class("gpuschedlab-knobs")

    def __getitem__(self, name: str) -> Control:
        return self.controls[name]

    def close(self):
        """Free the widgets."""
        widgets = [self.box]
        for control in self.controls.values():
            widgets += control.parts
        close_all(widgets)

    def split(self, names: tuple[str, ...]) -> tuple:
        """Return a pair of boxes: that of some knobs, by default the first four, and that of the others."""
        names = names or [*self.controls][:4]
        self.box.children = [control_part for knob_name in names for control_part in self.controls[knob_name].parts]
        folded_parts = [
            control_part
            for knob_name, knob_control in self.controls.items()
            if knob_name not in names
            for control_part in knob_control.parts
        ]
        return self.box, row(*folded_parts).add_class("gpuschedlab-knobs")

    @property
    def first(self) -> list:
        """List of the part for the first row: of the first knob with words of its own, or else of the first; may be empty."""
        worded_controls = [knob_control for knob_control in self.controls.values() if knob_control.info.knob.words] or [
            *self.controls.values()
        ]
        return worded_controls[0].parts[:1] if worded_controls else []

    @property
    def sliders(self) -> list:
        """List of all parts that can follow the hand."""
        return [slider for knob_control in self.controls.values() for slider in knob_control.sliders]

    def show(self, thing):
        """Move all controls to the knobs of another thing of the same kind, as one change."""
        with quiet(self):
            for knob_control in self.controls.values():
                knob_control.value = knob_control.info.value_of(thing)
        self._moved(None)

    @property
    def thing(self):
        """Copy of the base, of its class, with the knobs as the controls say and the constraints restored."""
        return self._base.with_knobs(**self._allowed())

    def _allowed(self) -> dict:
        """Return a dict of the nearest allowed values; controls that had to give way are moved there, and `note` says why."""
        control_values = {knob_name: knob_control.value for knob_name, knob_control in self.controls.items()}
        allowed = type(self._base).project(control_values)
        moved_controls = [knob_name for knob_name in control_values if allowed[knob_name] != control_values[knob_name]]
        with quiet(self):
            for knob_name in moved_controls:
                self.controls[knob_name].value = allowed[knob_name]
        if moved_controls:
            constraints = type(self._base).constraints
            rules = "; ".join(constraint.text for constraint in constraints) or "its range"
            self.note = f"{', '.join(moved_controls)} followed, to keep: {rules}"
        return allowed

    def _moved(self, change):
        if not self._quiet:
            self.note = ""
            self._allowed()
            if self._changed:
                self._changed()
