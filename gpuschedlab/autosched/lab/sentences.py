"""Sentences of the lab: all its words are made here, from numbers."""

import math
from dataclasses import dataclass

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.lab.curve import Curve, Span
from gpuschedlab.autosched.lab.edges import FULL, LOAD
from gpuschedlab.autosched.lab.outcomes import OUTCOMES
from gpuschedlab.autosched.lab.verdict import AGREES, MISSES, SILENT, WRONG, judged
from gpuschedlab.autosched.lab.world import IntervalWorld

VERDICT_WORDS = {
    AGREES: "and agrees with the truth",
    WRONG: "and has the wrong sign",
    MISSES: "and misses the truth",
    SILENT: "and cannot be judged yet",
}
"""Description of the model on the graph."""


@dataclass(frozen=True, eq=False)
class Answers:
    """All that the screen of the lab says about one graph: three curves of the rows, and the truth.

    Parameters
    ----------
    world : IntervalWorld
    graph : CausalGraph
    naive, held, model, truth : Curve
        On the same values. `model` is the backend's; `held` is adjustment by the graph.
    rows, intervals : int
        Of the log, and of the truth.
    backend : str
        Of the model.
    first, second : int
        Places of the two values that are asked about.
    """

    world: IntervalWorld
    graph: CausalGraph
    naive: Curve
    held: Curve
    model: Curve
    truth: Curve
    rows: int
    intervals: int
    backend: str = "path model"
    first: int = 0
    second: int = -1

    @property
    def verdict(self) -> str:
        """Verdict on the model, as a word or two (`judged`)."""
        return judged(self._effect(self.model), self._effect(self.truth))

    @property
    def headline(self) -> str:
        """Three sentences as one string: the numbers of the log, the truth and the model, and who is right."""
        subject = OUTCOMES[self.world.objective].subject
        setting = setting_words(self.world, self.truth.values, self.first, self.second)
        return (
            f"The log says that {subject} {self.log_number} with {setting}. In truth: {self.truth_number}. "
            f"The model on this graph says {self.model_number} {self._standing()}."
        )

    @property
    def log_number(self) -> str:
        """Text of the effect by the rows as they are, without its interval."""
        return percent_words(self._effect(self.naive).mean, self.world)

    @property
    def truth_number(self) -> str:
        """Text of the simulated effect, without its interval."""
        return percent_words(self._effect(self.truth).mean, self.world)

    @property
    def model_number(self) -> str:
        """Text of the effect by the model, with its interval."""
        return change_words(self._effect(self.model), self.world)

    @property
    def basis(self) -> str:
        """Sentence on the rows and simulated intervals that the numbers rest on, and on their intervals."""
        log = interval_words(self._effect(self.naive), self.world)
        truth = interval_words(self._effect(self.truth), self.world)
        return f"95 %: {log} by {self.rows} rows of the log, {truth} in {self.intervals} simulated intervals."

    @property
    def explanation(self) -> str:
        """Text on the graph: edges that are cut or added, columns held fixed, and whether adjustment and path model disagree."""
        sentences = [
            edges_in_words(self.graph, self.world.by_load),
            held_in_words(self.graph, self.held),
            self._disagreement() or self._misfit(),
        ]
        return " ".join(sentence for sentence in sentences if sentence)

    def _effect(self, curve: Curve) -> Span:
        """Return the `Span` of the question's effect by a curve."""
        return curve.effect(self.first, self.second)

    def _standing(self) -> str:
        """Say in words how the model stands beside the truth, or why it cannot be judged."""
        if not math.isnan(self._effect(self.model).low):
            return VERDICT_WORDS[self.verdict]
        if self.model.word.startswith("does not fit"):
            return "but does not fit the rows"
        return VERDICT_WORDS[self.verdict]

    def _misfit(self) -> str:
        """The model's verdict on its own fit, as a sentence; "" if it fits."""
        if self.model.refusal and self.backend != "adjustment":
            return f"The model cannot say: {self.model.refusal.rstrip('.')}."
        if not self.model.word:
            return ""
        return f"The model {self.model.word}."

    def _disagreement(self) -> str:
        """Return text on why adjustment and model differ, or "" if they do not."""
        adjustment = self._effect(self.held)
        model = self._effect(self.model)
        silent = self.held.refusal or math.isnan(adjustment.low) or math.isnan(model.low)
        if silent or adjustment.meets(model):
            return ""
        adjustment_sentence = f"Adjustment says {change_words(adjustment, self.world)}."
        edges = set(self.graph.edges)
        if "load" not in self.held.held and ("load", "outcome") in edges:
            edge = f"load \N{RIGHTWARDS ARROW} {NAMES['outcome']}"
            return f"{adjustment_sentence} In the model load is still held fixed, since {edge} stands."
        if set(FULL) - set(LOAD) - edges:
            return (
                f"{adjustment_sentence} It does not ask by which way the knob acts; the model loses what went by the edge "
                "that is cut."
            )
        return f"{adjustment_sentence} One of the two does not fit the rows."


NAMES = {"knob": "knob", "load": "load", "preempted": "preempted", "waiting": "waiting", "outcome": "time to finish"}
"""Variables as the screen has them."""


def setting_words(world: IntervalWorld, values, first: int, second: int) -> str:
    """Return the question in words: the knob at one value instead of another, in its unit."""
    setting_ends = [value_words(world.value(values[knob_place])) for knob_place in (first, second)]
    unit = world.info.knob.unit
    setting = f"{world.info.words} at {setting_ends[1]} {unit}".rstrip()
    return f"{setting} instead of {setting_ends[0]}"


def value_words(value: float) -> str:
    """Return a value of a knob as text of three figures: "56,200"."""
    return f"{float(f'{value:.3g}'):,.12g}"


def percent_words(log_ratio: float, world: IntervalWorld) -> str:
    """Return a change of the objective as text in per cent: "33 % sooner", or that nothing can be said yet."""
    if math.isnan(log_ratio):
        return "cannot be said yet"
    return f"{abs(100 * math.expm1(log_ratio)):.0f} % {_direction(log_ratio, world)}"


def change_words(span: Span, world: IntervalWorld) -> str:
    """Return a change and its interval as text: "33 % sooner (30 to 36)", or "2 % sooner (12 % sooner to 3 % later)"."""
    change = percent_words(span.mean, world)
    if math.isnan(span.mean):
        return change
    if math.isnan(span.low):
        return f"{change} (no interval)"
    return f"{change} ({_ends(span, world)})"


def interval_words(span: Span, world: IntervalWorld) -> str:
    """Return the interval of a change alone as text: "30 to 36 % sooner"."""
    if math.isnan(span.low):
        return "no interval"
    interval_ends = _ends(span, world)
    if span.sure:
        return f"{interval_ends} % {_direction(span.mean, world)}"
    return interval_ends


def _ends(span: Span, world: IntervalWorld) -> str:
    """Both ends of an interval as text in per cent: "30 to 36", or "12 % sooner to 3 % later" if it does not say the sign."""
    if not span.sure:
        return f"{percent_words(span.low, world)} to {percent_words(span.high, world)}"
    low, high = sorted(abs(100 * math.expm1(effect_end)) for effect_end in (span.low, span.high))
    return f"{low:.0f} to {high:.0f}"


def _direction(log_ratio: float, world: IntervalWorld) -> str:
    """Word for a decrease or an increase of the objective: "sooner"."""
    outcome = OUTCOMES[world.objective]
    if log_ratio < 0:
        return outcome.less
    return outcome.more


def edge_words(edges) -> str:
    """Return edges as text: arrows between commas."""
    return ", ".join(f"{NAMES[cause]} \N{RIGHTWARDS ARROW} {NAMES[effect]}" for cause, effect in edges)


def edges_in_words(graph: CausalGraph, by_load: bool) -> str:
    """Return text on which edges of the true graph a graph lacks, and which it has more; "" for the true one.

    `by_load`: the operator follows the load.
    """
    edges = set(graph.edges)
    missing_edges = [edge for edge in FULL if edge not in edges]
    extra = [edge for edge in graph.edges if edge not in FULL]
    graph_sentences = []
    if not edges & set(LOAD):
        habit = "the model takes the operator's habit for an effect"
        if not by_load:
            habit = "the operator does not follow it, so little is lost"
        graph_sentences.append(f"All edges of the load are cut: {habit}.")
        missing_edges = [edge for edge in missing_edges if edge not in LOAD]
    if missing_edges:
        graph_sentences.append(f"The graph lacks {edge_words(missing_edges)}.")
    if extra:
        graph_sentences.append(f"The graph has also {edge_words(extra)}.")
    return " ".join(graph_sentences)


def held_in_words(graph: CausalGraph, held: Curve) -> str:
    """Say in a sentence which columns adjustment holds fixed by a graph, or why it cannot."""
    if held.refusal:
        return f"Adjustment cannot say: {held.refusal.rstrip('.')}."
    if not held.held:
        return "By this graph nothing confounds the knob: adjustment holds nothing fixed, and says what the log says."
    held_names = " and ".join(NAMES[held_variable] for held_variable in held.held)
    return f"Adjustment holds {held_names} fixed."
