"""A frame is validated once, as long as it does not change: changes in place, of which polars knows many, are all noticed."""

import gc

import numpy as np
import polars as pl
import pytest

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import generate, schema, validate
from gpuschedlab.traces.validated import _entries, recall

GOOD = {"job_id": ["a", "b", "c"], "submit": [0.0, 1.0, 2.0], "gpus": [1.0, 2.0, 4.0], "duration": [9.0, 9.0, 9.0]}


@pytest.fixture
def frame() -> pl.DataFrame:
    """A frame that has been validated."""
    made = validate(pl.DataFrame(GOOD))
    assert recall(made) is not None
    return made


@pytest.fixture
def sifted(monkeypatch) -> list:
    """Number of rows of each frame that is validated."""
    rows = []
    sift = schema.sift

    def counted(frame, rules, **options):
        rows.append(frame.height)
        return sift(frame, rules, **options)

    monkeypatch.setattr(schema, "sift", counted)
    return rows


BAD = {
    "set an item": lambda frame: frame.__setitem__((0, "gpus"), -1.0),
    "set a text": lambda frame: frame.__setitem__((1, "job_id"), "a"),
    "set a null": lambda frame: frame.__setitem__((1, "duration"), None),
    "set a nan": lambda frame: frame.__setitem__((2, "submit"), float("nan")),
    "set some rows": lambda frame: frame.__setitem__(([0, 1], "gpus"), 0.5 - 1),
    "replace a column": lambda frame: frame.replace_column(2, pl.Series("gpus", [1.5, 1.0, 1.0])),
    "drop a column": lambda frame: frame.drop_in_place("duration"),
    "insert a column": lambda frame: frame.insert_column(1, pl.Series("kind", ["strict", "soft", "other"])),
    "rename columns": lambda frame: setattr(frame, "columns", ["job_id", "submit", "gpus", "length"]),
    "append rows": lambda frame: frame.extend(frame.clone()),
    "stack rows": lambda frame: frame.vstack(frame.clone(), in_place=True),
    "stack columns": lambda frame: frame.hstack([pl.Series("deadline", [-1.0, 1, 1])], in_place=True),
    "exchange all": lambda frame: setattr(frame, "_df", pl.DataFrame(GOOD | {"gpus": [0.0, 1, 1]})._df),
}
"""Changes in place after which a frame is no trace."""


@pytest.mark.parametrize("change", BAD)
@pytest.mark.parametrize("times", [1, 2])
def test_a_frame_that_became_bad_is_refused(frame, change, times):
    handed_out = validate(frame)
    BAD[change](frame)
    changed = frame.clone()
    for _ in range(times):
        with pytest.raises(TraceError) as again:
            validate(frame)
    with pytest.raises(TraceError) as fresh:
        validate(changed)
    assert str(again.value) == str(fresh.value)
    assert handed_out.to_dict(as_series=False) == GOOD


GOOD_STILL = {
    "set an item": (lambda frame: frame.__setitem__((0, "gpus"), 2.0), {"gpus": [2.0, 2.0, 4.0]}),
    "set an instant": (lambda frame: frame.__setitem__((0, "submit"), 1.5), {"submit": [1.0, 1.5, 2.0]}),
    "insert a column": (lambda frame: frame.insert_column(0, pl.Series("own", [1, 2, 3])), {"own": [1, 2, 3]}),
    "replace a column": (lambda frame: frame.replace_column(3, pl.Series("duration", [1, 2, 3])), {"duration": [1, 2, 3]}),
}  # fmt: skip


@pytest.mark.parametrize("change", GOOD_STILL)
def test_a_frame_with_another_content_is_brought_into_canonical_form_again(frame, change):
    do, columns = GOOD_STILL[change]
    do(frame)
    found = validate(frame)
    assert found.select(*columns).to_dict(as_series=False) == columns
    assert found.columns[:4] == [*GOOD]
    assert found["duration"].dtype == pl.Float64
    assert recall(found) is not None


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_a_frame_shares_its_memory_with_no_array(dtype):
    gpus = np.array([1, 2, 4], dtype)
    frame = pl.DataFrame(GOOD | {"gpus": gpus})
    found = validate(frame)
    gpus[0] = -1
    assert found.to_dict(as_series=False) == GOOD
    with pytest.raises(TraceError, match=r"row 1, column gpus \(job a\): found -1"):
        validate(frame)
    assert validate(found).to_dict(as_series=False) == GOOD


def test_a_canonical_frame_is_validated_once(sifted):
    trace = pl.DataFrame(GOOD)
    first = validate(trace)
    again = validate(trace)
    assert sifted == [3]
    assert first is not trace
    assert again is not first
    for frame in (validate(first), validate(again)):
        assert frame.to_dict(as_series=False) == GOOD
    assert sifted == [3]
    validate(trace.clone())
    assert sifted == [3, 3]
    validate(trace, on_bad="drop")
    assert sifted == [3, 3, 3]


@pytest.mark.parametrize(
    "changes", [{"gpus": [1, 2, 4]}, {"submit": [0.0, 2.0, 1.0]}, {"censored": [None, True, False]}]
)
def test_a_frame_that_is_not_canonical_is_validated_each_time(sifted, changes):
    trace = pl.DataFrame(GOOD | changes)
    first = validate(trace)
    assert validate(trace).equals(first)
    assert sifted == [3, 3]
    assert validate(first).equals(first)
    assert sifted == [3, 3]


def test_columns_of_python_objects_pass():
    things = pl.Series("thing", [object(), object(), object()], dtype=pl.Object)
    trace = validate(pl.DataFrame(GOOD).with_columns(things))
    assert recall(trace) is not None
    assert trace["thing"].to_list() == things.to_list()
    trace[0, "gpus"] = -1.0
    assert recall(trace) is None


def test_nothing_is_known_of_frames_that_are_gone():
    gc.collect()
    before = len(_entries)
    frames = [generate("venus", days=1, jobs=20, load=0.5, cluster_gpus=16, rng=seed) for seed in range(5)]
    copies = [validate(frame) for frame in frames for _ in range(20)]
    assert len(_entries) == before + 105
    del frames, copies
    gc.collect()
    assert len(_entries) == before
