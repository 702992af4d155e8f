"""Readers of logs of jobs and their attempts or tasks, Philly and PAI: hand-written rows, expectations by hand."""

import json
from datetime import datetime

import pytest

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import read

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
        ("job", "b,i2,u,Terminated,100.0,500.0,again\n", "(beyond the last)", "'again'"),
        ("task", "b,worker,1.0,Terminated,140.0,100.0,600.0,29.3,100.0,T4\n", "end_time", "'100.0'"),
        ("task", "b,worker,,Terminated,140.0,500.0,600.0,29.3,100.0,T4\n", "inst_num", "None"),
        ("task", "b,worker,1.0,Terminated,,500.0,600.0,29.3,100.0,T4\n", "start_time", "None"),
        ("task", "b,worker,1.0,Terminated,140.0,500.0,600.0,29.3,-100.0,T4\n", "plan_gpu", "'-100.0'"),
    ],
)
def test_a_bad_pai_row(tmp_path, table, row, column, found):
    jobs = PAI_JOB
    tasks = PAI_TASK
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
    with pytest.raises(TraceError, match="found no file .*nowhere"):
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
