"""What a row of a log knows: attempts and suspensions, shares of a GPU, throttles of arrays, GPUs that are not tracked, first starts."""

import json

import pytest

import gpuschedlab as lab
from gpuschedlab.autosched.mechanisms.attempts import attempts_of
from gpuschedlab.errors import IntakeError
from gpuschedlab.traces.formats.managers.slurm_arrays import task_count

KEYS = "user=u queue=g ctime=1777888740"
RERUN = [
    f"05/04/2026 10:00:00;S;9.s;{KEYS} start=1777888800 Resource_List.ngpus=2",
    "05/04/2026 10:10:00;z;9.s;resources_used.walltime=00:10:00",
    "05/04/2026 10:20:00;r;9.s;",
    "05/04/2026 10:30:00;R;9.s;",
    f"05/04/2026 10:40:00;S;9.s;{KEYS} start=1777891200 Resource_List.ngpus=2",
    "05/04/2026 10:50:00;z;9.s;",
    f"05/04/2026 11:10:00;E;9.s;{KEYS} start=1777891200 end=1777893000 Exit_status=0 Resource_List.ngpus=2",
]
SACCT = "JobID|User|Submit|Start|End|Elapsed|State|AllocTRES"


def written(folder, lines, name="log.txt"):
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def test_a_rerun_is_an_attempt_and_suspended_time_does_not_count(tmp_path):
    """20 minutes of 30, from 10:00, and 10 of 30, from 10:40: the job was suspended for 10 minutes, and then until its end."""
    path = written(tmp_path, RERUN)
    found = lab.intake(path)
    assert found.trace.select("submit", "started", "duration", "attempts", "status").rows() == [
        (0.0, 60.0, 1800.0, 2, "completed")
    ]
    assert found.report.counts() == {"attempts": 1}
    assert found.report.beside == {"events": 5}
    apart = lab.intake(path, attempts="each").trace.sort("started")
    assert apart.select("started", "duration", "state").rows() == [(60.0, 1200.0, "REQUEUED"), (2460.0, 600.0, "0")]


def test_other_records_of_pbs_are_counted(tmp_path):
    lines = [
        *RERUN,
        f"05/04/2026 10:00:00;S;10.s;{KEYS} start=1777888800 Resource_List.ngpus=1",
        f"05/04/2026 10:20:00;S;10.s;{KEYS} start=1777890000 Resource_List.ngpus=1",
        "05/04/2026 10:40:00;z;10.s;",
        "05/04/2026 10:40:00;M;11.s;",
        "05/04/2026 10:40:00;r;12.s;",
        "05/04/2026 10:40:00;L;license;floating license hour:3",
    ]
    found = lab.intake(written(tmp_path, lines))
    assert found.report.counts() == {"attempts": 1, "attempts_without_end": 1, "moved": 1, "without_start": 1}
    assert found.report.beside == {"events": 6, "records_of_no_job": 1}
    durations = dict(found.trace.select("job_id", "duration").iter_rows())
    assert durations == {"9.s": 1800.0, "10.s": 1200.0}, "10 ran from 10:20 to 10:40, and was then suspended"
    assert found.report.accounted == found.report.rows == 13


def sacct(job: str, submit: str, start: str, end: str, elapsed: str, state: str) -> str:
    times = [f"2025-03-03T{text}" if ":" in text else text for text in (submit, start, end)]
    return "|".join([job, "u", *times, elapsed, state, "gres/gpu=2"])


REQUEUED = [
    SACCT,
    sacct("1", "08:00:00", "08:00:10", "10:00:10", "02:00:00", "PREEMPTED"),
    sacct("1", "08:00:00", "11:00:10", "12:00:10", "01:00:00", "NODE_FAIL"),
    sacct("1", "12:00:30", "13:00:10", "14:00:10", "01:00:00", "COMPLETED"),
    sacct("2", "08:00:00", "08:00:10", "09:00:10", "01:00:00", "COMPLETED"),
    sacct("2", "08:00:00", "09:30:10", "10:00:10", "00:30:00", "COMPLETED"),
    sacct("3", "08:00:00", "08:00:10", "09:00:10", "01:00:00", "PREEMPTED"),
    sacct("3", "15:00:00", "15:30:10", "16:00:10", "00:30:00", "COMPLETED"),
]
"""Job 1 keeps its submission, and then has a new one; numbers 2 and 3 are used again."""


def test_a_preempted_row_that_kept_its_submission_is_the_same_job_in_intake_and_twin(tmp_path):
    path = written(tmp_path, REQUEUED)
    rows = lab.intake(path).trace.sort("job_id").select("job_id", "duration", "attempts").rows()
    wanted = [("1", 14_400, 3), ("2", 3600, 1), ("2#2", 1800, 1), ("3", 3600, 1), ("3#2", 1800, 1)]
    assert rows == wanted
    attempts = attempts_of(lab.intake(path, attempts="each").trace)
    jobs = attempts.group_by("job", maintain_order=True).agg("duration" if "duration" in attempts.columns else "start")
    assert sorted(len(starts) for starts in jobs["start"]) == [1, 1, 1, 1, 3]
    first = attempts.filter(attempts["job_id"] == "1")
    gaps = (first["start"] - first["end"].shift(1)).drop_nulls().to_list()
    assert gaps == [3600.0, 3600.0]


def test_a_preempted_job_that_waits_again_has_started(tmp_path):
    lines = [
        SACCT,
        sacct("1", "08:00:00", "08:00:10", "10:00:10", "02:00:00", "PREEMPTED"),
        sacct("1", "08:00:00", "Unknown", "Unknown", "00:00:00", "PENDING"),
        sacct("2", "08:00:00", "Unknown", "Unknown", "00:00:00", "PENDING"),
    ]
    found = lab.intake(written(tmp_path, lines))
    assert found.trace.select("job_id", "duration").rows() == [("1", 7200.0)]
    assert found.report.counts() == {"waits_again": 1, "never_started": 1}
    assert found.waiting["job_id"].to_list() == ["1", "2"]


def test_throttles_and_tasks_of_arrays(tmp_path):
    head = f"{SACCT}|ReqTRES"
    done = "2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T09:00:10|01:00:00|COMPLETED|gres/gpu=1|gres/gpu=1"
    waits = "2025-03-03T08:00:00|Unknown|Unknown|00:00:00|PENDING||gres/gpu=1"
    lines = [
        head,
        f"7_1|u|{done}",
        f"7_2|u|{done}",
        f"7_[3-9,12-20:4%2]|u|{waits}",
        f"8_1|u|{done}",
        f"8_[2,3]|u|{waits}",
    ]
    found = lab.intake(written(tmp_path, lines))
    assert found.trace.select("job_id", "throttle").rows() == [("7_1", 2.0), ("7_2", 2.0), ("8_1", None)]
    assert found.report.counts() == {"never_started": 2}
    assert found.report.left_out["never_started"]["tasks"] == 10 + 2
    assert "2 never started (12 tasks of arrays)" in found.report.line()
    names = {f"7_[3-9,12-20:4%2]#{k}" for k in range(1, 11)} | {"8_[2,3]#1", "8_[2,3]#2"}
    assert set(found.waiting["job_id"]) == names
    assert found.waiting.height == 12


def test_throttles_of_slurms_json(tmp_path):
    time = {"submission": 1740988800, "start": 1740988900, "end": 1740989500, "elapsed": 600, "limit": 60}
    tres = {"allocated": [{"type": "gres", "name": "gpu", "count": 2}]}
    job = {"job_id": 71, "user": "u", "state": {"current": ["COMPLETED"]}, "time": time, "tres": tres}
    array = {"job_id": 70, "task_id": {"set": True, "number": 1}, "limits": {"max": {"running": {"tasks": 3}}}}
    other = job | {"job_id": 91, "array": {"job_id": 90, "task_id": {"set": True, "number": 1}}}
    never = {"time": {"submission": 1740988800, "start": 0, "end": 0, "elapsed": 0}, "state": {"current": ["PENDING"]}}
    waiting = job | never | {"job_id": 90, "array": {"job_id": 90, "task_id": {"set": False}, "task": "2-5%4"}}
    (tmp_path / "log.json").write_text(json.dumps({"jobs": [job | {"array": array}, other, waiting], "meta": {}}))
    found = lab.intake(tmp_path / "log.json")
    assert found.trace.select("job_id", "throttle").rows() == [("70_1", 3.0), ("90_1", 4.0)]
    assert found.report.left_out["never_started"]["tasks"] == 4


@pytest.mark.parametrize(
    ("text", "count"), [("3-9", 7), ("1", 1), ("1,3-9", 8), ("0-20:5", 5), ("1,2,...", None), ("", None), ("9-3", 0)]
)
def test_tasks_of_a_list(text, count):
    assert task_count(text) == count


def test_a_log_of_slurm_that_does_not_track_gpus_says_so(tmp_path):
    row = "2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T09:00:10|01:00:00|COMPLETED|billing=8,cpu=8,node=1"
    path = written(tmp_path, [SACCT, f"1|u|{row}", f"2|u|{row}"])
    with pytest.raises(IntakeError, match=r"2 cpu only.* No job names gres/gpu: .*AccountingStorageTRES=gres/gpu"):
        lab.intake(path)
    assert lab.intake(path, columns={"gpus": "4"}).trace["gpus"].to_list() == [4.0, 4.0]
    both = written(tmp_path, [f"{SACCT}|ReqGRES|NNodes", f"1|u|{row}|gpu:2|2", f"2|u|{row}||1"])
    assert lab.intake(both).trace["gpus"].to_list() == [4.0], "GRES say what TRES do not"


def pod(name: str, limits: dict, notes: dict | None = None) -> dict:
    at = "2026-05-04T08:00:00Z"
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "t", "creationTimestamp": at, "annotations": notes or {}},
        "spec": {"containers": [{"resources": {"limits": limits}}]},
        "status": {
            "phase": "Succeeded",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}],
            "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-05-04T09:00:00Z"}}}],
        },
    }


SHARES = [
    ("half", {}, {"gpu-fraction": "0.5"}, 0.5),
    ("three", {}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3"}, 2.0),  # 1.5: no share of one GPU
    ("given", {}, {"gpu-memory": "8000", "runai-allocated-gpus": "0.25"}, 0.25),
    ("memory", {}, {"gpu-memory": "8000"}, "gpu-memory"),
    ("odd", {}, {"gpu-fraction": "lots"}, "gpu-fraction"),
    ("cores", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "30"}, {}, 0.3),
    ("percent", {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50", "nvidia.com/gpucores": "30"}, {}, 0.5),
    ("all", {"nvidia.com/gpu": "2", "nvidia.com/gpucores": "100"}, {}, 2.0),
    ("mib", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}, {}, "nvidia.com/gpumem"),
    ("volcano", {"volcano.sh/vgpu-number": "2"}, {}, "volcano.sh/vgpu-number"),
    ("whole", {"amd.com/gpu": "4"}, {"note": "1"}, 4.0),
    ("none", {"cpu": "4"}, {"note": "1"}, "cpu_only"),
]


@pytest.mark.parametrize(("name", "limits", "notes", "answer"), SHARES, ids=[row[0] for row in SHARES])
def test_shares_of_a_gpu_are_shares_or_are_named(tmp_path, name, limits, notes, answer):
    items = [pod("other", {"nvidia.com/gpu": "1"}), pod(name, limits, notes)]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": items}))
    found = lab.intake(tmp_path / "pods.json")
    gpus = dict(found.trace.select("job_id", "gpus").iter_rows())
    if isinstance(answer, str):
        assert found.report.counts() == {answer: 1}
        assert f"t/{name}" not in gpus
    else:
        assert gpus[f"t/{name}"] == pytest.approx(answer)


def test_shares_of_templates(tmp_path):
    """Two pods of half a GPU are one of a Workload; a template that asks for memory alone is named."""
    template = pod("x", {}, {"gpu-fraction": "0.25"})
    memory = pod("x", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"})
    done = [
        {"type": kind, "status": "True", "lastTransitionTime": at, "reason": "Succeeded"}
        for kind, at in (("Admitted", "2026-05-04T08:00:00Z"), ("Finished", "2026-05-04T09:00:00Z"))
    ]
    items = [
        {
            "kind": "Workload",
            "metadata": {"name": name, "namespace": "t", "creationTimestamp": "2026-05-04T07:59:00Z"},
            "spec": {"podSets": [{"count": 2, "template": {"metadata": one["metadata"], "spec": one["spec"]}}]},
            "status": {"conditions": done},
        }
        for name, one in (("a", template), ("b", memory))
    ]
    (tmp_path / "w.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = lab.intake(tmp_path / "w.json")
    assert found.trace.select("job_id", "gpus").rows() == [("t/a", 0.5)]
    assert found.report.counts() == {"nvidia.com/gpumem": 1}


def test_first_starts_of_philly_are_read(tmp_path):
    """The first attempt has no times: the job began with the second."""

    def attempt(begin: str, end: str) -> dict:
        return {"start_time": begin, "end_time": end, "detail": [{"ip": "m", "gpus": ["g0", "g1"]}]}

    tries = [attempt("None", "None"), attempt("2017-10-07 01:12:09", "2017-10-07 01:13:09")]
    tries.append(attempt("2017-10-07 01:20:00", "2017-10-07 01:30:00"))
    entry = {"status": "Pass", "vc": "v", "jobid": "a", "submitted_time": "2017-10-07 01:12:00", "user": "u"}
    (tmp_path / "cluster_job_log").write_text(json.dumps([entry | {"attempts": tries}]))
    found = lab.intake(("philly", tmp_path))
    assert found.trace.select("submit", "started", "duration", "attempts").rows() == [(0.0, 9.0, 660.0, 3)]
    assert found.report.within == {"attempts_without_times": 1}


ANSWERS = {
    "pbs_rerun_twice.txt": ([("80.s1", 4.0, 4200.0, 2)], {"repeated": 1, "attempts": 1}),
    "pods_fraction.json": ([("t/a", 0.5, 3600.0, 1), ("t/c", 2.0, 3600.0, 1)], {"gpu-memory": 1}),
    "pods_vgpu.json": (
        [("t/v2", 0.3, 3600.0, 1), ("t/v3", 4.0, 3600.0, 1)],
        {"volcano.sh/vgpu-memory, volcano.sh/vgpu-number": 1},
    ),
    "slurm_pending_array.txt": ([("70_1", 1.0, 3600.0, 1), ("70_2", 1.0, 10_800.0, 1)], {"never_started": 1}),
    "slurm_preempted.txt": ([("81", 8.0, 10_800.0, 2), ("82", 8.0, 7185.0, 1)], {"attempts": 1}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_smallest_cases_give_their_right_answers(name, data_dir):
    rows, counts = ANSWERS[name]
    found = lab.intake(data_dir / "inputs" / "trust5" / name)
    assert found.trace.select("job_id", "gpus", "duration", "attempts").rows() == rows
    assert found.report.counts() == counts
