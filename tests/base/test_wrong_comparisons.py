"""Every function that compares runs takes what it says, or refuses it by the argument's name and what was expected."""

import pytest
from small_jobs import ONE, jobs
from wrong_values import taken

from gpuschedlab import Fifo, Scenario, Srtf
from gpuschedlab.comparison import Comparison, compare, place_of
from gpuschedlab.scenarios.small_cluster import SmallCluster

SCENARIO = Scenario(jobs((0, 1, 10), (1, 1, 20)), ONE)
FOUND = compare(SCENARIO, [Fifo(), Srtf()])
RECIPE = SmallCluster()
EMPTY = ["[]", "()", "{}"]
FUNCTIONS = {
    "found": (lambda what: compare(what, [Fifo()]), []),
    "policies": (lambda policies: compare(SCENARIO, policies), []),
    "headline": (lambda headline: compare(SCENARIO, [Fifo()], headline=headline), ["''"]),
    "progress": (lambda progress: compare(SCENARIO, [Fifo()], progress=progress), ["True"]),
    "each": (lambda each: compare(SCENARIO, [Fifo()], each=None if each is int else each), ["None", "<class 'int'>"]),
    "seed": (lambda seed: compare(RECIPE, [Fifo()], seed=seed, weeks=1), []),
    "weeks": (lambda weeks: compare(RECIPE, [Fifo()], weeks=weeks), []),
    "recipe": (lambda recipe: place_of(recipe), []),
    "runs": (lambda runs: compare({"a": runs}, ["jct_mean"]), []),
    "metrics": (lambda metrics: compare(FOUND.runs, metrics), ["None", *EMPTY]),
    "metrics of a table": (lambda metrics: FOUND.table(metrics), ["None", *EMPTY]),
    "metrics that are shown": (lambda metrics: FOUND.show(metrics), ["None", *EMPTY]),
    "measure": (lambda measure: FOUND.sentence(measure), []),
    "measure of a pair": (lambda measure: FOUND.pair(measure), []),
    "measure of a page": (lambda measure: FOUND.html(measure=measure), []),
    "censored": (lambda censored: FOUND.sentence(censored=censored), ["True"]),
    "censored of a pair": (lambda censored: FOUND.pair(censored=censored), ["True"]),
    "censored of a table": (lambda censored: FOUND.table(censored=censored), ["True"]),
    "prices": (lambda prices: FOUND.sentence("cost", prices=prices), ["0.5", f"{2**70}"]),
    "prices of a table": (lambda prices: FOUND.table(prices=prices), ["0.5", "None", f"{2**70}"]),
    "speeds of a table": (lambda speeds: FOUND.table(speeds=speeds), ["None"]),
}
"""By argument: a call with it, and the values that are taken."""
FIELDS = {
    "runs": ["{}"],
    "failed": ["{}"],
    "stopped": ["True"],
    "place": ["''"],
    "weeks": ["None"],
    "headline": ["'x'", "''"],
    "words": ["{}"],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_argument_is_taken_or_refused_by_its_name(name):
    call, answer = FUNCTIONS[name]
    argument = name.split()[0]
    assert taken(lambda **given: call(*given.values()), argument) == answer


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_of_a_comparison(name):
    assert taken(lambda **given: Comparison(**{"runs": FOUND.runs} | given), name) == FIELDS[name]
