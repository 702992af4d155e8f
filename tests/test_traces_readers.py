"""Readers: hand-written rows in the published formats, expectations by hand."""

import errno
import json
from datetime import datetime

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
        ("", "found no readable table"),
        ("a,b\n1,2\n", r"found the columns a, b; expected also job_id, user"),
        (HELIOS + helios_row() + "1,2," * 9 + "\n", "found no readable table"),
    ],
)
def test_a_broken_file(tmp_path, content, message):
    (tmp_path / "cluster_log.csv").write_text(content)
    with pytest.raises(TraceError, match=f"helios cluster_log.csv.*{message}"):
        read("helios", tmp_path)


def test_no_file_or_several(tmp_path):
    with pytest.raises(TraceError, match="found no file .*nowhere"):
        read("helios", tmp_path / "nowhere")
    for name in "ab":
        (tmp_path / name).mkdir()
        helios(tmp_path / name, helios_row())
    with pytest.raises(TraceError, match="expected one file cluster_log.csv"):
        read("helios", tmp_path)
    with pytest.raises(TraceError, match="found the format 'swf'; expected one of philly, helios"):
        read("swf", tmp_path)
    with pytest.raises(TraceError, match="expected 'raise' or 'drop'"):
        read("helios", tmp_path / "a", on_bad="ignore")


# --- Philly


def attempt(begin, end, gpus=(2,)) -> dict:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(gpus)]
    return {"start_time": begin, "end_time": end, "detail": detail}


def job(name, submitted, *attempts, status="Pass", user="u1") -> dict:
    return {
        "status": status,
        "vc": "v",
        "jobid": name,
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": user,
    }


def philly(folder, *jobs):
    (folder / "cluster_job_log").write_text(json.dumps(jobs))
    return folder


def october(time: str) -> str:
    return f"2017-10-07 {time}"


def test_philly(tmp_path):
    jobs = [
        # Two attempts, 74 s and 20 s, the first on 2 machines of 8; their sum counts.
        job(
            "retried",
            october("01:11:39"),
            attempt(october("01:12:09"), october("01:13:23"), (8, 8)),
            attempt(october("01:20:00"), october("01:20:20"), (8, 8)),
            status="Failed",
            user="None",
        ),
        # Still running when the log was taken, which is at 03:00:00.
        job("running", october("01:12:39"), attempt(october("02:00:00"), "None"), status="Killed"),
        job("snapshot", october("01:13:39"), attempt(october("02:30:00"), october("03:00:00")), user=None),
        job(
            "untimed",
            october("01:14:39"),
            attempt(None, october("02:00:10")),
            attempt(october("02:00:30"), october("02:00:40")),
        ),
        job("unscheduled", october("01:00:00")),
        job("cpu", october("01:00:00"), attempt(october("01:12:09"), october("01:13:23"), (0,))),
        job("instant", october("01:00:00"), attempt(october("01:12:09"), october("01:12:09"))),
    ]
    notes = {}
    trace = read("philly", philly(tmp_path, *jobs), notes=notes)
    assert notes == {"never_scheduled": 1, "cpu_only": 1, "never_ran": 1, "attempts_without_times": 1}
    assert trace["job_id"].to_list() == ["retried", "running", "snapshot", "untimed"]
    assert trace["submit"].to_list() == [0.0, 60.0, 120.0, 180.0]
    assert trace["duration"].to_list() == [94.0, 3600.0, 1800.0, 10.0]
    assert trace["gpus"].to_list() == [16.0, 2.0, 2.0, 2.0]
    assert trace["machines"].to_list() == [2, 1, 1, 1]
    assert trace["attempts"].to_list() == [2, 1, 1, 2]
    assert trace["censored"].to_list() == [False, True, False, False]
    assert trace["status"].to_list() == ["failed", "killed", "completed", "completed"]
    assert trace["user"].to_list() == [None, "u1", None, "u1"]
    assert trace["clock"][0] == datetime(2017, 10, 7, 1, 11, 39)


def test_the_hour_that_comes_twice(tmp_path):
    # Clocks went from 02:00 PDT back to 01:00 PST on 5 November 2017.
    def at(time):
        return f"2017-11-05 {time}"

    jobs = [
        job("a", at("00:30:00"), attempt(at("00:30:00"), at("03:30:00"))),  # 3 h on the clock, 4 h in truth
        job("b", at("01:50:00"), attempt(at("01:55:00"), at("01:10:00"))),  # over the change: 15 min
        job("c", at("01:20:00"), attempt(at("01:30:00"), at("01:40:00"))),
        job("d", at("02:10:00"), attempt(at("02:10:00"), at("02:20:00"))),
    ]
    trace = read("philly", philly(tmp_path, *jobs)).sort("job_id")
    assert trace["duration"].to_list() == [14_400.0, 900.0, 600.0, 600.0]
    assert trace["submit"].to_list() == [0.0, 4800.0, 3000.0, 9600.0]
    naive, bad = read("philly", tmp_path, zone=None, on_bad="drop")
    assert naive.sort("job_id")["duration"].to_list() == [10_800.0, 600.0, 600.0]
    assert bad["jobid"].to_list() == ["b"]


@pytest.mark.parametrize(
    ("entry", "column", "found"),
    [
        (job("x", "yesterday"), "submitted_time", "'yesterday'"),
        (job("x", "2018-03-11 02:30:00"), "submitted_time", "'2018-03-11 02:30:00'"),  # skipped by the clocks
        (job("x", october("01:00:00"), status="Lost"), "status", "'Lost'"),
        (job("x", october("01:00:00"), attempt(october("02:00:00"), october("01:00:00"))), "attempt", "01:00:00"),
        (job("x", october("01:00:00"), attempt("soon", october("01:00:00"))), "attempt", "'soon to"),
        (job("x", october("01:00:00"), attempt(october("02:00:00"), "2099-01-01 00:00:00")), "duration", ""),
        (job("good", october("01:00:00")), "jobid", "'good'"),
        ({"jobid": "x"}, "entry", "jobid"),
        ("x", "entry", "x"),
    ],
)
def test_a_bad_philly_entry(tmp_path, entry, column, found):
    fine = job("good", october("01:00:00"), attempt(october("01:00:00"), october("01:00:30")))
    with pytest.raises(TraceError) as told:
        read("philly", philly(tmp_path, fine, entry))
    for word in (f"philly cluster_job_log, row 2, column {column}", found, "expected"):
        assert word in str(told.value)
    good, bad = read("philly", tmp_path, on_bad="drop")
    assert good["job_id"].to_list() == ["good"]
    assert bad["row"].to_list() == [2]


def test_a_truncated_philly_log(tmp_path):
    whole = json.dumps([job("a", october("01:00:00"))])
    for text in (whole[: len(whole) // 2], "", "{}"):
        (tmp_path / "cluster_job_log").write_text(text)
        with pytest.raises(TraceError, match="philly cluster_job_log: found .*expected a list of jobs"):
            read("philly", tmp_path)


# --- PAI


def pai(folder, jobs: str, tasks: str, **more: str):
    for name, text in {"job": jobs, "task": tasks, **more}.items():
        (folder / f"pai_{name}_table.csv").write_text(text)
    return folder


def test_pai(tmp_path):
    jobs = (
        "half,i1,u1,Terminated,1000.0,1500.0\n"
        "group,i2,,Terminated,1060.0,2000.0\n"
        "odd,i3,,Failed,1120.0,1300.0\n"
        "running,i4,u4,Running,1180.0,\n"
        "cpu,i5,u5,Terminated,10.0,20.0\n"
        "waiting,i6,u6,Waiting,1000.0,\n"
        "lost,i7,u7,Failed,1000.0,1100.0\n"
    )
    tasks = (
        "half,tensorflow,1.0,Terminated,1010.0,1500.0,600.0,29.3,50.0,MISC\n"
        # 10 x 0.3 + 4 x 1 GPUs from 1100 to 2000; the parameter server asks for none.
        "group,worker,10.0,Terminated,1100.0,1900.0,600.0,29.3,30.0,P100\n"
        "group,chief,4.0,Terminated,1150.0,2000.0,600.0,29.3,100.0,P100\n"
        "group,ps,2.0,Terminated,1000.0,2500.0,600.0,29.3,,\n"
        "odd,worker,3.0,Failed,1130.0,1300.0,600.0,29.3,50.0,T4\n"
        "running,worker,1.0,Running,1200.0,,600.0,29.3,100.0,V100\n"
        "cpu,worker,1.0,Terminated,10.0,20.0,600.0,29.3,0.0,CPU\n"
        "lost,worker,1.0,Failed,1010.0,,600.0,29.3,100.0,T4\n"
        "orphan,worker,1.0,Terminated,1.0,2.0,600.0,29.3,100.0,T4\n"
    )
    tags = "i2,u2,V100,g9,bert\ni2,u2,V100,g8,bert\ni1,u9,,g1,\n"
    instances = (
        "half,tensorflow,a,w1,i1,Failed,1010.0,1200.0,m1\n"
        "half,tensorflow,a,w2,i1,Terminated,1210.0,1500.0,m2\n"
        "group,worker,b,w3,i2,Terminated,1100.0,1900.0,m1\n"
    )
    notes = {}
    trace = read("pai", pai(tmp_path, jobs, tasks, group_tag=tags, instance=instances), instances=True, notes=notes)
    assert notes == {
        "tasks_without_job": 1,
        "jobs_with_bad_tasks": 0,
        "waiting": 1,
        "cpu_only": 1,
        "untimed": 1,
        "never_ran": 0,
    }
    assert trace["job_id"].to_list() == ["half", "group", "odd", "running"]
    assert trace["submit"].to_list() == [0.0, 60.0, 120.0, 180.0]
    assert trace["gpus"].to_list() == [0.5, 7.0, 2.0, 1.0]
    assert trace["gpus_planned"].to_list() == pytest.approx([0.5, 7.0, 1.5, 1.0])
    assert trace["duration"].to_list() == [490.0, 900.0, 170.0, 1300.0]  # the tables end at 2500
    assert trace["censored"].to_list() == [False, False, False, True]
    assert trace["status"].to_list() == ["completed", "completed", "failed", None]
    assert trace["user"].to_list() == ["u1", "u2", None, "u4"]
    assert trace["name"].to_list() == ["g1", "g9", None, None]
    assert trace["model"].to_list() == [None, "bert", None, None]
    assert trace["gpu_model"].to_list() == ["MISC", "P100", "T4", "V100"]
    assert trace["attempts"].to_list() == [2, 1, None, None]
    assert trace["machines"].to_list() == [2, 1, None, None]
    assert trace["clock"][0] == datetime(1970, 1, 1, 8, 16, 40)


PAI_JOB = "a,i1,u,Terminated,100.0,500.0\n"
PAI_TASK = "a,worker,1.0,Terminated,140.0,500.0,600.0,29.3,100.0,T4\n"


@pytest.mark.parametrize(
    ("table", "row", "column", "found"),
    [
        ("job", "b,i2,u,Done,100.0,500.0\n", "status", "'Done'"),
        ("job", "b,i2,u,Terminated,-1.0,500.0\n", "start_time", "'-1.0'"),
        ("job", "b,i2,u,Terminated,x,500.0\n", "start_time", "'x'"),
        ("job", PAI_JOB, "job_name", "'a'"),
        ("task", "b,worker,1.0,Terminated,140.0,100.0,600.0,29.3,100.0,T4\n", "end_time", "'100.0'"),
        ("task", "b,worker,,Terminated,140.0,500.0,600.0,29.3,100.0,T4\n", "inst_num", "None"),
        ("task", "b,worker,1.0,Terminated,,500.0,600.0,29.3,100.0,T4\n", "start_time", "None"),
        ("task", "b,worker,1.0,Terminated,140.0,500.0,600.0,29.3,-100.0,T4\n", "plan_gpu", "'-100.0'"),
    ],
)
def test_a_bad_pai_row(tmp_path, table, row, column, found):
    jobs, tasks = PAI_JOB, PAI_TASK
    if table == "job":
        jobs += row
    else:
        jobs += "b,i2,u,Terminated,100.0,500.0\n"
        tasks += row + PAI_TASK.replace("a,", "b,", 1)
    with pytest.raises(TraceError) as told:
        read("pai", pai(tmp_path, jobs, tasks))
    assert f"pai pai_{table}_table.csv, row 2, column {column}: found {found}; expected" in str(told.value)
    good, bad = read("pai", tmp_path, on_bad="drop")
    assert good["job_id"].to_list() == ["a"]  # b's GPUs are not known
    assert bad.select("table", "row").rows() == [(f"pai_{table}_table", 2)]


def test_pai_tables_that_are_not(tmp_path):
    with pytest.raises(TraceError, match="found no folder"):
        read("pai", tmp_path / "nowhere")
    with pytest.raises(TraceError, match="pai_task_table.csv: found 4 columns; expected 10: job_name"):
        read("pai", pai(tmp_path, PAI_JOB, "a,b,c,d\n"))
    header = "job_name,inst_id,user,status,start_time,end_time\n"
    assert read("pai", pai(tmp_path, header + PAI_JOB, PAI_TASK)).height == 1  # where someone added it
    with pytest.raises(TraceError, match="expected one file pai_instance_table.csv"):
        read("pai", tmp_path, instances=True)
    pai(tmp_path, PAI_JOB, PAI_TASK, instance="a,b\n")
    with pytest.raises(TraceError, match="found 2 columns; expected 9"):
        read("pai", tmp_path, instances=True)


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
    assert bad["problem"][0].startswith("column submission_time (job b): found '-5'; expected seconds")
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
    with pytest.raises(TraceError, match="row 2, column application: found 'ncf'; expected an application that"):
        read("workload", file, durations={"bert": 1})
    file.write_text("name,time,application,num_replicas,batch_size\nncf-1,50,ncf,0,1\nbert-0,20,bert,4,0\n")
    good, bad = read("workload", file, durations=30, on_bad="drop")
    assert good.is_empty()
    assert [p.split(":")[0] for p in bad["problem"]] == ["column num_replicas", "column batch_size"]


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

    def full(self, path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(TraceError, match=r"not stored in .*trace.parquet: found No space left.*Free some space"):
        write_parquet(trace.head(0), file)
    assert read_parquet(file).equals(trace)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster_log.csv", "trace.parquet"]
