"""Jobs of HTCondor and of Grid Engine's accounting, read as their manuals say."""

import json

import pytest

import gpuschedlab as lab
from gpuschedlab.errors import TraceError

QUEUED = 1740988800
BEGUN = 1740988860
OVER = 1740996060


def ad(job: int, status: int, **more) -> dict:
    """Attributes of a job that ran from BEGUN on, on two GPUs."""
    return {
        "ClusterId": job, "ProcId": 0, "QDate": QUEUED, "JobStatus": status, "Owner": "ann", "RequestGPUs": 2, "JobCurrentStartDate": BEGUN,
    } | more  # fmt: skip


def test_condor(tmp_path):
    ads = [
        ad(1, 4, CompletionDate=OVER, ExitCode=0, LastRemoteHost="slot1_2@n7", AllowedJobDuration=9000),
        ad(2, 4, CompletionDate=OVER, ExitCode=1, ProcId=3),
        ad(3, 4, CompletionDate=OVER, ExitBySignal=True),
        ad(4, 3, CompletionDate=0, EnteredCurrentStatus=BEGUN + 40),
        ad(5, 3, CompletionDate=0, EnteredCurrentStatus=BEGUN, JobCurrentStartDate=None),
        ad(6, 1, JobCurrentStartDate=None),
        ad(7, 4, CompletionDate=OVER, ExitCode=0, RequestGPUs=None),
        ad(8, 2, EnteredCurrentStatus=BEGUN),
    ]
    (tmp_path / "history").write_text(json.dumps(ads))
    found = lab.intake(tmp_path / "history")
    assert found.report.format == "condor"
    rows = found.trace.select("job_id", "submit", "started", "gpus", "duration", "status").rows()
    assert rows[:4] == [
        ("1.0", 0, 60, 2, OVER - BEGUN, "completed"),
        ("2.3", 0, 60, 2, OVER - BEGUN, "failed"),
        ("3.0", 0, 60, 2, OVER - BEGUN, "failed"),
        ("4.0", 0, 60, 2, 40, "killed"),
    ]
    assert found.trace["censored"].to_list() == [False] * 4 + [True]  # 8 still runs
    assert found.report.counts() == {"never_started": 2, "cpu_only": 1}
    assert found.trace.row(0, named=True)["nodelist"] == "n7"
    assert found.trace.row(0, named=True)["requested_time"] == 9000
    (tmp_path / "history").write_text('[1, {"ClusterId": 1}]')
    with pytest.raises(TraceError, match="job 1: found no object; expected the answer of condor_history -json"):
        lab.intake(tmp_path / "history")


def line(
    job: int, times=(QUEUED, BEGUN, OVER), failed=0, exit=0, task=0, part="NONE", asked="gpu=2,h_rt=24:00:00"
) -> str:
    """A line of `accounting`, as accounting(5) orders its fields."""
    usage = ":".join(["7200", *["0"] * 17])
    own = f"gpu.q:n7:staff:ann:train:{job}:acct:0:{times[0]}:{times[1]}:{times[2]}:{failed}:{exit}:{usage}"
    return f"{own}:proj:dep:smp:8:{task}:100.0:1.5:0.0:-U staff -l {asked} -pe smp 8:0.0:{part}:1000.0:0:0\n"


def test_sge(tmp_path):
    lines = [
        "# Version: 8.1.9\n",
        line(1),
        line(2, failed=100, exit=137, task=4),
        line(2, task=4, part="1.n7"),
        line(3, times=(QUEUED * 1000, BEGUN * 1000, OVER * 1000), exit=1),
        line(4, times=(QUEUED, 0, 0), failed=1),
        line(5, asked="h_rt=3600"),
    ]
    (tmp_path / "accounting").write_text("".join(lines))
    found = lab.intake(tmp_path / "accounting")
    assert found.report.format == "sge"
    assert found.trace.select(
        "job_id", "submit", "started", "gpus", "duration", "requested_time", "status", "vc"
    ).rows() == [
        ("1", 0, 60, 2, OVER - BEGUN, 86_400, "completed", "gpu.q"),
        ("2.4", 0, 60, 2, OVER - BEGUN, 86_400, "killed", "gpu.q"),
        ("3", 0, 60, 2, OVER - BEGUN, 86_400, "failed", "gpu.q"),
    ]
    assert found.report.counts() == {"steps": 1, "never_started": 1, "cpu_only": 1}
    assert "gpu= counts the GPUs of a job" in found.report.line()
