"""Exercises of the notebooks: each notebook's own solution is accepted, two wrong answers are refused, with a reason that helps."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import exercises
import numpy as np
import polars as pl
import pytest
from scipy import stats

import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace

nbformat = pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
SOLUTION = re.compile(
    r"<details><summary>Solution of the exercise</summary>\n\n```python\n(.*?)```\n\n</details>", re.DOTALL
)

# --- what the cells before an exercise leave behind, in small


@cache
def runs() -> dict:
    trace = small_trace()
    cluster = lab.Cluster.homogeneous(2, 8)
    return {"Fifo": lab.simulate(trace, cluster, lab.Fifo()), "Srtf": lab.simulate(trace, cluster, lab.Srtf())}


@cache
def race():
    """A race in its last hours: some jobs have ended."""
    from gpuschedlab.autosched import LiveDays, LiveTuning, Race

    race = Race(LiveDays(days=1, jobs=150, load=1.2), LiveTuning(way="last hour", evaluations=3), seed=3)
    race.play(20)
    return race


def goodput(model, kind, gpus):
    return {"wide": (1.0, 2.5), "narrow": (1.0, 1.6), "picky": (1.0, 6.0)}[model][kind] * gpus ** (
        0.35 + len(model) % 4 / 4
    )


def given(stem: str) -> dict:
    """Names that the exercise of a notebook finds."""
    names = {"__name__": "notebook", "lab": lab, "np": np, "pl": pl, "stats": stats, "dataclass": dataclass, "SEED": 0}
    if stem == "00_quickstart":
        names["runs"] = runs()
    if stem == "05_sia":
        names |= {"goodput": goodput, "PACE": ("wide", "narrow", "picky"), "names": "123456"}
        names |= {"kinds": np.array([0, 0, 0, 1, 1, 1]), "counts": np.array([1, 2, 4, 1, 2, 4])}
    if stem == "06_copter":
        from scenes import rounds

        names |= {"scene": rounds, "solve": rounds.solve}
    if stem == "09_autosched":
        names["other"] = SimpleNamespace(race=race())
    if stem == "11_arena":
        rows = [
            ("none", "default", 0.0, 2.0, 1.0),
            ("none", "default", 0.0, 2.0, 3.0),
            ("none", "default", 0.0, 2.0, 1.5),
        ]
        rows += [
            ("none", "default", None, None, 1.0),
            ("hidden", "default", 0.0, 2.0, 4.0),
            ("hidden", "default", 0.0, 2.0, 1.0),
            ("none", "naive", 0.0, 1.0, 3.0),
            ("none", "naive", 0.0, 1.0, 2.0),
        ]
        names["found"] = pl.DataFrame(rows, schema=["flaw", "estimator", "low", "high", "truth"], orient="row")
    return names


def checks(path: Path) -> list[str]:
    """The cells of a notebook that check an exercise."""
    return [c.source for c in nbformat.read(path, 4).cells if "import exercises" in c.source]


def answered(path: Path, number: int, answer: str = "") -> exercises.Verdict:
    """Verdict of one of a notebook's own cells, with some code run before its last line."""
    *body, last = ast.parse(checks(path)[number]).body
    names = given(path.stem)
    exec(compile(ast.Module(body, []), path.name, "exec"), names)
    exec(compile(answer, path.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), path.name, "eval"), names)


lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


@lesson
def test_the_solutions_in_the_notebook_are_right(path):
    text = "\n".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "markdown")
    solutions = SOLUTION.findall(text)
    assert len(solutions) == len(checks(path)) > 0
    for number, solution in enumerate(solutions):
        verdict = answered(path, number, solution)
        assert verdict.right is True, verdict


@lesson
def test_an_exercise_without_an_answer_says_so(path):
    for number in range(len(checks(path))):
        verdict = answered(path, number)
        assert verdict.right is None
        assert str(verdict).startswith("Not answered yet. ")


WRONG = {
    "00_quickstart": (
        (
            "q = {n: r.summary()['queueing_mean'] for n, r in runs.items()}\nanswer = q['Srtf'] / q['Fifo']",
            "the share that is left",
        ),
        (
            "j = {n: r.summary()['jct_mean'] for n, r in runs.items()}\nanswer = 1 - j['Srtf'] / j['Fifo']",
            "share of the JCT",
        ),
    ),
    "01_waiting": (
        (
            "def dispersion(submit, hours):\n    k = np.unique(submit // 3600, return_counts=True)[1]\n    return k.var() / k.mean()",
            "Hours without arrivals count",
        ),
        (
            "def dispersion(submit, hours):\n    k = np.histogram(submit, hours, (0, 3600 * hours))[0]\n    return k.std() / k.mean()",
            "standard deviation",
        ),
        ("starts = lambda free, gpus, size: sum(free) >= gpus", "scattered"),
        ("starts = lambda free, gpus, size: max(free) >= gpus", "it starts, on 2 of the nodes"),
    ),
    "02_policies": (
        (
            "def interval(a, b):\n    return stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)",
            "take the differences first",
        ),
        (
            "def interval(a, b):\n    d = b - a\n    h = 1.96 * d.std(ddof=1) / len(d) ** 0.5\n    return d.mean() - h, d.mean() + h",
            "1.96 is for many seeds",
        ),
    ),
    "04_your_policy": (
        ("answer = lab.Sjf", "has the highest ratio; your policy starts"),
        ("answer = lab.Srtf()", "preemptive"),
    ),
    "05_sia": (
        ("answer = [5, 1, 3]", r"hold \[2, 5\] GPUs"),
        ("answer = [None, None, 0]", "another is worth"),
    ),
    "06_copter": (
        ("bound = lambda u, k, g, c, p: (u - p[k] * g).max(axis=1).sum() + p @ c", "taking nothing"),
        (
            "bound = lambda u, k, g, c, p: np.maximum((u - p[k] * g).max(axis=1), 0).sum()",
            "own price belongs to the bound",
        ),
        (
            "step = lambda x, worth, price, gpus, size: x + size * (worth - price * gpus)",
            "a share stays between 0 and 1",
        ),
        ("step = lambda x, worth, price, gpus, size: min(1, x + size * worth)", "The price is missing"),
        (
            "def price(link):\n    cut = links.capacity * (np.arange(len(links.capacity)) != link)\n"
            "    return now - solve(flow_program(routes, cut, demand)).objective",
            "flow lost without the whole link",
        ),
        ("price = lambda link: now", "whole flow"),
    ),
    "09_autosched": (
        ("times = lambda tuned, default: default['jct'].mean() / tuned['jct'].mean()", "different jobs"),
        (
            "def times(tuned, default):\n    both = tuned.join(default, on='job_id', suffix='_d')\n"
            "    return both['jct'].mean() / both['jct_d'].mean()",
            "the tuner over the default",
        ),
    ),
    "10_causal": (
        ("adjusted = lambda log, p: log.filter(preemptions=p)['reward'].mean()", "most of them are nights"),
        (
            "adjusted = lambda log, p: log.filter(preemptions=p).group_by('night').agg(pl.col('reward').mean())['reward'].mean()",
            "how often they are",
        ),
    ),
    "11_arena": (
        (
            "own = found.filter(estimator='default').drop_nulls('low')\n"
            "answer = own.select(pl.col('truth').is_between('low', 'high').mean()).item()",
            "keep the flaw",
        ),
        (
            "own = found.filter(estimator='default', flaw='none')\n"
            "answer = own.select(pl.col('truth').is_between('low', 'high').fill_null(False).mean()).item()",
            "divide by the intervals that there are",
        ),
    ),
    "12_ymir": (
        ("worth = lambda a, b, f: (2 * a + b) / (2 * a + b / f)", "the shorter job goes first"),
        ("worth = lambda a, b, f: (a + b) / (a + b / f)", "add up both"),
    ),
    "13_prompttuner": (
        ("bill = lambda gaps, window, cold: gaps.sum() + cold * (gaps > window).sum()", "idle for the window at most"),
        ("bill = lambda gaps, window, cold: np.minimum(gaps, window).sum()", "cold starts after long gaps are missing"),
    ),
    "14_unisched": (
        (
            "def admit(need, due):\n    chosen, now = [], 0\n    for i in sorted(range(len(need)), key=lambda i: due[i]):\n"
            "        if now + need[i] <= due[i]:\n            chosen, now = [*chosen, i], now + need[i]\n    return chosen",
            "are in time, but 3 can be",
        ),
        ("admit = lambda need, due: range(len(need))", "is late, even with"),
    ),
    "15_my_cluster": (
        ("promised = lambda free, running, need: max(limit for limit, _ in running)", "that waits for all jobs"),
        (
            "def promised(free, running, need):\n    free = 0\n    for limit, gpus in sorted(running):\n        free += gpus\n"
            "        if free >= need:\n            return limit\n    return 0.0",
            "that are free now count",
        ),
    ),
}
"""Two wrong answers for each exercise of a notebook, in their order, and what the verdict says of them."""


def test_each_exercise_has_wrong_answers():
    assert {path.stem for path in LESSONS} <= set(WRONG)
    assert all(len(WRONG[path.stem]) == 2 * len(checks(path)) for path in LESSONS)


@pytest.mark.parametrize(
    ("path", "number"),
    [(p, n) for p in LESSONS for n in range(len(WRONG[p.stem]))],
    ids=lambda v: v.stem if isinstance(v, Path) else str(v),
)
def test_a_wrong_answer_is_refused_with_a_reason(path, number):
    answer, why = WRONG[path.stem][number]
    verdict = answered(path, number // 2, answer)
    assert verdict.right is False
    assert re.search(why, verdict.why), verdict


def test_errors_in_an_answer_are_part_of_the_verdict():
    verdict = exercises.pool_bill(lambda gaps, window, cold: 1 / 0)
    assert verdict.right is False
    assert "ZeroDivisionError" in verdict.why
    assert exercises.pool_bill("20").why == "Found '20'; expected a function."
    assert "expected a number" in exercises.pool_bill(lambda *_: "many").why


def test_a_verdict_shows_text_and_no_markup():
    verdict = exercises.Verdict(False, "<b>")
    assert "&lt;b&gt;" in verdict._repr_html_()
    assert not verdict
    assert exercises.Verdict(True, "")
