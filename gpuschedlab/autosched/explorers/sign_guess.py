"""A guess before the answer: does setting the knob higher make the objective less or more?"""

from html import escape

from gpuschedlab.autosched.lab.outcomes import OUTCOMES
from gpuschedlab.autosched.lab.sentences import setting_words
from gpuschedlab.widgets.parts.controls import button, row

UNMOVED = "no difference that shows"


class SignGuess:
    """Ask for the sign of an effect; the model and the truth are hidden until a button is pressed.

    Parameters
    ----------
    owner : CausalLab
        Draws itself again after the guess.
    open : bool
        Whether it asks at all.

    Attributes
    ----------
    open : bool
        Whether it still asks.
    choice : str
        Choice of the reader; "" before, and after *see*.
    box : ipywidgets.Box
        The buttons.
    """

    def __init__(self, owner, open: bool):
        self._owner = owner
        self.open = open
        self.choice = ""
        self.box = row().add_class("gpuschedlab-asks")
        self._words: tuple[str, ...] = ()
        self._hide()

    def show(self, view):
        """Offer the answers in the words of the objective."""
        outcome = OUTCOMES[view.world.objective]
        answer_words = (outcome.less, outcome.more, UNMOVED, "see")
        if not self.open or answer_words == self._words:
            return
        self._words = answer_words
        self.box.children = [self._button(answer_word) for answer_word in answer_words]

    def question(self, view) -> str:
        """HTML of the question, with the log's answer."""
        outcome = OUTCOMES[view.world.objective]
        setting = setting_words(view.world, view.values, 0, view.setting)
        sentence = f"Guess: {outcome.less} or {outcome.more} with {setting}?"
        log = ""
        if view.answers is not None:
            log = f"The log says that {outcome.subject} {view.answers.log_number}. What does the simulator say?"
        return f'<p class="gpuschedlab-sentence gpuschedlab-long">{escape(sentence)}</p><p>{escape(log)}</p>'

    def verdict(self, view) -> str:
        """HTML that says whether the guess was right; empty without a guess, and before the truth has an interval."""
        if not self.choice or view.answers is None:
            return ""
        truth = view.answers.truth.effect(view.answers.first, view.answers.second)
        right = sign_word(truth, view.world)
        if not right:
            return ""
        if right == self.choice:
            return f"<p>You guessed <b>{escape(self.choice)}</b>: right.</p>"
        return f"<p>You guessed <b>{escape(self.choice)}</b>; the simulator says <b>{escape(right)}</b>.</p>"

    def answer(self, choice: str):
        """Take a guess, or none with "see", and show the answer."""
        self.open = False
        self._owner.guess = False
        if choice != "see":
            self.choice = choice
        self._hide()
        self._owner.refresh()

    def _button(self, answer_word: str):
        return button(self._owner, answer_word, "your guess", lambda: self.answer(answer_word))

    def _hide(self):
        self.box.layout.display = "none"
        if self.open:
            self.box.layout.display = None


def sign_word(span, world) -> str:
    """Word for the sign of an effect; "" while it has no interval."""
    outcome = OUTCOMES[world.objective]
    if span.low != span.low:
        return ""
    if span.high < 0:
        return outcome.less
    if span.low > 0:
        return outcome.more
    return UNMOVED
