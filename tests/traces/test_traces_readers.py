"""Readers of tables: hand-written rows in the published formats, expectations by hand."""

import errno
import gzip
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import SCHEMA, read, read_parquet, write_parquet

HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"


def day(time: str, date: str = "2020-06-09") -> str:
    return f"{date} {time}"


def helios_row(job="1", gpus="8", state="COMPLETED", begin="10:00:00", end="11:00:00", lasts="3600", user="uA") -> str:
    return f"{job},{user},vcB,{gpus},64,2,{state},{day('09:59:00')},{day(begin)},{day(end)},{lasts},60\n"


def helios(folder, *rows):
    (folder / "cluster_log.csv").write_text(HELIOS + "".join(rows))
    return folder / "cluster_log.csv"


# --- Helios


def test_helios(tmp_path):
    early = f"0,uC,vcB,0,4,1,COMPLETED,{day('08:00:00')},{day('08:00:00')},{day('08:00:10')},10,0\n"
    rows = [
        early,  # CPU only: not time zero
        helios_row("1", user=""),
        helios_row("2", state="CANCELLED").replace("09:59:00", "09:59:30"),
        helios_row("3", state="TIMEOUT"),
        helios_row("4", state="NODE_FAIL"),
        helios_row("5", state="CANCELLED", begin="10:00:00", end="10:00:00", lasts="0"),
        helios_row("6", state="SUSPENDED"),
    ]
    notes = {}
    trace = read("helios", helios(tmp_path, *rows), notes=notes)
    assert notes == {"cpu_only": 1, "suspended": 1, "never_ran": 1}
    assert trace["job_id"].to_list() == ["1", "3", "4", "2"]
    assert trace["submit"].to_list() == [0.0, 0.0, 0.0, 30.0]
    assert trace["status"].to_list() == ["completed", "failed", "failed", "killed"]
    assert trace["user"].to_list() == [None, "uA", "uA", "uA"]
    assert trace["duration"].to_list() == [3600.0] * 4
    assert trace["gpus"].to_list() == [8.0] * 4
    assert trace["machines"].to_list() == [2] * 4
    assert trace["clock"][0] == datetime(2020, 6, 9, 9, 59)
    assert read("helios", tmp_path).equals(trace)


@pytest.mark.parametrize(
    ("row", "column", "found"),
    [
        (helios_row(gpus="-8"), "gpu_num", "'-8'"),
        (helios_row(gpus="1.5"), "gpu_num", "'1.5'"),
        (helios_row(gpus="many"), "gpu_num", "'many'"),
        (helios_row(gpus="9999999999"), "gpu_num", "'9999999999'"),
        (helios_row(lasts="-5"), "duration", "'-5'"),
        (helios_row(lasts="7200"), "duration", "'7200'"),
        (helios_row(lasts="1e300"), "duration", "'1e300'"),
        (helios_row(state="LOST"), "state", "'LOST'"),
        (helios_row(begin="25:00:00"), "start_time", "'2020-06-09 25:00:00'"),
        (helios_row().replace("2020-06-09 09:59:00", "1970-01-01 00:00:00"), "submit_time", "'1970-01-01 00:00:00'"),
        ("3,uA,vcB,8,64\n", "state", "None"),
        (helios_row("1"), "job_id", "'1'"),
    ],
)
def test_a_bad_row_is_named_or_set_apart(tmp_path, row, column, found):
    rows = [helios_row("1"), helios_row("2"), row.replace("1,uA", "3,uA", column != "job_id"), helios_row("4")]
    file = helios(tmp_path, *rows)
    with pytest.raises(TraceError) as told:
        read("helios", file)
    for word in (f"helios cluster_log.csv, row 4, column {column}", f"found {found}", "expected", "on_bad='drop'"):
        assert word in str(told.value)
    good, bad = read("helios", file, on_bad="drop")
    assert good["job_id"].to_list() == ["1", "2", "4"]
    assert bad["row"].to_list() == [4]
    assert column in bad["problem"][0]
    assert bad.columns == [*HELIOS.strip().split(","), "row", "problem"]
    assert str(bad[column][0]) == found.strip("'")  # as the source has it


def test_more_bad_rows_are_counted(tmp_path):
    rows = [helios_row(str(i), gpus="-1") for i in range(5)]
    with pytest.raises(TraceError, match=r"row 2, .*and 4 more rows"):
        read("helios", helios(tmp_path, *rows))
    good, bad = read("helios", tmp_path, on_bad="drop")
    assert (good.height, bad.height) == (0, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found nothing readable"),
        ("a,b\n1,2\n", r"found the columns a, b; expected also job_id, user"),
        (
            HELIOS + helios_row("1") + helios_row("2") + "1,2," * 9 + "\n",
            r"row 4, column \(beyond the last\) \(job .\): found '1'; expected as many",
        ),
        ("# made by hand\n" + HELIOS, r"found a comment in the first line \(# made by hand\).*grep -v"),
    ],
)
def test_a_broken_file(tmp_path, content, message):
    (tmp_path / "cluster_log.csv").write_text(content)
    with pytest.raises(TraceError, match=f"helios cluster_log.csv.*{message}"):
        read("helios", tmp_path)


@pytest.mark.parametrize("more", [",60", ",60,61,62", ",60,"])
def test_a_row_with_too_many_fields_is_named_or_set_apart(tmp_path, more):
    rows = [helios_row("1"), helios_row("2").strip() + more + "\n", helios_row("3")]
    with pytest.raises(
        TraceError, match=r"helios cluster_log.csv, row 3, column \(beyond the last\) \(job .\): found '60'"
    ):
        read("helios", helios(tmp_path, *rows))
    good, bad = read("helios", tmp_path, on_bad="drop")
    assert good["job_id"].to_list() == ["1", "3"]
    assert bad.select("row", "job_id").rows() == [(3, "2")]
    assert bad.columns == [*HELIOS.strip().split(","), "row", "problem"]


def test_a_comment_among_the_rows_is_named_or_set_apart(tmp_path):
    helios(tmp_path, helios_row("1"), "# the second week, by the second cluster\n", helios_row("2"))
    with pytest.raises(TraceError, match="row 3, column"):
        read("helios", tmp_path)
    good, bad = read("helios", tmp_path, on_bad="drop")
    assert good["job_id"].to_list() == ["1", "2"]
    assert bad["job_id"].to_list() == ["# the second week"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_utf_16_is_named_and_can_be_converted(tmp_path, encoding, pack):
    text = HELIOS + helios_row("1")
    (tmp_path / "cluster_log.csv").write_bytes(pack(text.encode(encoding)))
    with pytest.raises(TraceError, match="found text in UTF-16; expected UTF-8.*iconv -f UTF-16"):
        read("helios", tmp_path)
    (tmp_path / "cluster_log.csv").write_bytes(pack(text.encode("utf-8-sig")))
    assert read("helios", tmp_path)["job_id"].to_list() == ["1"]


def test_no_file_or_several(tmp_path):
    with pytest.raises(TraceError, match="found no file .*nowhere"):
        read("helios", tmp_path / "nowhere")
    for name in "ab":
        (tmp_path / name).mkdir()
        helios(tmp_path / name, helios_row())
    with pytest.raises(TraceError, match="expected one file cluster_log.csv"):
        read("helios", tmp_path)
    with pytest.raises(TraceError, match="found the format 'sacct'; expected one of slurm, pbs, .*philly, helios"):
        read("sacct", tmp_path)
    with pytest.raises(TraceError, match="expected 'raise' or 'drop'"):
        read("helios", tmp_path / "a", on_bad="ignore")


# --- ITP, workloads


def test_itp(tmp_path):
    file = tmp_path / "c.csv"
    file.write_text(
        "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
        "a,16566,40285,bert,21347,64,4,3890\nb,20000,9,vgg16,20009,32,0,9\nc,20000,9,vgg16,20009,32,1,0\n"
    )
    notes = {}
    trace = read("itp", file, notes=notes)
    assert notes == {"cpu_only": 1, "never_ran": 1}
    names = ("job_id", "submit", "gpus", "duration", "model", "target", "batch_size", "deadline")
    assert trace.select(names).rows() == [("a", 16566.0, 4.0, 3890.0, "bert", 40285.0, 64, 4781.0)]
    file.write_text("job_id,submission_time,duration,num_gpu\na,5,60,1\nb,-5,60,1\n")
    good, bad = read("itp", file, on_bad="drop")
    assert good.rows() == [("a", 5.0, 1.0, 60.0)]
    assert bad["problem"][0].startswith("column submission_time (job b): found '-5'; expected a number from 0 up")
    file.write_text("job_id,submission_time,duration,num_gpu,deadline\na,50,60,1,50\n")
    with pytest.raises(TraceError, match=r"row 2, column deadline \(job a\): found '50'.*after submission_time"):
        read("itp", file)


def test_workload(tmp_path):
    file = tmp_path / "workload-1.csv"
    file.write_text("name,time,application,num_replicas,batch_size\nncf-1,50,ncf,1,32768\nbert-0,20,bert,4,96\n")
    with pytest.raises(TraceError, match="found no durations.*expected durations="):
        read("workload", file)
    trace = read("workload", file, durations={"ncf": 60, "bert": 1, "bert/96/4": 7200})
    assert trace.select("job_id", "submit", "gpus", "duration", "model", "batch_size").rows() == [
        ("bert-0", 20.0, 4.0, 7200.0, "bert", 96),
        ("ncf-1", 50.0, 1.0, 60.0, "ncf", 32768),
    ]
    assert read("workload", file, durations=30)["duration"].to_list() == [30.0, 30.0]
    with pytest.raises(
        TraceError, match=r"row 2, column application \(job ncf-1\): found 'ncf'; expected an application that"
    ):
        read("workload", file, durations={"bert": 1})
    file.write_text("name,time,application,num_replicas,batch_size\nncf-1,50,ncf,0,1\nbert-0,20,bert,4,0\n")
    good, bad = read("workload", file, durations=30, on_bad="drop")
    assert good.is_empty()
    assert [p.split(" (")[0] for p in bad["problem"]] == ["column num_replicas", "column batch_size"]


# --- our own form


def test_parquet_keeps_everything(tmp_path):
    trace = read("helios", helios(tmp_path, helios_row("1"), helios_row("2")))
    file = write_parquet(trace, tmp_path / "deep" / "trace.parquet")
    assert read_parquet(file).equals(trace)
    assert read("parquet", file).equals(trace)
    assert set(trace.columns) - set(SCHEMA) == {"machines"}
    good, bad = read_parquet(write_parquet(trace.with_columns(gpus=pl.Series([-1.0, 8.0])), file), on_bad="drop")
    assert good["job_id"].to_list() == ["2"]
    assert bad["row"].to_list() == [1]
    with pytest.raises(TraceError, match=r"trace.parquet, row 1, column gpus \(job 1\): found -1.0"):
        read_parquet(file)


@pytest.mark.parametrize("share", [0.0, 0.5, None])
def test_a_parquet_file_that_is_cut_off(tmp_path, share):
    file = write_parquet(read("helios", helios(tmp_path, helios_row())), tmp_path / "trace.parquet")
    whole = file.read_bytes()
    file.unlink() if share is None else file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(TraceError, match=r"trace.parquet: found .*expected a parquet file"):
        read_parquet(file)


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    trace = read("helios", helios(tmp_path, helios_row()))
    file = write_parquet(trace, tmp_path / "trace.parquet")

    def full(path, raw):
        with path.open("wb") as stream:
            stream.write(raw[: len(raw) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TraceError, match=r"not stored in .*trace.parquet: found No space left.*Free some space"):
        write_parquet(trace.head(0), file)
    assert read_parquet(file).equals(trace)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster_log.csv", "trace.parquet"]
