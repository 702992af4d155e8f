"""Gavel: its policy and its rates."""

PAGES = {
    "gavel": ("docs/systems/gavel.md",),
}
LONG_JOB = {"gavel": 50.0}
PARTS = {"gavel": ({},)}
