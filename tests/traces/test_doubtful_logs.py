"""Logs that say less than they seem to: broken rows, limits without a unit, accelerators that are no GPUs."""

import json

import pytest

import gpuschedlab as lab
from gpuschedlab.errors import IntakeError, TraceError

SACCT = "JobID|JobName|User|Submit|Start|End|State|AllocTRES|Timelimit\n"


def row(job: str, name: str) -> str:
    day = "2025-01-01T0"
    return f"{job}|{name}|u|{day}0:00:00|{day}0:01:00|{day}1:00:00|COMPLETED|gres/gpu=2|02:00:00\n"


def test_a_separator_in_a_name_costs_its_row_alone(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text(SACCT + row("1", "good") + row("2", "a|b"))
    found = lab.intake(("slurm", file))
    assert found.trace["job_id"].to_list() == ["1"]
    assert found.report.left_out["bad"]["rows"] == 1


HEAD = "job_id,submit_time,start_time,end_time,time_limit,job_state,{},user_id\n"
ROWS = "1,2020-05-05 10:00:00,2020-05-05 10:10:00,2020-05-05 11:30:00,120,COMPLETED,4,7\n"


def test_limits_beside_names_of_slurms_interface_are_minutes(tmp_path):
    file = tmp_path / "pm100.csv"
    file.write_text(HEAD.format("num_gpus_alloc") + ROWS)
    found = lab.intake(("csv", file))
    assert found.trace["requested_time"].to_list() == [7200.0]
    assert any("time_limit" in line and "min" in line for line in found.report.assumed)


def test_limits_beyond_which_most_jobs_ran_are_asked_about(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(HEAD.format("gpus") + ROWS)
    with pytest.raises(IntakeError, match="100% of the jobs that ran beyond their limits.*'min'"):
        lab.intake(("csv", file))
    for unit, limit in (("min", 7200.0), ("s", 120.0)):
        found = lab.intake(("csv", file), units={"requested_time": unit})
        assert found.trace["requested_time"].to_list() == [limit]


def pod(name: str, asked: dict, claims: tuple = ()) -> dict:
    times = {"startedAt": "2025-01-01T00:00:20Z", "finishedAt": "2025-01-01T01:00:20Z", "exitCode": 0}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x", "creationTimestamp": "2025-01-01T00:00:00Z"},
        "spec": {"containers": [{"resources": {"limits": asked}}], "resourceClaims": list(claims)},
        "status": {
            "phase": "Succeeded",
            "startTime": "2025-01-01T00:00:10Z",
            "containerStatuses": [{"state": {"terminated": times}}],
        },
    }


def test_accelerators_that_are_not_counted_are_named(tmp_path):
    items = [
        pod("claims", {}, ({"name": "gpus", "resourceClaimTemplateName": "two"},)),
        pod("ascend", {"huawei.com/Ascend910": "8"}),
        pod("gaudi", {"habana.ai/gaudi": "8"}),
        pod("shared", {"nvidia.com/gpu.shared": "1"}),
        pod("memory", {"nvidia.com/gpumem": "3000"}),
        pod("plain", {"nvidia.com/gpu": "2"}),
        pod("cpu", {"cpu": "2"}),
    ]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = lab.intake(("k8s", file))
    assert found.trace.select("job_id", "gpus").rows() == [("x/plain", 2.0)]
    assert found.report.counts() == {
        "resource claims": 1,
        "huawei.com/Ascend910": 1,
        "habana.ai/gaudi": 1,
        "nvidia.com/gpu.shared": 1,
        "nvidia.com/gpumem": 1,
        "cpu_only": 1,
    }


def test_a_row_of_no_gpus_holds_no_gpu_hours(tmp_path):
    (tmp_path / "a.csv").write_text("job_id,submit,gpus,duration\na,0,2,60\nb,soon,0,\nc,5,2,60\n")
    report = lab.intake(tmp_path / "a.csv").report
    assert (report.left_out["bad"]["gpu_hours"], report.lost, report.jobs) == (0.0, 0.0, 2)


def test_jobs_of_a_table_that_names_none_are_numbered(tmp_path):
    (tmp_path / "a.csv").write_text("submit,gpus,duration\n0,2,60\n5,4,60\n")
    found = lab.intake(tmp_path / "a.csv")
    assert found.trace["job_id"].to_list() == ["1", "2"]
    assert "no column names the jobs: they are numbered" in found.report.line()


@pytest.mark.parametrize(
    ("word", "text", "way"),
    [
        (
            "{}",
            "7|ann|2025-03-03T08:00:00|gres/gpu=8\n",
            r"begins '7\|ann.*holds values \(7\), no names: .*sacct: without -n",
        ),
        ("slurm:{}", "7|ann|2025-03-03T08:00:00|gres/gpu=8\n", r"expected also JobID, .*holds values \(7\)"),
        ("csv:{}", "a,0,2,60\nb,5,2,60\n", r"expected also job_id, submit, gpus, duration .*holds values \(0\)"),
        ("{}", "User|Submit|Start|End|AllocTRES\na|b|c|d|gres/gpu=8\n", "expected also JobID, as of: sacct"),
    ],
)
def test_a_log_without_names_or_jobs_says_the_way_out(tmp_path, word, text, way):
    (tmp_path / "log.txt").write_text(text)
    with pytest.raises(TraceError, match=way):
        lab.intake(word.format(tmp_path / "log.txt"))
