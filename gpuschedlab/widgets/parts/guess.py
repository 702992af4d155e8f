"""A question whose answers stay hidden on a page until the reader chooses one or presses *See*."""

import json
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from gpuschedlab._extras import need
from gpuschedlab._knob import check_kind, tuple_of
from gpuschedlab.errors import LabError
from gpuschedlab.plots.web.cell import in_batch

HERE = files("gpuschedlab.widgets.parts")
SLIDER = '<input type="range" min="-2" max="3" step="0.05" value="0" data-lm-suppress-shortcuts="true">'
"""Slider of a number of times, on a scale of powers of two: from a quarter to eight times."""
WAITING = "This shows the answer to a question above. Answer it there, or press <b>See</b>."


@cache
def _part(file_name: str) -> str:
    """Return the text of a file of this folder."""
    return (HERE / file_name).read_text(encoding="utf-8")


class Guess:
    """Ask a question, and show the outputs that answer it once the reader has chosen an answer or pressed *See*.

    As the value of a cell it shows the question and then, one below the other, its answers, which are hidden until then: in
    JupyterLab, in Voila, and in the HTML that is exported of a notebook that was run there. It needs no kernel, and hides without
    scripts; only the score needs them. In a batch run (papermill, ``nbconvert --execute``, a site's build) all of it is shown.

    Parameters
    ----------
    question : str
        The question, as plain text.
    *answers : object
        Everything that gives the answer away: figures, tables, explorers. Text is Markdown.
    choices : sequence of str
        Answers to choose from. Without `times`, a click on one shows the answers.
    right : str
        The choice that is right.
    times : tuple of float, optional
        Asks for a number of times with a slider: the true number, and the two ends of its interval.

    Raises
    ------
    LabError
        `right` is not one of the choices.

    Examples
    --------
    >>> guess = Guess("Which policy is best here?", "It is SRTF.", choices=("FIFO", "SRTF"), right="SRTF")
    >>> "It is SRTF." in guess.html()
    False
    """

    def __init__(self, question: str, *answers, choices=(), right: str = "", times: tuple | None = None):
        check_kind(question, str, LabError, "Guess.question", "a text")
        check_kind(
            times, tuple | list | None, LabError, "Guess.times", "the number of times and the ends of its interval"
        )
        self.question = question
        self.answers = answers
        self.choices = tuple_of(choices, str, LabError, "Guess.choices", "texts")
        self.right = right
        self.times = times
        if self.choices and right not in self.choices:
            raise LabError(
                f"Guess: found {right!r} as the right answer; expected one of {', '.join(self.choices)}. Add it to `choices`."
            )
        self.identity = sha256(question.encode()).hexdigest()[:12]

    def html(self) -> str:
        """Return the question as HTML, with a style that hides and reveals the outputs that follow it; without the answers."""
        truth = f'data-guess="{self.identity}"'
        if self.times:
            truth += f' data-times="{escape(json.dumps(self.times))}"'
        if self.right:
            truth += f' data-right="{escape(self.right)}"'
        see = '<span class="gpuschedlab-unseen">See</span><span class="gpuschedlab-seen">Hide</span>'
        return (
            f'<style>{_part("guess.css")}{self._elsewhere()}</style><section class="gpuschedlab-question">'
            f"<p>{escape(self.question)}</p>{self._slider()}{self._buttons()}"
            f'<details {truth}><summary data-lm-suppress-shortcuts="true">{see}</summary>'
            f'<p class="gpuschedlab-verdict" aria-live="polite"></p></details></section><script>{_part("guess.js")}</script>'
        )

    def _elsewhere(self) -> str:
        """Return the style, as CSS text, of outputs that wait for this guess in other cells."""
        closed = f'body:has([data-guess="{self.identity}"]:not([open]))'
        mark = f'[data-waits="{self.identity}"]'
        return (
            f"{closed} .jp-OutputArea-child:has({mark}) ~ .jp-OutputArea-child {{ display: none; }}"
            f"{closed} {mark} {{ display: block; }}"
        )

    def _slider(self) -> str:
        if not self.times:
            return ""
        return f'<p class="gpuschedlab-asks"><label><output>1.00 times</output>{SLIDER}</label></p>'

    def _buttons(self) -> str:
        if not self.choices:
            return ""
        button_attributes = 'type="button" aria-pressed="false" data-lm-suppress-shortcuts="true"'
        buttons = "".join(f"<button {button_attributes}>{escape(choice)}</button>" for choice in self.choices)
        return f'<p class="gpuschedlab-asks" role="group" aria-label="Answers">{buttons}</p>'

    def _ipython_display_(self):
        """Show the question and the answers, each as an output of its own, since an explorer can be no part of another."""
        question = f"<p><b>{escape(self.question)}</b></p>" if in_batch() else self.html()
        _show_after(question, self.question, self.answers)

    def later(self, *answers) -> "Later":
        """Hide more outputs until this question is answered: return `Later`, the value of another cell."""
        return Later(self.identity, answers)


class Later:
    """Outputs of a cell that wait for a `Guess` in another cell of the page.

    Parameters
    ----------
    identity : str
        The identity of the guess.
    answers : tuple of object
        As those of `Guess`.
    """

    def __init__(self, identity: str, answers: tuple):
        self.identity = identity
        self.answers = answers

    def html(self) -> str:
        """Return the HTML of a line that stands in the place of the outputs while they are hidden."""
        return f'<p class="gpuschedlab-waits" data-waits="{self.identity}">{WAITING}</p>'

    def _ipython_display_(self):
        """Show the line, which is seen only while the question is open, and the outputs."""
        html = "" if in_batch() else self.html()
        _show_after(html, "", self.answers)


def folded(html: str) -> str:
    """Return HTML of an explorer's figures without a kernel, which the reader unfolds after a guess."""
    summary = '<summary data-lm-suppress-shortcuts="true">Guess first, then <b>see</b>.</summary>'
    return f'<style>{_part("guess.css")}</style><details class="gpuschedlab-asked">{summary}{html}</details>'


def _show_after(html: str, plain_text: str, answers: tuple):
    """Display HTML, with its plain text, and then each of some answers."""
    module = need("IPython.display", "guesses")
    if html:
        module.display({"text/html": html, "text/plain": plain_text}, raw=True)
    for answer in answers:
        if isinstance(answer, str):
            # As HTML too: Voila sometimes leaves Markdown out, whose renderer is loaded late.
            html = need("nbconvert.filters.markdown", "guesses").markdown2html(answer)
            module.display({"text/html": html, "text/markdown": answer}, raw=True)
        else:
            module.display(answer)
