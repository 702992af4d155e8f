"""UniSched and Chronus (papers, thesis, artifact)."""

PAGES = {
    "deadlines": (
        "docs/systems/unisched.md",
        "docs/systems/chronus.md",
        "docs/systems/deadlines.md",
        "docs/systems/threesigma.md",
        "docs/measured/unisched-program.json",
        "notebooks/14_unisched.ipynb",
    ),
}
SOURCES = {"unisched": "papers.deadlines.ours"}
TITLES = {"unisched": "UniSched and Chronus (papers, thesis, artifact)"}
TABLES = {"unisched-program": "papers.deadlines.program"}
BUDGETS = {"leases": "papers.deadlines.leases"}
BRIEF = {"threesigma": {"interval": 300.0, "horizon": 8, "window": 16}}
NOTEBOOKS = {
    "unisched": [
        "from gpuschedlab.widgets import SmallLeases, UniSchedExplorer",
        "explorer = UniSchedExplorer(SmallLeases(nodes=2, jobs=12))\nexplorer",
    ],
}
TIME_LIMITS = dict.fromkeys(
    (
        "chronus",
        "unisched",
        "threesigma",
    )
)


def _explorer():
    """One of a few jobs."""
    from gpuschedlab import widgets

    return widgets.UniSchedExplorer(widgets.SmallLeases(nodes=2), jobs=12)


EXPLORERS = {"unisched": _explorer}
TASKS = {"deadlines": (1, 120, "3x8:v100", 3954939.0, 499.0, 442583.0)}


def _learners(made, normalised, not_by_rows, rows_of):
    """How its estimators are made."""
    from gpuschedlab.estimators import LearningCurve

    made[LearningCurve] = lambda: LearningCurve(targets={"b": 0.5, "a": 0.9})
    normalised.add(LearningCurve)


LEARNERS = {"deadlines": _learners}
