"""The referee's page: slips of artifacts with place, switch, effect and command."""

import json

import pytest
from present import whole

from gpuschedlab.errors import LabError
from reproduce.published import referee
from reproduce.published.referee import Slip, effect_text, keep, known, shown, slip_of, slips

pytestmark = pytest.mark.skipif(not whole(), reason="papers are not here")


def halves(data_dir, number: int) -> list[float]:
    """A slip that doubles and more."""
    return [2.0 * number, 1.0]


MADE_UP = Slip(
    "owner/name", "`file.py`, `function`", "It doubles.", "`Switch(on=True)`", "the number", halves, ((1,), (2,), (4,))
)


@pytest.mark.parametrize("name", slips())
def test_each_slip_has_a_place_a_switch_and_workloads(name):
    slip = slip_of(name)
    assert slip.artifact.count("/") == 1
    assert all("`" in text for text in (slip.place, slip.switch))
    assert slip.what.endswith(".")
    assert len(slip.cases) >= 2


def test_a_slip_that_is_none():
    with pytest.raises(LabError, match="found the slip 'no such'; expected one of "):
        slip_of("no such")


def test_an_effect_is_the_ratio_with_it_over_without_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("traces", "profiles", "reference"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(referee, "slip_of", lambda name: MADE_UP)
    found = shown("made-up", tmp_path)
    assert found["each"] == {"1": 2.0, "2": 4.0, "4": 8.0}
    assert found["effect"] == pytest.approx(4.0)
    assert found["low"] < 4.0 < found["high"]
    assert effect_text(found).startswith("4.000 (")


def test_what_is_kept_stands_beside_what_was(tmp_path):
    first, second, *_ = slips()
    path = tmp_path / "referee.json"
    keep({second: {"effect": 1.0}}, path)
    keep({first: {"effect": 2.0}}, path)
    assert list(known(path)) == [first, second]
    assert json.loads(path.read_text())[second] == {"effect": 1.0}
    assert known(tmp_path / "none") == {}
