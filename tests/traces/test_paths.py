"""A path that exists is that file, whatever characters are in its name: polars would take `[ ] * ?` for a pattern."""

import re

import pytest
from package_files import PACKAGE, files_of

import gpuschedlab as lab

HEAD = "job_id,submit,gpus,duration\n"


@pytest.mark.parametrize(
    ("name", "other"), [("jobs[1].csv", "jobs1.csv"), ("week*.csv", "week1.csv"), ("a?.csv", "ab.csv")]
)
@pytest.mark.parametrize(
    "read", [lambda p: lab.intake(p).trace, lambda p: lab.read("csv", p), lambda p: lab.intake(("csv", p)).trace]
)
def test_a_file_with_a_pattern_for_a_name_is_read_itself(tmp_path, name, other, read):
    (tmp_path / name).write_text(f"{HEAD}mine,0,1,60\n")
    (tmp_path / other).write_text(f"{HEAD}other,0,8,6000\n")
    assert read(tmp_path / name)["job_id"].to_list() == ["mine"]


def test_no_path_is_given_to_polars_as_a_pattern():
    calls = re.compile(r"pl\.(?:read|scan)_(?:csv|parquet|ndjson|ipc)\((?:path|file)\b(?!\()[^\n]*")
    found = [(f.name, call) for f in sorted(files_of(PACKAGE, ".py")) for call in calls.findall(f.read_text())]
    assert [(name, call) for name, call in found if "glob=False" not in call] == []
    assert found
