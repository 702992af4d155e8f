"""Each field of a queue and of a tree of shares takes a value, or says what it takes; and so does the column `nice`."""

import dataclasses
import math
from functools import partial

import polars as pl
import pytest
from wrong_values import taken

from gpuschedlab.errors import PolicyError
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.papers.clusters.schedulers.priority import nice_of

EMPTY = ["[]", "()"]
TAKEN = {
    "name": ["'x'"],
    "cohort": ["'x'", "''"],
    "strict": ["True"],
    "weight": ["0.5", f"{2**70}"],
    "threshold": ["inf", "-1", "0.5", f"{2**70}"],
} | dict.fromkeys(("nominal", "borrow", "lend"), EMPTY)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Queue)])
def test_each_field_of_a_queue(name):
    make = Queue if name == "name" else partial(Queue, "q")
    assert taken(make, name) == TAKEN.get(name, [])


def test_quotas_are_numbers():
    for wrong in (("a100", -1.0), ("a100", math.nan), ("a100", "8"), (3, 8.0), ("a100",), ("a100", 8.0, 1.0)):
        with pytest.raises(PolicyError, match=r"queue 'q'.nominal: found .* expected "):
            Queue("q", nominal=(wrong,))


def test_rows_of_shares():
    def make(shares):
        return ShareTree(shares)

    assert taken(make, "shares") == EMPTY
    for row in (("ml", "", "", "x"), ("ml", "", 3, 1.0), ("ml", "", 1.0), (None, 3, "", 1.0)):
        with pytest.raises(PolicyError, match=r"shares: rows: found .* expected "):
            ShareTree((row,))
    assert ShareTree((("ml", None, None, 1), ("ml", "a", None, 1))).users == (("ml", "a"),)


def test_nice_is_a_column_of_finite_numbers():
    assert nice_of(pl.DataFrame({"job_id": ["a", "b"], "nice": [3, None]})).tolist() == [3.0, 0.0]
    assert nice_of(pl.DataFrame({"job_id": ["a"]})).tolist() == [0.0]
    with pytest.raises(PolicyError, match=r"nice: found a column of String; expected numbers\."):
        nice_of(pl.DataFrame({"job_id": ["a"], "nice": ["x"]}))
    for wrong in (math.nan, math.inf):
        with pytest.raises(PolicyError, match=r"nice: found (nan|inf) of job b; expected a finite number\."):
            nice_of(pl.DataFrame({"job_id": ["a", "b"], "nice": [0.0, wrong]}))
