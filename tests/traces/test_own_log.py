"""A log of one's own in explorers and notebooks: its report, its cluster, and the spec by which it is read."""

import json
from datetime import datetime
from pathlib import Path

import pytest

import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.intake.read import taken_of
from gpuschedlab.widgets import Explorer
from gpuschedlab.widgets.explorers.own_log import spec_of, uploaded

ROWS = "id,when,cards,took\n" + "".join(f"{i},{60 * i},{1 + i % 4},{600 + i}\n" for i in range(20)) + "x,0,0,9\n"
COLUMNS = """[columns]
job_id = "id"
submit = "when"
gpus = "cards * 2"
duration = "took"
"""
CLUSTER = '\n[cluster]\nnodes = "2x4:t4"\n'
LINE = "intake: 21 rows, 20 jobs, 17 GPU-h; left out: 1 CPU-only"


@pytest.fixture
def spec(tmp_path):
    """TOML spec beside its log."""
    (tmp_path / "own.csv").write_text(ROWS)
    path = tmp_path / "own.toml"
    path.write_text(f'format = "csv"\npath = "own.csv"\n{COLUMNS}{CLUSTER}')
    return path


def explorer_of(*given, **options):
    return Explorer(*given, policies=[lab.Fifo, lab.Srtf], **options)


def test_an_explorer_shows_what_came_in_and_runs_on_the_logs_cluster(spec):
    explorer = explorer_of(lab.intake(spec))
    assert str(explorer.cluster_of(explorer.setting)) == "2x4:t4"
    assert LINE in explorer.panel.report.value
    assert LINE in explorer._note()  # where no kernel answers
    assert explorer.panel.report.layout.display is None


def test_among_several_traces_the_report_is_of_the_one_that_is_shown(spec):
    explorer = explorer_of({"made": small_trace(), "mine": lab.intake(spec)}, lab.Cluster.parse("4x8"))
    assert (explorer.panel.report.value, explorer.panel.report.layout.display) == ("", "none")
    explorer.panel.trace.value = "mine"
    assert LINE in explorer.panel.report.value
    assert str(explorer.cluster_of(explorer.setting)) == "2x4:t4"


def send(explorer, name: str, content: bytes):
    """As a hand that chooses a file."""
    given = {"name": name, "content": memoryview(content), "type": "", "size": len(content)}
    explorer.door.file.value = (given | {"last_modified": datetime(2026, 1, 1)},)


def test_a_log_is_sent_read_as_guessed_and_again_as_the_box_says():
    explorer = explorer_of({"made": small_trace()}, lab.Cluster.parse("4x8"), upload=True)
    text = ROWS.replace("id,when,cards,took", "id,submit,gpus,duration").encode()
    send(explorer, "own.csv", text)
    assert explorer.error.outputs == ()
    assert explorer.setting.trace == "own.csv"
    assert explorer.run.jobs["gpus"].sum() == 50
    box = explorer.door.spec.value
    assert 'gpus = "gpus"' in box
    explorer.door.spec.value = box.replace('"gpus"', '"gpus * 2"') + CLUSTER
    explorer.door.again.click()
    assert explorer.run.jobs["gpus"].sum() == 100
    assert str(explorer.cluster_of(explorer.setting)) == "2x4:t4"
    assert LINE in explorer.panel.report.value
    explorer.panel.trace.value = "made"
    assert explorer.run.jobs.height == small_trace().height


def test_what_is_not_recognised_is_named_in_the_box():
    explorer = explorer_of({"made": small_trace()}, lab.Cluster.parse("4x8"), upload=True)
    before = explorer.setting
    send(explorer, "own.csv", ROWS.encode())
    assert explorer.error.outputs[0]["ename"] == "TraceError"
    assert explorer.setting == before
    explorer.door.spec.value = f'format = "csv"\n{COLUMNS}{CLUSTER}'
    explorer.door.again.click()
    assert explorer.error.outputs == ()
    assert explorer.run.jobs["gpus"].sum() == 100


@pytest.mark.parametrize("key", ["path", "speeds"])
def test_only_what_was_sent_is_read(key):
    with pytest.raises(TraceError, match=f"found {key} = '/etc/passwd'; expected none"):
        uploaded("own.csv", ROWS.encode(), f'{key} = "/etc/passwd"\n')
    for name, spec in (("own.toml", ""), ("own.csv", 'format = "spec"')):
        with pytest.raises(TraceError, match="found a spec; expected a log"):
            uploaded(name, f'{key} = "/etc/passwd"'.encode(), spec)
    with pytest.raises(TraceError, match="spec of own.csv: found no TOML"):
        uploaded("own.csv", ROWS.encode(), "format = ")


def test_the_same_spec_gives_the_same_bytes_everywhere(spec, tmp_path, monkeypatch):
    """From Python, from a word of the command line or a notebook's parameter, and from what a browser sends."""
    traces = [lab.intake(spec).trace, taken_of(str(spec))[0].trace, lab.intake(str(spec)).trace]
    traces.append(uploaded("own.csv", ROWS.encode(), f'format = "csv"\n{COLUMNS}{CLUSTER}').trace)
    monkeypatch.chdir(tmp_path)
    word = "csv:own.csv:job_id=id,submit=when,gpus=cards * 2,duration=took"
    traces += [lab.intake(word).trace, taken_of(word)[0].trace]
    traces.append(lab.intake(word.replace(",duration=took", ""), columns={"duration": "took"}).trace)
    packed = []
    for trace in traces:
        lab.traces.write_parquet(trace, tmp_path / "t.parquet")
        packed.append((tmp_path / "t.parquet").read_bytes())
    assert packed == packed[:1] * len(packed)


def test_what_was_guessed_reads_every_sample_as_before(data_dir):
    """Of the sample logs that are recognised, but for those that say themselves what they lack."""
    folder = Path(data_dir) / "inputs" / "intake"
    read = 0
    for name in json.loads((folder / "expected.json").read_text()):
        path = folder / name
        if not path.is_file() or path.suffix == ".toml":
            continue
        content = path.read_bytes()
        try:
            found = uploaded(path.name, content)
        except TraceError:
            continue
        assert uploaded(path.name, content, spec_of(found)).trace.equals(found.trace), name
        read += 1
    assert read >= 15


def test_a_report_names_the_gaps_between_submissions_and_where_most_jobs_are(tmp_path):
    hours = [0, 1, 2, 30, 31, 100, *(200 + i / 100 for i in range(394))]
    rows = "".join(f"{i},{h * 3600},1,9\n" for i, h in enumerate(hours))
    (tmp_path / "own.csv").write_text("id,when,cards,took\n" + rows)
    (tmp_path / "own.toml").write_text(f'format = "csv"\npath = "own.csv"\n{COLUMNS}')
    found = lab.intake(tmp_path / "own.toml").report
    assert [(at / 3600, gap, before) for at, gap, before in found.gaps] == [
        (30, 28, 3 / 400), (100, 69, 5 / 400), (200, 100, 6 / 400),
    ]  # fmt: skip
    assert found.span == pytest.approx(203.93 * 3600)
    assert found.dense == pytest.approx((31 * 3600, 172.93 * 3600))


def test_a_parquet_file_of_a_trace_reports_its_jobs_and_gpu_hours(tmp_path):
    trace = small_trace()
    trace.write_parquet(tmp_path / "bare.parquet")
    report = lab.intake(tmp_path / "bare.parquet").report
    assert (report.rows, report.jobs) == (trace.height, trace.height)
    assert report.gpu_hours == pytest.approx(sum(g * d for g, d in trace.select("gpus", "duration").rows()) / 3600)
