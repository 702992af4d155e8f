"""Parts of the tables of AutoSched, by the words of `make bench`."""

import pytest

from reproduce.autosched import overhead
from reproduce.budgets.__main__ import main


def test_a_part_of_a_table_can_be_had_alone(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(overhead, "measure_all", lambda name, measure, data, cases, **how: asked.extend(cases) or [])
    words = ["overhead", "--data", "x", "--traces", "pai", "venus", "--policies", "lucid", "--seeds", "3", "--json"]
    assert main(words) == 0
    assert asked == [("pai", 1.1, "lucid", overhead.DAYS, 3), ("venus", 1.1, "lucid", overhead.DAYS, 3)]
    asked.clear()
    assert main([*words[:3], "--loads", "own", "0.9", "--traces", "pai", "--policies", "lucid", "--days", "0.5"]) == 0
    assert asked == [("pai", None, "lucid", 0.5, 0), ("pai", 0.9, "lucid", 0.5, 0)]
    numbers = []
    monkeypatch.setattr(overhead, "measure_all", lambda *case, workers, seconds: numbers.append(workers) or [])
    assert [main([*words[:3], *more]) for more in ([], ["--workers", "-1"])] == [0, 0]
    assert numbers == [1, -1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("overhead --traces venus mars", "bench overhead: found traces=mars; expected some of philly, venus, pai."),
        ("autosched --seeds -1", "bench autosched: found seeds=-1; expected whole numbers from 0."),
        ("autosched --workers 0", "bench autosched: found workers=0; expected a whole number from 1, or -1."),
        ("causal --loads own 1.1", "bench causal: found loads=own 1.1; expected none, for it takes no loads."),
    ],
)
def test_a_part_that_a_table_does_not_have_is_told(words, told, capsys):
    assert main(words.split()) == 2
    assert told in capsys.readouterr().err
