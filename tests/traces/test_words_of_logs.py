"""Texts of logs, one by one: GPUs, spans, states, expressions and options, as they are written."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab._files import frame_of, parquet, sums, verify, whole
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators.past import with_kin
from gpuschedlab.traces.formats.export import lost_in_swf, without_names
from gpuschedlab.traces.intake.expressions import compiled
from gpuschedlab.traces.logs.devices import Devices, of_chunks, of_gres, of_ids, of_tres
from gpuschedlab.traces.logs.instants import instants, limits, spans, unit_in
from gpuschedlab.traces.logs.options import options_in, options_of, source_of
from gpuschedlab.traces.logs.states import meaning
from gpuschedlab.traces.trace_statistics import batches


def test_gpus_in_the_words_of_slurm_and_pbs():
    assert of_tres("cpu=8,gres/gpu=4,gres/gpu:a100=4") == Devices(4.0, ["a100"])
    assert of_tres("gres/gpu:1g.5gb=2").shape == "1g.5gb"
    assert [of_gres(text).gpus for text in ("gpu:tesla:2,nvme:1", "gpu:4(IDX:0-3)", "nvme:1")] == [2.0, 4.0, 0.0]
    assert of_chunks("2:ncpus=8:ngpus=4:gpu_type=a100+1:ngpus=1") == Devices(9.0, ["a100"])
    assert [of_chunks(text).gpus for text in ("2:ppn=8:gpus=2", "n1:gpus=2+n2:gpus=2")] == [4.0, 4.0]
    assert of_chunks("n1:gpus=2+n2:gpus=2").nodes == 2.0
    assert of_ids("1=20,4=1,1002=2", {"1002": "volta"}) == Devices(2.0, ["volta"])


def test_spans_and_limits():
    texts = pl.Series(["1-02:03:04", "2h30m", "PT12H", "1,800", "90 min", "1 day, 0:00:01", "01:30"])
    assert spans(texts).to_list() == [93784.0, 9000.0, 43200.0, 1800.0, 5400.0, 86401.0, None]
    words = pl.Series(["UNLIMITED", "Partition_Limit", "30", "4294967295"])
    assert limits(words, unit=60).to_list() == [float("inf"), None, 1800.0, None]


def test_instants_that_come_twice():
    twice = instants(pl.Series(["2024-10-27 02:30:00", "1970-01-01T00:01Z", "60"]), zone="Europe/Stockholm")
    assert (twice["late"] - twice["early"]).to_list() == [3600.0, 0.0, 0.0]
    assert twice["naive"].to_list() == [True, False, False]


def test_names_that_are_given_away_and_what_swf_cannot_hold():
    trace = pl.DataFrame({"user": ["ann", "bob", "ann", None], "name": "BERT_lr0.1_seed33"})
    assert without_names(trace)["user"].to_list() == ["u1", "u2", "u1", None]
    assert with_kin(trace)["kin"].unique().to_list() == ["bert_lr#.#_seed#"]
    job = pl.DataFrame({"job_id": ["a"], "gpus": [0.5], "qos": ["high"], "nodes": [1], "nodelist": ["n1"]})
    assert lost_in_swf(job) == ["qos", "nodes", "nodelist", "shares of GPUs (rounded up)"]


def test_expressions_over_columns():
    frame = pl.DataFrame({"a": ["2", "8"], "gres": ["gpu:t4:1", "gpu:h100:8"]})
    text = "a * 2 if match(gres, ':([a-z0-9]+):') == 'h100' else 0"
    assert frame.select(compiled(text, ["a", "gres"], "x")).to_series().to_list() == [0.0, 16.0]
    with pytest.raises(TraceError, match="mine.toml: found Call"):
        compiled("gres.upper()", ["gres"], "mine.toml")


def test_options_as_words():
    assert options_in(["columns.gpus=a * b", "zone=UTC"]) == {"columns": {"gpus": "a * b"}, "zone": "UTC"}
    assert source_of("csv:jobs.csv:gpus=Cards,units=h") == (
        "csv",
        "jobs.csv",
        {"columns": {"gpus": "Cards"}, "units": "h"},
    )
    assert source_of("helios:venus/cluster_log.csv") == ("helios", "venus/cluster_log.csv", {})
    with pytest.raises(TraceError, match=r"mine.toml: found the option 'zon'; expected one of .* Did you mean zone\?"):
        options_of({"zon": "UTC"}, "mine.toml")


def test_files_are_whole_and_what_was_written(tmp_path):
    path = tmp_path / "found.txt"
    note = tmp_path / "sums"
    with whole(path) as part:
        part.write_text("42")
    note.write_text(sums({"found.txt": path}))
    verify(path, note)
    path.write_text("43")
    with pytest.raises(OSError, match="other bytes than were written: its checksum is not that in sums"):
        verify(path, note)
    raw = bytearray(parquet(pl.DataFrame({"x": [1.0, 2.0]})))
    assert frame_of(bytes(raw))["x"].to_list() == [1.0, 2.0]
    raw[20] ^= 1
    with pytest.raises(OSError, match="other bytes than were written: its checksum is not that in its metadata"):
        frame_of(bytes(raw))


def test_how_jobs_ended():
    frame = pl.DataFrame({"state": ["CANCELLED by 1001", "Succeeded", "odd"]})
    found = frame.select(meaning(pl.col("state"), {"ODD": "failed"})).to_series().to_list()
    assert found == ["killed", "completed", "failed"]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("Hours", "h"),
        ("runtime_min", "min"),
        ("Elapsed (ms)", "ms"),
        ("durationSeconds", "s"),
        ("wait_h", "h"),
        ("DAYS", "d"),
    ]
    + [(name, None) for name in ("duration", "d", "h", "Thours", "items", "hours_used", "algorithms", "")],
)
def test_units_in_names_of_columns(name, unit):
    assert unit_in(name) == unit


def test_a_unit_in_a_columns_name_is_used_and_said(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("id,when_min,GPUs,Hours,start_day\na,0,2,1.5,2024-05-01\nb,10,2,0:30:00,2024-05-02\n")
    columns = {"job_id": "id", "submit": "when_min", "duration": "Hours"}
    found = lab.intake(("csv", path), columns=columns)
    assert found.trace.select("submit", "duration").rows() == [(0.0, 5400.0), (600.0, 1800.0)]
    assert found.report.assumed[:2] == [
        "'when_min' is in min, as its name says (units= gives another)",
        "'Hours' is in h, as its name says (units= gives another)",
    ]
    given = lab.intake(("csv", path), columns=columns, units={"duration": "min"})
    assert given.trace["duration"].to_list() == [90.0, 1800.0]
    assert not any("Hours" in text for text in given.report.assumed)
    of_expression = lab.intake(("csv", path), columns=columns | {"submit": "when_min * 60"})
    assert of_expression.trace["submit"].to_list() == [0.0, 600.0]
    dates = lab.intake(("csv", path), columns={"job_id": "id", "submit": "start_day", "duration": "Hours"})
    assert dates.trace["submit"].to_list() == [0.0, 86_400.0]
    assert not any("start_day" in text for text in dates.report.assumed)


def test_clock_times_that_come_twice():
    twice = instants(pl.Series(["2024-10-27 02:30:00", "1970-01-01T00:01Z", "60"]), zone="Europe/Stockholm")
    assert (twice["late"] - twice["early"]).to_list() == [3600.0, 0.0, 0.0]
    assert twice["naive"].to_list() == [True, False, False]


def test_batches_of_submissions():
    of, size = batches(np.array([0.0, 30.0, 40.0, 80.0, 200.0]), np.array([1.0, 8.0, 1.0, 1.0, 1.0]))
    assert (of.tolist(), size.tolist()) == ([0, 1, 0, 0, 2], [3, 1, 1])
