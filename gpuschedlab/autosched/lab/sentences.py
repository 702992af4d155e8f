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
    AGREES: "agrees with the truth",
    WRONG: "has the wrong sign",
    MISSES: "misses the truth",
    SILENT: "cannot be judged yet",
}
NAMES = {
    "knob": "knob",
    "load": "load",
    "preempted": "preemptions",
    "waiting": "waiting",
    "outcome": "outcome",
}
"""Variables as sentences and figures have them."""
ARROW = "\N{RIGHTWARDS ARROW}"
SMALL = 0.5
"""Per cent: a smaller change is none in words."""


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
        """Verdict on the model (`judged`)."""
        return judged(self._effect(self.model), self._effect(self.truth))

    @property
    def log_verdict(self) -> str:
        """Verdict on the rows as they are."""
        return judged(self._effect(self.naive), self._effect(self.truth))

    @property
    def headline(self) -> str:
        """Three numbers, and who is right."""
        question = question_words(self.world, self.truth.values[self.first], self.truth.values[self.second])
        subject = OUTCOMES[self.world.objective].subject
        log = change_words(self._effect(self.naive), self.world)
        truth = change_words(self._effect(self.truth), self.world)
        model = change_words(self._effect(self.model), self.world)
        return (
            f"{question}: by the log ({self.rows} rows) {subject} {log}; in truth ({self.intervals} intervals simulated) {truth}; "
            f"by the model on this graph {model}. {self._judgement()}"
        )

    @property
    def explanation(self) -> str:
        """Sentences on the graph: which edges it lacks or has more, what is held fixed, and where adjustment and model disagree."""
        doubt = ""
        if self.model.word:
            doubt = f"The {self.backend} {self.model.word}."
        if self.model.refusal:
            doubt = f"The {self.backend} cannot say: {self.model.refusal.rstrip('.')}."
        parts = [
            edges_in_words(self.graph, self.world.by_load),
            held_in_words(self.held),
            self._disagreement() or doubt,
        ]
        return " ".join(part for part in parts if part)

    def _judgement(self) -> str:
        """Sentence on who is right."""
        model = f"The model {VERDICT_WORDS[self.verdict]}"
        if SILENT in (self.verdict, self.log_verdict):
            return f"{model}."
        return f"{model}; the log {VERDICT_WORDS[self.log_verdict]}."

    def _effect(self, curve: Curve) -> Span:
        """Effect by a curve of what is asked about."""
        return curve.effect(self.first, self.second)

    def _disagreement(self) -> str:
        """Why adjustment and the model differ, or "" where they do not."""
        adjustment = self._effect(self.held)
        model = self._effect(self.model)
        if self.held.refusal or math.isnan(adjustment.low) or math.isnan(model.low) or adjustment.meets(model):
            return ""
        said = f"Adjustment says {change_words(adjustment, self.world)}."
        edges = set(self.graph.edges)
        if "load" not in self.held.held and ("load", "outcome") in edges:
            return (
                f"{said} In the model the load is still held fixed, since {edge_words([('load', 'outcome')])} stands."
            )
        if set(FULL) - set(LOAD) - edges:
            return f"{said} It does not ask by which way the knob acts; the model leaves out what goes by an edge that is not there."
        return f"{said} One of the two does not fit the rows."


def question_words(world: IntervalWorld, first: float, second: float) -> str:
    """What is asked, from two entries of the knob: the knob and its two values, in its unit."""
    unit = f" {world.info.knob.unit}".rstrip()
    before = number_words(world.value(first))
    after = number_words(world.value(second))
    return f"With {world.info.words} {after}{unit} instead of {before}{unit}"


def number_words(value: float) -> str:
    """A number to three figures at least, without an exponent: 44,158 or 0.125."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def change_words(span: Span, world: IntervalWorld) -> str:
    """A change of the objective with its interval, in per cent: "33 % sooner (30 to 36)"; "cannot say" where there is none."""
    if math.isnan(span.mean):
        return "cannot say"
    outcome = OUTCOMES[world.objective]
    direction = outcome.more
    sign = 1.0
    if span.mean < 0:
        direction = outcome.less
        sign = -1.0
    change = abs(100 * math.expm1(span.mean))
    words = f"{change:.0f} % {direction}"
    if change < SMALL:
        words = "as before"
    if math.isnan(span.low):
        return f"{words} (no interval)"
    ends = sorted(round(sign * 100 * math.expm1(end)) for end in (span.low, span.high))
    return f"{words} ({ends[0]} to {ends[1]})"


def edge_words(edges) -> str:
    """Edges as a list of arrows."""
    return ", ".join(f"{NAMES[cause]} {ARROW} {NAMES[effect]}" for cause, effect in edges)


def edges_in_words(graph: CausalGraph, by_load: bool) -> str:
    """Which edges of the true graph a graph lacks, and which it has more; "" for the true one. `by_load`: the operator follows the load."""
    edges = set(graph.edges)
    missing = [edge for edge in FULL if edge not in edges]
    extra = [edge for edge in graph.edges if edge not in FULL]
    parts = []
    if not edges & set(LOAD):
        habit = "the model takes the operator's habit for an effect"
        if not by_load:
            habit = "the operator does not follow it, so little is lost"
        parts.append(f"The graph lacks all edges of the load: {habit}.")
        missing = [edge for edge in missing if edge not in LOAD]
    if missing:
        parts.append(f"The graph lacks {edge_words(missing)}.")
    if extra:
        parts.append(f"The graph has also {edge_words(extra)}.")
    return " ".join(parts)


def held_in_words(held: Curve) -> str:
    """What adjustment holds fixed, or why it cannot say."""
    if held.refusal:
        return f"Adjustment cannot say: {held.refusal.rstrip('.')}."
    if not held.held:
        return "By this graph nothing confounds the knob: adjustment holds nothing fixed, and says what the log says."
    names = " and ".join(NAMES[name] for name in held.held)
    return f"Adjustment holds the {names} fixed."
