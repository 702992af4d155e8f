"""Uploads that were made to harm: each is a clear error, takes little memory, and the process goes on."""

import gzip
import io
import subprocess
import sys
import zlib

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab import errors
from gpuschedlab.errors import ClusterError, LabError, TraceError
from gpuschedlab.traces.logs.options import NAMES
from gpuschedlab.widgets.explorers.own_log import uploaded

HEAD = b"job_id,submit,gpus,duration\n"
ROWS = HEAD + b"a,0,1,60\n"
BOMB = gzip.compress(HEAD, 1) + gzip.compress(b"1,2,3,4\n" * 1_000_000, 1) * 25  # parts one after another are one file
LARGE = {
    "rows in gzip": ("bomb.csv.gz", BOMB, "unpacked; expected at most"),
    "gzip in gzip": ("twice.csv.gz", gzip.compress(BOMB, 1), "expected plain text, or gzip once"),
    "a long value": ("cell.csv", HEAD + b"a" * 2**21 + b",0,1,60\n", "found a value of 2,097,152 bytes in job_id"),
    "a long value of many lines": ("quoted.csv", HEAD + b'"' + b"bb\n" * 2**20 + b'",0,1,60\n', "found a value of"),
    "many columns": ("wide.csv", HEAD[:-1] + b",x" * 20_000 + b"\n", "found 1 lines of 20,004 columns"),
    "zlib": ("packed.csv", zlib.compress(ROWS * 10), "expected plain text, or gzip once"),
    "a long line": ("log.swf", b"; Version: 2.2\n" + b"1 " * 2**20, "found a value of"),
    "deep JSON": ("jobs.json", b'{"jobs":' + b"[" * 10**6, "expected"),
}
SPECS = {
    'source = "x"': "found the option 'source'",
    "units = 3": "found units='3'; expected a text or a table of names and texts",
    "accept = 3": "found accept='3'; expected a list of texts",
    "accept = [3]": r"found accept='\[3\]'; expected a list of texts",
    '[cluster]\nnodes="999999999x64:a"': "found 63,999,999,936 GPUs; expected at most 1,000,000",
    '[cluster]\nnodes="²x8"': "expected NODESxGPUS",
    "zone = 3": "found zone='3'; expected a text",
    "shards = -2": "found shards=-2.0; expected a finite number above 0",
    "speed = inf": "found speed=inf; expected a finite number above 0",
    "[columns]\ngpus = 3": "found columns=.* expected a table of names and texts",
}


@pytest.mark.parametrize("what", LARGE)
def test_what_is_too_large_is_refused_with_words(what):
    name, content, found = LARGE[what]
    with pytest.raises(TraceError, match=found) as caught:
        uploaded(name, content, "" if name.endswith(("swf", "json")) else 'format = "csv"')
    assert name.removesuffix(".swf") in str(caught.value) or "swf" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["..", ".", "", "/", "a\0.csv", "a" * 300 + ".csv", "ü" * 300, "..\\..\\x.csv", "\ud800"]
)
def test_any_name_is_one_of_a_file_in_a_folder_of_its_own(name):
    assert uploaded(name, ROWS).trace.height == 1


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_of_wrong_values_is_refused_by_name(spec):
    with pytest.raises(TraceError, match=SPECS[spec]):
        uploaded("jobs.csv", ROWS, spec)


VALUES = (
    "3",
    "-1",
    "nan",
    "true",
    '""',
    '"x"',
    "[]",
    "[3]",
    '["x"]',
    "{}",
    "{x=3}",
    '{gpus="x"}',
    "2024-05-01",
    "1e300",
)


@pytest.mark.parametrize("option", [*NAMES, "format", "source", "options"])
def test_no_value_of_an_option_raises_what_is_not_ours(option):
    refused = []
    for value in VALUES:
        for name, content in {"jobs.csv": ROWS, "log.swf": b"1 0 5 60 4 -1 -1 8 7200 -1 1 3 3 3 3 3 3 3\n"}.items():
            try:
                assert uploaded(name, content, f"{option} = {value}\n").trace.height
            except LabError as error:
                refused.append(str(error))
    assert refused
    assert all("expected" in text for text in refused)


def test_a_table_in_parquet_has_no_more_rows_than_others(monkeypatch):
    made = io.BytesIO()
    pl.select(job_id=pl.int_range(3_000).cast(pl.String)).write_parquet(made)
    monkeypatch.setattr("gpuschedlab._files.MOST_ROWS", 2_999)
    with pytest.raises(TraceError, match=r"found 3,000 rows of 1 columns; expected at most 2,999"):
        uploaded("jobs.parquet", made.getvalue())


def test_a_cluster_has_a_bound_wherever_it_comes_from():
    for make in (lambda: lab.Cluster.parse("20000x64"), lambda: lab.Cluster.homogeneous(10**9, 8)):
        with pytest.raises(ClusterError, match="GPUs; expected at most 1,000,000"):
            make()
    assert lab.Cluster.parse("15625x64").total_gpus == errors.MOST_GPUS


SENT = """
import gzip, resource
from gpuschedlab.errors import TraceError
from gpuschedlab.widgets.explorers.own_log import uploaded
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
def peak():  # kB; ru_maxrss begins with that of the parent
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
head, block = b"job_id,submit,gpus,duration\\n", b"1,2,3,4\\n" * 1_000_000
def packed(*parts):  # each part is packed once: a gzip file may be of several, one after the other
    return b"".join(gzip.compress(part, 1) * times for part, times in parts)
rows = packed((head, 1), (block, 300))
quoted = packed((head + b'"', 1), (b"b" * 1_000_000, 1_500), (b'",0,1,60', 1))
for name, content in {"rows.csv.gz": rows, "quoted.csv.gz": quoted, "cell.csv": head + b"a" * 200_000_000 + b",0,1,60"}.items():
    try:
        uploaded(name, content)
    except TraceError as error:
        print(error)
print(uploaded("jobs.csv", head + b"a,0,1,60").trace.height, peak() < 3e6)
"""


@pytest.mark.slow
def test_a_process_outlives_hundreds_of_megabytes():
    said = subprocess.run([sys.executable, "-c", SENT], capture_output=True, text=True, timeout=600, check=False)
    lines = said.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["rows.csv.gz", "quoted.csv.gz", "csv cell.csv"], (
        said.stderr
    )
    assert lines[3] == "1 True"
