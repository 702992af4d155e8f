"""Shockwave: its program and its policy."""

PAGES = {
    "shockwave": ("docs/systems/shockwave.md",),
}
