"""AutoSched's published numbers, in a sample."""

import json

import polars as pl

from reproduce.published import read_table, reproduce


def test_autosched_has_a_row_for_every_number_and_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    found = reproduce(["autosched"], tmp_path, quick=True)
    assert found["rows"].height == read_table("autosched").height
    assert (found["rows"]["note"].str.len_chars() > 0).all()
    assert pl.read_parquet("runs/reproduce/published.parquet").equals(found["rows"])
    page = (tmp_path / "runs" / "reproduce" / "published.md").read_text()
    assert page.count("\n| ") > found["rows"].height
    assert "run it, or this without QUICK=1" in page


def test_the_command_line_answers_in_json(tmp_path, monkeypatch, capsys):
    from reproduce.published.__main__ import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    assert main(["autosched", "--quick", "--json", "--data", str(tmp_path)]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == read_table("autosched").height
    assert main(["nothing"]) == 2
