"""Pollux: its artifact's results."""

PAGES = {
    "pollux": ("docs/systems/pollux.md",),
}
SOURCES = {"pollux-artifact": "papers.pollux.ours"}
TITLES = {"pollux-artifact": "Pollux: its artifact's results"}
BRIEF = {"pollux": {"population": 10, "generations": 10}}
