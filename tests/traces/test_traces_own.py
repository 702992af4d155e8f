"""Readers of files of one's own, csv and SWF: hand-written rows, expectations by hand."""

import gzip
from datetime import datetime

import pytest

from gpuschedlab.cli import main
from gpuschedlab.errors import TraceError
from gpuschedlab.traces import read, read_parquet


def written(folder, text, name="jobs.csv"):
    (folder / name).write_text(text)
    return folder / name


# --- csv

SACCT = """JobID|User|Partition|Submit|Start|End|State|GPUs|Elapsed|Account
7|ann|big|2024-05-01T10:00:30|2024-05-01T10:01:00|2024-05-02T12:31:05|COMPLETED|8|1-02:30:05|x
6|bob||2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T10:00:10|OUT_OF_MEMORY|1|00:00:10|x
8|ann|big|2024-05-01T10:02:00|2024-05-01T10:02:00|Unknown|RUNNING|1||x
9|ann|big|2024-05-01T10:02:00|||CANCELLED by 1001|4||x
10|ann|big|2024-05-01T09:00:00|2024-05-01T09:00:00|2024-05-01T09:01:00|COMPLETED|0|00:01:00|x
11|ann|big|2024-05-01T10:03:00|2024-05-01T10:03:00|2024-05-01T10:04:00|CANCELLED by 1001|2|00:01:00|x
"""


def test_names_dates_and_status_words_as_slurm_writes_them(tmp_path):
    notes = {}
    trace = read("csv", written(tmp_path, SACCT), notes=notes)
    assert notes == {"cpu_only": 1, "never_started": 1}
    assert trace["job_id"].to_list() == ["6", "7", "8", "11"]
    assert trace["submit"].to_list() == [0.0, 30.0, 120.0, 180.0]
    assert trace["duration"].to_list() == [10.0, 95_405.0, 95_345.0, 60.0], "8 runs until the latest instant of the log"
    assert trace["censored"].to_list() == [False, False, True, False]
    assert trace["gpus"].to_list() == [1.0, 8.0, 1.0, 2.0]
    assert trace["status"].to_list() == ["failed", "completed", None, "killed"]
    assert trace["state"].to_list() == ["OUT_OF_MEMORY", "COMPLETED", "RUNNING", "CANCELLED"]
    assert trace["started"].to_list() == [0.0, 60.0, 120.0, 180.0]
    assert trace["vc"].to_list() == [None, "big", "big", "big"]
    assert trace["account"].to_list() == ["x"] * 4
    assert trace["clock"][0] == datetime(2024, 5, 1, 10, 0)


def test_a_column_map_units_and_words_of_ones_own(tmp_path):
    text = "No,Arrived,Cards,Took,Went,Team\na,0,0.5,30,fine,x\nb,2,16,1.5,bust,y\n"
    names = {"job_id": "No", "submit": "Arrived", "gpus": "Cards", "duration": "Took", "status": "Went", "team": "Team"}
    words = {"Fine": "completed", "bust": "failed"}
    trace = read(
        "csv", written(tmp_path, text), columns=names, units={"duration": "min", "submit": "h"}, statuses=words
    )
    found = trace.select("job_id", "submit", "gpus", "duration", "status", "team").rows()
    assert found == [("a", 0.0, 0.5, 1800.0, "completed", "x"), ("b", 7200.0, 16.0, 90.0, "failed", "y")]
    assert trace.columns[-1] == "team"


@pytest.mark.parametrize(
    ("text", "dates", "second"),
    [
        ("2024-05-01 10:00,2024-05-01 10:01:30.5", None, 90.5),
        ("2024/05/01 10:00,2024-5-1T10:01:00Z", None, 60.0),
        ("2024-05-01T10:00:00+02:00,2024-05-01T10:00:00Z", None, 7200.0),
        ("2024-05-01T05:30:00-0330,2024-05-01 10:00:00 UTC", None, 3600.0),
        ("2024-05-01,2024-05-02", None, 86_400.0),
        ("1714557600,1714557660", None, 60.0),
        ("01/05/2024 10:00,02/05/2024 10:00", "%d/%m/%Y %H:%M", 86_400.0),
        ("05/01/2024 10:00,05/02/2024 10:00", "%m/%d/%Y %H:%M", 86_400.0),
    ],
)
def test_dates(tmp_path, text, dates, second):
    first, later = text.split(",")
    file = written(tmp_path, f"id;submit;gpus;duration\na;{first};1;9\nb;{later};1;9\n")
    trace = read("csv", file, dates=dates)
    assert trace["submit"].to_list() == [0.0, second]
    assert trace["clock"][0].year == 2024


def test_without_a_duration_it_is_from_start_to_end(tmp_path):
    file = written(tmp_path, "id,submit,start,end,gpus\na,5,10,70,1\nb,6,10,10,1\n")
    notes = {}
    trace = read("csv", file, notes=notes)
    assert trace["submit"].to_list() == [0.0], "zero is the first job kept"
    assert trace["duration"].to_list() == [60.0]
    assert notes["never_ran"] == 1


def test_compressed_and_with_a_mark_of_its_encoding(tmp_path):
    with gzip.open(tmp_path / "jobs.csv", "wb") as file:
        file.write("\ufeffid;submit;gpus;duration\na;0;1;9\n".encode())
    assert read("csv", tmp_path)["job_id"].to_list() == ["a"]


HEAD = "id,submitted,gpus,runtime,state\n"


@pytest.mark.parametrize(
    ("row", "column", "found"),
    [
        ("b,0,1,soon,done", "runtime", "'soon'"),
        ("b,0,1,-3,done", "runtime", "'-3'"),
        ("b,0,1,,done", "runtime", "None"),
        ("b,01/05/2024,1,9,done", "submitted", "'01/05/2024'"),
        ("b,2024-05-01,1,9,done", "submitted", "'2024-05-01'"),
        ("b,1714557600000,1,9,done", "submitted", "'1714557600000'"),
        ("b,0,1.5,9,done", "gpus", "'1.5'"),
        ("b,0,many,9,done", "gpus", "'many'"),
        ("b,0,1,9,exploded", "state", "'exploded'"),
        (",0,1,9,done", "id", "None"),
        ("a,0,1,9,done", "id", "'a'"),
    ],
)
def test_a_bad_row_is_named_or_set_apart(tmp_path, row, column, found):
    file = written(tmp_path, f"{HEAD}a,0,1,9,done\n{row}\nc,0,1,9,\nd,1,1,9,done\n")
    with pytest.raises(TraceError) as told:
        read("csv", file)
    for word in (f"csv jobs.csv, row 3, column {column}", f"found {found}", "expected", "on_bad='drop'"):
        assert word in str(told.value)
    good, bad = read("csv", file, on_bad="drop")
    assert good["job_id"].to_list() == ["a", "c", "d"]
    assert bad["row"].to_list() == [3]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "expected also gpus, duration (or start and end). Name yours: columns={'gpus': '...'}"),
        (
            {"columns": {"gpus": "card", "duration": "Took"}},
            "found the name card; expected one of id, submit, Cards, Took. Did you",
        ),
        ({"columnss": {"gpus": "Cards"}}, "found the option 'columnss'; expected one of columns, units"),
        (
            {"columns": {"gpus": "Cards", "duration": "Took"}, "units": "weeks"},
            "found the unit submit=weeks; expected one of us, ms, s",
        ),
        ({"columns": {"gpus": "Cards", "duration": "Took"}, "statuses": {"x": "gone"}}, "found the status 'gone'"),
    ],
)
def test_a_wrong_option_says_what_there_is(tmp_path, options, told):
    file = written(tmp_path, "id,submit,Cards,Took\na,0,1,9\n")
    with pytest.raises(TraceError) as error:
        read("csv", file, **options)
    assert told in str(error.value)


def test_the_command_line_takes_a_csv_and_its_column_map(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "id,submit,Cards,Took\na,0,1,2\nb,0,0,2\n")
    assert main(["trace", "convert", "csv:jobs.csv:gpus=Cards,duration=Took,units=min", "--out", "jobs.parquet"]) == 0
    assert "left out: 1 CPU-only" in capsys.readouterr().out
    assert read_parquet("jobs.parquet")["duration"].to_list() == [120.0]
    assert main(["trace", "convert", "csv:jobs.csv", "--out", "jobs.parquet"]) == 2
    assert "or on the command line csv:FILE:gpus=..." in capsys.readouterr().err


# --- SWF

LOG = """; Version: 2.2
; UnixStartTime: 1000000000

1 0 5 60 4 -1 -1 8 7200 -1 1 3 1 9 2 -1 -1 -1
  2 10 5 60 4 -1 -1 -1 -1 -1 0 -1 1 -1 -1 -1 -1 -1
; a word in between
3 20 5 30 4 -1 -1 4 -1 -1 2 3 1 9 2 -1 -1 -1
3 20 5 30 4 -1 -1 4 -1 -1 3 3 1 9 2 -1 -1 -1
3 20 5 60 4 -1 -1 4 -1 -1 5 3 1 9 2 -1 -1 -1
4 30 -1 -1 -1 -1 -1 4 -1 -1 5 3 1 9 2 -1 -1 -1
5 40 5 60 -1 -1 -1 -1 -1 -1 -1 3 1 9 2 -1 -1 -1
6 50 5 60 1 -1 -1 1 -1 -1 -1 3 1 9 2 -1 -1 -1
"""


def test_swf(tmp_path):
    notes = {}
    trace = read("swf", written(tmp_path, LOG, "log.swf"), notes=notes)
    assert notes == {"parts": 2, "no_processors": 1, "never_started": 1}
    assert trace["job_id"].to_list() == ["1", "2", "3", "6"]
    assert trace["submit"].to_list() == [0.0, 10.0, 20.0, 50.0]
    assert trace["gpus"].to_list() == [8.0, 4.0, 4.0, 1.0]
    assert trace["duration"].to_list() == [60.0] * 4
    assert trace["status"].to_list() == ["completed", "failed", "killed", None]
    assert trace["user"].to_list() == ["3", None, "3", "3"]
    assert trace["vc"].to_list() == ["2", None, "2", "2"]
    assert trace["requested_time"].to_list() == [7200.0, None, None, None]
    assert trace["clock"][1] == datetime(2001, 9, 9, 1, 46, 50)
    assert read("swf", tmp_path, processors=3)["gpus"].to_list() == [3.0, 2.0, 2.0, 1.0]


def test_swf_without_a_header_has_no_clock(tmp_path):
    trace = read("swf", written(tmp_path, LOG[LOG.index("1 0 5") :], "log.swf"))
    assert trace.height == 4
    assert "clock" not in trace.columns


@pytest.mark.parametrize(
    ("line", "column", "found"),
    [
        ("7 60 5 60 1 -1", "line", "'7 60 5 60 1 -1'"),
        ("7 soon 5 60 1 -1 -1 1 -1 -1 1 3 1 9 2 -1 -1 -1", "submit", "'soon'"),
        ("7 60 5 60 1 -1 -1 1 -1 -1 9 3 1 9 2 -1 -1 -1", "status", "'9'"),
        ("1 60 5 60 1 -1 -1 1 -1 -1 1 3 1 9 2 -1 -1 -1", "job", "'1'"),
    ],
)
def test_a_bad_line_of_swf_is_named_by_its_number(tmp_path, line, column, found):
    file = written(tmp_path, f"{LOG}{line}\n", "log.swf")
    with pytest.raises(TraceError) as told:
        read("swf", file)
    for word in (f"swf log.swf, row 13, column {column}", f"found {found}; expected"):
        assert word in str(told.value)
    good, bad = read("swf", file, on_bad="drop")
    assert (good.height, bad["row"].to_list()) == (4, [13])


def test_swf_refuses_no_processors(tmp_path):
    with pytest.raises(TraceError, match=r"found processors=0.0; expected a finite number above 0"):
        read("swf", written(tmp_path, LOG, "log.swf"), processors=0)
