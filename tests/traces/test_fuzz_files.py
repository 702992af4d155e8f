"""Damaged files of every format end in a valid trace or in the package's own error, which names the file; nothing else gets out."""

import datetime as dt
import decimal
import gzip
import json
import random
import shutil
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from damage import WHOLE, damaged

from gpuschedlab.check import small_trace
from gpuschedlab.cli import main
from gpuschedlab.cli.parser import commands
from gpuschedlab.errors import TraceError
from gpuschedlab.traces import SCHEMA, read, validate, write_parquet

TIMES = 40
"""Damaged files of each format."""


def clock(minute: int) -> str:
    return f"2020-06-09 {9 + minute // 60:02}:{minute % 60:02}:00"


def table(header: str, row) -> bytes:
    return "".join([header, *(row(i) + "\n" for i in range(20))]).encode()


def attempt(minute: int) -> dict:
    return {"start_time": clock(minute), "end_time": clock(minute + 9), "detail": [{"ip": "m", "gpus": ["g0", "g1"]}]}


def entry(i: int) -> dict:
    job = {"status": "Pass", "vc": "v", "jobid": f"a{i}", "submitted_time": clock(i), "user": "u"}
    return job | {"attempts": [attempt(i + 1), attempt(i + 20)]}


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
ITP = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
CHRONUS = "job_id,user,num_gpu,submit_time,duration,expect_time_list,expect_value_list,job_type\n"
FILES = {
    "helios": (
        "cluster_log.csv",
        table(HELIOS, lambda i: f"{i},u,v,{1 + i % 8},64,2,FAILED,{clock(i)},{clock(i + 1)},{clock(i + 11)},600,60"),
    ),
    "itp": ("itp.csv", table(ITP, lambda i: f"{i},{50 + i},40285,bert,{9000 + i},64,4,3890")),
    "workload": (
        "workload.csv",
        table("name,time,application,num_replicas,batch_size\n", lambda i: f"n-{i},{50 * i},ncf,1,32768"),
    ),
    "csv": (
        "jobs.csv",
        table("id,submitted,gpus,runtime,state,user\n", lambda i: f"{i},{clock(i)},{1 + i % 4},1-02:30:{i:02},OK,é{i}"),
    ),
    "swf": (
        "log.swf",
        table("; UnixStartTime: 1000000000\n", lambda i: f"{i} {i} 5 60 4 -1 -1 8 7200 -1 1" + " 3" * 7),
    ),
    "chronus": ("job_info.csv", table(CHRONUS, lambda i: f"{i},vc_1,4,10,60,90-99,10-8,soft")),
    "philly": ("cluster_job_log", json.dumps([entry(i) for i in range(20)]).encode()),
}
PAI = {
    "pai_job_table.csv": table("", lambda i: f"j{i},i{i},u,Terminated,{100 + i},500.0"),
    "pai_task_table.csv": table("", lambda i: f"j{i},worker,2.0,Terminated,{140 + i},500.0,600.0,29.3,25.0,T4"),
    "pai_group_tag_table.csv": table("", lambda i: f"i{i},u,V100,g{i},bert"),
    "pai_instance_table.csv": table("", lambda i: f"j{i},worker,n{i},w,i{i},Terminated,140.0,500.0,m1"),
}
OPTIONS = {"workload": {"durations": 60.0}, "pai": {"instances": True}}


def check(call, *names: str):
    """A call gives a valid trace, or raises a TraceError that names one of some files or formats and says what was expected."""
    try:
        found = call()
    except TraceError as error:
        text = str(error)
    else:
        trace = found[0] if isinstance(found, tuple) else found
        assert validate(trace).equals(trace)
        return
    assert any(name in text for name in names), text
    assert "expected" in text


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_trace_or_a_trace_error(tmp_path, name):
    rng = random.Random(name)
    file, raw = FILES[name]
    options = OPTIONS.get(name, {})
    path = tmp_path / file
    path.write_bytes(raw)
    whole = read(name, path, **options)
    assert whole.height == 20
    path.write_bytes(gzip.compress(raw))
    assert read(name, path, **options).equals(whole)
    for _ in range(TIMES):
        path.write_bytes(damaged(raw, rng))
        for on_bad in ("raise", "drop"):
            check(partial(read, name, path, on_bad=on_bad, **options), file, name)


@pytest.mark.parametrize("name", FILES)
def test_a_gzip_that_is_cut_off_is_refused_wherever_it_ends(tmp_path, name):
    file, raw = FILES[name]
    packed = gzip.compress(raw)
    for size in {2, 5, 12, len(packed) // 2, len(packed) - 9, len(packed) - 1}:
        (tmp_path / file).write_bytes(packed[:size])
        with pytest.raises(TraceError, match=rf"{name} {file}: found nothing readable .*fetch it again"):
            read(name, tmp_path / file, **OPTIONS.get(name, {}))


def test_damaged_tables_of_pai_are_a_trace_or_a_trace_error(tmp_path):
    rng = random.Random(3)
    for _ in range(TIMES):
        for file, raw in PAI.items():
            (tmp_path / file).write_bytes(raw)
        file = rng.choice(list(PAI))
        (tmp_path / file).write_bytes(damaged(PAI[file], rng))
        check(partial(read, "pai", tmp_path, on_bad=rng.choice(["raise", "drop"]), instances=True), "pai")


@pytest.mark.parametrize("name", [*FILES, "parquet", "pai"])
def test_what_is_no_file_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "nowhere", tmp_path / "folder"):
        with pytest.raises(TraceError, match=r"(nowhere|folder).*expected|expected.*(nowhere|folder)"):
            read(name, path, **OPTIONS.get(name, {}))


def test_json_of_another_form_is_named_or_set_apart(tmp_path):
    values = [None, -1, float("inf"), "", "\ud800", "\0", [], {}, [[]], "0001-01-01 00:00:00"]
    path = tmp_path / "cluster_job_log"
    for value in values:
        for change in (
            *({name: value} for name in entry(0)),
            *({"attempts": [attempt(1) | {name: value}]} for name in attempt(0)),
            {"attempts": [value]},
            {"attempts": [attempt(1) | {"detail": [{"gpus": value}]}]},
        ):
            path.write_text(json.dumps([entry(0), entry(1) | change, value]))
            for on_bad in ("raise", "drop"):
                check(partial(read, "philly", path, on_bad=on_bad), "philly")
    path.write_text('[{"a":' * 900 + "1" + "}]" * 900)
    check(partial(read, "philly", path), "philly")
    with pytest.raises(TraceError, match="found zone='Mars'; expected the name of a time zone"):
        read("philly", path, zone="Mars")


ODD_COLUMNS = {
    "lists": [[1.0], [2.0], []],
    "lists of texts": [["x"], [], None],
    "lists of lists": [[[1.0]], [[2.0]], [[]]],
    "lists of structs": [[{"a": 1}], [], None],
    "structs": [{"a": 1}, {"a": 2}, None],
    "decimals": [decimal.Decimal("1.5"), decimal.Decimal("2"), None],
    "dates": [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None],
    "times": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 1, 1, tzinfo=dt.UTC), None],
    "times of day": [dt.time(1), dt.time(2), None],
    "spans": [dt.timedelta(seconds=9), dt.timedelta(seconds=60), None],
    "nulls": [None, None, None],
    "truths": [True, False, None],
    "bytes": [b"\xff", b"1", None],
    "texts": ["1", "x", ""],
    "extremes": [float("inf"), float("nan"), 1e308],
    "negatives": [-1, -(2**62), 0],
}


def odd_columns() -> dict[str, pl.Series]:
    found = {name: pl.Series(values) for name, values in ODD_COLUMNS.items()}
    found["categories"] = pl.Series(["x", "1", None], dtype=pl.Categorical)
    found["choices"] = pl.Series(["x", "1", None], dtype=pl.Enum(["x", "1"]))
    found["arrays"] = pl.Series([[1.0, 2.0]] * 3, dtype=pl.Array(pl.Float64, 2))
    found["unsigned"] = pl.Series([2**64 - 1] * 3, dtype=pl.UInt64)
    found["wide"] = pl.Series([2**100] * 3, dtype=pl.Int128)
    return found


@pytest.mark.parametrize(
    "column", ["job_id", "submit", "gpus", "censored", "clock", "batch_size", "status", "deadlines"]
)
def test_columns_of_other_types_are_a_trace_or_a_trace_error(tmp_path, column):
    good = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": [0.0, 1, 2], "gpus": [1, 2, 3], "duration": [5, 6, 7]})
    assert column in SCHEMA
    for name, values in odd_columns().items():
        more = {"rewards": pl.Series([[1.0]] * 3)} if column == "deadlines" else {}
        frame = good.with_columns(values.alias(column), **more)
        check(partial(validate, frame, source=name, on_bad="drop"), name)
        path = write_parquet(frame, tmp_path / "odd.parquet")
        check(partial(read, "parquet", path), "odd.parquet")
        check(partial(read, "chronus", path), "odd.parquet")


def test_dates_and_spans_are_no_seconds():
    good = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1], "duration": [5]})
    with pytest.raises(
        TraceError, match=r"column duration \(job a\): found datetime.timedelta\(seconds=60\); expected sec"
    ):
        validate(good.with_columns(duration=pl.lit(dt.timedelta(seconds=60))))
    with pytest.raises(
        TraceError, match=r"column submit \(job a\): found datetime.date\(2020, 1, 1\); expected seconds"
    ):
        validate(good.with_columns(submit=pl.lit(dt.date(2020, 1, 1))))
    with pytest.raises(TraceError, match=r"column gpus \(job a\): found \[1.0\]; expected GPUs"):
        validate(good.with_columns(gpus=pl.Series([[1.0]])))
    own = good.with_columns(row=pl.lit("mine"), problem=pl.lit("none"), which=pl.lit(1))
    assert validate(own)["row"].to_list() == ["mine"]
    assert validate(own.with_columns(gpus=-1), on_bad="drop")[1].select("row", "which").rows() == [(1, 1)]


# --- commands


SCENE = ["--trace", "trace.parquet", "--cluster", "5x4"]
TUNE = ["tune", "--methods", "selftune", *SCENE, "--out", "tuned", "--rounds", "1", "--horizon", "1", "--json"]
COMMANDS = {
    "trace.parquet": ["run", "fifo", *SCENE],
    "mine.py": ["run", "mine.py:Mine", *SCENE],
    "kept": ["explain", "kept", "job-003"],
    "swept": ["sweep", "fifo", *SCENE, "--out", "swept", "--workers", "1"],
    **({"tuned": [*TUNE, "--resume"]} if "tune" in commands() else {}),
}
MINE = """from dataclasses import dataclass
from gpuschedlab import Ordered

@dataclass(frozen=True)
class Mine(Ordered):
    pass
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A folder with a trace, a kept run, a sweep, kept decisions, and a policy."""
    folder = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        small_trace(20).write_parquet("trace.parquet")
        Path("mine.py").write_text(MINE)
        assert main(["run", "fifo", *SCENE, "--log", "--out", "kept"]) == 0
        assert main(COMMANDS["swept"]) == 0
        assert "tuned" not in COMMANDS or main(TUNE) == 0
    return folder


@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_on_damaged_files_lets_no_other_error_out(stored, tmp_path, monkeypatch, capsys, what):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(what)
    shutil.copytree(stored, tmp_path, dirs_exist_ok=True)
    files = [p for p in ([Path(what)] if Path(what).is_file() else sorted(Path(what).rglob("*"))) if p.is_file()]
    for file in [f for f in files if f.name != ".lock"]:
        for raw in (damaged(file.read_bytes() or b" ", rng), *rng.sample(WHOLE, 2), b"[]", b"null", b'{"a": 1}', None):
            shutil.copytree(stored / what, what, dirs_exist_ok=True) if (stored / what).is_dir() else None
            file.unlink() if raw is None else file.write_bytes(raw)
            assert main(COMMANDS[what]) in (0, 1, 2)
            told = capsys.readouterr().err
            assert "Traceback" not in told
        shutil.copy(stored / file, file)
