"""A law of every reader: each row of a log is one job, or in one count that the report names. Rows are counted here again, by hand."""

import gzip
import json
import os
import random
import warnings
from pathlib import Path

import polars as pl
import pytest
from damage import damaged
from test_fuzz_files import FILES as TABLES
from test_fuzz_files import OPTIONS as TABLE_OPTIONS
from test_fuzz_files import PAI
from test_intake import NEEDED
from test_intake_damaged import FILES as LOGS
from test_intake_damaged import OPTIONS as LOG_OPTIONS
from test_intake_damaged import lines

import gpuschedlab as lab
from gpuschedlab.errors import IntakeError, IntakeWarning, TraceError
from gpuschedlab.traces import Report
from gpuschedlab.traces.intake.door import FORMATS, recognised

WITHOUT_HEAD = ("pbs", "gavel", "swf", "sge")
COMMENTS = {"swf": ";", "sge": "#"}
LISTS = {"slurm": "jobs", "batsim": "jobs", "k8s": "items"}
TAKEN = ("bad", "shards", "no_duration", "durations")
SGE = lines(
    "# comment",
    lambda i: (
        f"q:h:g:u:name:{i}:acc:0:{1740988800 + i}:{1740988860}:{1740992460}:0:0:" + "0:" * 22 + "0:-l gpu=2:" + "0:" * 5
    ),
)
CONDOR = json.dumps(
    [
        {
            "ClusterId": i,
            "ProcId": 0,
            "Owner": "u",
            "RequestGPUs": 2,
            "JobStatus": 4,
            "QDate": 1740988800,
            "ExitCode": 0,
        }
        | {"JobCurrentStartDate": 1740988860, "CompletionDate": 1740996060}
        for i in range(9)
    ]
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,9,8,V100\nn2,64000,9,0,\nn3,64000,9,2,T4\n"
EVENTS = {
    "collection_events.csv": "time,type,collection_id,collection_type\n0,0,1,0\n5000000,3,1,0\n9000000,4,1,0\n"
    "9500000,3,1,0\n99000000,6,1,0\n3000000,0,2,1\n",
    "instance_events.csv": "time,type,collection_id,instance_index\n0,0,1,0\n0,0,1,1\n",
}


def content_of(path: Path) -> str:
    """Text of a file, plain or gzip."""
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    return raw.decode("utf-8-sig")


def rows_of(path: Path, format: str) -> int:
    """Count the records of a log without any reader of the package."""
    if path.is_dir():
        headed = format == "google2019"
        return sum(len(content_of(file).splitlines()) - headed for file in path.iterdir())
    if path.suffix == ".parquet":
        return pl.read_parquet(path).height
    text = content_of(path)
    if text.lstrip().startswith(("{", "[")):
        data = json.loads(text)
        if isinstance(data, list):
            return len(data)
        return len(data.get(LISTS[format], [data]))
    records = [line for line in text.splitlines() if line.strip() and not line.startswith(COMMENTS.get(format, "\0"))]
    return len(records) - (format not in WITHOUT_HEAD)


def law_holds(report, jobs: int, rows: int | None = None):
    """Each row is a job, or in one count; and no more are counted than there are."""
    assert report.jobs == jobs
    assert report.accounted == report.rows, report.line()
    assert rows is None or report.rows == rows, report.line()
    assert all(n > 0 for n in [*report.counts().values(), *report.beside.values()])
    assert "in no job and in no count" not in report.line()


def judged(source, rows: int | None = None, **options) -> bool:
    """Read a log; return whether it was read. The law holds of a log without any job, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntakeWarning)
        try:
            found = lab.intake(source, **{"accept": list(TAKEN)} | options)
        except IntakeError as error:
            law_holds(error.report, 0, rows)
            return True
        except TraceError:
            return False
    nodes = found.trace is None
    law_holds(found.report, 0 if nodes else found.trace.height, rows)
    return True


def inputs() -> list[str]:
    """Files of inputs/ that may be logs; empty where the folder is not there."""
    folder = Path(os.environ.get("GPUSCHEDLAB_DATA_DIR", "nowhere")) / "inputs"
    kinds = (".txt", ".json", ".csv", ".swf", ".trace", ".parquet")
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in kinds and path.parent.name != "google2019"]
    return [str(path.relative_to(folder)) for path in files if path.name not in ("expected.json", "cases.json")]


REFUSED = ("slurm_default.txt", "pods.txt", "tacc32.parquet")
"""Logs for people, and a table of a policy's results."""


@pytest.mark.parametrize("attempts", ["merge", "each"])
@pytest.mark.parametrize("name", inputs())
def test_each_row_of_each_input_is_a_job_or_counted(name, attempts, data_dir):
    path = data_dir / "inputs" / name
    format = "parquet" if path.suffix == ".parquet" else None
    if path.name == "workers.csv":  # whose spec says what its columns are
        assert judged(path.with_suffix(".toml"), rows_of(path, "csv"))
        return
    try:
        format = format or recognised(path)
        rows = rows_of(path, format)
    except TraceError:
        assert path.name in REFUSED
        return
    options = NEEDED.get(format, {})
    assert judged((format, path), rows, attempts=attempts, **options) or path.name in REFUSED


def test_google_of_the_inputs(data_dir):
    folder = data_dir / "inputs" / "intake" / "google2019"
    assert judged(("google2019", folder), rows_of(folder, "google2019"), count="instances")


def made() -> dict[str, tuple[str, bytes, dict]]:
    """A small log of each format that is a file: its name, bytes and options."""
    logs = {name: (f"log.{name.split()[0]}", text.encode(), LOG_OPTIONS.get(name, {})) for name, text in LOGS.items()}
    logs |= {name: (file, raw, TABLE_OPTIONS.get(name, {})) for name, (file, raw) in TABLES.items()}
    logs["sge"] = ("accounting", SGE.encode(), {})
    logs["condor"] = ("history.json", CONDOR.encode(), {})
    logs["nodes"] = ("nodes.csv", NODES.encode(), {})
    return logs


def test_every_format_has_a_log_here():
    assert {name.split()[0] for name in made()} | {"pai", "google2019", "parquet"} == set(FORMATS)


@pytest.mark.parametrize("name", made())
def test_each_row_of_each_format_is_a_job_or_counted(tmp_path, name):
    """Whole, with records that are there twice, and damaged in many ways."""
    file, raw, options = made()[name]
    format = name.split()[0]
    path = tmp_path / file
    path.write_bytes(raw)
    assert judged((format, path), rows_of(path, format), **options)
    text = raw.decode()
    if not text.lstrip().startswith(("{", "[")):
        twice = text + "".join(f"{line}\n" for line in text.splitlines()[-3:])
        path.write_text(twice)
        assert judged((format, path), rows_of(path, format), **options)
    rng = random.Random(name)
    read = 0
    for _ in range(16):
        path.write_bytes(damaged(raw, rng))
        read += judged((format, path), **options)
    assert read, "some damaged files are read"


@pytest.mark.parametrize("instances", [False, True])
def test_each_row_of_the_tables_of_pai(tmp_path, instances):
    for name, raw in PAI.items():
        if instances or "instance" not in name:
            (tmp_path / name).write_bytes(raw)
    assert judged(("pai", tmp_path), rows_of(tmp_path, "pai"), instances=instances)
    tasks = tmp_path / "pai_task_table.csv"
    odd = ["j3,worker,2.0,Terminated,140,500.0,600.0,29.3,many,T4", "j99,w,1.0,Failed,140,500.0,600.0,29.3,25.0,T4"]
    tasks.write_text(tasks.read_text() + "\n".join(odd) + "\n")
    tags = tmp_path / "pai_group_tag_table.csv"
    tags.write_text(tags.read_text() + "i3,u,V100,g3,bert\n,u,V100,g3,bert\n")
    assert judged(("pai", tmp_path), rows_of(tmp_path, "pai"), instances=instances)


@pytest.mark.parametrize("attempts", ["merge", "each"])
def test_each_event_of_google(tmp_path, attempts):
    for name, text in EVENTS.items():
        (tmp_path / name).write_text(text)
    assert judged(("google2019", tmp_path), 8, count="instances", attempts=attempts)


def test_each_row_of_a_parquet_file(tmp_path):
    path = tmp_path / "jobs.parquet"
    pl.DataFrame(
        {"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 2.0], "duration": [9.0, 8.0]}
    ).write_parquet(path)
    assert judged(path, 2)


def test_a_reader_that_loses_rows_is_seen_in_the_line():
    report = Report("own", "log", rows=5, jobs=3, left_out={"bad": {"rows": 1}})
    assert report.accounted == 4
    assert report.line().endswith("1 rows are in no job and in no count")
