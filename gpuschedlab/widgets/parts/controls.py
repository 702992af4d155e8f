"""Widgets as all explorers have them: a control of some width, a button that shows its errors, a row, marks on sliders; and their end."""

import math

from gpuschedlab._extras import need


def control(kind: str, name: str, width: int | None, label: int, **more):
    """Control of ipywidgets, with its name beside it."""
    w = need("ipywidgets")
    look = {"style": {"description_width": f"{label}px"}, "layout": w.Layout(width=f"{width}px" if width else "auto")}
    return getattr(w, kind)(description=name, **look, **more)


def button(owner, name: str, help: str, answer, **more):
    """Button of an explorer: a click calls `answer()`, and its errors are shown in the explorer's box."""
    w = need("ipywidgets")
    made = w.Button(description=name, tooltip=help, layout=w.Layout(width="auto"), **more)
    made.on_click(lambda _: owner.guarded(answer))
    return made


def row(*parts):
    """Widgets beside each other, or below each other where there is little room."""
    w = need("ipywidgets")
    return w.Box(parts, layout=w.Layout(flex_flow="row wrap", align_items="center"))


def marked(sliders) -> object:
    """Mark the present value of each slider by a small stroke across it; returns the widget that holds the style."""
    # ipywidgets gives a slider no place for a mark, but takes classes: one for each hundredth of a range.
    rules = {}
    for slider in sliders:
        value = math.log10(slider.value) if hasattr(slider, "base") else slider.value
        share = round(100 * (value - slider.min) / max(slider.max - slider.min, 1e-9))
        slider.add_class(f"gpuschedlab-mark-{share}")
        rules[share] = f".gpuschedlab-mark-{share} .noUi-base::after {{ left: {share}% }}"
    look = (
        'content: ""; position: absolute; top: -5px; width: 2px; height: 14px; background: currentColor; opacity: 0.6'
    )
    whole = f'[class*="gpuschedlab-mark-"] .noUi-base::after {{ {look} }}'
    w = need("ipywidgets")
    return w.HTML(f"<style>{whole} {' '.join(rules.values())}</style>", layout=w.Layout(display="none"))


def close_all(thing, closed: set | None = None):
    """Close a widget and all widgets that it holds: children, layouts, styles."""
    widget = need("ipywidgets").Widget
    closed = set() if closed is None else closed
    if isinstance(thing, list | tuple):
        for part in thing:
            close_all(part, closed)
    elif isinstance(thing, widget) and id(thing) not in closed:
        closed.add(id(thing))
        for name in thing.keys:
            close_all(getattr(thing, name), closed)
        thing.close()
