"""Logs of the arena (`reproduce.autosched.causes`), as they are kept.

They are apart, so that questions about them may change without playing them anew.
"""


def play(data_dir, number: int, draw: int, code: str) -> dict:
    """A log with its truth, by the code that its hash names."""
    from scenes.arena import operated

    case = operated(number, draw)
    frame = case.log.frame.to_dict(as_series=False)
    return case._asdict() | {"log": None, "frame": frame, "knob": case.log.knob, "closed": case.log.closed}
