"""Words for the reasons of a wait: one phrase for each."""

BEGAN = {"preempted": "preempted; ", "failed": "its node failed; ", "profiled": "its profiling ended; "}


def hours(seconds: float) -> str:
    """Write a time in hours.

    Examples
    --------
    >>> hours(5400.0)
    '1.50 h'
    """
    return f"{seconds / 3600:.2f} h"


def span(least_most: tuple[float, float]) -> str:
    """Write a range of numbers, or the one number that it is.

    Examples
    --------
    >>> span((2.0, 2.0)), span((2.0, 5.5))
    ('2', '2 to 5.5')
    """
    low, high = least_most
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def phrase(facts: dict) -> str:
    """Say why a job waited, from the facts about some steps of one reason.

    Examples
    --------
    >>> none = dict.fromkeys(("place", "ahead", "later", "leased"), (None, None))
    >>> facts = none | {"reason": "room", "began": None, "gated": False, "needs": 4, "down": 0.0, "chosen": 0}
    >>> phrase(facts | {"free": (1, 2), "missing": (2, 3)})
    'needs 4 GPUs: 1 to 2 were free, 2 to 3 missing'
    """
    return BEGAN.get(facts["began"], "") + PHRASES[facts["reason"]](facts) + _beside(facts)


def _beside(facts: dict) -> str:
    """What else held then: jobs before it, running ones that may not be preempted, nodes that were down."""
    parts = []
    if facts["gated"]:
        parts.append("the policy's gate held it back")
    if facts["place"][1]:
        parts.append(f"{span(facts['place'])} waiting jobs went before it")
    if facts["ahead"][1]:
        parts.append(f"running jobs that go before it held {span(facts['ahead'])} GPUs")
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
        parts.append(f"up to {facts['down']:g} GPUs were down")
    if facts["chosen"]:
        later = f", {facts['passed']} of them submitted later" if facts["passed"] else ""
        one = "1 other job" if facts["chosen"] == 1 else f"{facts['chosen']} other jobs"
        parts.append(f"{one} started meanwhile{later}")
    return "".join(f"; {part}" for part in parts)


def _lack(facts: dict) -> str:
    return f"{span(facts['free'])} were free, {span(facts['missing'])} missing"


def _room(facts: dict) -> str:
    return f"needs {facts['needs']:g} GPUs: {_lack(facts)}"


def _nodes(facts: dict) -> str:
    rule = facts["rule"].get("placement", "")
    return (
        f"needs {facts['needs']:g} GPUs on nodes that the placement rule {rule!r} accepts: {span(facts['free'])} were free, "
        f"but {span(facts['missing'])} missing in such places"
    )


def _behind(facts: dict) -> str:
    return (
        f"behind job {facts['blocker']}, which goes first and needs {facts['needs']:g} GPUs: {_lack(facts)}; "
        "backfill is none, so no job passes it"
    )


def _reserved(facts: dict) -> str:
    at = f" at {hours(facts['until'][1])}" if facts["until"][1] is not None else ""
    return (
        f"would fit, but by the estimates it would delay job {facts['blocker']}, which goes first, needs "
        f"{facts['needs']:g} GPUs ({_lack(facts)}), and is to start{at}"
    )


def _undecided(facts: dict) -> str:
    due = f"; the next one was due at {hours(facts['until'][1])}" if facts["until"][1] is not None else ""
    return f"no decision since it began to wait{due}"


def _left(facts: dict) -> str:
    rounds = "the decision" if facts["steps"] == 1 else "the decisions"
    room = f"{span(facts['free'])} were free" if facts["missing"][1] > 0 else f"though {span(facts['free'])} were free"
    return (
        f"{rounds} of the policy gave {span(facts['used'])} GPUs to {span(facts['running'])} jobs and it none "
        f"(it needs {facts['needs']:g}; {room})"
    )


def _unplaced(facts: dict) -> str:
    rule = facts["rule"].get("placement", "")
    return f"the decision gave it GPUs, but the placement rule {rule!r} found no nodes for them ({_lack(facts)})"


PHRASES = {
    "room": _room,
    "nodes": _nodes,
    "behind": _behind,
    "reserved": _reserved,
    "undecided": _undecided,
    "left": _left,
    "unplaced": _unplaced,
}
"""Phrase of each reason (`gpuschedlab.sim.decisions.REASONS`)."""
