"""POP: its wrapper."""

PAGES = {
    "pop": ("docs/systems/pop.md",),
}
