"""Each field of a scenario takes a value, or says what it takes; the run that follows raises nothing else."""

import dataclasses
import warnings

import numpy as np
import pytest
from small_jobs import ONE, jobs
from wrong_values import taken

from gpuschedlab import Fifo, Scenario
from gpuschedlab.errors import RunError
from gpuschedlab.metrics.who_pays import MEASURES, Scope, compared, pair_of

TAKEN = {
    "history": ["None"],
    "warm": ["None"],
    "speeds": ["None"],
    "estimator": ["None"],
    "delays": ["None"],
    "limits": ["inf", "0.5", "None", f"{2**70}"],
    "types": ["None"],
    "over": ["0.5", f"{2**70}"],
    "until": ["inf", "0.5", "None", f"{2**70}"],
}
"""What stands for nothing, and numbers of seconds."""
TRACE = jobs((0, 1, 10), (1, 1, 20))


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Scenario) if field.init])
def test_each_field_takes_a_value_or_says_what_it_takes(name):
    def run(**changed):
        return Scenario(**{"trace": TRACE, "cluster": ONE} | changed).run(Fifo())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert taken(run, name) == TAKEN.get(name, [])


RUN = Scenario(TRACE, ONE).run(Fifo())


@pytest.mark.parametrize("column", ["submit", "gpus", "duration"])
def test_runs_of_other_traces_with_the_same_ids_are_not_compared(column):
    wide = {"submit": (3, 1, 10), "gpus": (0, 1, 10), "duration": (0, 1, 11)}
    other = Scenario(jobs(wide[column], (1 + 2 * (column == "submit"), 1, 20)), ONE).run(Fifo())
    if column == "gpus":
        other = RUN.jobs.with_columns(gpus=other.jobs["gpus"] + 1)
    with pytest.raises(RunError, match="found runs of different jobs; expected two runs of one trace"):
        compared(RUN, other)
    assert len(pair_of({"a": RUN, "b": other})) == 1


@pytest.mark.parametrize("measure", ["x", "", None, 3, ("jct",), ["jct"]])
def test_a_measure_that_there_is_not(measure):
    with pytest.raises(RunError, match=r"found the measure .* expected one of jct, wait, late, unfair, cost"):
        compared(RUN, RUN, measure=measure)


@pytest.mark.parametrize("among", [np.ones(3, bool), [True], np.array([1, 0]), np.ones((2, 1), bool), "ab", 1.0])
def test_jobs_are_picked_by_one_truth_value_each(among):
    with pytest.raises(RunError, match=r"found among of .* expected true or false for each of 2 jobs"):
        compared(RUN, RUN, scope=Scope(among))


@pytest.mark.parametrize("measure", [*MEASURES, "cost"])
def test_lists_pick_as_arrays_do(measure):
    picked = [
        compared(RUN, RUN, scope=Scope(among), measure=measure) for among in ([True, False], np.array([True, False]))
    ]
    assert str(picked[0]) == str(picked[1])
