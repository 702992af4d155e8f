"""Damaged logs of every format end in a right trace or in a TraceError that names the file; never in a job more than the file holds."""

import json
import random
import warnings
from pathlib import Path

import pytest
from damage import damaged

import gpuschedlab as lab
from gpuschedlab.errors import IntakeWarning, TraceError
from gpuschedlab.traces import validate

TIMES = 12
"""Damaged copies of each log; `python tests/traces/test_intake_damaged.py` makes 200."""
JOBS = 12


def stamp(i: int, minutes: int = 0) -> str:
    return f"2025-03-03T{8 + (i + minutes) // 60:02}:{(i + minutes) % 60:02}:00"


def lines(head: str, row) -> str:
    return "\n".join([*([head] if head else []), *(row(i) for i in range(JOBS))]) + "\n"


def pbs(i: int) -> str:
    keys = f"user=u{i} queue=q ctime={1740988800 + 60 * i} start={1740988860 + 60 * i} end={1740992460 + 60 * i} Exit_status=0"
    return f"03/03/2025 {9 + i // 60:02}:{i % 60:02}:00;E;{i}.srv;{keys} Resource_List.ngpus=2 Resource_List.walltime=02:00:00"


def pod(i: int) -> dict:
    return {
        "kind": "Pod",
        "metadata": {"name": f"p{i}", "namespace": "n", "creationTimestamp": stamp(i) + "Z"},
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        "status": {
            "phase": "Succeeded",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(i, 1) + "Z"}],
            "containerStatuses": [{"state": {"terminated": {"finishedAt": stamp(i, 31) + "Z"}}}],
        },
    }


def job(i: int) -> dict:
    tres = {"allocated": [{"type": "gres", "name": "gpu", "count": 2}], "requested": []}
    time = {
        "submission": 1740988800 + i,
        "start": 1740988900 + i,
        "end": 1740989500 + i,
        "elapsed": 600,
        "limit": {"set": True, "number": 60},
    }
    return {"job_id": i, "user": "u", "partition": "q", "state": {"current": ["COMPLETED"]}, "time": time, "tres": tres}


BATSIM = {
    "nb_res": 8,
    "jobs": [{"id": f"j{i}", "subtime": i, "res": 2, "walltime": 99, "profile": "d"} for i in range(JOBS)],
    "profiles": {"d": {"type": "delay", "delay": 10}},
}
SACCT = "JobID|User|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES"
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
SPOT = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type"
ACME = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"
CLOUD = "id_job,id_user,partition,state,timelimit,time_submit,time_start,time_end,tres_alloc"
FILES = {
    "slurm": lines(
        SACCT, lambda i: f"{i}|u|{stamp(i)}|{stamp(i, 1)}|{stamp(i, 31)}|00:30:00|1-00:00:00|COMPLETED|cpu=4,gres/gpu=2"
    ),
    "slurm json": json.dumps({"jobs": [job(i) for i in range(JOBS)], "meta": {}}),
    "pbs": lines("", pbs),
    "k8s": json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod(i) for i in range(JOBS)]}),
    "openb": lines(OPENB, lambda i: f"p{i},1000,99,{1 + i % 2},500,V100|T4,LS,Running,{i},{i + 900},{i + 10}"),
    "spot": lines(SPOT, lambda i: f"{i},7,A10,8,1,2,{i},3600,HP"),
    "acme": lines(
        ACME, lambda i: f"j{i},u,1,8,9,Other,FAILED,{stamp(i)}+08:00,{stamp(i, 1)}+08:00,{stamp(i, 3)}+08:00,120,60,960"
    ),
    "supercloud": lines(
        CLOUD, lambda i: f'{i},7,normal,3,60,{1614556800 + i},{1614556830 + i},{1614560430 + i},"1=20,1002=1"'
    ),
    "gavel": lines("", lambda i: f"A3C\tpython3 main.py\t-x\t1\t{2000 + i}\t{i}.0\t1"),
    "batsim": json.dumps(BATSIM),
    "swf": lines("; UnixStartTime: 1000000000", lambda i: f"{i} {i} 5 60 4 -1 -1 8 7200 -1 1" + " 3" * 5 + " -1 -1"),
    "csv": lines(
        "id,submitted,gpus,runtime,state,user", lambda i: f"{i},{stamp(i)},{1 + i % 4},1-02:30:{i:02},OK,é{i}"
    ),
}
OPTIONS = {"gavel": {"speeds": {"A3C": 10.0}}}


def names(raw: bytes) -> int:
    """Most jobs that a file can hold: its lines, or its objects."""
    return max(raw.count(b"\n") + raw.count(b"\r") + 1, raw.count(b"{"))


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_log_is_a_trace_or_a_trace_error(tmp_path, name):
    damage(tmp_path, name, TIMES)


def damage(folder: Path, name: str, times: int):
    format = name.split()[0]
    rng = random.Random(name)
    path = folder / f"log.{format}"
    raw = FILES[name].encode()
    path.write_bytes(raw)
    options = OPTIONS.get(name, {})
    assert lab.intake((format, path), **options).trace.height == JOBS
    for _ in range(times):
        made = damaged(raw, rng)
        path.write_bytes(made)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IntakeWarning)
                found = lab.intake((format, path), **options)
        except TraceError as error:
            text = str(error)
            assert path.name in text, text
            assert "expected" in text, text
            assert len(text) < 4000
        else:
            assert validate(found.trace).equals(found.trace)
            assert found.trace.height <= (names(made) if not made.startswith(b"\x1f\x8b") else JOBS)
            assert found.report.jobs == found.trace.height


if __name__ == "__main__":
    import tempfile

    for name in FILES:
        damage(Path(tempfile.mkdtemp()), name, 200)
        print(name, "200 damaged: each a trace or a TraceError", flush=True)
