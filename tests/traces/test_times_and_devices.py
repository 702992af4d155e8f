"""Times and devices in the words of logs: each unit, form and kind of resource once."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from gpuschedlab.traces.logs.devices import resource_gpus
from gpuschedlab.traces.logs.instants import instants, limits, spans

UNITS = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}


@pytest.mark.parametrize("unit", UNITS)
def test_a_span_of_each_unit(unit):
    words = [f"1{unit[0]}", f"2 {unit}s", f"1.5 {unit}", f"3 {unit.upper()}S"]
    assert spans(pl.Series(words)).to_list() == [n * UNITS[unit] for n in (1, 2, 1.5, 3)]


def test_spans_of_several_units_add_up():
    words = {
        "1w2d3h4m5s": 604_800 + 2 * 86_400 + 3 * 3600 + 245,
        "P1DT2H": 93_600,
        "2 weeks, 1 hour": 2 * 604_800 + 3600,
        "2-03": 2 * 86_400 + 3 * 3600,
        "2-03:04": 2 * 86_400 + 3 * 3600 + 240,
        "3 days, 1:02:03.5": 3 * 86_400 + 3723.5,
        "1:02:03": 3723,
        "soon": None,
    }
    assert spans(pl.Series(list(words))).to_list() == list(words.values())
    assert spans(pl.Series(["02:30", "1:00:00"]), short="MM:SS").to_list() == [150, 3600]
    assert spans(pl.Series(["02:30", "1:00:00"]), short="HH:MM").to_list() == [9000, 3600]
    assert spans(pl.Series(["1.800,5", "2"]), decimal=",", unit=60.0).to_list() == [108_030, 120]
    assert spans(pl.Series(["10", "1.5"]), unit=3600.0).to_list() == [36_000, 5400]
    assert spans(pl.Series([10, 2]), unit=60.0).to_list() == [600, 120]


def test_limits_that_are_none_are_infinite_or_not_known():
    none = ["unlimited", "INFINITE", "no limit", str(2**32 - 1), str(2**64 - 1), str(2**32 - 2), "-1", "", None]
    found = limits(pl.Series(none)).to_list()
    assert np.isinf(found[:3]).all()
    assert [value is None or np.isinf(value) for value in found] == [True] * len(none)
    assert found[-3:] == [None] * 3


@pytest.mark.parametrize(
    ("name", "gpus", "shape"),
    [
        ("nvidia.com/gpu", 2.0, None),
        ("amd.com/gpu", 2.0, None),
        ("gpu", 0.0, None),
        ("nvidia.com/gpu.shared", 0.0, None),
        ("example.com/gpu.shared", 0.0, None),
        ("nvidia.com/mig-1g.5gb", 2 / 7, "1g.5gb"),
        ("nvidia.com/mig-3g.20gb", 6 / 7, "3g.20gb"),
        ("nvidia.com/mig-all", 0.0, None),
        ("nvidia.com/1g.5gb", 0.0, None),
        ("cpu", 0.0, None),
    ],
)
def test_devices_of_a_kubernetes_resource(name, gpus, shape):
    found = resource_gpus(name, 2.0)
    assert (found.gpus, found.shape) == (pytest.approx(gpus), shape)


def test_offsets_of_dates_in_odd_forms_are_taken_off():
    """Half past four in UTC, said in four ways of which none is the commonest."""
    texts = ["2024/5/1 16:30 UTC", "2024-05-01T18:30 +0200", "2024-05-01 11:30-05:00", "2024/05/01T16:30Z"]
    found = instants(pl.Series(texts), zone="Asia/Tokyo")
    expected = dt.datetime(2024, 5, 1, 16, 30, tzinfo=dt.UTC).timestamp()
    assert found["early"].to_list() == found["late"].to_list() == [expected] * 4
    assert not found["naive"].any()
