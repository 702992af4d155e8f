"""Ymir (paper, thesis) on the workloads of the Titan artifact."""

PAGES = {
    "ymir": (
        "docs/systems/ymir.md",
        "notebooks/12_ymir.ipynb",
        "notebooks/scenes/digits.py",
        "notebooks/scenes/merger_steps.py",
    ),
}
SOURCES = {"ymir": "papers.ymir.ours"}
TITLES = {"ymir": "Ymir (paper, thesis, artifact)"}
TABLES = {"titan": "papers.ymir.artifact_runs", "zoo": "papers.ymir.zoo"}
BUDGETS = {"merges": "papers.ymir.merges"}
BRIEF = {"ymir": {"interval": 600.0}}
NOTEBOOKS = {
    "ymir": [
        "from gpuschedlab.widgets import YmirExplorer",
        "explorer = YmirExplorer(nodes=1, hours=2.0)\nexplorer",
    ],
}


def _known():
    """What tasks give each other, as it is."""
    from gpuschedlab.estimators import Transfers

    return Transfers(method="oracle")


ESTIMATORS = {"ymir": _known}


def _explorer():
    """One of two hours."""
    from gpuschedlab import widgets

    return widgets.YmirExplorer(nodes=1, hours=2.0)


EXPLORERS = {"ymir": _explorer}
TASKS = {"finetuning": (1, 42, "2x4:v100", 285169.306, 76.0, 132035.868)}


def _learners(made, normalised, not_by_rows, rows_of):
    """What its estimators learn from."""
    import polars as pl

    from gpuschedlab.papers.ymir.estimators.transferability import GainRegression

    def rows(count, rng):
        a, b = rng.random((2, count))
        tasks = pl.DataFrame({"source": "a", "target": [f"t{i}" for i in range(count)], "score": a})
        return tasks.with_columns(gain=0.3 - 0.4 * a + 0.05 * b), "gain"

    rows_of[GainRegression] = rows


LEARNERS = {"ymir": _learners}
SLIPS = dict.fromkeys(
    (
        "titan-optimus",
        "optimus-youngest",
        "titan-extra-pass",
        "titan-refusals",
        "titan-whole-seconds",
        "titan-forgetful-pollux",
    ),
    "papers.ymir.referee",
)
