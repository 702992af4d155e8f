"""A player of steps on a page: any step of any case, without a kernel; sentences if no script runs."""

import json
from functools import cache
from html import escape
from importlib.resources import files
from uuid import uuid4

from gpuschedlab import plots
from gpuschedlab.errors import RunError
from gpuschedlab.plots import web
from gpuschedlab.plots.web.cell import carries_library
from gpuschedlab.plots.web.encode import plain, short

HERE = files("gpuschedlab.widgets.parts")


@cache
def shared(name: str = "page.js") -> str:
    """Return the text of a file that all players of a page use, from this folder."""
    return (HERE / name).read_text(encoding="utf-8")


def css() -> str:
    """Return the style sheet of players, and of their figures, as CSS text."""
    return web.css() + shared("player.css")


class StepPlayer:
    """Step through cases of a decision: the line of a listing that acts, the values read and decided, a table, and a figure.

    The page holds all of it: it plays without a kernel, in a saved notebook and on a site. Arrows step, Page Up and Page Down
    change the case.

    Parameters
    ----------
    listing : tuple of str
        The algorithm, line by line; leading spaces indent.
    cases : list of Case
        As `gpuschedlab.policies.steps` has them; at least one.
    at : int
        Place of the case that is shown first.
    what : str
        The difference of the cases, beside their slider.
    draw : callable, optional
        From a step and its case to the numbers of the figure; without it there is none.
    height : int
        Of the figure, pixels.

    Raises
    ------
    RunError
        There is no case, or one without steps.

    Examples
    --------
    >>> from gpuschedlab.policies.steps import Case, Step
    >>> steps = [Step(1, "a = 2.", "It is even.", [("a", "2")], (0,))]
    >>> player = StepPlayer(("is it even?",), [Case("two", ("name", "value"), steps)])
    >>> "It is even." in player.sentences()
    True
    """

    def __init__(self, listing, cases, at: int = 0, what: str = "case", draw=None, height: int = 260):
        if not cases or not all(case.steps for case in cases):
            without_steps = sum(not case.steps for case in cases)
            raise RunError(
                f"StepPlayer: found {len(cases)} cases, {without_steps} without steps; expected one or more with "
                "steps. Record a decision that has something to decide."
            )
        self.listing = tuple(listing)
        self.cases = list(cases)
        self.at = at
        self.what = what
        self.draw = draw
        self.places = (plots.Place("figure", height),) if draw else ()
        self.identity = f"gpuschedlab-{uuid4().hex}"

    def _packed(self) -> str:
        """All cases: JSON, gzipped, as base64."""
        packed_cases = []
        for case in self.cases:
            step_fields = ("line", "read", "decided", "rows", "lit")
            steps = [{step_field: getattr(step, step_field) for step_field in step_fields} for step in case.steps]
            for shown_step, step in zip(steps, case.steps if self.draw else ()):
                shown_step["figures"] = {"figure": short(plain(plots.draw(self.draw(step, case))))}
            packed_cases.append({"name": case.name, "head": case.head, "steps": steps})
        return web.packed(packed_cases)

    def sentences(self) -> str:
        """HTML of the case that is shown first, for where no script runs."""
        case = self.cases[self.at]
        step_items = "".join(f"<li>{escape(step.read)} <b>{escape(step.decided)}</b></li>" for step in case.steps)
        return f'<div data-pictures="{self.identity}"><p>{escape(f"{self.what}: {case.name}")}</p><ol>{step_items}</ol></div>'

    def _repr_html_(self) -> str:
        player_state = {
            "id": self.identity,
            "what": self.what,
            "listing": self.listing,
            "at": self.at,
            "pack": self._packed(),
        }
        player_state["places"] = [figure_place._asdict() for figure_place in self.places]
        queued = json.dumps(player_state, allow_nan=False).replace("</", "<\\/")
        library = web.library() if self.draw and carries_library() else ""
        return (
            f'<style>{css()}</style>{self.sentences()}<div id="{self.identity}" class="gpuschedlab-player" hidden></div>{library}'
            f"<script>(window.gpuschedlabStepsQueue ??= []).push({queued});</script>"
            f"<script>{shared()}{shared('steps.js')}</script>"
        )

    def html(self) -> str:
        """Return a page of its own with the player as HTML text, whole without a network."""
        head = '<meta charset="utf-8"><title>Step by step</title><meta name="viewport" content="width=device-width">'
        return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{self._repr_html_()}</body></html>'
