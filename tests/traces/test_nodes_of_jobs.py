"""Number of nodes that a job asks for: what the schema takes, and what logs say of it."""

import json
from pathlib import Path

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.errors import IntakeError, TraceError
from gpuschedlab.sim.run import Run
from gpuschedlab.traces import validate


def jobs(**columns) -> pl.DataFrame:
    """Three jobs, some columns changed."""
    return pl.DataFrame({"job_id": ["a", "b", "c"], "submit": 0.0, "gpus": [8.0, 3.0, 0.5], "duration": 60.0} | columns)


def nodes_of(found: lab.traces.Intake) -> list[int | None]:
    """Nodes of each job of a log."""
    return found.trace["nodes"].to_list() if "nodes" in found.trace.columns else [None] * found.trace.height


# --- the schema


def test_nodes_are_whole_numbers_that_divide_the_gpus():
    trace = validate(jobs(nodes=["2", "3", None]))
    assert trace["nodes"].to_list() == [2, 3, None]
    assert trace.schema["nodes"] == pl.Int64
    assert validate(jobs(nodes=[8, 1, 1]))["nodes"].to_list() == [8, 1, 1], "a share of a GPU is on one node"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([2, 2, None], r"row 2, column nodes \(job b\): found 2 with gpus 3; expected a number that divides its GPUs"),
        ([16, 1, 1], r"row 1, column nodes \(job a\): found 16 with gpus 8; expected a number that divides"),
        ([1, 1, 2], r"row 3, column nodes \(job c\): found 2 with gpus 0\.5; expected"),
        ([1, 0, 1], r"column nodes \(job b\): found 0; expected how many nodes the job asks for, from 1 up"),
        ([1, 1.5, 1], r"column nodes \(job b\): found 1\.5; expected how many nodes"),
        (
            ["2", "n[1-3]", None],
            r"column nodes \(job b\): found 'n\[1-3\]'; expected .*names of nodes are a `nodelist`",
        ),
    ],
)
def test_a_wrong_number_of_nodes_is_named(nodes, message):
    column = pl.Series("nodes", nodes, strict=False)
    with pytest.raises(TraceError, match=message):
        validate(jobs(nodes=column))
    good, bad = validate(jobs(nodes=column), on_bad="drop")
    assert (good.height, bad.height) == (2, 1)


def test_a_file_with_names_of_nodes_in_the_column_says_where_they_go(tmp_path):
    """As this project wrote it before `nodes` was a number."""
    old = jobs(nodes=["n1", "n[1-3]", "n2"])
    old.write_parquet(tmp_path / "old.parquet")
    old.write_csv(tmp_path / "old.csv")
    with pytest.raises(TraceError, match=r"found 'n1'; expected .*names of nodes are a `nodelist`; and 2 more rows"):
        lab.traces.read_parquet(tmp_path / "old.parquet")
    with pytest.raises(IntakeError, match=r"Row 2, column nodes \(job a\): found 'n1'; expected .*are a `nodelist`"):
        lab.intake(tmp_path / "old.csv")
    assert lab.traces.read_parquet(
        lab.traces.write_parquet(old.rename({"nodes": "nodelist"}), tmp_path / "new.parquet")
    )["nodelist"].to_list() == ["n1", "n[1-3]", "n2"]


def test_a_run_of_such_a_trace_tells_on_how_many_nodes_each_job_stood():
    run = lab.simulate(validate(jobs(nodes=[2, None, 1])), lab.Cluster.homogeneous(3, 4), lab.Fifo())
    assert isinstance(run, Run)
    assert run.jobs["nodes"].to_list() == [2, 1, 1]


# --- a table of one's own


def test_a_csv_is_read_checked_by_its_lines_and_written_back(tmp_path):
    head = "id,submit,gpus,duration,nodes\n"
    path = tmp_path / "jobs.csv"
    path.write_text(head + "a,0,8,60,2\nb,1,4,60,1\nc,2,4,60,\n")
    found = lab.intake(path)
    assert nodes_of(found) == [2, 1, None]
    again = lab.intake(lab.traces.write_csv(found.trace, tmp_path / "again.csv")).trace
    assert again["nodes"].equals(found.trace["nodes"])
    path.write_text(head + "a,0,8,60,2\nb,1,4,1,3\nc,2,4,1,x\nd,3,4,1,0\n")
    good, bad = lab.read("csv", path, on_bad="drop")
    assert good["job_id"].to_list() == ["a"]
    assert bad["row"].to_list() == [3, 4, 5]
    assert bad["problem"][0].startswith("column nodes (job b): found '3' with gpus 4; expected a number that divides")
    assert bad["problem"][1].startswith("column nodes (job c): found 'x'; expected how many nodes")
    with pytest.raises(TraceError, match=r"row 3, column nodes \(job b\).* and 2 more rows"):
        lab.read("csv", path)


# --- Slurm


def sacct(folder: Path, *rows: str, fields: str = "NNodes") -> Path:
    """Log of jobs with 8 GPUs each, by what stands in further fields."""
    lines = [f"JobID|Submit|Start|End|Elapsed|State|AllocTRES|{fields}"]
    for i, more in enumerate(rows, 1):
        name, more = more.split("=") if "=" in more else (str(i), more)
        head = f"{name}|2025-03-03T08:{i:02}:00|2025-03-03T09:00:00|2025-03-03T10:00:00|01:00:00|COMPLETED"
        lines.append(f"{head}|cpu=8,gres/gpu=8|{more}")
    path = folder / "sacct.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_slurms_nodes_are_those_of_jobs_of_more_than_one(tmp_path):
    """With ReqNodes only of jobs that asked for more; then as many as they had."""
    assert nodes_of(lab.intake(sacct(tmp_path, "1", "2", "", "4"))) == [None, 2, None, 4]
    assert nodes_of(lab.intake(sacct(tmp_path, "2", "1", fields="AllocNodes"))) == [2, None]
    asked = sacct(tmp_path, "2|2", "2|1", "4|2", "8|", fields="NNodes|ReqNodes")
    assert nodes_of(lab.intake(asked)) == [2, None, 4, 8]
    found = lab.intake(asked, columns={"nodes": "NNodes"})
    assert nodes_of(found) == [2, 2, 4, 8], "where a caller says so, all"
    assert "ReqNodes" in found.report.unused
    assert nodes_of(lab.intake(sacct(tmp_path, "1", "2"), columns={"nodes": "NNodes"})) == [1, 2]


def test_nodes_that_do_not_divide_the_gpus_are_reported_and_not_asked_for(tmp_path):
    found = lab.intake(sacct(tmp_path, "2", "3", "16"))
    assert nodes_of(found) == [2, None, None]
    assert "2 jobs have not as many GPUs on each node: any number of nodes will do" in found.report.line()


def test_components_of_a_heterogeneous_job_stand_on_their_nodes_together(tmp_path):
    rows = ["7+0=2|n[1-2]", "7+1=2|n[3-4]", "8+0=2|n[1-2]", "8+1=2|n[1-2]", "9+0=2|n[1-2]", "9+1=4|n[3-6]"]
    rows = [*rows, "10+0=2|n[1-2]", "10+1=1|n3"]
    path = sacct(tmp_path, *rows, fields="NNodes|NodeList")
    path.write_text(
        path.read_text().replace("T08:02", "T08:01").replace("T08:04", "T08:03").replace("T08:06", "T08:05")
    )
    path.write_text(path.read_text().replace("T08:08", "T08:07"))
    found = lab.intake(path).trace
    assert found.select("job_id", "gpus", "nodes", "nodelist").rows() == [
        ("7", 16.0, 4, "n[1-2],n[3-4]"),
        ("8", 16.0, 2, "n[1-2]"),
        ("9", 16.0, None, "n[1-2],n[3-6]"),  # 4 GPUs on each of two, 2 on each of four
        ("10", 16.0, None, "n[1-2],n3"),  # the second says nothing
    ]


def test_the_last_attempt_says_how_many_nodes(tmp_path):
    head = "JobID|Submit|Start|End|Elapsed|State|AllocTRES|NNodes\n"
    one = "1|2025-03-03T08:00:00|2025-03-03T08:00:00|2025-03-03T08:10:00|00:10:00|NODE_FAIL|gres/gpu=8|2\n"
    two = "1|2025-03-03T08:10:10|2025-03-03T08:20:00|2025-03-03T08:30:00|00:10:00|COMPLETED|gres/gpu=8|4\n"
    (tmp_path / "sacct.txt").write_text(head + one + two)
    assert nodes_of(lab.intake(tmp_path / "sacct.txt")) == [4]


def test_slurms_json(tmp_path):
    def job(name: int, **more) -> dict:
        tres = {"allocated": [{"type": "gres", "name": "gpu", "count": 8}]}
        time = {"submission": 1740988800 + name, "start": 1740988900, "end": 1740989900, "elapsed": 1000}
        return {"job_id": name, "state": {"current": ["COMPLETED"]}, "time": time, "tres": tres} | more

    listed = [job(1, allocation_nodes=2, nodes="n[1-2]"), job(2, allocation_nodes=1, nodes="n1"), job(3)]
    listed.append(job(4, allocation_nodes={"set": True, "number": 4}))
    (tmp_path / "log.json").write_text(json.dumps({"jobs": listed, "meta": {}}))
    found = lab.intake(tmp_path / "log.json")
    assert nodes_of(found) == [2, None, None, 4]
    assert found.trace["nodelist"].to_list() == ["n[1-2]", "n1", None, None]


# --- PBS


@pytest.mark.parametrize(
    ("asked", "hosts", "nodes"),
    [
        ("select=2:ncpus=8:ngpus=4", "n1/0*8+n2/0*8", 2),
        ("select=2:ncpus=8:ngpus=4", "n1/0*8+n1/1*8", None),  # two chunks on a node
        ("select=2:ngpus=4+1:ncpus=4", "n1/0+n2/0+n3/0*4", 2),  # the third has no GPUs
        ("select=2:ngpus=4+1:ngpus=1", "n1/0+n2/0+n3/0", None),  # GPUs that are not as many on each
        ("select=1:ngpus=8", "n1/0", 1),  # a chunk stands on one node
        ("nodes=2:ppn=8:gpus=2", "n1/0-7+n2/0-7", 2),
        ("nodes=n1:gpus=2+n2:gpus=2", "n1/0+n2/0", 2),
        ("ngpus=8 Resource_List.nodect=2", "n1/0+n2/0", 2),
        ("ngpus=8", "n1/0+n2/0", None),
    ],
)
def test_chunks_of_pbs(tmp_path, asked, hosts, nodes):
    line = (
        f"user=a ctime=1740988800 start=1740988860 exec_host={hosts} end=1740996060 Exit_status=0 Resource_List.{asked}"
    )
    (tmp_path / "20250303").write_text(f"03/03/2025 10:01:00;E;1.srv;{line}\n")
    found = lab.intake(tmp_path / "20250303")
    assert nodes_of(found) == [nodes]
    assert found.trace["nodelist"].to_list() == [hosts]


# --- Kubernetes


def pod(name: str, group: str, gpus: int, node: str | None) -> dict:
    """A pod of a group that ran for an hour, on a node or somewhere."""
    container = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    start = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2025-03-03T08:00:05Z"}
    ended = [{"state": {"terminated": {"finishedAt": "2025-03-03T09:00:05Z"}}}]
    meta = {"name": name, "creationTimestamp": "2025-03-03T08:00:00Z", "labels": {"job-name": group}}
    spec = {"containers": [container]} | ({"nodeName": node} if node else {})
    status = {"phase": "Succeeded", "conditions": [start], "containerStatuses": ended}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("pods", "nodes", "names"),
    [
        ([(4, "n1"), (4, "n2")], 2, "n1,n2"),
        ([(4, "n1"), (4, "n1")], 1, "n1"),
        ([(2, "n1"), (2, "n1"), (2, "n2")], None, "n1,n2"),  # 4 GPUs on one, 2 on the other
        ([(4, None), (4, None)], 2, None),
        ([(4, "n1"), (2, "n2"), (0, "n3")], None, "n1,n2,n3"),
        ([(4, "n1"), (4, "n2"), (0, "n3")], 2, "n1,n2,n3"),
        ([(8, "n1")], 1, "n1"),
    ],
)
def test_pods_of_a_group(tmp_path, pods, nodes, names):
    items = [pod(f"g-{i}", "g", *one) for i, one in enumerate(pods)]
    (tmp_path / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = lab.intake(tmp_path / "pods.json")
    assert nodes_of(found) == [nodes]
    assert found.trace.get_column("nodelist", default=pl.Series([None])).to_list() == [names]
    assert "stand on a node each" not in found.report.line()


@pytest.mark.parametrize(("sets", "nodes"), [([(3, 2)], 3), ([(1, 8), (4, 0)], 1), ([(2, 4), (1, 1)], None)])
def test_pods_that_are_admitted_together(tmp_path, sets, nodes):
    """Of Kueue and of Volcano, whose objects name no node."""
    at = [
        {"type": "Admitted", "status": "True", "lastTransitionTime": "2025-03-03T08:00:05Z"},
        {"type": "Finished", "status": "True", "lastTransitionTime": "2025-03-03T09:00:05Z"},
    ]
    course = [
        {"status": word, "lastTransitionTime": c["lastTransitionTime"]} for word, c in zip(("Running", "Completed"), at)
    ]
    made = {"name": "j", "creationTimestamp": "2025-03-03T08:00:00Z"}

    def of(gpus: int) -> dict:
        return {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}

    workload = {"podSets": [{"count": n, "template": of(g)} for n, g in sets]}
    volcano = {"tasks": [{"replicas": n, "template": of(g)} for n, g in sets]}
    for item in (
        {"kind": "Workload", "spec": workload, "status": {"conditions": at}},
        {"kind": "Job", "spec": volcano, "status": {"conditions": course, "state": {"phase": "Completed"}}},
    ):
        whole = item | {"apiVersion": "batch.volcano.sh/v1alpha1", "metadata": made}
        (tmp_path / "jobs.json").write_text(json.dumps(whole))
        found = lab.intake(("k8s", tmp_path / "jobs.json"))
        assert nodes_of(found) == [nodes]
        assert ("pods of a job stand on a node each" in found.report.line()) == (nodes == 3)
