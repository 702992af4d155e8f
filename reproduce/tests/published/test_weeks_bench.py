"""The bench of weeks like this one judges made weeks as it should."""

import numpy as np
import pytest

from reproduce.published import weeks


def made_rows(spread: float) -> list[dict]:
    """A hundred weeks of one cell; SRTF is twice as fast in the middle."""
    rng = np.random.default_rng(5)
    rows = []
    for seed, draw in enumerate(rng.lognormal(np.log(2.0), spread, 100)):
        figures = {name: {"mean": 1.0, "p99": 1.0} for name in weeks.policies()}
        figures["easy"] = {"mean": float(draw), "p99": 1.0}
        rows.append({"preset": "venus", "load": 0.9, "seed": seed, "policies": figures})
    return rows


def test_cells_of_made_weeks(monkeypatch):
    monkeypatch.setattr(weeks, "DRAWS", 300)
    cells = {(cell["pair"], cell["metric"]): cell for cell in weeks.cells_of(made_rows(0.3))}
    assert len(cells) == len(weeks.PAIRS) * len(weeks.METRICS)
    cell = cells["easy/srtf", "mean"]
    assert cell["median"] == pytest.approx(2.0, abs=0.15)
    for size in weeks.SIZES:
        assert cell[f"held_{size}"] == pytest.approx(0.95, abs=0.045)
    assert cell["wrong"] == 0.0
    assert 6 < cell["weeks"] <= 12
    same = cells["tiresias/gittins", "mean"]
    assert (same["held_6"], same["wrong"], same["weeks"]) == (1.0, 0.0, 6.0)


def test_wrong_sides_are_those_outside_the_zone():
    interval = weeks.median_interval(np.linspace(1.1, 1.3, 9))
    assert weeks.is_wrong(interval, 0.9)
    assert not weeks.is_wrong(interval, 0.99), "within 3 %"
    assert not weeks.is_wrong(interval, 1.2)


def test_logs_on_end_by_hand():
    one = {
        "preset": "venus",
        "load": 0.9,
        "inside": [0.9, 0.88],
        "cpu": {"warm": 3.0, "cold": 2.0},
        "grows": {"fifo": True, "easy": False},
    }
    for kind, slower in (("end", 2.0), ("warm", 1.8), ("cold", 1.0)):
        one[kind] = {"easy": [slower, slower], "tiresias": [1.0, 1.0]}
    (found,) = weeks.ends_of([one, one])
    assert found["near"] == 2
    assert found["warm_off"] == pytest.approx(-0.1)
    assert found["cold_off"] == pytest.approx(-0.5)
    assert (found["cost"], found["inside"], found["fifo"], found["easy"]) == (1.5, pytest.approx(0.89), 2, 0)
