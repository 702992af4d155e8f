"""Words for the reasons of a wait: one phrase for each."""

BEGAN = {"preempted": "preempted; ", "failed": "its node failed; ", "profiled": "its profiling ended; "}


def hours(seconds: float, digits: int = 0) -> str:
    """Write a time in hours as text, to two decimals or to so many digits."""
    if digits:
        return f"{seconds / 3600:.{digits}g} h"
    return f"{seconds / 3600:.2f} h"


def lasting(seconds: float) -> str:
    """Write how long something lasted as text, in the unit that reads best."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return hours(seconds, 3)


def span(least_most: tuple[float, float], noun: str = "") -> str:
    """Write a range of numbers as text, or the one number that it is, and the noun that is counted."""
    low, high = least_most
    range_in_words = f"{low:g}"
    if low != high:
        range_in_words = f"{low:g} to {high:g}"
    if not noun:
        return range_in_words
    if high == 1:
        return f"{range_in_words} {noun}"
    return f"{range_in_words} {noun}s"


def phrase(facts: dict) -> str:
    """Say why a job waited, as text, from the facts about some steps of one reason."""
    return BEGAN.get(facts["began"], "") + PHRASES[facts["reason"]](facts) + _beside(facts)


def _beside(facts: dict) -> str:
    """Write other facts of then, as text: jobs before it, running ones that may not be preempted, nodes that were down; or ""."""
    other_facts = []
    if facts["gated"]:
        other_facts.append("the policy's gate held it back")
    if jobs_before := _before(facts):
        other_facts.append(f"{jobs_before} went before it")
    if facts["ahead"][1]:
        other_facts.append(f"running jobs that go before it held {span(facts['ahead'], 'GPU')}")
    if facts["later"][1] and facts["free"][1] + facts["later"][1] >= facts["needs"]:
        claimed = ""
        if facts["place"][1]:
            claimed = ", or only such as jobs before it claim"
        other_facts.append(
            f"running jobs that go after it held {span(facts['later'])}, and stopping the last of them frees no places that "
            f"the placement rule accepts{claimed}"
        )
    if facts["leased"][1]:
        other_facts.append(f"others held {span(facts['leased'])} by leases{_instant(' until', facts['until'][0])}")
    if facts["down"] > 0:
        other_facts.append(f"up to {span((facts['down'], facts['down']), 'GPU')} were down")
    if facts["chosen"] and facts["reason"] != "behind":
        started = f"{span((facts['chosen'],) * 2, 'other job')} started meanwhile"
        if facts["passed"]:
            started += f", {facts['passed']} of them submitted later"
        other_facts.append(started)
    return "".join(f"; {other_fact}" for other_fact in other_facts)


def _instant(words_before: str, seconds: float | None) -> str:
    """Write an instant after some words, such as "until"; "" if there is none."""
    if seconds is None:
        return ""
    return f"{words_before} {hours(seconds)}"


def _before(facts: dict) -> str:
    """Write the waiting jobs that go before it, beside the one that it waits behind; an empty text if there is none."""
    least_place, most_place = facts["place"]
    if not most_place:
        return ""
    if facts["blocker"] is None:
        return span((least_place, most_place), "waiting job")
    if most_place > 1:
        return span((least_place - 1, most_place - 1), "other waiting job")
    return ""


def _needs(facts: dict) -> str:
    """Write the GPUs that are needed, those that were free, and how many were missing as the placement rule allows, as text."""
    needs = facts["needs"]
    _, free = facts["free"]
    least_missing, most_missing = facts["missing"]
    verb = "were"
    if facts["free"] == (1, 1):
        verb = "was"
    sentence = f"needs {span((needs, needs), 'GPU')}: {span(facts['free'])} {verb} free"
    if most_missing <= 0:
        return f"{sentence}, enough for it"
    if free + least_missing > needs:
        usable = span((needs - most_missing, needs - least_missing))
        placement = facts["rule"].get("placement", "")
        sentence += f", but only {usable} where the placement rule {placement!r} allows"
    return f"{sentence}, {span((least_missing, most_missing))} missing"


def _behind(facts: dict) -> str:
    """Words for a job that waits behind the first of its queue."""
    return f"behind job {facts['blocker']}, which goes first and {_needs(facts)}; backfill is none, so no job passes it"


def _reserved(facts: dict) -> str:
    """Words for a job that would delay a promised one."""
    promised_start = _instant(" to start at", facts["until"][1])
    return (
        f"would fit, but by the estimates it would delay job {facts['blocker']}, which goes first, "
        f"is{promised_start}, and {_needs(facts)}"
    )


def _left(facts: dict) -> str:
    """Words for a job to which a round gave no GPUs."""
    if facts["note"]:
        return f"{facts['note']}; it {_needs(facts)}"
    decisions = "the decisions"
    if facts["steps"] == 1:
        decisions = "the decision"
    gave = f"{span(facts['used'], 'GPU')} to {span(facts['running'], 'job')}"
    return f"{decisions} of the policy gave {gave}, and it none; it {_needs(facts)}"


def _undecided(facts: dict) -> str:
    """Words for a job that no decision has looked at."""
    return "no decision since it began to wait" + _instant("; the next one was due at", facts["until"][1])


PHRASES = {
    "room": _needs,
    "nodes": _needs,
    "behind": _behind,
    "reserved": _reserved,
    "undecided": _undecided,
    "left": _left,
    "unplaced": lambda facts: f"the decision gave it GPUs, and no nodes were found for them; it {_needs(facts)}",
    "window": lambda facts: "would fit, but by its estimate it would run into a window in which nodes are taken",
}
"""Phrase of each reason (`gpuschedlab.sim.explain.decisions.REASONS`)."""
