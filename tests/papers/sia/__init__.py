"""Sia (thesis, chapter 3) on the workloads of its artifact."""

PAGES = {
    "sia": (
        "docs/systems/sia.md",
        "notebooks/05_sia.ipynb",
        "notebooks/scenes/goodput.py",
    ),
}
SOURCES = {"sia": "papers.sia.ours"}
TITLES = {"sia": "Sia (thesis, chapter 3)"}
BUDGETS = {"sia": "papers.sia.traces"}
LONG_JOB = {"sia": 50.0}
PARTS = {"sia": ({}, {"evictions": True}, {"solver": "highs"})}
TIME_LIMITS = dict.fromkeys(("sia",))
TASKS = {"goodput": (1, 60, "4x4:slow,2x4:fast", 228872.897, 130.0, 240000.0)}
SLIPS = dict.fromkeys(("sia-tuned-batches", "sia-rigid-power"), "papers.sia.referee")
