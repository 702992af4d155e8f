"""Words for the reasons of a wait: one phrase for each."""

BEGAN = {"preempted": "preempted; ", "failed": "its node failed; ", "profiled": "its profiling ended; "}


def hours(seconds: float, digits: int = 0) -> str:
    """Write a time in hours, to two decimals or to so many digits."""
    return f"{seconds / 3600:.{digits}g} h" if digits else f"{seconds / 3600:.2f} h"


def lasting(seconds: float) -> str:
    """Write how long something lasted, in the unit that reads best."""
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else hours(seconds, 3)


def span(least_most: tuple[float, float], noun: str = "") -> str:
    """Write a range of numbers, or the one number that it is, and what is counted."""
    low, high = least_most
    number = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return f"{number} {noun}{'' if high == 1 else 's'}" if noun else number


def phrase(facts: dict) -> str:
    """Say why a job waited, from the facts about some steps of one reason."""
    return BEGAN.get(facts["began"], "") + PHRASES[facts["reason"]](facts) + _beside(facts)


def _beside(facts: dict) -> str:
    """What else held then: jobs before it, running ones that may not be preempted, nodes that were down."""
    parts = []
    if facts["gated"]:
        parts.append("the policy's gate held it back")
    if before := _before(facts):
        parts.append(f"{before} went before it")
    if facts["ahead"][1]:
        parts.append(f"running jobs that go before it held {span(facts['ahead'], 'GPU')}")
    if facts["later"][1] and facts["free"][1] + facts["later"][1] >= facts["needs"]:
        claimed = ", or only such as jobs before it claim" if facts["place"][1] else ""
        parts.append(
            f"running jobs that go after it held {span(facts['later'])}, and stopping the last of them frees no places that "
            f"the placement rule accepts{claimed}"
        )
    if facts["leased"][1]:
        until = f" until {hours(facts['until'][0])}" if facts["until"][0] is not None else ""
        parts.append(f"others held {span(facts['leased'])} by leases{until}")
    if facts["down"] > 0:
        parts.append(f"up to {span((facts['down'], facts['down']), 'GPU')} were down")
    if facts["chosen"] and facts["reason"] != "behind":
        later = f", {facts['passed']} of them submitted later" if facts["passed"] else ""
        parts.append(f"{span((facts['chosen'],) * 2, 'other job')} started meanwhile{later}")
    return "".join(f"; {part}" for part in parts)


def _before(facts: dict) -> str:
    """Waiting jobs that go before it, beside the one that it waits behind."""
    least, most = facts["place"]
    if facts["blocker"] is not None and most:
        return span((least - 1, most - 1), "other waiting job") if most > 1 else ""
    return span((least, most), "waiting job") if most else ""


def _needs(facts: dict) -> str:
    """GPUs that are needed, those that were free, and how many were missing where the placement rule allows."""
    needs = facts["needs"]
    _, free = facts["free"]
    least, most = facts["missing"]
    were = "was" if facts["free"] == (1, 1) else "were"
    some = f"needs {span((needs, needs), 'GPU')}: {span(facts['free'])} {were} free"
    if most <= 0:
        return f"{some}, enough for it"
    if free + least > needs:
        usable = span((needs - most, needs - least))
        some += f", but only {usable} where the placement rule {facts['rule'].get('placement', '')!r} allows"
    return f"{some}, {span((least, most))} missing"


def _behind(facts: dict) -> str:
    return f"behind job {facts['blocker']}, which goes first and {_needs(facts)}; backfill is none, so no job passes it"


def _reserved(facts: dict) -> str:
    at = f" to start at {hours(facts['until'][1])}" if facts["until"][1] is not None else ""
    return f"would fit, but by the estimates it would delay job {facts['blocker']}, which goes first, is{at}, and {_needs(facts)}"


def _left(facts: dict) -> str:
    if facts["note"]:
        return f"{facts['note']}; it {_needs(facts)}"
    decided = "the decision" if facts["steps"] == 1 else "the decisions"
    gave = f"{span(facts['used'], 'GPU')} to {span(facts['running'], 'job')}"
    return f"{decided} of the policy gave {gave}, and it none; it {_needs(facts)}"


PHRASES = {
    "room": _needs,
    "nodes": _needs,
    "behind": _behind,
    "reserved": _reserved,
    "undecided": lambda facts: (
        "no decision since it began to wait"
        + (f"; the next one was due at {hours(facts['until'][1])}" if facts["until"][1] is not None else "")
    ),
    "left": _left,
    "unplaced": lambda facts: f"the decision gave it GPUs, and no nodes were found for them; it {_needs(facts)}",
    "window": lambda facts: "would fit, but by its estimate it would run into a window in which nodes are taken",
}
"""Phrase of each reason (`gpuschedlab.sim.explain.decisions.REASONS`)."""
