"""Optimus: its policy."""

PAGES = {
    "optimus": ("docs/systems/optimus.md",),
}
