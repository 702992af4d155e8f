"""Explorers of the whole tree: few hooks, and each figure of each by the same path."""

import ast
from functools import cache
from pathlib import Path

import pytest
from package_files import files_of, parsed
from present import present

import gpuschedlab as lab
from gpuschedlab import widgets
from gpuschedlab.check.samples import small_trace

ROOT = Path(__file__).resolve().parents[2]
MOST = 5
"""Methods of bases that explorers may redefine."""
WHOLE = ("__init__", "_ipython_display_", "html", "states", "close")
"""Methods that every explorer may extend by what it calls itself: they call those of the base."""


@cache
def explorers() -> dict[str, ast.ClassDef]:
    """Classes of the package and of the scenes that are explorers, or parts of one, by name."""
    paths = [*files_of(ROOT / "gpuschedlab", ".py"), *(ROOT / "notebooks" / "scenes").glob("*.py")]
    classes = {}
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
    found = {"BaseExplorer": classes["BaseExplorer"]}
    while more := {name for name, node in classes.items() if name not in found and found.keys() & bases(node)}:
        found |= {name: classes[name] for name in more}
    return found


def bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}


def ancestors(name: str, classes: dict) -> set[str]:
    above = bases(classes[name]) & classes.keys()
    return above.union(*(ancestors(each, classes) for each in above))


def test_explorers_have_few_hooks():
    """A hook is a method of a base that some explorer defines anew."""
    classes = explorers()
    assert len(classes) > 8
    hooks = set()
    for name, node in classes.items():
        inherited = {method for base in ancestors(name, classes) for method in methods(classes[base])}
        hooks |= inherited & methods(node).keys()
    assert len(hooks - {*WHOLE}) <= MOST, hooks - {*WHOLE}
    assert {"_controls", "_compute", "_page", "_asked"} <= hooks


def test_what_an_explorer_extends_is_called():
    for name, node in explorers().items():
        if name == "BaseExplorer":
            continue
        for method in methods(node).keys() & {*WHOLE}:
            assert "super()" in ast.unparse(methods(node)[method]), (name, method)


def small(name: str):
    """An explorer of small size."""
    if name == "Explorer":
        return widgets.Explorer(small_trace(), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Tiresias])
    if name == "CopterExplorer":
        return widgets.CopterExplorer(widgets.SimilarRounds(jobs=20))
    if name == "UniSchedExplorer":
        return widgets.UniSchedExplorer(widgets.SmallLeases(nodes=2, jobs=12))
    if name == "PromptExplorer":
        return widgets.PromptExplorer(widgets.PromptLab(gpus=16).with_knobs(load="low"))
    if name == "YmirExplorer":
        return widgets.YmirExplorer(nodes=1, hours=2.0)
    if name == "CausalLab":
        return widgets.CausalLab(rows=40, intervals=3).finish()
    if name == "TunerLab":
        from gpuschedlab.autosched import LiveDays, LiveTuning

        return widgets.TunerLab(LiveDays(days=1, jobs=100), LiveTuning(evaluations=3)).play(2)
    return widgets.SiteExplorer()


NAMES = {
    "copter": "CopterExplorer",
    "deadlines": "UniSchedExplorer",
    "prompttuner": "PromptExplorer",
    "ymir": "YmirExplorer",
    "clusters": "SiteExplorer",
}


OURS = present({paper: {name: paper} for paper, name in NAMES.items()})
LABS = present({"autosched": {"CausalLab": "autosched", "TunerLab": "autosched"}})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "SiteExplorer" else [])
        for name in ("Explorer", *OURS, *LABS)
    ],
)
def test_each_figure_is_had_by_its_name(name):
    pytest.importorskip("anywidget", reason="anywidget, of the extra lab, is not installed")
    explorer = small(name)
    figures = {place.name: place.height for place in explorer.places if not place.words}
    if name == "TunerLab":
        stages = ("stage", "stage_left", "stage_right")
        explorer.point(1, 4)
        assert explorer.figure("stage").layout.height == figures["stage"]
        explorer.point(1, 1)
        assert explorer.figure("stage_left").layout.height == figures["stage_left"]
        assert explorer.figure("stage_right").layout.height == figures["stage_right"]
        figures = {figure: height for figure, height in figures.items() if figure not in stages}
    for figure, height in figures.items():
        assert explorer.figure(figure).layout.height == height
    assert not explorer.error.outputs
    explorer.close()
