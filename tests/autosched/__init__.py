"""AutoSched (thesis, chapter 6): closed loops on real traces, and its parts."""

PAGES = {
    "autosched": (
        "docs/systems/autosched.md",
        "docs/measured/budget.json",
        "docs/measured/causes.json",
        "docs/measured/regimes.json",
        "docs/measured/switches.json",
        "docs/measured/worlds.json",
        "notebooks/09_autosched.ipynb",
        "notebooks/scenes/tuning.py",
        "notebooks/scenes/manual_tuning.py",
        "notebooks/scenes/by_hand.py",
        "notebooks/scenes/response_curves.py",
        "notebooks/10_causal.ipynb",
        "notebooks/scenes/causes.py",
        "notebooks/11_arena.ipynb",
        "notebooks/scenes/arena.py",
        "notebooks/scenes/believed.py",
        "notebooks/scenes/estimators.py",
    ),
}
SOURCES = {"autosched": "autosched.ours"}
TITLES = {"autosched": "AutoSched (thesis, chapter 6)"}
TABLES = {
    "motivation": "autosched.motivation",
    "generation": "autosched.generation",
    "causal": "autosched.causal",
    "ablation": "autosched.ablation",
    "logbook": "autosched.logbook",
    "causes": "autosched.causes",
    "worlds": "autosched.worlds",
    "budget": "autosched.budget",
    "regimes": "autosched.regimes",
    "switches": "autosched.switches",
    "overhead": "autosched.overhead",
    "autosched": "autosched.loop",
}
BUDGETS = {"why": "autosched.why"}
NOTEBOOKS = {
    "logbook": [
        "import gpuschedlab as lab\nfrom gpuschedlab.autosched import Rule\nfrom gpuschedlab.widgets import LogbookExplorer",
        'trace = lab.generate("venus", days=4, jobs=400, load=1.0, cluster_gpus=24, rng=0)\n'
        'scenario = lab.Scenario(trace.filter(trace["gpus"] <= 12), lab.Cluster.homogeneous(3, 8))\n'
        'explorer = LogbookExplorer(scenario, Rule(lab.Tiresias(), "pack_limit", (0.0, 0.5, 1.0)), {"length": 4})\nexplorer',
    ],
    "autosched": [
        "import polars as pl\nimport gpuschedlab as lab\nfrom gpuschedlab.autosched import Contest, Tuner\n"
        "from gpuschedlab.speeds import default_speeds\nfrom gpuschedlab.widgets import AutoSchedExplorer",
        "cluster = lab.Cluster.homogeneous(6, 8)\n"
        'whole = lab.generate("venus", days=2, jobs=800, load=1.1, cluster_gpus=48, rng=0)\n'
        'whole = whole.filter(pl.col("gpus") <= 24).with_columns(pl.col("submit") - 86_400.0)\n'
        'history, trace = whole.filter(pl.col("submit") < 0), whole.filter(pl.col("submit") >= 0)\n'
        "scenario = lab.Scenario(trace, cluster, history=history, speeds=default_speeds, delays=lab.Delays(restart=60.0))\n"
        "contest = Contest(scenario, lab.Tiresias(), tuner=Tuner.thesis(batch=32))\n"
        "explorer = AutoSchedExplorer(contest).play_hours(1)\nexplorer",
    ],
}
RECORDED = {"recorded": ["from gpuschedlab.widgets import RecordedExplorer", "RecordedExplorer(hours=1)"]}


def _features(simulation) -> list:
    """What the forecasts of durations are made from."""
    import numpy as np

    from gpuschedlab.autosched.forecast.features import Seen
    from gpuschedlab.autosched.forecast.repository import observe
    from gpuschedlab.check.samples import recurring_sample

    asked = recurring_sample(60, 0).head(5).with_columns(executed=0.0)
    found = Seen(observe(simulation)).features(asked, np.full(5, 20_000.0), 2)
    return np.nan_to_num(found, nan=-1).tolist()


COMPILED = {"features": _features}


def _tuner():
    """Its class."""
    from gpuschedlab.autosched import Tuner

    return Tuner


def _aggregator():
    """Its class."""
    from gpuschedlab.autosched import Aggregator

    return Aggregator


DECLARED = {
    _tuner: {"iterations": -1, "sampler": "magic", "epsilon": 1.5, "gamma": 0, "batch": 0, "spread": 2},
    _aggregator: {"window": 0, "ratio": 1, "most": 0, "room": 0},
}


def _learners(made, normalised, not_by_rows, rows_of):
    """How its estimators are made, and what they learn from."""
    import polars as pl

    from gpuschedlab.autosched.causal.graph import Layers, full_graph
    from gpuschedlab.autosched.causal.model import CausalModel
    from gpuschedlab.autosched.forecast.ranges import RangePredictor

    graph = full_graph(Layers(("knob",), ("metric",), ("goal",)))

    def rows(count, rng):
        a, b = rng.random((2, count))
        metric = 2 * a + 0.1 * b
        return pl.DataFrame({"knob": a, "metric": metric, "goal": 3 * metric + 0.1 * rng.random(count)}), "goal"

    made[CausalModel] = lambda: CausalModel(graph, rng=3, trees=5)
    rows_of[CausalModel] = rows
    not_by_rows.add(RangePredictor)  # it learns from a repository at an instant


LEARNERS = {"autosched": _learners}
